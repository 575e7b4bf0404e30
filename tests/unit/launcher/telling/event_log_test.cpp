#include "launcher/telling/event_log.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/base/log.hpp"
#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using events::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What the sink of a test has got; the test looks when nothing is at work.
struct Taken {
  std::vector<Kind> kinds;
  std::vector<std::int64_t> losses;
  bool ended = false;
  std::string why;          // not empty: nothing can be written, for this reason
  bool takes_none = false;  // its reader is slow
};

class FakeSink final : public EventSink {
 public:
  explicit FakeSink(Taken& taken) : taken_(taken) {}
  SinkResult write(std::span<const std::string> lines) override {
    if (taken_.takes_none) return {};
    if (!taken_.why.empty()) return {lines.size(), 0, taken_.why};
    for (const std::string& line : lines) {
      const auto event = events::parse_event(line);
      EXPECT_TRUE(event) << line;
      taken_.kinds.push_back(event->kind);
      if (event->kind == Kind::EventsLost) taken_.losses.push_back(event->lost);
    }
    return {lines.size(), lines.size(), ""};
  }
  std::string end() override {
    taken_.ended = true;
    return "";
  }

 private:
  Taken& taken_;
};

class EventLogTest : public testing::Test {
 protected:
  EventLogTest() {
    log::redirect([this](const std::string& line) { said_ += line; });
  }
  ~EventLogTest() override { log::redirect({}); }
  void tell(Kind kind) {
    events::Event event;
    event.kind = kind;
    log_.tell(std::move(event));
  }
  // Until so many are lost.
  void turn_until(std::int64_t lost) {
    io_.restart();
    while (log_.lost() < lost && io_.run_one_for(test::kPatience) > 0) {
    }
  }
  [[nodiscard]] bool finish() {
    bool over = false;
    log_.finish([&over] { over = true; });
    io_.restart();
    while (!over && io_.run_one_for(test::kPatience) > 0) {
    }
    return over;
  }

  std::string said_;
  Taken taken_;
  asio::io_context io_;
  EventLog log_{io_, std::make_unique<FakeSink>(taken_)};
};

TEST_F(EventLogTest, WritesAllInOrderBeforeItEnds) {
  tell(Kind::AgentStarted);
  tell(Kind::StoreFound);
  tell(Kind::AgentEnded);
  ASSERT_TRUE(finish());
  EXPECT_THAT(taken_.kinds, ElementsAre(Kind::AgentStarted, Kind::StoreFound, Kind::AgentEnded));
  EXPECT_TRUE(taken_.ended);
  EXPECT_EQ(log_.lost(), 0);
  EXPECT_EQ(said_, "");
}

TEST_F(EventLogTest, WithoutAnEventItEndsAsWell) {
  ASSERT_TRUE(finish());
  EXPECT_TRUE(taken_.ended);
}

TEST_F(EventLogTest, WhatIsToldWhileItEndsIsCountedAsLost) {
  bool over = false;
  log_.finish([&over] { over = true; });
  tell(Kind::Warning);
  while (!over && io_.run_one_for(test::kPatience) > 0) {
  }
  ASSERT_TRUE(over);
  EXPECT_EQ(log_.lost(), 1);
  EXPECT_THAT(taken_.kinds, IsEmpty()) << "there is nowhere to write it";
}

TEST_F(EventLogTest, WhatCannotBeWrittenIsCountedAndToldOnceItCan) {
  taken_.why = "write events: No space left on device";
  tell(Kind::Warning);
  turn_until(1);
  tell(Kind::Warning);
  turn_until(2);
  EXPECT_EQ(log_.lost(), 2);
  EXPECT_THAT(said_, HasSubstr("No space left on device"));
  taken_.why.clear();
  tell(Kind::Signal);
  ASSERT_TRUE(finish());
  EXPECT_THAT(taken_.kinds, ElementsAre(Kind::EventsLost, Kind::Signal));
  EXPECT_THAT(taken_.losses, ElementsAre(2));
  EXPECT_THAT(said_, HasSubstr("2 events were lost"));
}

TEST_F(EventLogTest, AReaderThatTakesNothingCostsNoMoreThanTheEvents) {
  taken_.takes_none = true;
  for (std::size_t i = 0; i < EventLog::kMostWaiting + 10; ++i)
    tell(Kind::Warning);
  EXPECT_GE(log_.lost(), 9);  // the first is with the thread
  EXPECT_LE(log_.lost(), 10);
  ASSERT_TRUE(finish());
  EXPECT_THAT(taken_.kinds, IsEmpty());
  EXPECT_TRUE(taken_.ended);
  EXPECT_EQ(log_.lost(), static_cast<std::int64_t>(EventLog::kMostWaiting) + 10);
}

TEST_F(EventLogTest, CanBeGivenUp) {
  taken_.takes_none = true;
  tell(Kind::Warning);
  bool over = false;
  log_.finish([&over] { over = true; });
  log_.give_up();
  EXPECT_TRUE(over);
  EXPECT_EQ(log_.lost(), 1);
}

}  // namespace
}  // namespace drun::launcher
