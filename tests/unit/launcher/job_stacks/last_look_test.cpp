#include "launcher/job_stacks/last_look.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stacks/job_look.hpp"
#include "support/group_rig.hpp"

namespace drun::launcher {
namespace {

using rendezvous::StopAction;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::place_of;
using testing::ElementsAre;
using testing::IsEmpty;

class LastLookTest : public testing::Test {
 protected:
  LastLookTest() { policy_.stacks_after_failure = true; }

  struct Asked {
    StackWish wish;
    int nodes = 0;  // 0: this one alone
    StackDesk::Done done;
  };
  // A failure on this node; whether the stop waits.
  bool fails(bool hangs = false) {
    return look_.begin(hangs, LastLook::Time(), [this] { called_.emplace_back("over"); })
        .has_value();
  }
  bool hold(const StopAction& action, const std::string& name = "go on") {
    return look_.hold(action, [this, name] { called_.push_back(name); });
  }
  static StopAction stop() {
    StopAction action;
    action.reason = "rank 3 failed";
    action.failure = true;
    return action;
  }
  std::vector<std::string> take_called() { return std::exchange(called_, {}); }

  asio::io_context io_{1};
  StopPolicy policy_;
  test::GroupRig rig_;
  std::vector<Asked> asked_;
  std::vector<std::string> shown_;  // reports, and why there is none
  std::function<void()> on_shown_;
  std::vector<std::string> called_;
  LastLook look_{{io_, policy_,
                  [this](const StackWish& wish, StackDesk::Done done) {
                    asked_.push_back({wish, 0, std::move(done)});
                  },
                  [this](const StackWish& wish, int nodes, StackDesk::Done done) {
                    asked_.push_back({wish, nodes, std::move(done)});
                  },
                  [this]() -> const WorkerGroup& { return rig_.group; },
                  [this](const Result<std::string>& report, std::function<void()> shown) {
                    shown_.push_back(report ? *report : "none: " + report.error().what());
                    on_shown_ = std::move(shown);
                  },
                  [this] { called_.emplace_back("resumed"); }}};
};

TEST_F(LastLookTest, AFailureIsLookedAtIfTheUserWantsThat) {
  for (const bool wanted : {true, false}) {
    for (const bool hangs : {true, false}) {
      policy_.stacks_after_failure = wanted;
      rig_.start(place_of(0, 2, rig_.group.round() + 1));
      EXPECT_EQ(fails(hangs), wanted || hangs) << "who hangs is looked at in any case";
      look_.cancel();
      (void)rig_.stop();
    }
  }
}

TEST_F(LastLookTest, TheFirstNodeAsksAllAndSaysWhatTheySay) {
  rig_.start(place_of(0, 3));
  const auto until = look_.begin(false, LastLook::Time(), [this] { called_.emplace_back("over"); });
  EXPECT_EQ(until, LastLook::Time() + policy_.stacks_limit + seconds(5));
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_[0].nodes, 3);
  EXPECT_TRUE(asked_[0].wish.last) << "another node's workers may be gone by now";
  EXPECT_FALSE(asked_[0].wish.keep);
  EXPECT_LT(asked_[0].wish.limit, asked_[0].wish.job_limit);
  EXPECT_LT(asked_[0].wish.job_limit, policy_.stacks_limit);
  asked_[0].done(std::string("stacks"));
  EXPECT_THAT(shown_, ElementsAre("stacks"));
  EXPECT_THAT(take_called(), IsEmpty()) << "not before it is said";
  on_shown_();
  EXPECT_THAT(take_called(), ElementsAre("over", "resumed"));
  on_shown_();
  EXPECT_THAT(take_called(), IsEmpty());
}

TEST_F(LastLookTest, TheOthersKeepTheirOwnForTheFirst) {
  rig_.start(place_of(1, 3));
  EXPECT_TRUE(fails());
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_[0].nodes, 0);
  EXPECT_TRUE(asked_[0].wish.keep);
  EXPECT_TRUE(asked_[0].wish.last) << "what was found for a hang will do";
  EXPECT_EQ(asked_[0].wish.longest, stacks::longest_answer(3));
  asked_[0].done(std::string("stacks"));
  EXPECT_THAT(shown_, IsEmpty());
  EXPECT_THAT(take_called(), ElementsAre("over", "resumed"));
}

TEST_F(LastLookTest, WhatIsThereAlreadyHoldsNothingUp) {
  LastLook look(
      {io_, policy_,
       [](const StackWish& /*wish*/, const StackDesk::Done& done) { done(std::string("stacks")); },
       [](const StackWish&, int, const StackDesk::Done&) {},
       [this]() -> const WorkerGroup& { return rig_.group; }, [](const auto&, const auto&) {},
       [this] { called_.emplace_back("resumed"); }});
  rig_.start(place_of(1, 3));
  EXPECT_FALSE(look.begin(true, LastLook::Time(), [this] { called_.emplace_back("over"); }));
  EXPECT_FALSE(look.hold(stop(), [this] { called_.emplace_back("go on"); }));
  EXPECT_THAT(take_called(), IsEmpty());
}

TEST_F(LastLookTest, ThereIsOneLookARound) {
  rig_.start(place_of(1, 2, 1));
  EXPECT_TRUE(fails());
  EXPECT_TRUE(hold(stop())) << "it waits for the same";
  EXPECT_EQ(asked_.size(), 1U);
  asked_[0].done(std::string("stacks"));
  EXPECT_THAT(take_called(), ElementsAre("over", "go on", "resumed"));
  EXPECT_FALSE(fails());
  EXPECT_FALSE(hold(stop()));
  (void)rig_.stop();
  rig_.start(place_of(1, 2, 2));
  EXPECT_TRUE(fails());
  EXPECT_EQ(asked_.size(), 2U);
}

TEST_F(LastLookTest, WithoutTimeOrWorkersNobodyLooks) {
  EXPECT_FALSE(fails(true)) << "no round has begun";
  rig_.start(place_of(0, 2));
  policy_.stacks_limit = milliseconds(0);
  EXPECT_FALSE(fails(true));
  policy_.stacks_limit = milliseconds(1'000);
  (void)rig_.group.stop(false, rig_.now);
  EXPECT_FALSE(fails(true)) << "they are being stopped";
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(LastLookTest, WhichStopsWait) {
  const struct {
    const char* what;
    std::function<void(StopAction&)> change;
    bool after_failure;
    bool waits;
  } kStops[] = {
      {"a failure", [](StopAction&) {}, true, true},
      {"a failure, of which no stacks are wanted", [](StopAction&) {}, false, false},
      {"a time limit", [](StopAction& stop) { stop.time_limit = true; }, false, true},
      {"a hang", [](StopAction& stop) { stop.hang = true; }, false, true},
      {"a node that left", [](StopAction& stop) { stop.failure = false; }, true, false},
      {"a signal", [](StopAction& stop) { stop.signal = 15; }, true, false},
      {"a lost store", [](StopAction& stop) { stop.immediately = true; }, true, false},
      {"a success", [](StopAction& stop) { stop.reason.clear(); }, true, false},
      {"a time limit and a signal",
       [](StopAction& stop) {
         stop.time_limit = true;
         stop.signal = 15;
       },
       true, false},
  };
  for (const auto& each : kStops) {
    policy_.stacks_after_failure = each.after_failure;
    rig_.start(place_of(0, 2, rig_.group.round() + 1));
    StopAction action = stop();
    each.change(action);
    EXPECT_EQ(hold(action), each.waits) << each.what;
    look_.cancel();
    (void)rig_.stop();
  }
}

TEST_F(LastLookTest, AStopThatDoesNotWaitOvertakesOneThatDid) {
  rig_.start(place_of(1, 2));
  EXPECT_TRUE(hold(stop(), "first"));
  StopAction signal = stop();
  signal.signal = 15;
  EXPECT_FALSE(hold(signal, "second"));
  asked_[0].done(std::string("stacks"));
  EXPECT_THAT(take_called(), ElementsAre("resumed"));
}

TEST_F(LastLookTest, AReportOfAnEarlierRoundIsLate) {
  rig_.start(place_of(1, 2, 1));
  EXPECT_TRUE(fails());
  look_.cancel();
  (void)rig_.stop();
  rig_.start(place_of(1, 2, 2));
  EXPECT_TRUE(fails());
  asked_[0].done(std::string("late"));
  EXPECT_THAT(take_called(), IsEmpty());
  asked_[1].done(std::string("stacks"));
  EXPECT_THAT(take_called(), ElementsAre("over", "resumed"));
}

TEST_F(LastLookTest, WhatIsNotFoundInTimeIsNotWaitedFor) {
  for (const int group_rank : {0, 1}) {
    policy_.stacks_limit = milliseconds(20);
    rig_.start(place_of(group_rank, 2, 1 + group_rank));
    EXPECT_TRUE(fails());
    io_.restart();
    io_.run();
    EXPECT_THAT(take_called(), ElementsAre("over", "resumed"));
    EXPECT_THAT(std::exchange(shown_, {}),
                group_rank == 0 ? testing::Matcher<const std::vector<std::string>&>(
                                      ElementsAre("none: nothing was found within 20 ms"))
                                : testing::Matcher<const std::vector<std::string>&>(IsEmpty()));
    asked_.back().done(std::string("late"));
    EXPECT_THAT(shown_, IsEmpty());
    (void)rig_.stop();
  }
}

TEST_F(LastLookTest, AScreenThatHangsIsNotWaitedForForEver) {
  policy_.stacks_limit = milliseconds(20);
  rig_.start(place_of(0, 2));
  EXPECT_TRUE(fails());
  asked_[0].done(std::string("stacks"));
  const auto begun = std::chrono::steady_clock::now();
  io_.run();
  EXPECT_GE(std::chrono::steady_clock::now() - begun, seconds(5));
  EXPECT_THAT(shown_, ElementsAre("stacks"));
  EXPECT_THAT(take_called(), ElementsAre("over", "resumed"));
}

TEST_F(LastLookTest, OnceItIsCancelledNothingIsCalled) {
  rig_.start(place_of(0, 2));
  EXPECT_TRUE(fails());
  EXPECT_TRUE(hold(stop()));
  look_.cancel();
  asked_[0].done(std::string("stacks"));
  io_.run();
  EXPECT_THAT(take_called(), IsEmpty());
  EXPECT_THAT(shown_, IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
