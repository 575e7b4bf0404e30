#include "launcher/backend/successor_store.hpp"

#include <chrono>
#include <future>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "drun/store/client.hpp"
#include "support/raw_connection.hpp"

namespace drun::launcher {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Result<store::Client> connect_once(const Endpoint& endpoint) {
  store::ClientOptions options;
  options.retry = false;
  return store::Client::connect(endpoint, Clock::now() + 60s, options);
}

// Sets a key there; a bare description of how that ended.
std::string set_at(const Endpoint& endpoint, const std::string& value) {
  auto client = connect_once(endpoint);
  if (!client) return client.error().what();
  const auto done = client->set("k", value);
  return done ? client->get("k").value() : done.error().what();
}

TEST(SuccessorStoreTest, WhoComesEarlyIsServedWhenItStands) {
  SuccessorStore store;
  ASSERT_TRUE(store.hold("127.0.0.1"));
  const Endpoint held{"127.0.0.1", store.port()};
  EXPECT_FALSE(store.stands());
  auto early = std::async(std::launch::async, [&] { return set_at(held, "early"); });
  EXPECT_EQ(early.wait_for(50ms), std::future_status::timeout);  // it is not refused
  const auto own = store.stand({});
  ASSERT_TRUE(own) << own.error().what();
  EXPECT_TRUE(store.stands());
  EXPECT_EQ(to_string(*own), to_string(held));
  EXPECT_EQ(early.get(), "early");
}

TEST(SuccessorStoreTest, EachStoreIsAFreshOne) {
  SuccessorStore store;
  ASSERT_TRUE(store.hold("127.0.0.1"));
  ASSERT_TRUE(store.stand({}));
  const Endpoint held{"127.0.0.1", store.port()};
  auto first = connect_once(held);
  ASSERT_TRUE(first && first->set("k", "v"));
  ASSERT_TRUE(store.stand({}));
  EXPECT_FALSE(first->get("k")) << "its connection is gone";
  auto second = connect_once(held);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->check({"k"}).value());
}

TEST(SuccessorStoreTest, ThePortIsHeldUntilTheEnd) {
  SuccessorStore store;
  ASSERT_TRUE(store.hold("127.0.0.1"));
  const Endpoint held{"127.0.0.1", store.port()};
  ASSERT_TRUE(store.stand({}));
  store.step_down();
  EXPECT_FALSE(store.stands());
  auto waiting = std::async(std::launch::async, [&] { return connect_once(held).ok(); });
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  store.end();
  EXPECT_FALSE(waiting.get());
  EXPECT_EQ(store.port(), 0);
  const auto late = connect_once(held);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), std::errc::connection_refused);
}

// Of two nodes one has gone. The other comes to the store after the next, and is called alone.
TEST(SuccessorStoreTest, WhatItHasHeardOfDeathsIsNotForgotten) {
  using store::control::Done, store::control::Gone, store::control::OpenSuccessor,
      store::control::Pulsed;
  const auto vote = [](std::uint32_t rank) {
    return store::Vote{{{1, 1}, rank, 2, store::kNoRank}, {}};
  };
  store::ServerOptions options;
  options.successor = true;
  options.job = "drun/a/";
  SuccessorStore store;
  ASSERT_TRUE(store.hold("127.0.0.1"));
  const Endpoint held{"127.0.0.1", store.port()};
  ASSERT_TRUE(store.stand(options));
  (void)test::ControlConnection(held).call<Done>(1, Gone{1, "drun/a/", vote(0)});
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(store.stand(options));
  (void)test::ControlConnection(held).call<Pulsed>(
      1, OpenSuccessor{1000, 200, 1, "drun/a/", vote(1), 0});
  store.end();
}

TEST(SuccessorStoreTest, ItMayBeginByPointingElsewhere) {
  using store::control::Moved, store::control::OpenSuccessor;
  store::ServerOptions options;
  options.successor = true;
  options.job = "drun/a/";
  SuccessorStore store;
  ASSERT_TRUE(store.hold("127.0.0.1"));
  const Status pointed = store.point_to(2, Endpoint{"10.0.0.9", 29'400}, options);
  ASSERT_TRUE(pointed) << pointed.error().what();
  EXPECT_TRUE(store.stands());
  test::ControlConnection member({"127.0.0.1", store.port()});
  const auto moved = member.call<Moved>(
      1,
      OpenSuccessor{1000, 200, 1, "drun/a/", store::Vote{{{1, 1}, 1, 2, store::kNoRank}, {}}, 0});
  EXPECT_EQ(moved.generation, 2U);
  EXPECT_EQ(moved.host, "10.0.0.9");
  EXPECT_EQ(moved.port, 29'400);
}

TEST(SuccessorStoreTest, WithoutAPortItCannotStand) {
  SuccessorStore store;
  EXPECT_FALSE(store.stand({}));
  EXPECT_FALSE(store.point_to(2, Endpoint{"10.0.0.9", 29'400}, {}));
  EXPECT_FALSE(store.stands());
}

// A port for each agent of a machine, and nobody else gets it.
TEST(SuccessorStoreTest, PortsAreTheirOwn) {
  SuccessorStore one, two;
  ASSERT_TRUE(one.hold("::1"));
  ASSERT_TRUE(two.hold("::1"));
  EXPECT_NE(one.port(), two.port());
  ASSERT_TRUE(two.stand({}));
  EXPECT_EQ(set_at({"::1", two.port()}, "v6"), "v6");
}

}  // namespace
}  // namespace drun::launcher
