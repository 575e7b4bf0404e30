#include "hang/file_timers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::hang {
namespace {

using Expired = FileTimers::Expired;
using testing::ElementsAre;
using testing::IsEmpty;

// As torch's FileTimerRequest.to_json() writes it.
std::string line(int pid, const std::string& scope, double expires, int signal = 9) {
  return R"({"version": 1, "pid": )" + std::to_string(pid) + R"(, "scope_id": ")" + scope +
         R"(", "expiration_time": )" + std::to_string(expires) + R"(, "signal": )" +
         std::to_string(signal) + "}\n";
}

TEST(FileTimersTest, OneThatIsOverIsToldOnce) {
  FileTimers timers;
  EXPECT_FALSE(timers.next());
  timers.take(line(4711, "step", 1'000.5));
  EXPECT_EQ(timers.next(), 1'000.5);
  EXPECT_THAT(timers.take_expired(1'000), IsEmpty());
  EXPECT_THAT(timers.take_expired(1'000.5), ElementsAre(Expired{4711, "step", 9}));
  EXPECT_THAT(timers.take_expired(2'000), IsEmpty());
  EXPECT_FALSE(timers.next());
}

TEST(FileTimersTest, OneThatIsReleasedIsForgotten) {
  FileTimers timers;
  timers.take(line(4711, "a", 1'000) + line(4711, "b", 1'001) + line(4712, "a", 1'002));
  timers.take(line(4711, "a", -1, 0));
  EXPECT_EQ(timers.next(), 1'001);
  timers.take(line(4711, "b", -1, 0) + line(4712, "a", 1'100));  // and one is set anew
  EXPECT_THAT(timers.take_expired(1'050), IsEmpty());
  EXPECT_THAT(timers.take_expired(1'100), ElementsAre(Expired{4712, "a", 9}));
}

TEST(FileTimersTest, OfSeveralOfAProcessTheFirstThatWantsASignalCounts) {
  FileTimers timers;
  timers.take(line(1'000, "late", 30) + line(1'000, "quiet", 10, 0) + line(1'000, "first", 20, 15) +
              line(2'000, "no", 10, -1) + line(3'000, "not yet", 99));
  EXPECT_THAT(timers.take_expired(50), ElementsAre(Expired{1'000, "first", 15}));
  EXPECT_EQ(timers.next(), 99);
}

TEST(FileTimersTest, LinesComeInPieces) {
  FileTimers timers;
  const std::string text = line(10, "a", 1) + line(11, "b", 2);
  for (const char& each : text)
    timers.take({&each, 1});
  EXPECT_THAT(timers.take_expired(5), ElementsAre(Expired{10, "a", 9}, Expired{11, "b", 9}));
}

TEST(FileTimersTest, WhatIsNoRequestIsPassedOver) {
  for (const std::string& bad :
       {std::string("\n"), std::string("no\n"), std::string("{}\n"), std::string("[1]\n"),
        line(0, "a", 5), line(1, "a", 5), line(-7, "a", 5),
        std::string(R"({"pid":"7"})"
                    "\n"),
        line(7, std::string(5'000, 'x'), 5), std::string(100'000, 'x') + "\n"}) {
    FileTimers timers;
    timers.take(bad);
    EXPECT_FALSE(timers.next()) << bad.substr(0, 80);
    timers.take(line(10, "a", 5));
    EXPECT_EQ(timers.next(), 5) << bad.substr(0, 80);
  }
}

TEST(FileTimersTest, NothingGrowsWithoutALimitAndNoNameReachesATerminalRaw) {
  FileTimers timers;
  for (int i = 0; i < 20'000; ++i)
    timers.take(line(10, "s" + std::to_string(i), 1'000.0 + i));
  timers.take(line(11, "\\u001b[2J", 5));
  EXPECT_THAT(timers.take_expired(10), IsEmpty());  // there was no room for it
  timers.clear();
  timers.take(line(11, "\\u001b[2J", 5));
  const auto expired = timers.take_expired(10);
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired.front().scope.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace drun::hang
