#include "rendezvous/history.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/keys.hpp"
#include "support/cluster.hpp"

namespace drun::rendezvous {
namespace {

using test::Cluster;
using testing::ElementsAre;
using testing::HasSubstr;
using What = News::What;

History history_of(Cluster& cluster) {
  const auto& keys = cluster.store().keys();
  const auto found = keys.find(Keys(cluster[0].config.run_id).history);
  if (found == keys.end()) return {};
  const auto history = decode_history(found->second.text);
  EXPECT_TRUE(history) << found->second.text;
  return history.value_or(History());
}

std::vector<What> told(const Cluster::Node& node) {
  std::vector<What> result;
  for (const News& news : node.news)
    result.push_back(news.what);
  return result;
}

TEST(HistoryTest, IsReadAsItWasWritten) {
  History history;
  history.max_restarts = 3;
  history.nnodes = "2:8";
  history.begin({1, 2, 16, 1'000, 2'000, 0, 0, Cause::None, "", 0});
  history.stop(Cause::Failure, "rank 3: \xff", 3'000);
  history.end(1, 4'000);
  history.begin({2, 2, 16, 4'000, 5'000, 0, 0, Cause::None, "", 0});
  const auto read = decode_history(encode(history));
  ASSERT_TRUE(read) << read.error().what();
  ASSERT_EQ(read->rounds.size(), 2U);
  EXPECT_EQ(read->max_restarts, 3);
  EXPECT_EQ(read->nnodes, "2:8");
  EXPECT_EQ(read->rounds[1], history.rounds[1]);
  EXPECT_EQ(read->rounds[0].cause, Cause::Failure);
  EXPECT_EQ(read->rounds[0].restart, 1);
  EXPECT_FALSE(decode_history(""));
  EXPECT_FALSE(decode_history(R"({"rounds":[{"number":0}]})"));
  EXPECT_FALSE(decode_history(R"({"rounds":7})"));
}

TEST(HistoryTest, KeepsTheLastRoundsAndTheFirstCause) {
  History history;
  for (int number = 1; number <= 100; ++number)
    history.begin({number, 1, 1, 0, 1, 0, 0, Cause::None, "", 0});
  EXPECT_EQ(history.rounds.size(), kMaxHistory);
  EXPECT_EQ(history.rounds.back().number, 100);
  history.stop(Cause::Failure, std::string(10'000, 'x'), 5);
  history.stop(Cause::Membership, "later", 6);
  EXPECT_EQ(history.rounds.back().cause, Cause::Failure);
  EXPECT_EQ(history.rounds.back().stopping_ms, 5);
  EXPECT_EQ(history.rounds.back().reason.size(), kMaxPastReason);
  EXPECT_LT(encode(history).size(), 16'384U);
}

TEST(HistoryTest, ARestartIsKeptWithItsReasonAndTimes) {
  Cluster cluster;
  for (int node = 0; node < 2; ++node) {
    auto config = cluster.config(2, 2);
    config.max_restarts = 1;
    config.unix_offset_ms = 1'000'000;
    cluster.start(config);
  }
  cluster.advance(Milliseconds(10'000));
  cluster.fail(1, 7);
  cluster.advance(Milliseconds(10'000));
  History history = history_of(cluster);
  ASSERT_EQ(history.rounds.size(), 2U);
  EXPECT_EQ(history.max_restarts, 1);
  EXPECT_EQ(history.nnodes, "2");
  EXPECT_EQ(history.rounds[0].cause, Cause::Failure);
  EXPECT_THAT(history.rounds[0].reason, HasSubstr("exit code 7"));
  EXPECT_EQ(history.rounds[0].restart, 1);
  EXPECT_GE(history.rounds[0].began_ms, 1'000'000);
  EXPECT_GE(history.rounds[0].stopping_ms, history.rounds[0].began_ms);
  EXPECT_GE(history.rounds[0].ended_ms, history.rounds[0].stopping_ms);
  EXPECT_EQ(history.rounds[1].ended_ms, 0);
  cluster.fail(0, 8);
  cluster.advance(Milliseconds(10'000));
  history = history_of(cluster);
  EXPECT_EQ(history.rounds.back().cause, Cause::Failure);
  EXPECT_EQ(history.rounds.back().restart, 0);
  EXPECT_GT(history.rounds.back().ended_ms, 0);
}

// Nothing stops a round whose workers succeed; a request may, without a failure.
TEST(HistoryTest, TheLastRoundSaysWhatStoppedIt) {
  for (const bool succeeds : {true, false}) {
    Cluster cluster;
    cluster.start_all(2);
    cluster.advance(Milliseconds(10'000));
    if (succeeds) {
      cluster.succeed(0);
      cluster.succeed(1);
    } else {
      cluster.stop(1);
    }
    cluster.advance(Milliseconds(10'000));
    const History history = history_of(cluster);
    ASSERT_EQ(history.rounds.size(), 1U);
    const PastRound& last = history.rounds.back();
    EXPECT_GT(last.ended_ms, 0);
    EXPECT_EQ(last.stopping_ms == 0, succeeds);
    EXPECT_EQ(last.reason, succeeds ? "" : "told to stop by SIGTERM");
  }
}

TEST(HistoryTest, ALostNodeCostsNoRestart) {
  Cluster cluster;
  for (int node = 0; node < 2; ++node) {
    auto config = cluster.config(1, 2);
    config.max_restarts = 2;
    config.is_host = node == 0;
    cluster.start(config);
  }
  cluster.advance(Milliseconds(10'000));
  cluster.kill(1);
  cluster.advance(Milliseconds(60'000));
  const History history = history_of(cluster);
  ASSERT_GE(history.rounds.size(), 2U);
  EXPECT_EQ(history.rounds[0].cause, Cause::Membership);
  EXPECT_EQ(history.rounds[0].restart, 0);
  EXPECT_THAT(told(cluster[0]), ElementsAre(What::Leads, What::Joined, What::Joined, What::Gone));
  EXPECT_EQ(told(cluster[1]), std::vector<What>());
}

TEST(NewsTest, TheLeaderTellsAFailureAndItsRestartOnce) {
  Cluster cluster;
  cluster.start_all(3, 1);
  cluster.advance(Milliseconds(10'000));
  cluster.fail(2, 7);
  cluster.advance(Milliseconds(10'000));
  std::vector<News> all;
  for (int node = 0; node < cluster.size(); ++node)
    for (const News& news : cluster[node].news)
      if (news.what == What::Failed || news.what == What::Restarted) all.push_back(news);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].what, What::Failed);
  ASSERT_TRUE(all[0].failure);
  EXPECT_EQ(all[0].failure->exit_code, 7);
  EXPECT_EQ(all[1].what, What::Restarted);
  EXPECT_EQ(all[1].restarts, 1);
  EXPECT_EQ(all[1].ticket, all[0].ticket) << "of the node that failed, not of the leader";
  EXPECT_EQ(all[1].host, all[0].host);
  EXPECT_THAT(all[1].reason, testing::HasSubstr("exit code 7"));
}

}  // namespace
}  // namespace drun::rendezvous
