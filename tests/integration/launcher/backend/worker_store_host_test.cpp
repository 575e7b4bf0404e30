#include "launcher/backend/worker_store_host.hpp"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/store/client.hpp"

namespace drun::launcher {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

class WorkerStoreHostTest : public ::testing::Test {
 protected:
  // A port that another store has.
  std::uint16_t taken_port() {
    const auto bound = other_.bind_rendezvous({"127.0.0.1", 0}, false);
    other_.start_serving();
    return bound.value().port;
  }

  asio::io_context io_{1};
  Options options_;
  HostedStore store_;
  HostedStore other_;
  WorkerStoreHost host_{options_, store_};
};

TEST_F(WorkerStoreHostTest, HoldsAPortAndServesAnEmptyStoreThere) {
  ASSERT_TRUE(host_.bind("127.0.0.1"));
  EXPECT_EQ(host_.place().host, "127.0.0.1");
  EXPECT_NE(host_.place().port, 0);
  EXPECT_EQ(host_.prepare(io_).value(), host_.place().port);
  store_.start_serving();
  auto client = store::Client::connect({"127.0.0.1", host_.place().port},
                                       std::chrono::steady_clock::now() + 60s);
  ASSERT_TRUE(client) << client.error().what();
  EXPECT_EQ(client->num_keys().value(), 0);
}

TEST_F(WorkerStoreHostTest, LeavesThePortToTheWorkerOfRank0) {
  options_.worker_store = WorkerStore::Rank0;
  ASSERT_TRUE(host_.bind("10.0.0.7"));
  EXPECT_EQ(host_.place().host, "10.0.0.7");
  EXPECT_EQ(host_.place().port, 0);
  EXPECT_NE(host_.prepare(io_).value(), 0);
  options_.master_port = 29500;
  EXPECT_EQ(host_.prepare(io_).value(), 29500);
}

TEST_F(WorkerStoreHostTest, LeadsTheWorkersOfThisNodeToTheStoreOfTheRound) {
  options_.worker_store = WorkerStore::Local;
  ASSERT_TRUE(host_.bind("127.0.0.1"));
  EXPECT_EQ(host_.prepare(io_).value(), host_.place().port);
  store_.start_serving();
  const auto first = host_.relay_to(host_.place()).value();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->host, "127.0.0.1");
  EXPECT_NE(first->port, host_.place().port);
  auto client = store::Client::connect(*first, 60s);
  ASSERT_TRUE(client && client->set("k", "v"));
  EXPECT_EQ(client->get("k").value(), "v");
  const auto second = host_.relay_to(host_.place()).value();
  EXPECT_NE(second->port, first->port);
  EXPECT_FALSE(client->get("k")) << "it is another round's";
  EXPECT_EQ(store::Client::connect(*second, 60s)->get("k").value(), "v");
}

TEST_F(WorkerStoreHostTest, WorkersReachOtherStoresByThemselves) {
  for (const auto store : {WorkerStore::Agent, WorkerStore::Rank0}) {
    options_.worker_store = store;
    EXPECT_EQ(host_.relay_to({"10.0.0.7", 1}).value(), std::nullopt);
  }
}

TEST_F(WorkerStoreHostTest, SharesThePortOfAStaticJobsStore) {
  options_.backend = Backend::Static;
  const auto bound = store_.bind_rendezvous({"127.0.0.1", 0}, true);
  host_.share({"head", bound->port});
  EXPECT_EQ(host_.place().host, "head");
  EXPECT_EQ(host_.prepare(io_).value(), bound->port);
}

TEST_F(WorkerStoreHostTest, TakesAnotherPortForAJobOfOneNode) {
  options_.master_port = taken_port();
  ASSERT_TRUE(host_.bind("127.0.0.1"));
  EXPECT_NE(host_.place().port, 0);
  EXPECT_NE(host_.place().port, *options_.master_port);
}

TEST_F(WorkerStoreHostTest, NamesWhoHasThePortOfAJobOfSeveralNodes) {
  options_.backend = Backend::C10d;
  options_.max_nodes = 2;
  options_.master_port = taken_port();
  const auto bound = host_.bind("127.0.0.1");
  ASSERT_FALSE(bound);
  EXPECT_THAT(
      bound.error().what(),
      AllOf(HasSubstr("127.0.0.1:" + std::to_string(*options_.master_port)),
            HasSubstr("it was to be the port of the workers' store, and is held by process " +
                      std::to_string(::getpid()))));
}

TEST_F(WorkerStoreHostTest, AStaticJobsMasterPortIsTheEndpoints) {
  options_.backend = Backend::Static;
  options_.max_nodes = 2;
  options_.master_port = taken_port();
  ASSERT_TRUE(host_.bind("127.0.0.1")) << "of a node that does not host: any port";
  EXPECT_NE(host_.place().port, *options_.master_port);
}

TEST_F(WorkerStoreHostTest, StartsOver) {
  ASSERT_TRUE(host_.bind("127.0.0.1"));
  store_.start_over();
  host_.start_over();
  EXPECT_EQ(host_.place().port, 0);
  ASSERT_TRUE(host_.bind("127.0.0.1"));
  EXPECT_NE(host_.place().port, 0);
}

}  // namespace
}  // namespace drun::launcher
