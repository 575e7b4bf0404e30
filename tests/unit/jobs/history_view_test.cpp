#include "jobs/history_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::jobs {
namespace {

using rendezvous::Cause;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// 2026-11-28 14:30:00 UTC
constexpr std::int64_t kBegin = 1'795'876'200'000;

JobView job() {
  JobView view;
  view.id = "train";
  view.state = JobState::Running;
  view.max_restarts = 3;
  view.round.restart_count = 1;
  view.history.rounds = {{1, 4, 32, kBegin - 2'100, kBegin, kBegin + 60'000, kBegin + 61'500,
                          Cause::Failure, "rank 3 on node1: exit code 7", 1},
                         {2, 3, 24, kBegin + 61'500, kBegin + 65'000, kBegin + 70'000,
                          kBegin + 70'200, Cause::Membership, "node2 (group rank 2) is gone", 0},
                         {3, 4, 32, kBegin + 70'200, kBegin + 75'000, 0, 0, Cause::None, "", 0}};
  return view;
}

TEST(HistoryViewTest, ARoundIsALine) {
  EXPECT_EQ(history_text(job(), kBegin + 80'000),
            "job train: running\n"
            "  round 1: 4 nodes, 32 ranks, from 2026-11-28 14:30:00 UTC after 2.1 s; ran 60.0 s; "
            "rank 3 on node1: exit code 7; stopped in 1.5 s, restart 1\n"
            "  round 2: 3 nodes, 24 ranks, from 2026-11-28 14:31:05 UTC after 3.5 s; ran 5.0 s; "
            "node2 (group rank 2) is gone; stopped in 200 ms\n"
            "  round 3: 4 nodes, 32 ranks, from 2026-11-28 14:31:15 UTC after 4.8 s; runs for "
            "5.0 s\n");
}

TEST(HistoryViewTest, OfAnAbandonedJobNothingGoesOn) {
  JobView view = job();
  view.state = JobState::Abandoned;
  EXPECT_THAT(history_text(view, kBegin + 80'000),
              EndsWith(" after 4.8 s; nobody knows its end\n"));
  view.history.rounds.back().stopping_ms = kBegin + 77'000;
  view.history.rounds.back().reason = "a node is gone";
  EXPECT_THAT(history_text(view, kBegin + 80'000), EndsWith("; ran 2.0 s; a node is gone\n"));
}

TEST(HistoryViewTest, StatusHasTheLastStopsAndWhichOfThemCostARestart) {
  EXPECT_EQ(
      stops_text(job(), 3),
      "  round 2: stopped at 2026-11-28 14:31:10 UTC after 5.0 s: node2 (group rank 2) is gone\n"
      "  round 1: stopped at 2026-11-28 14:31:00 UTC after 60.0 s, restart 1: rank 3 on node1: "
      "exit "
      "code 7\n");
  EXPECT_THAT(text_of(job()), HasSubstr("  restarts: 1 of 3\n  round 2: stopped"));
  EXPECT_THAT(stops_text(job(), 1), Not(HasSubstr("round 1")));
}

TEST(HistoryViewTest, NodesThatComeAndGoHideNoRestart) {
  JobView view = job();
  view.history.rounds.resize(1);
  for (int number = 2; number < 9; ++number) {
    const std::int64_t begin = kBegin + number * 100'000;
    const bool failed = number == 3;
    view.history.rounds.push_back({number, 4, 32, 0, begin, begin + 1'000, begin + 2'000,
                                   failed ? Cause::Failure : Cause::Membership,
                                   failed ? "rank 7: exit code 1" : "node9 has joined",
                                   failed ? 2 : 0});
  }
  EXPECT_EQ(stops_text(view, 3),
            "  round 8: stopped at 2026-11-28 14:43:21 UTC after 1.0 s: node9 has joined\n"
            "  round 3: stopped at 2026-11-28 14:35:01 UTC after 1.0 s, restart 2: rank 7: exit "
            "code 1\n"
            "  round 1: stopped at 2026-11-28 14:31:00 UTC after 60.0 s, restart 1: rank 3 on "
            "node1: exit code 7\n"
            "  and 5 stops more: drunctl history\n");
}

TEST(HistoryViewTest, RestartsAreCountedForProgramsToo) {
  const status::JobStatus status = status_of(job(), kBegin);
  EXPECT_EQ(status.restarts, 1);
  EXPECT_EQ(status.max_restarts, 3);
}

// Where there is room.
TEST(HistoryViewTest, StopsThatCostNoRestartAreShownToo) {
  JobView view = job();
  view.history.rounds = {{1, 4, 32, 0, kBegin, kBegin + 1'000, kBegin + 2'000, Cause::Membership,
                          "node8 has joined", 0},
                         {2, 4, 32, 0, kBegin + 2'000, kBegin + 4'000, kBegin + 5'000,
                          Cause::Membership, "node9 has joined", 0}};
  EXPECT_EQ(stops_text(view, 2),
            "  round 2: stopped at 2026-11-28 14:30:04 UTC after 2.0 s: node9 has joined\n"
            "  round 1: stopped at 2026-11-28 14:30:01 UTC after 1.0 s: node8 has joined\n");
}

TEST(HistoryViewTest, WithoutOneItSaysSo) {
  JobView view = job();
  view.history.rounds.clear();
  EXPECT_EQ(history_text(view, kBegin),
            "job train: running\n  no round has begun, or its history is lost\n");
}

TEST(HistoryViewTest, NothingActsOnATerminal) {
  JobView view = job();
  view.history.rounds[0].reason = "\x1b[2J";
  EXPECT_THAT(history_text(view, kBegin), Not(HasSubstr("\x1b")));
  EXPECT_THAT(stops_text(view, 3), Not(HasSubstr("\x1b")));
}

TEST(HistoryViewTest, JsonHasEveryRound) {
  JobView view = job();
  view.history.rounds.resize(1);
  EXPECT_EQ(history_json(status_of(view, 0), false),
            R"({"id":"train","state":"running","max_restarts":3,"rounds":[{"number":1,"nodes":4,)"
            R"("world_size":32,"waited_ms":1795876197900,"began_ms":1795876200000,)"
            R"("stopping_ms":1795876260000,"ended_ms":1795876261500,"cause":"failure",)"
            R"("reason":"rank 3 on node1: exit code 7","restart":1}]})");
}

}  // namespace
}  // namespace drun::jobs
