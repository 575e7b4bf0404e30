// What rendezvous::KeyValue promises, kept by a real cluster of etcd.
#include "etcd/etcd_key_value.hpp"

#include <signal.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/base64.hpp"
#include "etcd_client.hpp"
#include "launcher/process/farewell.hpp"

namespace drun::etcd::test {
namespace {

using drun::test::EtcdCluster;
using nlohmann::json;
using rendezvous::Change;
using rendezvous::CommitOutcome;
using rendezvous::CommitResult;
using rendezvous::Link;
using rendezvous::Renewed;
using rendezvous::Transaction;
using rendezvous::WatchChanges;
using rendezvous::WatchSnapshot;
using testing::HasSubstr;

class EtcdKeyValueTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdCluster::installed()) GTEST_SKIP() << "this machine has no etcd-server";
    cluster = std::make_unique<EtcdCluster>(members());
    ASSERT_TRUE(cluster->ready()) << cluster->logs();
  }
  [[nodiscard]] virtual std::size_t members() const { return 1; }

  std::unique_ptr<EtcdCluster> cluster;
};

class ThreeMembersOfEtcdTest : public EtcdKeyValueTest {
 protected:
  [[nodiscard]] std::size_t members() const override { return 3; }
};

// What a watch shows now, by what it was told.
std::map<std::string, std::string> shown_by(const EtcdClient& client, rendezvous::WatchId watch) {
  std::map<std::string, std::string> keys;
  const auto apply = [&keys](const std::vector<Change>& changes) {
    for (const auto& change : changes) {
      if (change.value) {
        keys[change.key] = *change.value;
      } else {
        keys.erase(change.key);
      }
    }
  };
  for (const auto& event : const_cast<EtcdClient&>(client).events()) {
    const auto* snapshot = std::get_if<WatchSnapshot>(&event);
    const auto* changes = std::get_if<WatchChanges>(&event);
    if (snapshot != nullptr && snapshot->watch == watch) {
      keys.clear();
      apply(snapshot->entries);
    }
    if (changes != nullptr && changes->watch == watch) apply(changes->changes);
  }
  return keys;
}

TEST_F(EtcdKeyValueTest, ATransactionIsAllOrNothing) {
  EtcdClient client(options_for(*cluster));
  ASSERT_TRUE(client.until_link(Link::Up));
  Transaction first;
  first.guards = {{"drun/test/leader", std::nullopt}};
  first.writes = {ephemeral("drun/test/leader", "a"), lasting("drun/test/round", "1")};
  EXPECT_EQ(client.commit(first).outcome, CommitOutcome::Committed);
  EXPECT_EQ(client.commit(first).outcome, CommitOutcome::Refused);
  Transaction second;
  second.guards = {{"drun/test/leader", "b"}};
  second.writes = {lasting("drun/test/round", "2")};
  EXPECT_EQ(client.commit(second).outcome, CommitOutcome::Refused);
  second.guards = {{"drun/test/leader", "a"}};
  second.writes.push_back(lasting("drun/test/round", "3"));
  second.writes.push_back({"drun/test/leader", std::nullopt, false});
  EXPECT_EQ(client.commit(second).outcome, CommitOutcome::Committed);
  client->watch(1, "drun/test/", true);
  ASSERT_TRUE(client.until([&] { return !client.all<WatchSnapshot>().empty(); }));
  EXPECT_EQ(shown_by(client, 1), (std::map<std::string, std::string>{{"drun/test/round", "3"}}));
}

TEST_F(EtcdKeyValueTest, ASinkThatThrowsGetsTheNextEventAllTheSame) {
  asio::io_context io{1};
  std::vector<rendezvous::KeyValueEvent> heard;
  EtcdKeyValue key_value(io, options_for(*cluster), [&](const rendezvous::KeyValueEvent& event) {
    heard.push_back(event);
    if (heard.size() == 1) throw std::runtime_error("not now");
  });
  key_value.open();
  EXPECT_THROW(io.run_for(drun::test::kPatience), std::runtime_error);
  key_value.watch(1, "drun/test/", true);
  const auto deadline = std::chrono::steady_clock::now() + drun::test::kPatience;
  while (heard.size() < 2 && std::chrono::steady_clock::now() < deadline)
    io.run_one_until(deadline);
  ASSERT_GE(heard.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<WatchSnapshot>(heard[1])) << "what the cluster answered";
}

TEST_F(EtcdKeyValueTest, AWatchShowsEachTransactionOnceAndInOrder) {
  EtcdClient client(options_for(*cluster));
  EtcdClient other(options_for(*cluster));
  ASSERT_TRUE(client.until_link(Link::Up));
  ASSERT_TRUE(other.until_link(Link::Up));
  Transaction before;
  before.writes = {lasting("drun/test/a", "0")};
  ASSERT_EQ(other.commit(before).outcome, CommitOutcome::Committed);
  client->watch(1, "drun/test/a", false);
  client->watch(2, "drun/test/", true);
  ASSERT_TRUE(client.until([&] { return client.all<WatchSnapshot>().size() == 2; }));
  constexpr int kTimes = 50;
  for (int i = 1; i <= kTimes; ++i) {
    Transaction transaction;
    transaction.writes = {lasting("drun/test/a", std::to_string(i)),
                          lasting("drun/test/b", std::to_string(i))};
    ASSERT_EQ(other.commit(transaction).outcome, CommitOutcome::Committed);
  }
  ASSERT_TRUE(client.until([&] { return client.all<WatchChanges>().size() >= 2 * kTimes; }));
  int seen_one = 0;
  int seen_two = 0;
  for (const auto& changes : client.all<WatchChanges>()) {
    ASSERT_EQ(changes.changes.size(), changes.watch == 1 ? 1U : 2U);
    int& seen = changes.watch == 1 ? seen_one : seen_two;
    EXPECT_EQ(changes.changes.front().value, std::to_string(++seen));
  }
  EXPECT_EQ(seen_one, kTimes);
  EXPECT_EQ(seen_two, kTimes);
}

TEST_F(EtcdKeyValueTest, AGoodbyeEndsTheSessionAfterWhatWasCommitted) {
  EtcdClient watcher(options_for(*cluster));
  ASSERT_TRUE(watcher.until_link(Link::Up));
  watcher->watch(1, "drun/test/", true);
  ASSERT_TRUE(watcher.until([&] { return !watcher.all<WatchSnapshot>().empty(); }));
  EtcdClient client(options_for(*cluster));
  ASSERT_TRUE(client.until_link(Link::Up));
  Transaction transaction;
  transaction.writes = {ephemeral("drun/test/a", "1"), ephemeral("drun/test/b", "1"),
                        lasting("drun/test/c", "1")};
  client->commit(7, transaction);
  client->close();
  ASSERT_TRUE(client.until_link(Link::Closed));
  EXPECT_EQ(client.all<CommitResult>().front().outcome, CommitOutcome::Committed);
  ASSERT_TRUE(watcher.until([&] { return watcher.all<WatchChanges>().size() == 2; }));
  EXPECT_EQ(watcher.all<WatchChanges>()[1].changes.size(), 2U);
  EXPECT_EQ(shown_by(watcher, 1), (std::map<std::string, std::string>{{"drun/test/c", "1"}}));
}

// Whoever did so may have deleted other keys of the session, too.
TEST_F(EtcdKeyValueTest, AFenceThatWasDeletedEndsTheSession) {
  EtcdClient client(options_for(*cluster));
  ASSERT_TRUE(client.until_link(Link::Up));
  Transaction transaction;
  transaction.writes = {ephemeral("drun/test/a", "1")};
  ASSERT_EQ(client.commit(transaction).outcome, CommitOutcome::Committed);
  (void)cluster->post(
      "/v3/kv/deleterange",
      json({{"key", base64("drun/%session/")}, {"range_end", base64("drun/%session0")}}).dump());
  ASSERT_TRUE(client.until_link(Link::NewSession));
  client->watch(1, "drun/test/", true);
  ASSERT_TRUE(client.until([&] { return !client.all<WatchSnapshot>().empty(); }));
  EXPECT_TRUE(shown_by(client, 1).empty());
}

// By whoever is left on the machine of an agent that was killed.
TEST_F(EtcdKeyValueTest, AFarewellEndsTheSessionOfAnother) {
  EtcdClient client(options_for(*cluster));
  ASSERT_TRUE(client.until_link(Link::Up));
  Transaction transaction;
  transaction.writes = {ephemeral("drun/test/a", "1")};
  ASSERT_EQ(client.commit(transaction).outcome, CommitOutcome::Committed);
  const auto farewell = client->farewell();
  ASSERT_TRUE(farewell);
  client.drop();
  EtcdClient watcher(options_for(*cluster));
  ASSERT_TRUE(watcher.until_link(Link::Up));
  watcher->watch(1, "drun/test/a", false);
  ASSERT_TRUE(watcher.until([&] { return !watcher.all<WatchSnapshot>().empty(); }));
  EXPECT_EQ(shown_by(watcher, 1).size(), 1U);
  process::say({farewell->address, farewell->bytes, {}});
  EXPECT_TRUE(watcher.until([&] { return shown_by(watcher, 1).empty(); })) << cluster->logs();
}

TEST_F(EtcdKeyValueTest, ALeaseThatEndsIsANewSession) {
  EtcdClient client(options_for(*cluster));
  ASSERT_TRUE(client.until_link(Link::Up));
  Transaction transaction;
  transaction.writes = {ephemeral("drun/test/a", "1")};
  ASSERT_EQ(client.commit(transaction).outcome, CommitOutcome::Committed);
  client->watch(1, "drun/test/", true);
  ASSERT_TRUE(client.until([&] { return shown_by(client, 1).size() == 1; }));
  const auto range =
      json::parse(cluster->post("/v3/kv/range", json({{"key", base64("drun/test/a")}}).dump()));
  const std::string lease = range["kvs"][0]["lease"];
  (void)cluster->post("/v3/lease/revoke", json({{"ID", lease}}).dump());
  ASSERT_TRUE(client.until_link(Link::NewSession));
  ASSERT_TRUE(client.until([&] { return client.all<WatchSnapshot>().size() == 2; }));
  EXPECT_TRUE(shown_by(client, 1).empty());
  EXPECT_EQ(client.commit(transaction).outcome, CommitOutcome::Committed);
}

TEST_F(EtcdKeyValueTest, LimitsAreRejectionsAndTheSessionGoesOn) {
  EtcdClient client(options_for(*cluster));
  ASSERT_TRUE(client.until_link(Link::Up));
  Transaction many;
  for (int i = 0; i <= 128; ++i)
    many.writes.push_back(lasting("drun/test/" + std::to_string(i), "1"));
  const auto too_many = client.commit(many);
  EXPECT_EQ(too_many.outcome, CommitOutcome::Rejected);
  EXPECT_THAT(too_many.detail, HasSubstr("too many operations"));
  many.writes.pop_back();
  EXPECT_EQ(client.commit(many).outcome, CommitOutcome::Committed);
  Transaction large;
  large.writes = {lasting("drun/test/a", std::string(7U << 18U, 'x'))};
  const auto too_large = client.commit(large);
  EXPECT_EQ(too_large.outcome, CommitOutcome::Rejected);
  EXPECT_THAT(too_large.detail, HasSubstr("too large"));
  EXPECT_EQ(client.count(Link::Down), 0U);
}

TEST_F(EtcdKeyValueTest, HeartbeatsRenewTheSession) {
  EtcdClient client(options_for(*cluster));
  ASSERT_TRUE(client.until([&] { return client.all<Renewed>().size() >= 5; }));
  const auto renewed = client.all<Renewed>();
  EXPECT_TRUE(std::is_sorted(renewed.begin(), renewed.end(),
                             [](const auto& a, const auto& b) { return a.sent < b.sent; }));
  EXPECT_EQ(client.count(Link::Down), 0U);
}

TEST_F(EtcdKeyValueTest, CompactionDoesNotDisturbAWatch) {
  EtcdClient client(options_for(*cluster));
  ASSERT_TRUE(client.until_link(Link::Up));
  client->watch(1, "drun/test/", true);
  Transaction transaction;
  for (int i = 0; i < 20; ++i) {
    transaction.writes = {lasting("drun/test/a", std::to_string(i))};
    ASSERT_TRUE(client.until([&] {  // one that broke off is asked for again
      return client.commit(transaction).outcome == CommitOutcome::Committed;
    })) << cluster->logs();
    const auto status = json::parse(cluster->post("/v3/maintenance/status", "{}"));
    const std::string revision = status["header"]["revision"];
    (void)cluster->post("/v3/kv/compaction", json({{"revision", revision}}).dump());
  }
  EXPECT_TRUE(client.until([&] { return shown_by(client, 1)["drun/test/a"] == "19"; }));
}

// One member after the other is killed, the one that leads first, and comes back.
TEST_F(ThreeMembersOfEtcdTest, TheSessionOutlivesEachMember) {
  EtcdClient client(options_for(*cluster));
  ASSERT_TRUE(client.until_link(Link::Up));
  client->watch(1, "drun/test/", true);
  Transaction transaction;
  transaction.writes = {ephemeral("drun/test/mine", "1")};
  ASSERT_EQ(client.commit(transaction).outcome, CommitOutcome::Committed);
  for (int i = 0; i < 3; ++i) {
    const std::size_t leader = cluster->leader();
    ASSERT_LT(leader, cluster->size()) << cluster->logs();
    cluster->kill(leader);
    Transaction next;
    next.writes = {lasting("drun/test/round", std::to_string(i))};
    ASSERT_TRUE(client.until([&] {  // one that broke off is asked for again
      return client.commit(next).outcome == CommitOutcome::Committed;
    })) << cluster->logs();
    ASSERT_TRUE(
        client.until([&] { return shown_by(client, 1)["drun/test/round"] == std::to_string(i); }));
    cluster->start(leader);
    ASSERT_TRUE(cluster->ready()) << cluster->logs();
  }
  EXPECT_EQ(client.count(Link::NewSession), 0U);
  EXPECT_EQ(shown_by(client, 1)["drun/test/mine"], "1");
}

TEST_F(ThreeMembersOfEtcdTest, AMemberThatStandsStillIsLeft) {
  EtcdOptions options = options_for(*cluster);
  EtcdClient client(options);
  ASSERT_TRUE(client.until_link(Link::Up));
  const std::string up = client.all<rendezvous::LinkEvent>().front().detail;
  for (std::size_t i = 0; i < cluster->size(); ++i) {
    if (up.find(to_string(cluster->endpoint(i))) != std::string::npos) cluster->signal(i, SIGSTOP);
  }
  const std::size_t before = client.all<rendezvous::LinkEvent>().size();
  const auto left = [&]() -> std::optional<rendezvous::LinkEvent> {
    const auto links = client.all<rendezvous::LinkEvent>();
    for (std::size_t i = before; i < links.size(); ++i) {
      if (links[i].link == Link::Down) return links[i];
    }
    return std::nullopt;
  };
  ASSERT_TRUE(client.until([&] { return left().has_value(); })) << cluster->logs();
  EXPECT_GT(left()->silent.count(), 3'000);
  const std::size_t ups = client.count(Link::Up);
  ASSERT_TRUE(client.until_link(Link::Up, ups + 1)) << cluster->logs();
  EXPECT_EQ(client.count(Link::NewSession), 0U);
  for (std::size_t i = 0; i < cluster->size(); ++i)
    cluster->signal(i, SIGCONT);
}

TEST_F(ThreeMembersOfEtcdTest, WithoutAMajorityNothingIsRenewed) {
  EtcdOptions options = options_for(*cluster);
  options.keep_alive = std::chrono::seconds(6);
  EtcdClient client(options);
  ASSERT_TRUE(client.until([&] { return client.all<Renewed>().size() >= 2; }));
  cluster->kill(0);
  cluster->kill(1);
  const auto killed = std::chrono::steady_clock::now();
  ASSERT_TRUE(client.until_link(Link::Failed)) << cluster->logs();
  EXPECT_LE(client.all<Renewed>().back().sent, killed);
  EXPECT_THAT(client.all<rendezvous::LinkEvent>().back().detail,
              HasSubstr("and could not reach it again within"));
}

}  // namespace
}  // namespace drun::etcd::test
