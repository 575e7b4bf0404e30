#include "launcher/report/hang_suspicion.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using rendezvous::FailureSummary;

constexpr const char* kBarrier = "RuntimeError: barrier timed out after 10 s";
constexpr const char* kGeneric = "TimeoutError: timed out";

FailureSummary failed_with(std::string last_words,
                           std::vector<rendezvous::FailedRanks> others = {}) {
  FailureSummary root;
  root.rank = 0;
  root.pid = 4711;
  root.exit_code = 1;
  root.cause = "exit code 1";
  root.last_words = std::move(last_words);
  root.others = std::move(others);
  return root;
}

// As a stop finds them on a node where one of four ranks hangs.
StoppedRanks rank_2_hangs() {
  StoppedRanks stopped;
  stopped.running = stopped.silent = {2};
  stopped.silent_for = "11.0 s";
  stopped.few = true;
  return stopped;
}

std::string text(const FailureSummary& root, const StoppedRanks& stopped) {
  const auto suspicion = suspect_hang(root, stopped);
  return suspicion ? suspicion->text : "";
}

TEST(SpeaksOfTimeoutTest, InItsLastWordsOrTheWatchdogs) {
  EXPECT_TRUE(speaks_of_timeout("TimeoutError: no answer", {}));
  EXPECT_TRUE(speaks_of_timeout("exit code 1", {"Watchdog caught collective operation timeout"}));
  EXPECT_FALSE(speaks_of_timeout("exit code 1", {"retry: timed out", "ValueError: 42"}));
  EXPECT_FALSE(speaks_of_timeout("", {}));
}

TEST(HangSuspicionTest, WhoWasSilentWhileAnotherWaited) {
  EXPECT_EQ(text(failed_with(kBarrier), rank_2_hangs()),
            "rank 2 seems to hang: when rank 0's wait timed out, it was still running, silent for "
            "11.0 s");
  StoppedRanks stopped = rank_2_hangs();
  stopped.killed = {2};
  stopped.host = "node1";
  EXPECT_EQ(text(failed_with(kBarrier), stopped),
            "on node1, rank 2 seems to hang: when rank 0's wait timed out, it was still running, "
            "silent for 11.0 s; it needed SIGKILL");
  stopped = rank_2_hangs();
  stopped.running = stopped.silent = {2, 3};
  EXPECT_EQ(text(failed_with(kBarrier), stopped),
            "ranks 2-3 seem to hang: when rank 0's wait timed out, they were still running, silent "
            "for at least 11.0 s");
}

TEST(HangSuspicionTest, WhoNeededSigkill) {
  StoppedRanks stopped;
  stopped.running = {1, 2, 3};
  stopped.killed = {3};
  EXPECT_EQ(text(failed_with(kBarrier), stopped),
            "rank 3 seems to hang: when rank 0's wait timed out, it was still running; it needed "
            "SIGKILL");
  stopped.at_once = true;  // nobody knows whether it did
  EXPECT_EQ(text(failed_with(kBarrier), stopped), "");
  stopped.at_once = false;
  stopped.killed = {1, 2};  // they ignore the signal
  EXPECT_EQ(text(failed_with(kBarrier), stopped), "");
}

TEST(HangSuspicionTest, OnlyATimeOutMakesSuspicious) {
  for (const char* words :
       {"", "ValueError: bad value 42", "ValueError: bad timeout for rank 3",
        "RuntimeError: Connection closed by peer [127.0.0.1]:3000", "rank 3: out of memory",
        "rank 0: ReadTimeout: The read operation timed out",
        "TimeoutError: /data/rank0/shard.tar timed out",
        "ConnectTimeout: s3.frankfurt.example.org timed out", "fetch: preallgather step timed out"})
    EXPECT_EQ(text(failed_with(words), rank_2_hangs()), "") << words;
  for (const char* words :
       {"[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9) ran for 10000 "
        "ms",
        "RuntimeError: [unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to "
        "complete",
        "Timed out waiting 4000ms for send operation to complete",
        "torch.distributed.DistStoreError: wait timeout after 5000ms, keys: /default_pg/0//x",
        "TimeoutError: allreduce", "Barrier timed out", "DEADLINE_EXCEEDED: barrier"})
    EXPECT_NE(text(failed_with(words), rank_2_hangs()), "") << words;
}

// The words of torch's watchdog are not the last ones.
TEST(HangSuspicionTest, TheWatchdogsWordsMayStandAnywhere) {
  FailureSummary root = failed_with("frame #7: clone");
  for (const char* survived : {"request timed out for rank 3, trying again",
                               "DistStoreError: wait timeout after 5000ms, trying again"}) {
    root.tail = {survived, "frame #7: clone"};
    EXPECT_EQ(text(root, rank_2_hangs()), "") << survived;
  }
  root.tail[0] = "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)";
  EXPECT_NE(text(root, rank_2_hangs()), "");
}

// A single rank may have waited for something else, and the others for it.
TEST(HangSuspicionTest, OfAnyTimeOutMoreMustTellThanAreSuspected) {
  EXPECT_EQ(text(failed_with(kGeneric), rank_2_hangs()), "");
  EXPECT_EQ(text(failed_with(kGeneric, {{{{1, 1}}, "exit code 1", "ValueError"}}), rank_2_hangs()),
            "");
  EXPECT_NE(text(failed_with(kGeneric, {{{{1, 1}}, "exit code 1", kGeneric}}), rank_2_hangs()), "");
}

// It may print in a loop, and never come.
TEST(HangSuspicionTest, IfAllOthersTimedOutTheLastNeedNotBeSilent) {
  const auto others = [](const char* words) {
    return failed_with(kBarrier, {{{{1, 1}, {3, 3}}, "exit code 1", words}});
  };
  StoppedRanks stopped;
  stopped.running = {2};
  stopped.few = true;
  const std::string last =
      "rank 2 seems to hang: when the waits of all others timed out, it was still running";
  EXPECT_EQ(text(others(kBarrier), stopped), last);
  EXPECT_EQ(text(others(kGeneric), stopped), last);
  EXPECT_EQ(text(others("ValueError"), stopped), "");
  EXPECT_EQ(text(failed_with(kGeneric), stopped), "") << "it may have waited for something else";
  EXPECT_EQ(text(failed_with(kBarrier), stopped), last) << "of two ranks";
  stopped.succeeded = {3};
  EXPECT_EQ(text(failed_with(kBarrier), stopped), "") << "the wait was for rank 3, perhaps";
  stopped.succeeded.clear();
  stopped.running = {2, 4};
  EXPECT_EQ(text(others(kBarrier), stopped), "");
  stopped.running = {2};
  stopped.host = "node2";
  stopped.job_ranks = 4;
  EXPECT_EQ(text(others(kBarrier), stopped), "on node2, " + last);
  stopped.job_ranks = 5;  // another runs elsewhere
  EXPECT_EQ(text(others(kBarrier), stopped), "");
}

// All that a node has may hang: by the failures of the others it knows that they are few.
TEST(HangSuspicionTest, OfSeveralNodesThoseThatFailedAreCountedInTheWholeJob) {
  StoppedRanks stopped;
  stopped.running = stopped.quiet = {2};
  stopped.quiet_for = "11.0 s";
  stopped.job_ranks = 4;
  stopped.host = "node2";
  FailureSummary root = failed_with(kBarrier, {{{{1, 1}}, "exit code 1", kBarrier}});
  EXPECT_EQ(text(root, stopped),
            "on node2, rank 2 seems to hang: when rank 0's wait timed out, it was still running, "
            "silent for 11.0 s");
  stopped.killed = {2};
  EXPECT_NE(text(root, stopped), "");
  stopped.job_ranks = 5;  // three had not failed
  stopped.killed.clear();
  EXPECT_EQ(text(root, stopped), "");
  root.unlisted = 1;
  EXPECT_NE(text(root, stopped), "");
}

TEST(HangSuspicionTest, WhoDoesNotStandOutIsNotNamed) {
  StoppedRanks stopped;
  stopped.running = {1, 2, 3};
  EXPECT_EQ(text(failed_with(kBarrier), stopped), "");
  stopped = rank_2_hangs();
  stopped.expected = true;
  EXPECT_EQ(text(failed_with(kBarrier), stopped), "");
}

TEST(HangSuspicionTest, OfOtherNodesItSaysWhatTheySay) {
  StoppedRanks there = rank_2_hangs();
  there.host = "node1";
  const auto root = failed_with(kBarrier);
  const auto found = suspect_hangs(root, {}, {{}, there});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text, text(root, there));
  EXPECT_EQ(ranks_of(found), std::vector<int>{2});
  EXPECT_TRUE(suspect_hangs(failed_with("ValueError"), there, {there}).empty());
}

TEST(HangSuspicionTest, OfManyNodesItIsOneLine) {
  std::vector<StoppedRanks> nodes;
  for (const int rank : {12, 8, 4, 0}) {
    nodes.push_back(rank_2_hangs());
    nodes.back().running = nodes.back().silent = {rank};
    nodes.back().host = "node" + std::to_string(rank);
  }
  const auto root = failed_with(kBarrier);
  EXPECT_EQ(suspect_hangs(root, {}, nodes).size(), 4U);
  const auto found = suspect_hangs(root, rank_2_hangs(), nodes);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text,
            "on 5 nodes, ranks 0,2,4,8,12 seem to hang: when rank 0's wait timed out, they were "
            "still running");
  EXPECT_EQ(ranks_of(found), (std::vector<int>{0, 2, 4, 8, 12}));
}

}  // namespace
}  // namespace drun::launcher
