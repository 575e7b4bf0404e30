#include "launcher/backend/own_endpoint_fsm.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "support/event_table.hpp"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using Own = OwnEndpointFsm::Own;
using State = OwnEndpointFsm::State;
using test::Way;

constexpr milliseconds kPause{2'000};

std::string name_of(State state) {
  switch (state) {
    case State::Idle:
      return "Idle";
    case State::Asking:
      return "Asking";
    case State::Late:
      return "Late";
    case State::Pausing:
      return "Pausing";
    case State::Known:
      return "Known";
  }
  return "?";
}

// Of two endpoints.
struct Machine {
  OwnEndpointFsm fsm{2, kPause};
  OwnEndpointFsm::Time now{std::chrono::seconds(1'000)};
  State before = State::Idle;
  std::string done;

  void take(const OwnEndpointFsm::Step& step) {
    if (step.begin) done += " begin";
    for (const std::size_t each : step.look_up)
      done += " ask" + std::to_string(each);
  }
  void answer(std::size_t endpoint, Own own) { take(fsm.on_answer(endpoint, own, now)); }
  void time(milliseconds after_deadline) {
    now = fsm.next_deadline().value_or(now) + after_deadline;
    take(fsm.on_time(now));
  }

  std::string news() {
    std::string text = std::exchange(done, "");
    if (fsm.state() != before) text += " " + name_of(fsm.state());
    before = fsm.state();
    return text.empty() ? text : text.substr(1);
  }
};

const test::TableEvents<Machine> kEvents = {
    {"start", [](Machine& m) { m.take(m.fsm.start(m.now)); }},
    {"0 own", [](Machine& m) { m.answer(0, Own::Yes); }},
    {"0 other", [](Machine& m) { m.answer(0, Own::No); }},
    {"0 unknown", [](Machine& m) { m.answer(0, Own::Unknown); }},
    {"1 own", [](Machine& m) { m.answer(1, Own::Yes); }},
    {"1 other", [](Machine& m) { m.answer(1, Own::No); }},
    {"1 unknown", [](Machine& m) { m.answer(1, Own::Unknown); }},
    {"listed", [](Machine& m) { m.fsm.on_listed(); }},
    {"early", [](Machine& m) { m.time(milliseconds(-1)); }},
    {"due", [](Machine& m) { m.time(milliseconds(0)); }},
};

// Those of the events that can come: an answer only to what was asked.
std::string table(const Way& way, const std::string& never) {
  test::TableEvents<Machine> events;
  for (const auto& each : kEvents)
    if (never.find("," + each.first + ",") == std::string::npos) events.push_back(each);
  return test::what_each_does<Machine>(events, {}, [&way] {
    auto machine = std::make_unique<Machine>();
    test::go(*machine, kEvents, way);
    return machine;
  });
}

constexpr const char* kAnswers0 = ",0 own,0 other,0 unknown,";
constexpr const char* kAnswers = ",0 own,0 other,0 unknown,1 own,1 other,1 unknown,";

TEST(OwnEndpointFsmTest, BeginsWhenAllAreAnsweredForOrOneIsItsOwn) {
  EXPECT_EQ(table({}, std::string(kAnswers) + "listed,"), R"(
  start -> ask0 ask1 Asking
  early; due -> nothing
)");
  EXPECT_EQ(table({"start"}, ",start,listed,"), R"(
  0 own; 1 own; due -> begin Late
  0 other; 0 unknown; 1 other; 1 unknown; early -> nothing
)");
  EXPECT_EQ(table({"start", "0 other"}, std::string(kAnswers0) + "start,listed,"), R"(
  1 own; 1 other -> begin Known
  1 unknown -> begin Pausing
  due -> begin Late
  early -> nothing
)");
  EXPECT_EQ(table({"start", "0 unknown"}, std::string(kAnswers0) + "start,listed,"), R"(
  1 own; 1 other; 1 unknown -> begin Pausing
  due -> begin Late
  early -> nothing
)");
}

TEST(OwnEndpointFsmTest, ALateAnswerBeginsAnewOnlyIfItIsAnOwnAndNoneIsListed) {
  EXPECT_EQ(table({"start", "due"}, ",start,"), R"(
  0 own; 1 own -> begin
  0 other; 0 unknown; 1 other; 1 unknown; listed; early; due -> nothing
)");
  EXPECT_EQ(table({"start", "0 own"}, std::string(kAnswers0) + "start,"), R"(
  1 own -> begin Known
  1 other -> Known
  1 unknown -> Pausing
  listed; early; due -> nothing
)");
  EXPECT_EQ(table({"start", "0 own", "listed"}, std::string(kAnswers0) + "start,"), R"(
  1 own; 1 other; 1 unknown -> Known
  listed; early; due -> nothing
)");
}

TEST(OwnEndpointFsmTest, NamesWithoutAnAddressAreLookedUpAgainUntilOneIsListed) {
  EXPECT_EQ(table({"start", "0 unknown", "1 other"}, std::string(kAnswers) + "start,"), R"(
  listed -> Known
  due -> ask0 Late
  early -> nothing
)");
  EXPECT_EQ(table({"start", "0 unknown", "1 unknown"}, std::string(kAnswers) + "start,"), R"(
  listed -> Known
  due -> ask0 ask1 Late
  early -> nothing
)");
  EXPECT_EQ(table({"start", "0 other", "1 other"}, std::string(kAnswers) + "start,"), R"(
  listed; early; due -> nothing
)");
  EXPECT_EQ(table({"start", "0 unknown", "1 other", "due"}, ",1 own,1 other,1 unknown,start,"), R"(
  0 own -> begin Known
  0 other -> Known
  0 unknown -> Pausing
  listed; early; due -> nothing
)");
}

TEST(OwnEndpointFsmTest, OnlyWhatWasAnsweredForIsItsOwn) {
  Machine machine;
  machine.take(machine.fsm.start(machine.now));
  machine.answer(1, Own::Yes);
  EXPECT_FALSE(machine.fsm.is_own(0));
  EXPECT_TRUE(machine.fsm.is_own(1));
  EXPECT_FALSE(machine.fsm.has_all_answers());
  machine.answer(0, Own::No);
  EXPECT_FALSE(machine.fsm.is_own(0));
  EXPECT_TRUE(machine.fsm.has_all_answers());
}

}  // namespace
}  // namespace drun::launcher
