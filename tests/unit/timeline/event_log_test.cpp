#include "timeline/event_log.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "told_job.hpp"

namespace drun::timeline {
namespace {

using events::Kind;
using test::job_with_a_restart;
using test::ToldNode;

FileCount read(LogReader& reader, const std::string& bytes) {
  reader.add(bytes);
  return reader.end_file();
}

TEST(EventLogTest, AFileMayComeInPieces) {
  const std::string lines = job_with_a_restart().front().lines();
  LogReader whole;
  const FileCount all = read(whole, lines);
  LogReader pieces;
  for (const char c : lines)
    pieces.add({&c, 1});
  const FileCount count = pieces.end_file();
  EXPECT_GT(count.events, 10U);
  EXPECT_EQ(count.events, all.events);
  EXPECT_EQ(count.foreign + count.repeated, 0U);
  EXPECT_FALSE(count.torn);
  EXPECT_EQ(std::move(pieces).finish().entries.size(), all.events);
}

TEST(EventLogTest, WhatIsNoEventIsCounted) {
  LogReader reader;
  const std::string line = job_with_a_restart().front().lines().substr(0, 200);
  const FileCount count =
      read(reader, "hello\n\n[1]\n{\"event\":\"warning\"}\n" + std::string(200'000, 'x') +
                       "\n{\"event\":\"warning\",\"time\":\"yesterday\"}\n{\"event\":7}\n" + line);
  EXPECT_EQ(count.events, 0U);
  EXPECT_EQ(count.foreign, 6U);
  EXPECT_TRUE(count.torn);
  EXPECT_TRUE(std::move(reader).finish().entries.empty());
}

TEST(EventLogTest, ALastLineWithoutItsEndCountsIfItIsWhole) {
  LogReader reader;
  std::string lines = job_with_a_restart().front().lines();
  lines.pop_back();
  EXPECT_FALSE(read(reader, lines).torn);
}

TEST(EventLogTest, AnEventOfALaterDrunKeepsItsName) {
  LogReader reader;
  EXPECT_EQ(read(reader, R"({"event":"moon_rose","time":"2026-11-28T14:30:00.123456789Z",)"
                         R"("node":"n","hostname":"h","agent_pid":4,"reason":"full","phase":3})"
                         "\n")
                .events,
            1U);
  const Log log = std::move(reader).finish();
  ASSERT_EQ(log.entries.size(), 1U);
  EXPECT_EQ(log.entries.front().unknown, "moon_rose");
  EXPECT_EQ(log.entries.front().text, "full");
  EXPECT_EQ(log.agents.front().hostname, "h");
}

TEST(EventLogTest, AFileThatIsGivenTwiceCountsOnce) {
  LogReader reader;
  const std::string lines = job_with_a_restart().front().lines();
  const FileCount first = read(reader, lines);
  const FileCount second = read(reader, lines);
  EXPECT_EQ(second.repeated, first.events);
  const Log log = std::move(reader).finish();
  EXPECT_EQ(log.entries.size(), first.events);
  EXPECT_EQ(log.agents.size(), 1U);
}

TEST(EventLogTest, AnAgentIsKnownBeforeItHasAName) {
  const Log log = test::log_of(job_with_a_restart());
  ASSERT_EQ(log.agents.size(), 2U);
  EXPECT_EQ(log.agents[0].node, "node0-10");
  EXPECT_EQ(log.agents[1].node, "node1-11");
  EXPECT_EQ(log.entries.front().kind, Kind::AgentStarted);
}

// drun puts files aside: FILE.1 is older than FILE.
TEST(EventLogTest, APartThatWasPutAsideBelongsToTheSameAgent) {
  const std::string lines = job_with_a_restart().front().lines();
  const auto half = lines.find('\n', lines.size() / 2) + 1;
  LogReader reader;
  (void)read(reader, lines.substr(half));
  (void)read(reader, lines.substr(0, half));
  const Log log = std::move(reader).finish();
  ASSERT_EQ(log.agents.size(), 1U);
  EXPECT_EQ(log.entries.front().kind, Kind::AgentStarted);
  EXPECT_EQ(log.entries.back().kind, Kind::AgentEnded);
}

TEST(EventLogTest, AProcessNumberThatComesAgainIsAnotherAgent) {
  LogReader reader;
  (void)read(reader, ToldNode("host", 7).joins(0).tell(Kind::AgentEnded, 10).lines());
  auto later = ToldNode("host", 7).event(Kind::AgentStarted, 100);
  auto named = ToldNode("host", 7).event(Kind::StoreFound, 110);
  named.node = "another";
  (void)read(reader, to_json(later) + "\n" + to_json(named) + "\n");
  EXPECT_EQ(std::move(reader).finish().agents.size(), 2U);
}

TEST(EventLogTest, AClockThatIsSetMeanwhileMovesNothing) {
  ToldNode node("host", 7);
  node.joins(0);
  auto event = node.event(Kind::Warning, 500);
  event.time_ns += 3'600'000 * test::kMs;
  node.tell(event);
  const Log log = test::log_of({node});
  EXPECT_EQ(log.entries.back().at_ns, test::kDay + 500 * test::kMs);
}

TEST(EventLogTest, NumbersThatNoJobHasAreCutAndTimesOfNoDayRefused) {
  ToldNode node("host", 7);
  auto event = node.event(Kind::RoundBegun, 0);
  event.first_rank = event.world_size = event.local_world_size = INT64_MAX;
  event.round = INT64_MIN;
  node.tell(event);
  auto uptime = node.event(Kind::Warning, 0);
  uptime.monotonic_ns = INT64_MAX;
  LogReader reader;
  EXPECT_EQ(read(reader, node.lines() + to_json(uptime) + "\n").foreign, 1U);
  const Log log = std::move(reader).finish();
  EXPECT_EQ(log.entries.front().first_rank, INT32_MAX);
  EXPECT_EQ(log.entries.front().round, -1);
}

}  // namespace
}  // namespace drun::timeline
