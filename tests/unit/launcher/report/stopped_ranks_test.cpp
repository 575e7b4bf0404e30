#include "launcher/report/stopped_ranks.hpp"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

StoppedRanks ranks(std::vector<int> running, std::vector<int> killed = {}) {
  StoppedRanks stopped;
  stopped.running = std::move(running);
  stopped.killed = std::move(killed);
  return stopped;
}

TEST(StoppedRanksTest, WhoRanIsFolded) {
  EXPECT_EQ(describe_stopped(ranks({})), "");
  EXPECT_EQ(describe_stopped(ranks({4})), "rank 4 was still running");
  EXPECT_EQ(describe_stopped(ranks({0, 1, 2, 3, 4, 5, 7})), "ranks 0-5,7 were still running");
  EXPECT_EQ(describe_killed(ranks({0, 1})), "");
}

TEST(StoppedRanksTest, WhoNeededSigkillIsNamed) {
  EXPECT_EQ(describe_stopped(ranks({0, 1, 2}, {1})),
            "ranks 0-2 were still running; rank 1 needed SIGKILL");
  EXPECT_EQ(describe_stopped(ranks({0, 1, 2, 3}, {0, 1, 3})),
            "ranks 0-3 were still running; ranks 0-1,3 needed SIGKILL");
  EXPECT_EQ(describe_stopped(ranks({0, 1}, {0, 1})),
            "ranks 0-1 were still running and needed SIGKILL");
  EXPECT_EQ(describe_stopped(ranks({3}, {3})), "rank 3 was still running and needed SIGKILL");
  EXPECT_EQ(describe_killed(ranks({0, 1, 2}, {1})), "rank 1 needed SIGKILL");
}

// Nobody knows whether they would have ended by themselves.
TEST(StoppedRanksTest, SigkillBeforeItsTimeWasNotNeeded) {
  StoppedRanks stopped = ranks({0, 1, 2}, {1, 2});
  stopped.at_once = true;
  EXPECT_EQ(describe_stopped(stopped), "ranks 0-2 were still running; ranks 1-2 were killed");
  stopped.killed = {0, 1, 2};
  EXPECT_EQ(describe_stopped(stopped), "ranks 0-2 were still running and were killed");
  EXPECT_EQ(describe_killed(stopped), "ranks 0-2 were killed");
}

TEST(StoppedRanksTest, AWaitForWhatTheWorkersLeftBehindIsExplained) {
  StoppedRanks stopped = ranks({0, 1});
  stopped.others_killed = 1;
  EXPECT_EQ(describe_stopped(stopped),
            "ranks 0-1 were still running; 1 process that the workers had started needed SIGKILL");
  stopped.others_killed = 2;
  EXPECT_EQ(describe_killed(stopped), "2 processes that the workers had started needed SIGKILL");
  stopped.killed = {1};
  EXPECT_EQ(describe_killed(stopped), "rank 1 needed SIGKILL");
}

TEST(StoppedRanksTest, ASilenceThatStandsOutIsNamed) {
  StoppedRanks stopped = ranks({0, 1, 2}, {2});
  stopped.silence = "rank 2 silent the longest, for 11.0 s";
  EXPECT_EQ(describe_stopped(stopped),
            "ranks 0-2 were still running (rank 2 silent the longest, for 11.0 s); rank 2 needed "
            "SIGKILL");
}

TEST(StoppedRanksTest, ThatAllWereSilentIsSaidIfNobodyStandsOut) {
  StoppedRanks stopped = ranks({0, 1, 2});
  stopped.all_silent = std::chrono::milliseconds(6'000);
  EXPECT_EQ(describe_stopped(stopped), "ranks 0-2 were still running (silent for at least 6.0 s)");
  stopped.killed = {1};
  EXPECT_EQ(describe_stopped(stopped),
            "ranks 0-2 were still running (silent for at least 6.0 s); rank 1 needed SIGKILL");
  stopped.killed = stopped.running;
  EXPECT_EQ(describe_stopped(stopped),
            "ranks 0-2 were still running (silent for at least 6.0 s) and needed SIGKILL");
  stopped.silence = "rank 2 silent the longest, for 11.0 s";
  EXPECT_EQ(describe_stopped(stopped),
            "ranks 0-2 were still running (rank 2 silent the longest, for 11.0 s) and needed "
            "SIGKILL");
  stopped = ranks({4});
  stopped.all_silent = std::chrono::milliseconds(6'000);
  EXPECT_EQ(describe_stopped(stopped), "rank 4 was still running (silent for 6.0 s)");
}

TEST(StoppedRanksTest, OfSeveralNodesThisOneIsNamed) {
  StoppedRanks stopped = ranks({8, 9}, {9});
  stopped.host = "gpu1";
  EXPECT_EQ(describe_stopped(stopped),
            "on gpu1, ranks 8-9 were still running; rank 9 needed SIGKILL");
  EXPECT_EQ(describe_killed(stopped), "on gpu1, rank 9 needed SIGKILL");
  stopped.killed.clear();
  EXPECT_EQ(describe_killed(stopped), "");
}

TEST(StoppedRanksTest, WhoHadEndedWithZeroIsNamed) {
  StoppedRanks stopped = ranks({0, 1, 3});
  EXPECT_EQ(describe_succeeded(stopped), "");
  stopped.succeeded = {2};
  EXPECT_EQ(describe_succeeded(stopped), "rank 2 had ended with 0");
  stopped.succeeded = {2, 4, 5, 6};
  stopped.host = "gpu1";
  EXPECT_EQ(describe_succeeded(stopped), "on gpu1, ranks 2,4-6 had ended with 0");
  stopped.expected = true;
  EXPECT_EQ(describe_succeeded(stopped), "") << "not all had begun";
}

TEST(StoppedRanksTest, ThatTheOnlyRankRanIsNoNews) {
  StoppedRanks stopped = ranks({0});
  stopped.expected = true;
  EXPECT_EQ(describe_stopped(stopped), "");
  stopped.killed = {0};
  EXPECT_EQ(describe_stopped(stopped), "rank 0 needed SIGKILL");
}

}  // namespace
}  // namespace drun::launcher
