#include "launcher/job_stacks/job_stacks.hpp"

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/documents.hpp"
#include "stacks/job_look.hpp"
#include "stacks/stack_report.hpp"
#include "support/patience.hpp"
#include "support/recorded_key_value.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using drun::test::RecordedKeyValue;
using rendezvous::WatchChanges;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

// A look that is about to be taken.
struct Looks : std::runtime_error {
  Looks() : std::runtime_error("looks") {}
};

// Who asks may have been faster than the start of this node's workers.
TEST(JobStacksListenTest, OfRequestsThatWereThereBeforeOnlyThoseOfThisRoundAreObeyed) {
  asio::io_context io;
  StackDesk desk(io, []() -> LookRequest { throw Looks(); });
  JobStacks job(io, desk, "train", [] { return 7; });
  RecordedKeyValue store;
  job.listen();
  job.use_store(store);
  EXPECT_THAT(store.take(), IsEmpty()) << "not before its workers have started";
  job.listen();
  job.listen();
  EXPECT_THAT(store.take(), ElementsAre("watch drun/train/look"));
  const auto watch = store.last_watch;
  const std::string key = "drun/train/look";
  const auto request = [&key](const std::string& id, int round) {
    stacks::JobLook look;
    look.id = id;
    look.round = round;
    return std::vector<rendezvous::Change>{{key, encode(look)}};
  };
  EXPECT_TRUE(job.on_event(rendezvous::WatchSnapshot{watch, request("a", 6)}));
  EXPECT_THROW((void)job.on_event(rendezvous::WatchSnapshot{watch, request("b", 7)}), Looks);
}

// ---- nodes of a job, of which this is one ----

std::string report_of(const std::string& host, int first_rank) {
  stacks::StackReport report;
  report.nodes.push_back({host, {first_rank, first_rank + 1}});
  return to_json(report);
}

class JobStacksTest : public testing::Test {
 protected:
  JobStacksTest() {
    job_.use_store(store_);
    job_.listen();
    requests_ = store_.last_watch;
    (void)store_.take();
  }
  void ask(int nodes, milliseconds limit = kPatience) {
    StackWish wish;
    wish.job_limit = limit;
    job_.ask(wish, nodes, [this](const Result<std::string>& report) {
      reports_.push_back(stacks::parse_report(report.value()).value());
    });
  }
  bool until_told(std::size_t count = 1) {
    return until([&] { return reports_.size() >= count; });
  }
  bool until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    io_.restart();
    while (!condition())
      if (io_.run_one_until(deadline) == 0) return false;
    return true;
  }
  // This node's look that is under way is over.
  bool until_looked() {
    bool looked = false;
    desk_.take({}, [&looked](const auto&) { looked = true; });  // which is the same look
    return until([&looked] { return looked; });
  }
  // What was asked of the others.
  stacks::JobLook request() {
    EXPECT_THAT(store_.writes, testing::SizeIs(1));
    const auto write = std::exchange(store_.writes, {}).at(0);
    EXPECT_EQ(write.key, keys_.look);
    EXPECT_TRUE(write.ephemeral) << "it goes with who asks";
    return stacks::decode_job_look(write.value.value()).value();
  }
  bool answer(const std::string& id, const std::string& node, std::string text) {
    return job_.on_event(WatchChanges{store_.last_watch, {{keys_.answers_to(id) + node, text}}});
  }
  bool another_asks(const std::string& id) {
    stacks::JobLook look;
    look.id = id;
    look.round = 3;
    return job_.on_event(WatchChanges{requests_, {{keys_.look, encode(look)}}});
  }

  asio::io_context io_{1};
  const rendezvous::Keys keys_{"train"};
  RecordedKeyValue store_;
  rendezvous::WatchId requests_ = 0;
  std::string error_;  // of the looks
  int looks_ = 0;
  std::vector<stacks::StackReport> reports_;
  StackDesk desk_{
      io_,
      [this] {
        ++looks_;
        return LookRequest();
      },
      [this](const LookRequest& /*request*/, ChildStop& /*stop*/) -> Result<std::string> {
        if (error_.empty()) return report_of("node0", 0);
        return Error(std::make_error_code(std::errc::io_error), error_);
      }};
  int round_ = 3;
  JobStacks job_{io_, desk_, "train", [this] { return round_; }};
};

TEST_F(JobStacksTest, ANodeThatIsAloneIsNotAskedThroughTheStore) {
  ask(1);
  ASSERT_TRUE(until_told());
  EXPECT_THAT(store_.take(), IsEmpty());
  job_.forget_store();
  ask(2);
  ASSERT_TRUE(until_told(2));
  EXPECT_THAT(store_.take(), IsEmpty()) << "there is none";
}

TEST_F(JobStacksTest, AllAreAskedAndWhatTheySayIsOneReport) {
  ask(3);
  const stacks::JobLook look = request();
  EXPECT_THAT(store_.take(), ElementsAre("watch " + keys_.answers_to(look.id) + "*", "commit"));
  EXPECT_EQ(look.longest, stacks::longest_answer(3));
  EXPECT_TRUE(answer(look.id, "b", report_of("node1", 2)));
  EXPECT_TRUE(answer(look.id, "b", report_of("node1", 2))) << "twice is once";
  EXPECT_TRUE(answer("another", "c", report_of("nodeX", 8))) << "to an earlier request";
  io_.run_for(milliseconds(20));
  EXPECT_THAT(reports_, IsEmpty()) << "one is missing";
  EXPECT_TRUE(answer(look.id, "c", report_of("node2", 4)));
  ASSERT_TRUE(until_told());
  EXPECT_THAT(reports_[0].nodes, testing::SizeIs(3));
  EXPECT_THAT(reports_[0].notes, IsEmpty());
  EXPECT_THAT(store_.take(), ElementsAre("unwatch", "commit"));
  std::vector<std::string> removed;
  for (const auto& write : store_.writes) {
    EXPECT_FALSE(write.value);
    removed.push_back(write.key);
  }
  EXPECT_THAT(removed, testing::IsSupersetOf({keys_.look, keys_.answers_to(look.id) + "b",
                                              keys_.answers_to(look.id) + "c"}));
}

// One that was set aside has the workers of an older round in mind, and would be taken for another.
TEST_F(JobStacksTest, OnlyNodesOfTheRoundAnswer) {
  ask(2);
  const auto asked = request();
  EXPECT_EQ(asked.round, 3);
  EXPECT_TRUE(answer(asked.id, "b", report_of("node1", 2)));
  ASSERT_TRUE(until_told());
  const int looks = looks_;
  round_ = 2;
  EXPECT_TRUE(another_asks("a"));
  EXPECT_EQ(looks_, looks);
  round_ = 3;
  EXPECT_TRUE(another_asks("a"));
  EXPECT_EQ(looks_, looks + 1);
}

TEST_F(JobStacksTest, WhoIsAskedBeforeItsWorkersHaveStartedAnswersThen) {
  round_ = 2;
  EXPECT_TRUE(another_asks("abc"));
  job_.listen();
  EXPECT_EQ(looks_, 0);
  EXPECT_TRUE(another_asks("abd"));
  round_ = 3;
  job_.listen();
  EXPECT_EQ(looks_, 1);
  job_.listen();
  ASSERT_TRUE(until([this] { return !store_.writes.empty(); }));
  ASSERT_THAT(store_.writes, testing::SizeIs(1));
  EXPECT_TRUE(store_.writes.front().key.starts_with(keys_.answers_to("abd")));
}

TEST_F(JobStacksTest, WhoSaysNothingInTimeIsCounted) {
  ask(3);
  (void)request();
  ASSERT_TRUE(until_looked());
  ask(3, milliseconds(1));
  ASSERT_TRUE(until_told(2));
  EXPECT_THAT(reports_[0].nodes, testing::SizeIs(1));
  ASSERT_THAT(reports_[0].notes, testing::SizeIs(1));
  EXPECT_EQ(reports_[0].notes[0].text, "2 of 3 nodes gave no answer in time");
}

TEST_F(JobStacksTest, WhoSaysNothingInTimeIsNamedAsTheStoreKnowsIt) {
  ask(3, milliseconds(200));
  (void)request();
  ASSERT_TRUE(until_looked());
  const std::string wanted = "watch " + keys_.assignments + "*";
  std::vector<std::string> asked;
  ASSERT_TRUE(until([&] {
    for (std::string& each : store_.take())
      asked.push_back(std::move(each));
    return !asked.empty() && asked.back() == wanted;
  }));
  std::vector<rendezvous::Change> places;
  const auto add = [&](int round, int rank, const std::string& host) {
    rendezvous::AssignmentDocument place;
    place.assignment.round = round;
    place.assignment.group_rank = rank;
    place.assignment.group_world_size = 3;
    place.assignment.first_rank = 2 * rank;
    place.assignment.world_size = 6;
    place.host = host;
    places.push_back({keys_.assignment(host), encode(place)});
  };
  add(round_, 0, "a");
  add(round_, 1, "b");
  add(round_, 2, "c");
  add(round_ - 1, 3, "gone");
  places.push_back({keys_.assignment("x"), "nonsense"});
  EXPECT_TRUE(job_.on_event(rendezvous::WatchSnapshot{store_.last_watch, places}));
  ASSERT_TRUE(until_told());
  ASSERT_THAT(reports_[0].notes, testing::SizeIs(1));
  EXPECT_EQ(reports_[0].notes[0].text, "2 of 3 nodes gave no answer in time: b, c");
  EXPECT_EQ(reports_[0].notes[0].ranks, (std::vector<NumberRange>{{2, 5}}));
}

TEST_F(JobStacksTest, ANodeThatCannotLookIsNotWaitedFor) {
  error_ = "no such process";
  ask(2);
  EXPECT_TRUE(answer(request().id, "b", ""));
  ASSERT_TRUE(until_told());
  EXPECT_EQ(reports_[0].notes.at(0).text, "2 of 2 nodes gave no answer in time");
}

TEST_F(JobStacksTest, WhoAsksMeanwhileGetsTheSameAtTheEarlierLimit) {
  const milliseconds soon(50);
  for (const auto& [first, second] : {std::pair(kPatience, soon), std::pair(soon, kPatience)}) {
    ask(2, first);
    ask(2, second);
    (void)request();
    ASSERT_TRUE(until_told(2));
    EXPECT_EQ(reports_[0], reports_[1]);
    reports_.clear();
    store_.writes.clear();
  }
}

TEST_F(JobStacksTest, AnotherNodeIsAnsweredOnce) {
  EXPECT_TRUE(another_asks("abc"));
  EXPECT_TRUE(another_asks("abc"));
  ASSERT_TRUE(until([this] { return !store_.writes.empty(); }));
  EXPECT_EQ(looks_, 1);
  ASSERT_THAT(store_.writes, testing::SizeIs(1));
  const auto write = std::exchange(store_.writes, {}).front();
  EXPECT_TRUE(write.key.starts_with(keys_.answers_to("abc")));
  EXPECT_TRUE(write.ephemeral);
  EXPECT_EQ(write.value, report_of("node0", 0));
  error_ = "no such process";
  EXPECT_TRUE(another_asks("abd"));
  ASSERT_TRUE(until([this] { return !store_.writes.empty(); }));
  EXPECT_EQ(store_.writes.front().value, "") << "it is not to be waited for";
}

TEST_F(JobStacksTest, ItsOwnRequestAndWhatIsNoneAreNotAnswered) {
  ask(2);
  EXPECT_EQ(looks_, 1);
  EXPECT_TRUE(another_asks(request().id));
  EXPECT_TRUE(job_.on_event(WatchChanges{requests_, {{keys_.look, "rubbish"}}}));
  EXPECT_TRUE(job_.on_event(WatchChanges{requests_, {{keys_.look, std::nullopt}}}));
  ASSERT_TRUE(until_looked());
  EXPECT_EQ(looks_, 1);
  EXPECT_THAT(store_.writes, IsEmpty());
  EXPECT_FALSE(job_.on_event(WatchChanges{1, {{keys_.look, "somebody else's"}}}));
}

TEST_F(JobStacksTest, WhenTheStoreIsLostWhatIsThereIsTheAnswer) {
  ask(2);
  (void)request();
  (void)store_.take();
  job_.forget_store();
  ASSERT_TRUE(until_told());
  EXPECT_THAT(reports_[0].notes, testing::SizeIs(1));
  EXPECT_THAT(store_.take(), IsEmpty());
  EXPECT_TRUE(another_asks("abc"));
  EXPECT_EQ(looks_, 1);
}

TEST_F(JobStacksTest, TheAnswersOfManyAreRemovedInPieces) {
  constexpr int kNodes = 250;
  ask(kNodes);
  const std::string id = request().id;
  for (int node = 1; node < kNodes; ++node)
    EXPECT_TRUE(answer(id, std::to_string(node), ""));
  ASSERT_TRUE(until_told());
  EXPECT_GE(store_.writes.size(), std::size_t{kNodes});
  EXPECT_LE(store_.most_writes, 100U);
}

TEST_F(JobStacksTest, AfterCancelNobodyIsTold) {
  ask(2);
  job_.cancel();
  desk_.cancel();
  io_.run();
  EXPECT_THAT(reports_, IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
