#include "launcher/backend/hosted_store.hpp"

#include <chrono>
#include <string>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>

#include "drun/store/client.hpp"

namespace drun::launcher {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const Endpoint kAnyPort{"127.0.0.1", 0};

Result<store::Client> connect_once(const Endpoint& endpoint) {
  store::ClientOptions options;
  options.retry = false;
  return store::Client::connect(endpoint, Clock::now() + 60s, options);
}

TEST(HostedStoreTest, TheWorkersStoreHoldsItsPortAndRefusesUntilItIsReset) {
  HostedStore store;
  const auto bound = store.bind_worker_store(kAnyPort);
  ASSERT_TRUE(bound);
  store.start_serving();
  const auto early = connect_once(*bound);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code(), std::errc::connection_refused) << early.error().what();
  ASSERT_TRUE(store.reset_worker_store());
  auto client = connect_once(*bound);
  ASSERT_TRUE(client) << client.error().what();
  ASSERT_TRUE(client->set("k", "v"));
  EXPECT_EQ(client->num_keys().value(), 1);
}

TEST(HostedStoreTest, AResetEmptiesTheWorkersStoreAndDropsItsClients) {
  HostedStore store;
  const auto bound = store.bind_worker_store(kAnyPort);
  ASSERT_TRUE(store.reset_worker_store());
  store.start_serving();
  auto old = connect_once(*bound);
  ASSERT_TRUE(old->set("k", "v"));
  EXPECT_EQ(old->get("k").value(), "v");
  ASSERT_TRUE(store.reset_worker_store());
  EXPECT_FALSE(old->get("k"));
  auto fresh = connect_once(*bound);
  ASSERT_TRUE(fresh) << fresh.error().what();
  EXPECT_FALSE(fresh->check({"k"}).value());
}

TEST(HostedStoreTest, ServesFromTheFirstClientOn) {
  HostedStore store;
  const auto bound = store.bind_worker_store(kAnyPort);
  ASSERT_TRUE(store.reset_worker_store());
  asio::io_context io{1};
  store.start_serving_on_demand(io);
  EXPECT_EQ(io.poll(), 0U);
  EXPECT_TRUE(store.awaits_client());
  std::string value;
  std::thread worker([&] {
    auto client = connect_once(*bound);
    if (client && client->set("k", "v")) value = client->get("k").value();
  });
  io.run();  // until there is nothing more to wait for: the client is there
  worker.join();
  EXPECT_FALSE(store.awaits_client());
  EXPECT_EQ(value, "v");
}

TEST(HostedStoreTest, NobodyIsWaitedForAnyMore) {
  HostedStore store;
  ASSERT_TRUE(store.bind_worker_store(kAnyPort));
  ASSERT_TRUE(store.reset_worker_store());
  asio::io_context io{1};
  store.start_serving_on_demand(io);
  store.stop_waiting();
  io.run();  // returns
}

TEST(HostedStoreTest, OnePortHasBothStoresIfAsked) {
  HostedStore store;
  const auto bound = store.bind_rendezvous(kAnyPort, true);
  ASSERT_TRUE(bound);
  store.start_serving();
  auto worker = connect_once(*bound);
  ASSERT_TRUE(worker) << worker.error().what();
  ASSERT_TRUE(worker->set("k", "v"));
  EXPECT_EQ(worker->num_keys().value(), 1);
  // The keys of the workers keep nobody: they are in the other table.
  EXPECT_TRUE(store.stop_unless([](std::string_view) { return true; }));
}

TEST(HostedStoreTest, ATakenPortIsNamed) {
  HostedStore first;
  const auto bound = first.bind_rendezvous(kAnyPort, false);
  first.start_serving();
  HostedStore second;
  const auto taken = second.bind_rendezvous(*bound, false);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), std::errc::address_in_use);
  EXPECT_NE(taken.error().what().find(to_string(*bound)), std::string::npos)
      << taken.error().what();
}

TEST(HostedStoreTest, LetsGoOfItsPorts) {
  HostedStore first;
  const auto bound = first.bind_rendezvous(kAnyPort, false);
  first.start_over();
  HostedStore second;
  ASSERT_TRUE(second.bind_rendezvous(*bound, false));
  second.start_serving();
  ASSERT_FALSE(first.bind_rendezvous(*bound, false));
  second.end();
  EXPECT_TRUE(first.bind_rendezvous(*bound, false));
}

TEST(ListenEndpointTest, IsExactForThisMachinesAddressesAlone) {
  EXPECT_EQ(to_string(listen_endpoint("127.0.0.1", 7)), "127.0.0.1:7");
  EXPECT_EQ(listen_endpoint("localhost", 7).host, "127.0.0.1");
  EXPECT_EQ(listen_endpoint("192.0.2.1", 7).host, "") << "translated on the way";
  EXPECT_EQ(listen_endpoint("head", 7).host, "");
  EXPECT_EQ(listen_endpoint("head", 7).port, 7);
}

}  // namespace
}  // namespace drun::launcher
