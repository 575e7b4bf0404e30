#include "launcher/workers/end_notice.hpp"

#include <csignal>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Stage = Worker::Stage;

const EndNotices::WallTime kMidnight{std::chrono::hours(480'000)};

std::int64_t unix_ms(seconds after_midnight) {
  return (kMidnight.time_since_epoch() + after_midnight) / milliseconds(1);
}

// Workers 1, 2, ... with local ranks 0, 1, ...
Workers workers(const std::vector<Stage>& stages) {
  Workers result;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Worker worker;
    worker.local_rank = static_cast<int>(i);
    worker.stage = stages[i];
    result.emplace(i + 1, worker);
  }
  return result;
}

// SIGUSR1, 20 seconds before an end 100 seconds after midnight; the node's first rank is 4.
struct Rig {
  explicit Rig(std::vector<Stage> stages = {Stage::Running, Stage::Running})
      : all(workers(stages)) {
    notices.begin(unix_ms(seconds(100)), 4);
  }

  // "signal 1 2 | say | warning | next", what is empty left out; `next` counts from midnight.
  std::string at(seconds time) {
    const auto step = notices.on_time(kMidnight + time, all, [this](const Worker& worker) {
      return !unprepared.contains(worker.local_rank);
    });
    std::string text;
    const auto add = [&text](const std::string& part) {
      if (!part.empty()) text += (text.empty() ? "" : " | ") + part;
    };
    std::string signal;
    for (const auto id : step.signal)
      signal += " " + std::to_string(id);
    add(signal.empty() ? "" : "signal" + signal);
    add(step.say);
    add(step.warning);
    if (const auto next = notices.next())
      add("next " + std::to_string(std::chrono::round<seconds>(*next - kMidnight).count()));
    return text;
  }

  Workers all;
  std::set<int> unprepared;
  EndNotices notices{EndNotice{SIGUSR1, seconds(20)}};
};

constexpr const char* kSaid = "the job ends in 20 s: SIGUSR1 to all workers";

TEST(EndNoticesTest, AllWorkersAreToldOnceAtTheTime) {
  Rig rig;
  EXPECT_EQ(rig.at(seconds(50)), "next 80");
  EXPECT_EQ(rig.at(seconds(79)), "next 80");
  EXPECT_EQ(rig.at(seconds(80)), std::string("signal 1 2 | ") + kSaid);
  EXPECT_EQ(rig.at(seconds(81)), "");
  EXPECT_EQ(rig.at(seconds(100)), "");
}

TEST(EndNoticesTest, EachRoundIsToldAnew) {
  Rig rig;
  EXPECT_EQ(rig.at(seconds(80)), std::string("signal 1 2 | ") + kSaid);
  rig.notices.begin(unix_ms(seconds(100)), 4);
  EXPECT_EQ(rig.at(seconds(85)), "signal 1 2 | the job ends in 15 s: SIGUSR1 to all workers");
  rig.notices.begin(unix_ms(seconds(200)), 4);  // a node that knew of an earlier end has left
  EXPECT_EQ(rig.at(seconds(130)), "next 180");
}

TEST(EndNoticesTest, WhatNobodyAskedForOrKnowsIsNotTold) {
  Rig rig;
  rig.notices.begin(0, 4);
  EXPECT_EQ(rig.at(seconds(99)), "");
  rig.notices = EndNotices(std::nullopt);
  rig.notices.begin(unix_ms(seconds(100)), 4);
  EXPECT_EQ(rig.at(seconds(99)), "");
}

// A program that is only starting has set no handler: the warning would kill it.
TEST(EndNoticesTest, WhoWouldDieOfItIsToldOnceItHasPrepared) {
  Rig rig({Stage::Running, Stage::Requested, Stage::Running});
  rig.unprepared = {0};
  EXPECT_EQ(rig.at(seconds(80)), std::string("signal 3 | ") + kSaid + " | next 81");
  EXPECT_EQ(rig.at(seconds(81)), "next 82");
  rig.all.at(2).stage = Stage::Running;
  EXPECT_EQ(rig.at(seconds(82)), "signal 2 | next 83");
  rig.unprepared.clear();
  EXPECT_EQ(rig.at(seconds(83)), "signal 1");
  EXPECT_EQ(rig.at(seconds(84)), "");
}

TEST(EndNoticesTest, WhoNeverPreparesIsNamedOnce) {
  Rig rig({Stage::Running, Stage::Running, Stage::Running, Stage::Requested, Stage::Ended});
  rig.unprepared = {1, 2};
  EXPECT_EQ(rig.at(seconds(80)), std::string("signal 1 | ") + kSaid + " | next 81");
  EXPECT_EQ(rig.at(seconds(89)), "next 90");
  EXPECT_EQ(rig.at(seconds(90)),
            "ranks 5-6 would die of SIGUSR1: no handler is set there, so it is not sent | next 91");
  EXPECT_EQ(rig.at(seconds(91)), "next 92");
  EXPECT_EQ(rig.at(seconds(99)), "next 100");
  EXPECT_EQ(rig.at(seconds(100)), "");  // too late
  rig.unprepared.clear();
  EXPECT_EQ(rig.at(seconds(101)), "");
}

TEST(EndNoticesTest, AnEndThatHasPassedIsSaidAndNobodyIsSignalled) {
  Rig rig;
  EXPECT_EQ(rig.at(seconds(100)),
            "the time at which the job ends has passed: no worker gets SIGUSR1");
  EXPECT_EQ(rig.at(seconds(101)), "");
}

TEST(EndNoticesTest, WhoHasEndedIsNotWaitedFor) {
  Rig rig({Stage::Ended, Stage::Running});
  EXPECT_EQ(rig.at(seconds(80)), std::string("signal 2 | ") + kSaid);
}

// Somebody sets the clock: a sleep is by another clock, which does not notice.
TEST(EndNoticesTest, TheTimeOfDayIsLookedAtEachMinute) {
  Rig rig;
  EXPECT_EQ(rig.at(seconds(-100'000)), "next -99940");
  EXPECT_EQ(rig.at(seconds(30)), "next 80");
}

}  // namespace
}  // namespace drun::launcher
