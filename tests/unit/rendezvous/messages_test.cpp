#include "rendezvous/messages.hpp"

#include <gtest/gtest.h>

namespace drun::rendezvous {
namespace {

FailureSummary failure() {
  FailureSummary failure;
  failure.rank = 3;
  failure.local_rank = 1;
  failure.host = "gpu1";
  failure.pid = 4711;
  failure.cause = "killed by SIGSEGV";
  failure.uptime_ms = 10'920'000;
  return failure;
}

TEST(FailureTextTest, SaysWhoWhereHowAndWhen) {
  EXPECT_EQ(failure_text(failure()),
            "rank 3 (local rank 1 on gpu1, pid 4711): killed by SIGSEGV after 3 h 2 min");
  FailureSummary hung = failure();
  hung.hung = true;
  hung.cause = "hangs: it waits in futex";
  EXPECT_EQ(failure_text(hung),
            "rank 3 (local rank 1 on gpu1, pid 4711): hangs: it waits in futex, 3 h 2 min after "
            "its start");
  FailureSummary never_began = failure();
  never_began.pid = 0;
  never_began.host.clear();
  never_began.cause = "cannot exec x";
  EXPECT_EQ(failure_text(never_began), "rank 3 (local rank 1): cannot exec x");
}

TEST(FailureTextTest, NoRankIsToBlameForWhatDrunCannotDo) {
  FailureSummary own;
  own.exit_code = kDrunFailed;
  own.cause = "create folder x: Read-only file system";
  EXPECT_EQ(failure_text(own),
            "drun could not start its workers: create folder x: Read-only file system");
  own.host = "gpu1";
  EXPECT_EQ(failure_text(own),
            "drun on gpu1 could not start its workers: create folder x: Read-only file system");
  own.pid = 4711;  // of a worker that ends with this code
  own.cause = "exit code 125";
  EXPECT_EQ(failure_text(own), "rank 0 (local rank 0 on gpu1, pid 4711): exit code 125 after 0 ms");
}

TEST(DurationTextTest, HasTenthsOfASecondIfThereAreSome) {
  EXPECT_EQ(duration_text(Milliseconds{0}), "0 s");
  EXPECT_EQ(duration_text(Milliseconds{1'249}), "1.2 s");
  EXPECT_EQ(duration_text(Milliseconds{1'250}), "1.3 s");
  EXPECT_EQ(duration_text(Milliseconds{59'960}), "60 s");
}

TEST(ClockTextTest, HasHoursFromOneOn) {
  EXPECT_EQ(clock_text(Milliseconds{-1}), "00:00");
  EXPECT_EQ(clock_text(Milliseconds{3'599'999}), "59:59");
  EXPECT_EQ(clock_text(Milliseconds{3'600'000}), "1:00:00");
  EXPECT_EQ(clock_text(Milliseconds{36'061'000}), "10:01:01");
}

TEST(LeftTextTest, MakesTheLimitWithTheTimeThatIsOver) {
  const Milliseconds limit{600'000};
  EXPECT_EQ(clock_text(Milliseconds{41'300}) + left_text(Milliseconds{41'300}, limit),
            "00:41 (09:19 left)");
  EXPECT_EQ(left_text(Milliseconds{0}, limit), " (10:00 left)");
  EXPECT_EQ(left_text(limit + Milliseconds{50}, limit), " (00:00 left)");
}

TEST(WithPlaceTest, WhatIsMissingIsSeenInEightyColumnsWhateverTheEndpoint) {
  Config config;
  const std::string waiting = "3 of 4 nodes (node[0-1,3]); missing node rank 2";
  EXPECT_EQ(with_place(waiting, config), waiting);
  config.endpoint = "node0:29400";
  EXPECT_EQ(with_place(waiting, config),
            "3 of 4 nodes; missing node rank 2; at node0:29400 (node[0-1,3])");
  EXPECT_EQ(
      with_place("6 of 8 nodes (node[0-5]); node7 (group rank 7) was lost in round 1", config),
      "6 of 8 nodes; node7 (group rank 7) was lost in round 1; at node0:29400 (node[0-5])");
  EXPECT_EQ(with_place("3 of 4 nodes (node[0-1,3])", config),
            "3 of 4 nodes at node0:29400 (node[0-1,3])");
  EXPECT_EQ(with_place("0 of 4 nodes; other rendezvous ids", config),
            "0 of 4 nodes; other rendezvous ids; at node0:29400");
  EXPECT_EQ(
      with_place("the store is there; which of 4 nodes are, no other agent has said yet", config),
      "the store is there at node0:29400; which of 4 nodes are, no other agent has said yet");
  EXPECT_EQ(with_place("for the store to come back: refused (111)", config),
            "for the store to come back at node0:29400: refused (111)");
  config.endpoint = "trainer-0.trainer.research.svc.cluster.local:29400,[::1]:1,node2.test:29400";
  EXPECT_EQ(with_place("3 of 4 nodes", config),
            "3 of 4 nodes at trainer-0.trainer.research.svc.cluster.local:29400 and 2 more");
}

TEST(RangesTextTest, EightAreNamed) {
  EXPECT_EQ(ranges_text({0, 1, 2, 4, 6, 8, 10, 12, 14, 16}), "0-2, 4, 6, 8, 10, 12, 14, 16");
  EXPECT_EQ(ranges_text({0, 2, 4, 6, 8, 10, 12, 14, 16}), "0, 2, 4, 6, 8, 10, 12, 14, ...");
}

TEST(RankMapTest, NamesTheFirstNodesAndTheLast) {
  State state{Keys("job")};
  std::vector<Planned> plan;
  std::vector<std::string> maps;
  for (int node = 0; node < 11; ++node) {
    const std::string ticket = std::to_string(node);
    auto& document = state.members[ticket].document;
    document.host = "n" + ticket;
    document.local_world_size = 2;
    plan.push_back({ticket, {}});
    plan.back().assignment.first_rank = 2 * node;
    maps.push_back(rank_map(state, plan));
  }
  EXPECT_EQ(maps[1], "n0 0-1, n1 2-3");
  EXPECT_EQ(maps[8], maps[7] + ", n8 16-17");
  EXPECT_EQ(maps[10], maps[7] + ", ... 2 more ..., n10 20-21");
  state.members.erase("0");
  EXPECT_EQ(rank_map(state, {plan[0], plan[1]}), "n1 2-3") << "gone since";
}

TEST(RestartTextTest, CountsTheRestarts) {
  EXPECT_EQ(restart_text(1, 3, "rank 3: exit code 1"), "restart 1/3 after rank 3: exit code 1");
}

TEST(TakenInTextTest, SaysFromWhenOnAndAsWhat) {
  Assignment place;
  place.round = 4;
  place.group_rank = 2;
  EXPECT_EQ(taken_in_text("gpu7", place), "gpu7 is taken in from round 4 on, as group rank 2");
}

}  // namespace
}  // namespace drun::rendezvous
