#include "launcher/workers/hung_ranks.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/root_cause.hpp"
#include "support/group_rig.hpp"

namespace drun::launcher {
namespace {

using rendezvous::is_nearer;
using std::chrono::seconds;
using testing::HasSubstr;

WaitingRank waiting(int local_rank, const std::string& call, const std::string& file = "") {
  WaitingRank rank;
  rank.worker = static_cast<process::WorkerId>(local_rank + 1);
  rank.local_rank = local_rank;
  rank.pid = 4711 + local_rank;
  rank.place = {call, file, false};
  return rank;
}

TEST(HungRanksTest, OneThatIsStoppedIsSaidToBeAndFailsFirst) {
  auto ranks = std::vector{waiting(0, "futex"), waiting(1, "futex"), waiting(2, "")};
  ranks[2].place.stopped = true;
  const auto hung = hang_faults(ranks, seconds(600), false, seconds(4));
  EXPECT_TRUE(is_nearer(hung[2].fault.clue, hung[0].fault.clue));
  EXPECT_THAT(hung[2].fault.cause, HasSubstr("hangs: it is stopped by a signal, and no rank"));
  EXPECT_EQ(ranks[2].place.text(true), "are stopped by a signal");
}

// Many wait for one.
TEST(HungRanksTest, WhoWaitsElsewhereThanTheOthersFailsFirst) {
  const auto hung = hang_faults(
      {waiting(0, "futex"), waiting(1, "futex"), waiting(2, "recvfrom", " from 10.0.0.1:1")},
      seconds(600), false, seconds(4));
  ASSERT_EQ(hung.size(), 3U);
  EXPECT_TRUE(is_nearer(hung[2].fault.clue, hung[0].fault.clue));
  EXPECT_EQ(hung[2].fault.clue.alike, 1);
  EXPECT_EQ(hung[0].fault.clue, hung[1].fault.clue);
  EXPECT_EQ(hung[0].fault.clue.alike, 2);
  EXPECT_EQ(hung[2].pid, 4713);
  for (const HungRank& rank : hung) {
    EXPECT_EQ(rank.fault.exit_code, 124);
    EXPECT_TRUE(rank.fault.hangs);
    EXPECT_TRUE(rank.fault.with_others);
    EXPECT_EQ(rank.fault.clue.others_within, seconds(4));
    EXPECT_FALSE(rank.fault.for_good);
  }
  EXPECT_THAT(hung[2].fault.cause, HasSubstr("hangs: it waits in recvfrom, and no rank"));
  EXPECT_THAT(hung[2].fault.cause, HasSubstr("(--hang-timeout)"));
}

TEST(HungRanksTest, WhoWaitsForAProcessOfItsOwnFailsFirst) {
  auto ranks = std::vector{waiting(0, "recvfrom", " from 10.0.0.1:1"), waiting(1, "read"),
                           waiting(2, "read")};
  ranks[0].place.whom = hang::Awaited::Whom::Others;
  for (auto* rank : {&ranks[1], &ranks[2]}) {
    rank->place.whom = hang::Awaited::Whom::OwnChild;
    rank->place.child = "waits in futex";
  }
  const auto hung = hang_faults(ranks, seconds(600), false, seconds(4));
  EXPECT_TRUE(is_nearer(hung[1].fault.clue, hung[0].fault.clue));
  EXPECT_TRUE(hung[0].fault.clue.for_others);
  EXPECT_THAT(hung[1].fault.cause,
              HasSubstr("it waits in read for its child process, which waits in futex, and no"));
}

TEST(HungRanksTest, WhoIsBehindInACollectiveFailsFirst) {
  auto ranks = std::vector{waiting(0, "futex"), waiting(1, ""), waiting(2, "")};
  ranks[2].behind = true;
  const auto hung = hang_faults(ranks, seconds(600), false, seconds(4));
  EXPECT_TRUE(is_nearer(hung[2].fault.clue, hung[0].fault.clue));
  EXPECT_TRUE(is_nearer(hung[2].fault.clue, hung[1].fault.clue));
  EXPECT_THAT(hung[2].fault.cause, HasSubstr("hangs: NCCL says that it is behind in a collective"));
}

// A lock that is taken twice and a collective of gloo's are both a futex; and in a collective ranks
// are in different system calls.
TEST(HungRanksTest, WhoseStackIsAnotherFailsFirst) {
  auto ranks = std::vector{waiting(0, "futex"), waiting(1, "poll"), waiting(2, "futex"),
                           waiting(3, "recvfrom", " from 10.0.0.1:1")};
  for (WaitingRank& rank : ranks) {
    rank.for_ranks = rank.local_rank != 2;
    rank.frame = rank.for_ranks ? "c10d::Work::wait(...) (libtorch_cpu.so)" : "step (train.py:7)";
  }
  auto hung = hang_faults(ranks, seconds(600), false, seconds(4));
  for (const int other : {0, 1, 3}) {
    const RankFault& fault = hung[static_cast<std::size_t>(other)].fault;
    EXPECT_TRUE(is_nearer(hung[2].fault.clue, fault.clue));
    EXPECT_EQ(fault.clue.alike, 3);
    EXPECT_TRUE(fault.clue.for_others);
    EXPECT_THAT(fault.cause, HasSubstr("hangs: it waits for other ranks in c10d::Work::wait(...) "
                                       "(libtorch_cpu.so), and no rank"));
  }
  EXPECT_THAT(hung[2].fault.cause, HasSubstr("hangs: it waits in futex in step (train.py:7), and"));
  const rendezvous::HangPlace place{"step (train.py:7)", "futex"};
  EXPECT_EQ(hung[2].fault.clue.place, place);
  ranks.erase(ranks.begin(), ranks.begin() + 2);
  hung = hang_faults(ranks, seconds(600), false, seconds(4));
  EXPECT_TRUE(is_nearer(hung[0].fault.clue, hung[1].fault.clue)) << "of two ranks, too";
}

// One accepts what the others connect to.
TEST(HungRanksTest, AnotherStackTellsMoreThanAnotherSystemCall) {
  auto ranks = std::vector{waiting(0, "accept"), waiting(1, "recvfrom"), waiting(2, "recvfrom"),
                           waiting(3, "recvfrom")};
  for (WaitingRank& rank : ranks)
    rank.frame = rank.local_rank == 2 ? "read_shard (train)" : "all_reduce (train)";
  auto hung = hang_faults(ranks, seconds(600), false, seconds(4));
  EXPECT_EQ(hung[0].fault.clue.alike, 3);
  EXPECT_EQ(hung[2].fault.clue.alike, 1);
  ranks[2].frame = ranks[0].frame;
  ranks.push_back(waiting(4, "recvfrom"));  // of which nobody knows the stack
  hung = hang_faults(ranks, seconds(600), false, seconds(4));
  EXPECT_EQ(hung[0].fault.clue.alike, 1) << "where stacks are the same it is all that there is";
  EXPECT_EQ(hung[2].fault.clue.alike, 3);
}

// Where stacks could be taken of some ranks only, as of a busy node.
TEST(HungRanksTest, ARankWhoseStackIsNotKnownIsNotBlamedForThat) {
  std::vector<WaitingRank> ranks;
  for (int each = 0; each < 8; ++each)
    ranks.push_back(waiting(each, "futex (futex_wait_queue)"));
  for (WaitingRank& rank : ranks) {
    if (rank.local_rank == 3 || rank.local_rank == 5) continue;
    rank.frame = "c10d::Work::wait(...) (libtorch_cpu.so)";
    rank.for_ranks = true;
  }
  auto hung = hang_faults(ranks, seconds(600), false, seconds(4));
  EXPECT_EQ(hung[3].fault.clue.alike, 0);
  EXPECT_FALSE(is_nearer(hung[3].fault.clue, hung[0].fault.clue));
  EXPECT_TRUE(is_nearer(hung[0].fault.clue, hung[5].fault.clue));
  ranks[1].frame = "lock_twice (train)";
  ranks[1].for_ranks = false;
  hung = hang_faults(ranks, seconds(600), false, seconds(4));
  for (const std::size_t other : {0U, 3U, 5U})
    EXPECT_TRUE(is_nearer(hung[1].fault.clue, hung[other].fault.clue));
  ranks[5].place.call = "read (request_wait_answer)";
  hung = hang_faults(ranks, seconds(600), false, seconds(4));
  EXPECT_EQ(hung[5].fault.clue.alike, 1) << "the others are not there";
}

TEST(HungRanksTest, WhoWaitsForItsGpuIsSaidTo) {
  auto ranks = std::vector{waiting(0, "futex"), waiting(1, "ioctl")};
  ranks[0].frame = "MPI_Barrier (libmpi.so)";
  ranks[0].for_ranks = true;
  ranks[1].frame = "cudaStreamSynchronize (libcudart.so)";
  ranks[1].for_gpu = true;
  const auto hung = hang_faults(ranks, seconds(600), false, seconds(4));
  EXPECT_THAT(
      hung[1].fault.cause,
      HasSubstr("hangs: it waits for its GPU in cudaStreamSynchronize (libcudart.so), and"));
  EXPECT_TRUE(is_nearer(hung[1].fault.clue, hung[0].fault.clue));
}

TEST(HungRanksTest, WhatIsKnownBetterThanAStackIsSaidInstead) {
  auto ranks = std::vector{waiting(0, "read"), waiting(1, ""), waiting(2, "futex")};
  for (WaitingRank& rank : ranks)
    rank.frame = "main (train)";
  ranks[0].place.child = "waits in futex";
  ranks[1].place.stopped = true;
  ranks[2].behind = true;
  for (const HungRank& rank : hang_faults(ranks, seconds(600), false, seconds(4)))
    EXPECT_THAT(rank.fault.cause, testing::Not(HasSubstr("main")));
}

TEST(HungRanksTest, RanksThatWaitAlikeAreToldTogetherWhateverNumberTheirPipeHas) {
  test::GroupRig rig;
  rig.start(test::place_of(0, 1));
  auto ranks = std::vector{waiting(0, "read", " of pipe:[7]"), waiting(1, "read", " of pipe:[8]")};
  EXPECT_THAT(hang_text(ranks, rig.group, seconds(2)),
              testing::EndsWith(": ranks 0-1 wait in read"));
  ranks[1].place.file = " of /nfs/data";
  EXPECT_THAT(hang_text(ranks, rig.group, seconds(2)),
              testing::EndsWith(": rank 0 waits in read of pipe:[7]; rank 1 waits in read of "
                                "/nfs/data"));
}

TEST(HungRanksTest, ASystemCallIsNotToldTwice) {
  auto ranks = std::vector{waiting(0, "clock_nanosleep (hrtimer_nanosleep)")};
  ranks[0].frame = "clock_nanosleep (libc.so.6)";
  EXPECT_THAT(hang_faults(ranks, seconds(600), false, seconds(4))[0].fault.cause,
              HasSubstr("it waits in clock_nanosleep (hrtimer_nanosleep), and no rank"));
}

TEST(HungRanksTest, ADoubtNamesTheRankThatIsItsReason) {
  test::GroupRig rig;
  rig.start(test::place_of(1, 2, 3));
  EXPECT_THAT(doubt_text({rig.id(1), "process 4711 is busy"}, rig.group),
              HasSubstr("because of rank 3: process 4711 is busy (and perhaps others)"));
  EXPECT_THAT(doubt_text({rig.id(1) + 100, "it is gone"}, rig.group),
              HasSubstr("because it is gone"));
}

TEST(HungRanksTest, AnUnknownPlaceIsSaidToBeOneAndAStopIsForGood) {
  const auto hung = hang_faults({waiting(0, "")}, seconds(2), true, seconds(4));
  ASSERT_EQ(hung.size(), 1U);
  EXPECT_THAT(hung[0].fault.cause, HasSubstr("an unknown place"));
  EXPECT_TRUE(hung[0].fault.for_good);
  EXPECT_EQ(hung[0].fault.clue.alike, 0);
}

}  // namespace
}  // namespace drun::launcher
