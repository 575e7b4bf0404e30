#include "launcher/backend/backend_settings.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(BackendSettingsTest, KeepsAPrivateStoreForAsLongAsTheJobIsSuspended) {
  Options options;
  options.backend = Backend::Standalone;
  EXPECT_GE(control_options(options, false, {}, seconds(5)).keep_alive,
            std::chrono::hours(24 * 365));
  options.backend = Backend::C10d;
  options.conf.keep_alive_interval = seconds(3);
  options.conf.keep_alive_max_attempt = 4;
  EXPECT_EQ(control_options(options, false, {}, seconds(5)).keep_alive, seconds(12));
  options.local_node = 1;
  EXPECT_GE(control_options(options, false, {}, seconds(5)).keep_alive,
            std::chrono::hours(24 * 365));
}

TEST(BackendSettingsTest, LetsTheSessionOutliveTheAgentsOwnLimit) {
  Options options;
  options.backend = Backend::C10d;
  const auto store = control_options(options, false, Endpoint{"10.0.0.1", 29500}, seconds(5));
  EXPECT_GT(store.time_to_live, store.keep_alive);
  EXPECT_EQ(store.grace, store.time_to_live) << "a broken connection proves nothing";
  EXPECT_EQ(store.endpoint.host, "10.0.0.1");
  EXPECT_EQ(store.connect_timeout, seconds(5));
}

// By default: an outage of 6 s is survived, even one that begins just before a heartbeat.
TEST(BackendSettingsTest, TheLeaseOutlastsTheLongestOutageAndTheSessionTheLease) {
  Options options;
  options.backend = Backend::C10d;
  EXPECT_EQ(lease(options, false), seconds(8));
  EXPECT_EQ(keep_alive(options, false), seconds(8));
  const auto store = control_options(options, false, {}, seconds(5));
  EXPECT_EQ(store.heartbeat_interval, seconds(1));
  EXPECT_EQ(store.heartbeat_timeout, seconds(3));
  EXPECT_EQ(store.keep_alive, seconds(6));
  EXPECT_EQ(store.time_to_live, seconds(10));
}

TEST(BackendSettingsTest, AtEtcdTheTimesAreThoseOfAStore) {
  Options options;
  options.backend = Backend::Etcd;
  options.max_nodes = 2;
  options.run_id = "job17";
  options.etcd.user = "me";
  options.conf.read_timeout = seconds(17);
  options.conf.heartbeat_timeout = seconds(4);
  options.conf.keep_alive_interval = seconds(3);
  options.conf.keep_alive_max_attempt = 4;
  const auto etcd = etcd_options(options, seconds(5));
  EXPECT_EQ(etcd.cluster, options.etcd);
  EXPECT_EQ(etcd.job, "drun/job17/");
  EXPECT_EQ(etcd.connect_timeout, seconds(5));
  EXPECT_EQ(etcd.heartbeat_interval, seconds(2));
  EXPECT_EQ(etcd.heartbeat_timeout, seconds(4));
  EXPECT_EQ(etcd.keep_alive, seconds(12));
  EXPECT_EQ(etcd.time_to_live, seconds(18));
  EXPECT_EQ(etcd.read_timeout, seconds(17));
}

TEST(BackendSettingsTest, AStoreThatCannotBeLostNeedsNoLease) {
  Options options;
  options.backend = Backend::Standalone;
  EXPECT_EQ(lease(options, false), std::nullopt);
  options.backend = Backend::C10d;
  options.local_node = 1;
  EXPECT_EQ(lease(options, false), std::nullopt);
}

TEST(BackendSettingsTest, TheOnlyNodeNeedsNoLeaseFromItsOwnStore) {
  Options options;
  options.backend = Backend::C10d;
  EXPECT_EQ(lease(options, true), std::nullopt);
  EXPECT_GE(control_options(options, true, {}, seconds(5)).time_to_live, std::chrono::hours(24));
  options.max_nodes = 2;
  EXPECT_EQ(lease(options, true), seconds(8));
}

TEST(BackendSettingsTest, ALocalNodeThatIsCutOffIsGone) {
  Options options;
  options.local_node = 0;
  EXPECT_EQ(control_options(options, false, {}, seconds(5)).grace, seconds(12));
}

TEST(BackendSettingsTest, OnlyAStoreThatOneOfSeveralMachinesHasIsSucceeded) {
  Options options;
  options.backend = Backend::C10d;
  options.max_nodes = 2;
  EXPECT_EQ(successors(options), 3) << "by default";
  options.conf.successors = 2;
  EXPECT_EQ(successors(options), 2);
  options.conf.successors = 0;
  EXPECT_EQ(successors(options), 0);
  options.conf.successors.reset();
  options.backend = Backend::Static;
  EXPECT_EQ(successors(options), 0) << "by default";
  options.conf.successors = 2;
  EXPECT_EQ(successors(options), 2);
  options.backend = Backend::Etcd;
  EXPECT_EQ(successors(options), 0);
  options.backend = Backend::C10d;
  options.max_nodes = 1;
  EXPECT_EQ(successors(options), 0);
  options.max_nodes = 2;
  options.local_node = 0;
  EXPECT_EQ(successors(options), 0);
}

// Where there are successors, they decide how long a store is looked for.
TEST(BackendSettingsTest, TheConnectionDoesNotGiveAStoreUpThatHasSuccessors) {
  Options options;
  options.backend = Backend::C10d;
  options.max_nodes = 2;
  options.run_id = "job17";
  options.conf.successors = 0;
  const auto before = control_options(options, false, {}, seconds(5));
  EXPECT_EQ(before.keep_alive, seconds(6));
  EXPECT_EQ(before.job, "");
  EXPECT_FALSE(before.tell_refusal);
  options.conf.successors = 1;
  const auto after = control_options(options, false, {}, seconds(5));
  EXPECT_GT(after.keep_alive, std::chrono::hours(24));
  EXPECT_EQ(after.majority_timeout, milliseconds(6'750)) << "from the last word on";
  EXPECT_EQ(after.job, "drun/job17/");
  EXPECT_TRUE(after.tell_refusal);
  EXPECT_EQ(after.time_to_live, before.time_to_live);
  EXPECT_EQ(succession_limits(options).keep_alive, seconds(6));
  EXPECT_EQ(succession_limits(options).silence, after.majority_timeout);
  EXPECT_LT(succession_limits(options).silence + after.heartbeat_interval, *lease(options, false))
      << "who comes to a successor then still has its workers";
}

TEST(BackendSettingsTest, BoundsTheStoresAnswersAsAskedFor) {
  Options options;
  options.conf.keep_alive_interval = seconds(100);
  options.conf.heartbeat_timeout = seconds(11);
  options.conf.read_timeout = seconds(12);
  const auto store = control_options(options, false, {}, seconds(5));
  EXPECT_EQ(store.heartbeat_timeout, seconds(11));
  EXPECT_EQ(store.read_timeout, seconds(12));
}

// The first store of a job and those that succeed it.
TEST(BackendSettingsTest, AllStoresOfAJobAskForTheSameQuorum) {
  Options options;
  options.backend = Backend::C10d;
  options.max_nodes = 2;
  options.run_id = "job17";
  options.conf.quorum = 1;
  for (const bool successor : {false, true}) {
    const auto store = server_options(options, successor);
    EXPECT_EQ(store.successor, successor);
    EXPECT_EQ(store.quorum, 1U);
    EXPECT_EQ(store.job, "drun/job17/");
    EXPECT_EQ(store.listening > milliseconds(0), !successor);
  }
}

TEST(BackendSettingsTest, ARelayIsTheOnlyWayToItsStoreAndHasDescriptorsOfItsOwn) {
  Options options;
  options.nproc_per_node = 8;
  EXPECT_FALSE(server_options(options, false).workers_need_token);
  const std::size_t direct = descriptors_needed(options);
  options.worker_store = WorkerStore::Local;
  EXPECT_TRUE(server_options(options, false).workers_need_token);
  EXPECT_GE(descriptors_needed(options), direct + 4 * 8) << "two connections each, and their way";
  EXPECT_GE(relay_options(options).clients, 1U);
  EXPECT_EQ(relay_options(options).tls, options.tls);
}

// A store that has filled its part of the descriptors leaves the relay its own, and the workers
// theirs.
TEST(BackendSettingsTest, StoreRelayAndAgentFitIntoOneLimitOfDescriptors) {
  for (const std::size_t limit : {64U, 1'024U, 4'096U, 1'048'576U})
    for (const std::size_t own : {20U, 200U, 1'500U}) {
      const DescriptorShares shares = shared_descriptors(limit, own);
      const std::size_t store = limit - shares.store_leaves;
      const std::size_t relay = 2 * shares.relay_clients;
      EXPECT_LE(std::min(own, limit / 2) + store + relay, limit) << limit << ", " << own;
      EXPECT_GE(store, limit / 4) << limit << ", " << own;
      EXPECT_GE(relay, limit / 4 - 1) << limit << ", " << own;
      EXPECT_LE(shares.store_leaves, limit / 4 * 3) << "the store would take more: " << limit;
    }
}

TEST(BackendSettingsTest, AStoreBesideARelayLeavesItItsDescriptors) {
  rlimit open{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &open), 0);
  if (open.rlim_cur == RLIM_INFINITY) GTEST_SKIP() << "no limit of descriptors here";
  Options options;
  options.worker_store = WorkerStore::Local;
  const std::size_t leaves = server_options(options, false).limits.spare_descriptors;
  const std::size_t relay = 2 * relay_options(options).clients;
  EXPECT_GE(leaves, std::min<std::size_t>(descriptors_needed(options), open.rlim_cur / 2) + relay);
}

TEST(BackendSettingsTest, TheOrderOfSeveralEndpointsIsPartOfWhoTheFoundersAre) {
  Options options;
  options.backend = Backend::C10d;
  EXPECT_EQ(founders(options), store::Place{});
  options.endpoint = {"a", 1};
  options.endpoints = {{"a", 1}, {"b", 1}, {"c", 1}};
  const store::Place all = founders(options);
  EXPECT_TRUE(all.electorate.is_founding());
  EXPECT_EQ(all.nodes, 3U);
  EXPECT_EQ(all.rank, store::kNoRank);
  EXPECT_EQ(founders(options, 2).rank, 2U);
  EXPECT_EQ(founders(options, 2).electorate, all.electorate);
  options.endpoint = {"b", 1};
  options.endpoints = {{"b", 1}, {"a", 1}, {"c", 1}};
  EXPECT_NE(founders(options).electorate, all.electorate);
}

}  // namespace
}  // namespace drun::launcher
