#include "launcher/views/page_answers.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
