// The client of the control protocol with a real store.
#include "drun/store/control_client.hpp"

#include <chrono>
#include <cstddef>
#include <variant>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/patience.hpp"
#include "support/running_server.hpp"
#include "support/silent_place.hpp"

namespace drun::store {
namespace {

using testing::ElementsAre;

// Not with what is due next anyway, which may be seconds after that.
TEST(ControlClientTest, SaysGoodbyeAtOnce) {
  const test::RunningServer server;
  asio::io_context io(1);
  std::vector<ControlState> states;
  ControlOptions options;
  options.endpoint = server.endpoint();
  ControlClient client(io, options, [&](const ControlEvent& event) {
    if (const auto* link = std::get_if<ControlLink>(&event)) states.push_back(link->state);
  });
  const auto until = [&](std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + test::kPatience;
    while (states.size() < count && io.run_one_until(deadline) > 0) {
    }
  };
  client.open();
  until(1);
  while (io.poll() > 0) {
  }
  client.close();
  EXPECT_GT(io.poll(), 0U);
  until(2);
  EXPECT_THAT(states, ElementsAre(ControlState::Up, ControlState::Closed));
}

TEST(ControlClientTest, WhoIsClosedWhileItConnectsConnectsNoMore) {
  const test::SilentPlace store({"127.0.0.1", 0});
  ASSERT_TRUE(store.is_silent());
  asio::io_context io(1);
  std::vector<ControlState> states;
  ControlOptions options;
  options.endpoint = store.endpoint();
  ControlClient client(io, options, [&](const ControlEvent& event) {
    if (const auto* link = std::get_if<ControlLink>(&event)) states.push_back(link->state);
  });
  client.open();
  while (io.poll() > 0) {
  }
  ASSERT_EQ(store.callers(), 1);
  client.close();
  while (io.poll() > 0) {
  }
  EXPECT_THAT(states, ElementsAre(ControlState::Closed));
  EXPECT_EQ(store.callers(), 0);
}

}  // namespace
}  // namespace drun::store
