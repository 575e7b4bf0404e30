// The address that the store had is tried first after a break, but its name may have another by
// now.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

#include "drun/store/control_client.hpp"
#include "support/running_server.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;

TEST(MovedStoreTest, IsFoundByItsName) {
  std::optional<test::RunningServer> first(std::in_place);
  const std::uint16_t port = first->endpoint().port;
  asio::io_context io(1);
  std::vector<ControlState> states;
  const auto came = [&](ControlState state) {
    const std::size_t before = states.size();
    while (states.size() == before && io.run_one_for(60s) > 0) {
    }
    return states.size() > before && states.back() == state;
  };
  ControlOptions options;
  options.endpoint = {"localhost", port};
  options.keep_alive = 60s;
  ControlClient client(io, options, [&](const ControlEvent& event) {
    if (const auto* link = std::get_if<ControlLink>(&event)) states.push_back(link->state);
  });
  client.open();
  ASSERT_TRUE(came(ControlState::Up));
  first.reset();
  ASSERT_TRUE(came(ControlState::Down));

  Server second;
  if (!second.add_listener({"::1", port}, Table::Job)) GTEST_SKIP() << "[::1] cannot be used";
  const test::Serving serving(second);
  EXPECT_TRUE(came(ControlState::NewSession));
}

}  // namespace
}  // namespace drun::store
