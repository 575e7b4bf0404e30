// The asynchronous client with Asio's completion tokens: futures, coroutines, executors.
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <asio/awaitable.hpp>
#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/store/async_client.hpp"
#include "drun/store/errors.hpp"
#include "support/patience.hpp"
#include "support/running_server.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::use_future;
using test::kPatience;
using testing::ElementsAre;

AsyncClient::Deadline soon() {
  return AsyncClient::Clock::now() + kPatience;
}

// Runs until `future` has a result, be it from another thread.
template <typename T>
T await(asio::io_context& io, std::future<T> future) {
  io.restart();
  while (future.wait_for(0s) != std::future_status::ready && !io.stopped())
    io.run_one_for(10ms);
  return future.get();
}

TEST(AsyncTokensTest, AFutureHasTheResult) {
  const test::RunningServer server;
  asio::io_context io(1);
  AsyncClient store(io, server.endpoint());
  const Status connected = await(io, store.connect(soon(), use_future));
  ASSERT_TRUE(connected) << connected.error().what();
  // All of one turn, and the key is the call's own before it leaves.
  std::string key = "k";
  auto set = store.set(key, "value", use_future);
  auto got = store.get(key, use_future, kPatience);
  auto many = store.multi_get({"k", "k"}, use_future);
  auto number = store.add("n", 3, use_future);
  auto count = store.num_keys(use_future);
  auto late = store.get("never", use_future, 20ms);
  key = "other";
  EXPECT_TRUE(await(io, std::move(set)));
  EXPECT_EQ(await(io, std::move(got)).value(), "value");
  EXPECT_THAT(await(io, std::move(many)).value(), ElementsAre("value", "value"));
  EXPECT_EQ(await(io, std::move(number)).value(), 3);
  EXPECT_EQ(await(io, std::move(count)).value(), 2);
  EXPECT_EQ(await(io, std::move(late)).error().code(), Errc::Timeout);
  EXPECT_EQ(await(io, store.compare_set("c", "", "x", use_future)).value(), "x");
}

// As a user writes it.
asio::awaitable<std::vector<std::string>> meet(AsyncClient& store, int rank) {
  std::vector<std::string> said;
  const Status connected = co_await store.connect(soon(), use_awaitable);
  said.push_back(connected ? "connected" : connected.error().what());
  const std::string mine = "address/" + std::to_string(rank);
  (void)co_await store.set(mine, "at " + mine, use_awaitable);
  const auto other =
      co_await store.get("address/" + std::to_string(1 - rank), use_awaitable, kPatience);
  said.push_back(other.value_or("nobody"));
  const auto missing = co_await store.try_get("missing", use_awaitable);
  said.push_back(missing.value().value_or("not there"));
  auto lazy = store.add("n", 1, use_awaitable);
  const auto number = co_await std::move(lazy);
  said.push_back(number.ok() ? "counted" : number.error().what());
  co_return said;
}

TEST(AsyncTokensTest, ACoroutineAwaitsOneCallAfterTheOther) {
  const test::RunningServer server;
  asio::io_context io(1);
  AsyncClient first(io, server.endpoint());
  AsyncClient second(io, server.endpoint());
  auto one = asio::co_spawn(io, meet(first, 0), use_future);
  auto other = asio::co_spawn(io, meet(second, 1), use_future);
  EXPECT_THAT(await(io, std::move(one)),
              ElementsAre("connected", "at address/1", "not there", "counted"));
  EXPECT_THAT(await(io, std::move(other)),
              ElementsAre("connected", "at address/0", "not there", "counted"));
}

TEST(AsyncTokensTest, ErrorsAreResultsAndNoExceptions) {
  asio::io_context io(1);
  AsyncClient store(io, {"127.0.0.1", 1}, {.retry = false});
  EXPECT_EQ(await(io, store.get("k", use_future)).error().code(), Errc::Closed);
  EXPECT_FALSE(await(io, store.connect(soon(), use_future)));
}

TEST(AsyncTokensTest, AHandlerIsCalledWhereItsExecutorSays) {
  const test::RunningServer server;
  asio::io_context io(1);
  asio::thread_pool pool(1);
  AsyncClient store(io, server.endpoint());
  std::promise<std::thread::id> where;
  ASSERT_TRUE(await(io, store.connect(soon(), use_future)));
  store.set("k", "v", asio::bind_executor(pool, [&](const Status&) {
              where.set_value(std::this_thread::get_id());
            }));
  auto done = where.get_future();
  const auto ran_in = await(io, std::move(done));
  EXPECT_NE(ran_in, std::this_thread::get_id());
  pool.join();
}

TEST(AsyncTokensTest, CallbacksNeedNoToken) {
  const test::RunningServer server;
  asio::io_context io(1);
  std::optional<AsyncClient> store(std::in_place, io, server.endpoint());
  std::string said;
  const AsyncClient::Callback<std::string> got = [&](const Result<std::string>& value) {
    said = value.value_or("nothing");
    store.reset();
  };
  store->connect(soon(), [&](const Status& connected) {
    ASSERT_TRUE(connected);
    store->set("k", "v", nullptr);
    store->get("k", got);
  });
  io.run();
  EXPECT_EQ(said, "v");
}

TEST(AsyncTokensTest, WithTheClientGoWhoAwaitIt) {
  const test::RunningServer server;
  asio::io_context io(1);
  auto store = std::make_unique<AsyncClient>(io, server.endpoint());
  ASSERT_TRUE(await(io, store->connect(soon(), use_future)));
  auto lost = store->get("never", use_future);
  const auto token = std::make_shared<int>();
  const auto waits = [](AsyncClient& client, std::shared_ptr<int> held) -> asio::awaitable<void> {
    (void)co_await client.get("never", use_awaitable);
    (void)held;
  };
  auto abandoned = asio::co_spawn(io, waits(*store, token), use_future);
  io.restart();
  io.poll();
  EXPECT_EQ(token.use_count(), 2);
  store.reset();
  io.restart();
  io.run();
  EXPECT_THROW((void)lost.get(), std::future_error);
  EXPECT_THROW(abandoned.get(), std::future_error);
  EXPECT_EQ(token.use_count(), 1) << "what the coroutine held is gone with it";
}

}  // namespace
}  // namespace drun::store
