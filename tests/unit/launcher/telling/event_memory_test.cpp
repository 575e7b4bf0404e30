#include "launcher/telling/event_memory.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using events::Event;
using events::Kind;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Event event_of(Kind kind, std::int64_t at) {
  Event event;
  event.kind = kind;
  event.time_ns = 1'795'876'200'000'000'000 + at * 1'000'000;
  event.monotonic_ns = (at + 1) * 1'000'000;
  event.run_id = "train";
  event.hostname = "node0";
  event.agent_pid = 42;
  return event;
}

Event worker(Kind kind, std::int64_t at, std::int64_t rank, std::string state = "") {
  Event event = event_of(kind, at);
  event.round = 1;
  event.global_rank = event.local_rank = rank;
  event.pid = 100 + rank;
  event.state = std::move(state);
  return event;
}

TEST(EventMemoryTest, TheOldestAreForgotten) {
  EventMemory memory;
  for (std::size_t i = 0; i < EventMemory::kMost + 3; ++i)
    memory.add(event_of(Kind::Warning, static_cast<std::int64_t>(i)));
  EXPECT_EQ(memory.list().size(), EventMemory::kMost);
  EXPECT_EQ(memory.forgotten(), 3U);
  EXPECT_EQ(memory.list().front()->monotonic_ns, 4'000'000);
}

TEST(EventMemoryTest, ACopyStaysAsItWas) {
  EventMemory memory;
  memory.add(event_of(Kind::AgentStarted, 0));
  const EventMemory copy = memory;
  memory.add(event_of(Kind::Warning, 1));
  EXPECT_EQ(copy.list().size(), 1U);
}

TEST(EventMemoryTest, WhatEveryWorkerDoesLeavesRoomForTheRest) {
  EventMemory memory;
  memory.add(event_of(Kind::AgentStarted, 0));
  for (std::int64_t rank = 0; rank < 200; ++rank)
    memory.add(worker(Kind::WorkerStarted, rank, rank));
  memory.add(worker(Kind::WorkerExited, 200, 7, "FAILED"));
  memory.add(worker(Kind::WorkerExited, 201, 8, "TERMINATED"));
  const std::string text = events_json(memory);
  EXPECT_THAT(text, StartsWith("{\"events\":[\n{\"event\":\"agent_started\","));
  EXPECT_THAT(text, HasSubstr(",\n{\"event\":\"worker_exited\","));
  EXPECT_THAT(text, HasSubstr("\"global_rank\":7,"));
  EXPECT_THAT(text, Not(HasSubstr("worker_started")));
  EXPECT_THAT(text, Not(HasSubstr("TERMINATED")));
  EXPECT_THAT(text, testing::EndsWith("}\n]}\n"));
}

TEST(EventMemoryTest, OfVeryManyTheLastAreShown) {
  EventMemory memory;
  EXPECT_EQ(events_json(memory), "{\"events\":[\n]}\n");
  for (std::int64_t i = 0; i < 150; ++i) {
    Event event = event_of(Kind::Warning, i);
    event.reason = "no " + std::to_string(i) + ".";
    memory.add(event);
  }
  const std::string text = events_json(memory);
  EXPECT_THAT(text, Not(HasSubstr("no 49.")));
  EXPECT_LT(text.find("no 50."), text.find("no 149."));
}

Event round_of_one(std::int64_t ms) {
  Event begun = event_of(Kind::RoundBegun, ms);
  begun.round = 1;
  begun.group_rank = 0;
  begun.group_world_size = begun.local_world_size = begun.world_size = 1;
  return begun;
}

TEST(EventMemoryTest, TheTraceHasTheWorkersAndWhatIsMissing) {
  EventMemory memory;
  for (std::size_t i = 0; i < EventMemory::kMost; ++i)
    memory.add(event_of(Kind::Warning, 0));
  memory.add(event_of(Kind::AgentStarted, 1));
  memory.add(round_of_one(2));
  memory.add(worker(Kind::WorkerStarted, 3, 0));
  memory.add(worker(Kind::WorkerExited, 4, 0, "FAILED"));
  const std::string text = events_trace(memory, 5'000'000);
  EXPECT_THAT(text, StartsWith("{\"traceEvents\":["));
  EXPECT_THAT(text, HasSubstr("\"name\":\"rank 0\""));
  EXPECT_THAT(text, HasSubstr("{\"name\":\"failed\","));
  EXPECT_THAT(text, HasSubstr("the 4 events before these are forgotten: --events keeps all"));
}

// The last event may be hours old.
TEST(EventMemoryTest, TheTraceOfAJobThatRunsIsDrawnUntilNow) {
  EventMemory memory;
  memory.add(event_of(Kind::AgentStarted, 0));
  memory.add(round_of_one(2));
  memory.add(worker(Kind::WorkerStarted, 3, 0));
  const std::string text = events_trace(memory, 7'001'000'000);
  EXPECT_THAT(text, HasSubstr(R"("name":"running","cat":"drun","ph":"X","ts":3000.0,)"
                              R"("dur":6997000.0,)"));
  EXPECT_THAT(text, HasSubstr(R"("name":"round 1","cat":"drun","ph":"X","ts":2000.0,)"
                              R"("dur":6998000.0,)"));
  EXPECT_THAT(text, HasSubstr(R"("end":"not yet")"));
  EXPECT_THAT(text, Not(HasSubstr("not in the files")));
}

}  // namespace
}  // namespace drun::launcher
