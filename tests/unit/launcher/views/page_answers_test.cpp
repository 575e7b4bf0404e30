#include "launcher/views/page_answers.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/page/page_server.hpp"
#include "support/fake_workers.hpp"
#include "support/recorded_key_value.hpp"

namespace drun::launcher {
namespace {

using drun::test::RecordedKeyValue;
using rendezvous::Link;
using rendezvous::LinkEvent;
using rendezvous::WatchSnapshot;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FakeFiles;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class PageAnswersTest : public testing::Test {
 protected:
  using Got = std::shared_ptr<std::optional<HttpAnswer>>;

  PageAnswersTest() {
    own_.job = "train";
    own_.host = "node7";
  }
  Got ask(const HttpRequest& request) {
    auto got = std::make_shared<std::optional<HttpAnswer>>();
    answers_.serve(request, [got](HttpAnswer answer) {
      EXPECT_FALSE(*got) << "a second answer";
      *got = std::move(answer);
    });
    return got;
  }
  Got get(const std::string& path, const std::string& query = "", const std::string& accept = "") {
    HttpRequest request;
    request.path = path;
    request.query = query;
    request.accept = accept;
    return ask(request);
  }
  // 0: none yet.
  static int status(const Got& got) { return *got ? (*got)->status : 0; }
  static std::string body(const Got& got) { return *got ? *(*got)->body : "no answer"; }
  // The store tells what it holds of the job.
  void snapshot() { EXPECT_TRUE(answers_.on_event(WatchSnapshot{JobWatch::kWatch, {}})); }
  void pass(milliseconds time) {
    now_ += time;
    answers_.on_time();
  }
  PageAnswers::Parts parts() {
    PageAnswers::Parts parts{files_, events_, {}, {}, "train", false};
    parts.own = [this] {
      ++looks_;
      return own_;
    };
    parts.clock = [this] { return now_; };
    return parts;
  }

  FakeFiles files_;
  EventMemory events_;
  RecordedKeyValue store_;
  status::AgentStatus own_;
  int looks_ = 0;  // so often its status was looked at, for documents
  PageAnswers::Time now_{std::chrono::hours(1)};
  PageAnswers answers_{parts()};
};

TEST_F(PageAnswersTest, EachPathHasItsAnswer) {
  events::Event event;
  event.reason = "a slow disk";
  events_.add(event);
  const struct {
    std::string path;
    std::string accept;
    std::string type;
    std::string text;
  } kPaths[] = {
      {"/", "", "text/html; charset=utf-8", "<html"},
      {"/status.json", "", "application/json", "\"train\""},
      {"/events.json", "", "application/json", "a slow disk"},
      {"/trace.json", "", "application/json", "traceEvents"},
      {"/metrics", "", "text/plain; version=0.0.4; charset=utf-8", "# HELP drun_"},
      {"/metrics", "application/openmetrics-text", "application/openmetrics-text; version=1.0.0",
       "# EOF\n"},
      {"/healthz", "", "text/plain; charset=utf-8", "ok\n"},
  };
  for (const auto& each : kPaths) {
    SCOPED_TRACE(each.path);
    const Got got = get(each.path, "", each.accept);
    ASSERT_EQ(status(got), 200);
    EXPECT_THAT((*got)->type, StartsWith(each.type));
    EXPECT_THAT(body(got), HasSubstr(each.text));
  }
}

// A page that has seen the job run is to learn how it ended, although its agent goes then.
TEST_F(PageAnswersTest, WhoWaitsForTheEndGetsItAtOnce) {
  const Got waits = get("/end.json");
  EXPECT_EQ(status(waits), 0);
  EXPECT_EQ(looks_, 0) << "nothing is asked of the job for it";
  rendezvous::Outcome outcome;
  outcome.end = rendezvous::End::Failure;
  outcome.exit_code = 7;
  outcome.text = "rank 3 on node1: exit code 7";
  answers_.tell_end(outcome);
  const std::string end =
      R"({"ended":true,"state":"failed","exit_code":7,"text":"rank 3 on node1: exit code 7"})";
  EXPECT_EQ(body(waits), end + "\n");
  EXPECT_EQ((*waits)->type, "application/json");
  EXPECT_EQ(body(get("/end.json")), end + "\n") << "who comes later, too";
}

TEST_F(PageAnswersTest, WhatBecameOfThisNodeIsNotTheEndOfTheJob) {
  using enum rendezvous::End;
  const struct {
    rendezvous::End end;
    int code;
    bool leaves;
    const char* state;
  } kEnds[] = {{Success, 0, false, "succeeded"}, {Stopped, 143, false, "failed"},
               {Stopped, 143, true, "left"},     {Refused, 125, false, "left"},
               {StoreLost, 125, false, "lost"},  {Failure, 7, false, "failed"}};
  for (const auto& each : kEnds) {
    PageAnswers answers{parts()};
    std::string told;
    HttpRequest request;
    request.path = "/end.json";
    answers.serve(request, [&told](const HttpAnswer& answer) { told = *answer.body; });
    rendezvous::Outcome outcome;
    outcome.end = each.end;
    outcome.exit_code = each.code;
    outcome.leaves = each.leaves;
    answers.tell_end(outcome);
    EXPECT_THAT(told, HasSubstr(std::string(R"("state":")") + each.state + "\""));
  }
}

TEST_F(PageAnswersTest, WhoWaitsForTheEndIsToldInTimeThatItHasNotCome) {
  const Got first = get("/end.json");
  pass(milliseconds(1));
  const Got second = get("/end.json");
  pass(PageAnswers::kForEnd - milliseconds(2));
  EXPECT_EQ(status(first), 0);
  ASSERT_TRUE(answers_.next_deadline());
  EXPECT_EQ(*answers_.next_deadline(), now_ + milliseconds(1));
  pass(milliseconds(1));
  EXPECT_EQ(body(first), "{}\n");
  EXPECT_EQ(status(second), 0);
  pass(milliseconds(1));
  EXPECT_EQ(body(second), "{}\n");
  EXPECT_LT(PageAnswers::kForEnd, PageServer::Limits().answer) << "else the server cuts it off";
  answers_.close();
}

// Who asks again and again, and stays for no answer, must not fill the agent's memory.
TEST_F(PageAnswersTest, NoMoreWaitForTheEndThanTheServerHasCallers) {
  const Got first = get("/end.json");
  const Got second = get("/end.json");
  for (std::size_t more = 2; more < PageServer::kMostCallers; ++more)
    (void)get("/end.json");
  EXPECT_EQ(status(first), 0);
  const Got last = get("/end.json");
  EXPECT_EQ(body(first), "{}\n");
  EXPECT_EQ(status(second), 0);
  EXPECT_EQ(status(last), 0);
  answers_.close();
}

TEST_F(PageAnswersTest, WhatIsNotThereIsNotFound) {
  for (const char* path : {"/statusjson", "/status.json/", "//", "/stacks", "/metrics/x"}) {
    const Got got = get(path);
    EXPECT_EQ(status(got), 404) << path;
    EXPECT_THAT(body(got), HasSubstr("/healthz and /readyz"));
  }
}

TEST_F(PageAnswersTest, NothingIsDoneByAPost) {
  for (const char* path : {"/", "/status.json", "/metrics", "/healthz", "/readyz", "/nothing"}) {
    HttpRequest request;
    request.post = true;
    request.path = path;
    const Got got = ask(request);
    EXPECT_EQ(status(got), 405) << path;
    EXPECT_THAT((*got)->headers, HasSubstr("Allow: GET"));
  }
  EXPECT_EQ(looks_, 0);
}

TEST_F(PageAnswersTest, ItIsReadyWhileTheWorkersRun) {
  own_.phase = status::Phase::Gathering;
  EXPECT_EQ(status(get("/readyz")), 503);
  EXPECT_EQ(body(get("/readyz")), "gathering\n");
  own_.phase = status::Phase::Running;
  EXPECT_EQ(status(get("/readyz")), 200) << "no answer of before is kept";
  own_.phase = status::Phase::Stopping;
  EXPECT_EQ(status(get("/readyz")), 503);
  EXPECT_EQ(status(get("/healthz")), 200);
}

TEST_F(PageAnswersTest, ThePageOffersStacksOnlyIfTheyAreToBeHad) {
  const std::string without = body(get("/"));
  PageAnswers::Parts with = parts();
  with.takes_stacks = true;
  PageAnswers answers(std::move(with));
  std::string page;
  HttpRequest request;
  request.path = "/";
  answers.serve(request, [&page](const HttpAnswer& answer) { page = *answer.body; });
  EXPECT_NE(page, without);
}

TEST_F(PageAnswersTest, TheStoreIsAskedOnlyAboutTheJob) {
  answers_.set_link(&store_);
  for (const char* path : {"/", "/events.json", "/trace.json", "/healthz", "/readyz", "/nothing"})
    EXPECT_NE(status(get(path)), 0) << path;
  EXPECT_THAT(store_.take(), IsEmpty());
  const Got job = get("/status.json");
  const Got metrics = get("/metrics");
  EXPECT_THAT(store_.take(), ElementsAre("watch drun/train/*"));
  EXPECT_EQ(status(job), 0);
  EXPECT_EQ(status(get("/events.json")), 200) << "it waits for nobody";
  snapshot();
  EXPECT_EQ(status(job), 200);
  EXPECT_EQ(status(metrics), 200);
}

TEST_F(PageAnswersTest, AStoreThatIsSilentIsWaitedForForAWhile) {
  own_.round = 2;
  answers_.set_link(&store_);
  const Got job = get("/status.json");
  const Got metrics = get("/metrics");
  EXPECT_EQ(answers_.next_deadline(), now_ + PageAnswers::kForSnapshot);
  pass(PageAnswers::kForSnapshot - milliseconds(1));
  EXPECT_EQ(status(job), 0);
  pass(milliseconds(1));
  EXPECT_EQ(status(job), 503) << "how many restarts were spent only the store knows";
  EXPECT_EQ(body(job), "the job's store gives no answer\n");
  EXPECT_EQ(status(metrics), 200) << "of this agent alone";
  EXPECT_THAT(body(metrics), Not(HasSubstr("drun_job")));
  pass(PageAnswers::kKeep);
  EXPECT_EQ(status(get("/status.json")), 503) << "it is not waited for again";
}

TEST_F(PageAnswersTest, AStoreThatIsGivenUpIsNotWaitedFor) {
  answers_.set_link(&store_);
  const Got job = get("/status.json");
  EXPECT_FALSE(answers_.on_event(LinkEvent{Link::Failed, "gone"})) << "others must hear of it";
  answers_.set_link(nullptr);
  EXPECT_EQ(status(job), 200);
}

TEST_F(PageAnswersTest, AnAnswerIsKeptForASecond) {
  const Got first = get("/status.json");
  EXPECT_EQ(looks_, 1);
  pass(PageAnswers::kKeep - milliseconds(1));
  EXPECT_EQ((*get("/status.json"))->body, (*first)->body) << "not even a copy";
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(status(get("/metrics")), 200);
  EXPECT_EQ(looks_, 2) << "that is another";
  EXPECT_NE(body(get("/metrics", "ranks=1", "application/openmetrics-text")),
            body(get("/metrics", "", "application/openmetrics-text")));
  const int looks = looks_;
  pass(milliseconds(1));
  EXPECT_NE((*get("/status.json"))->body, (*first)->body);
  EXPECT_EQ(looks_, looks + 1);
}

TEST_F(PageAnswersTest, WhoAsksWhileAnAnswerIsMadeGetsTheSame) {
  files_.hangs = true;
  const Got first = get("/status.json");
  const Got second = get("/status.json");
  const Got other = get("/metrics");
  EXPECT_EQ(files_.waiting.size(), 1U);
  EXPECT_EQ(looks_, 1);
  files_.answer();
  ASSERT_EQ(status(first), 200);
  ASSERT_EQ(status(second), 200);
  EXPECT_EQ((*first)->body, (*second)->body);
  EXPECT_EQ(status(other), 200);
  EXPECT_EQ(looks_, 2);
}

TEST_F(PageAnswersTest, WhoseStoreIsSilentWhileAnotherAnswerIsMadeHasADeadline) {
  answers_.set_link(&store_);
  files_.hangs = true;
  const Got events = get("/events.json");
  const Got job = get("/status.json");
  EXPECT_EQ(answers_.next_deadline(), now_ + PageAnswers::kWatchOn);
  files_.answer();
  EXPECT_EQ(status(events), 200);
  EXPECT_EQ(status(job), 0);
  EXPECT_EQ(answers_.next_deadline(), now_ + PageAnswers::kForSnapshot);
}

TEST_F(PageAnswersTest, AThreadThatHangsIsNotWaitedFor) {
  files_.hangs = true;
  const Got job = get("/status.json");
  files_.give_up();
  EXPECT_EQ(status(job), 503);
  EXPECT_EQ(body(job), "no answer in time\n");
  files_.hangs = false;
  EXPECT_EQ(status(get("/status.json")), 200) << "that was not kept";
}

TEST_F(PageAnswersTest, TheStoreIsWatchedForHalfAMinuteAfterTheLastRequest) {
  answers_.set_link(&store_);
  (void)get("/status.json");
  snapshot();
  pass(seconds(29));
  EXPECT_EQ(status(get("/status.json")), 200) << "what is known is kept up to date";
  EXPECT_THAT(store_.take(), ElementsAre("watch drun/train/*"));
  EXPECT_EQ(answers_.next_deadline(), now_ + PageAnswers::kWatchOn);
  pass(PageAnswers::kWatchOn - milliseconds(1));
  EXPECT_THAT(store_.take(), IsEmpty());
  pass(milliseconds(1));
  EXPECT_THAT(store_.take(), ElementsAre("unwatch"));
  EXPECT_EQ(answers_.next_deadline(), std::nullopt);
  const Got again = get("/status.json");
  EXPECT_THAT(store_.take(), ElementsAre("watch drun/train/*"));
  EXPECT_EQ(status(again), 0) << "what is there now is waited for";
}

TEST_F(PageAnswersTest, OnceItIsClosedNobodyIsAnswered) {
  answers_.set_link(&store_);
  const Got waits = get("/status.json");
  files_.hangs = true;
  const Got made = get("/events.json");
  answers_.close();
  files_.answer();
  pass(seconds(60));
  EXPECT_EQ(status(waits), 0);
  EXPECT_EQ(status(made), 0);
}

}  // namespace
}  // namespace drun::launcher
