// Clients that vote, and two stores of one job: which of them lets its clients' leases be renewed.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

#include "drun/store/control_client.hpp"
#include "store/protocol/control_protocol.hpp"
#include "support/raw_connection.hpp"
#include "support/running_server.hpp"
#include "support/scripted_peer.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

ServerOptions successor_options() {
  ServerOptions options;
  options.successor = true;
  return options;
}

class SuccessionTest : public testing::Test {
 protected:
  struct Agent {
    std::vector<ControlLink> links;
    Clock::time_point renewed;
    std::unique_ptr<ControlClient> client;

    [[nodiscard]] bool is(ControlState state) const {
      return !links.empty() && links.back().state == state;
    }
  };

  bool until(const std::function<bool()>& condition) {
    const auto end = Clock::now() + 60s;
    while (!condition()) {
      if (Clock::now() > end) return false;
      io.run_one_for(1s);
    }
    return true;
  }
  void add_agents(const Endpoint& endpoint, std::size_t count) {
    ControlOptions options;
    options.endpoint = endpoint;
    options.job = "drun/a/";
    options.time_to_live = 30s;
    options.heartbeat_interval = 20ms;
    options.majority_timeout = 3s;
    for (std::size_t i = 0; i < count; ++i) {
      Agent& agent = *agents.emplace_back(std::make_unique<Agent>());
      agent.client =
          std::make_unique<ControlClient>(io, options, [&agent](const ControlEvent& event) {
            if (const auto* link = std::get_if<ControlLink>(&event)) agent.links.push_back(*link);
            if (const auto* renewal = std::get_if<ControlRenewal>(&event))
              agent.renewed = std::max(agent.renewed, renewal->sent);
          });
      agent.client->open();
    }
  }
  void begin_round(std::uint64_t era = 1, std::uint64_t round = 1) {
    std::uint32_t rank = 0;
    for (const auto& agent : agents)
      agent->client->vote({{era, round}, rank++, static_cast<std::uint32_t>(agents.size()), 0});
  }
  bool is_renewed_after(Clock::time_point moment, std::size_t from = 0) {
    return until([&] {
      return std::all_of(agents.begin() + static_cast<std::ptrdiff_t>(from), agents.end(),
                         [&](const auto& agent) { return agent->renewed > moment; });
    });
  }

  asio::io_context io{1};
  std::vector<std::unique_ptr<Agent>> agents;
};

TEST_F(SuccessionTest, AMajorityGoesOnAtASuccessorAndTheOldStoreRenewsNobody) {
  test::RunningServer first;
  add_agents(first.endpoint(), 3);
  ASSERT_TRUE(until([&] {
    return std::all_of(agents.begin(), agents.end(),
                       [](const auto& agent) { return agent->is(ControlState::Up); });
  }));
  begin_round();
  ASSERT_TRUE(is_renewed_after(Clock::now()));

  test::RunningServer second(successor_options());
  agents[1]->client->go_to(second.endpoint());
  // The two others go on where they are, for as long as one cares to wait.
  const auto alone = Clock::now();
  ASSERT_TRUE(until([&] { return agents[0]->renewed > alone && agents[2]->renewed > alone; }));
  EXPECT_EQ(agents[1]->links.size(), 1U) << "one of three is not welcomed";

  agents[2]->client->go_to(second.endpoint());
  const auto left = Clock::now();
  ASSERT_TRUE(until([&] {
    return agents[1]->is(ControlState::NewSession) && agents[2]->is(ControlState::NewSession);
  }));
  const auto welcomed = Clock::now();
  EXPECT_EQ(agents[1]->links.back().generation, 2U);
  ASSERT_TRUE(is_renewed_after(welcomed, 1));

  // The host of the first store finds itself alone.
  ASSERT_TRUE(until([&] { return agents[0]->links.back().deserted; }));
  EXPECT_LT(agents[0]->renewed, left);
  agents[0]->client->go_to(second.endpoint());
  ASSERT_TRUE(until([&] { return agents[0]->is(ControlState::NewSession); }));
  begin_round(2, 2);
  ASSERT_TRUE(is_renewed_after(Clock::now()));
}

TEST_F(SuccessionTest, OfTwoTheOtherNeedsTheProofOfTheHostsDeath) {
  std::optional<test::RunningServer> first(std::in_place);
  add_agents(first->endpoint(), 2);
  ASSERT_TRUE(
      until([&] { return agents[0]->is(ControlState::Up) && agents[1]->is(ControlState::Up); }));
  begin_round();
  ASSERT_TRUE(is_renewed_after(Clock::now()));
  const std::string proof = agents[0]->client->proof_of_death();
  agents[0]->client.reset();
  first.reset();

  test::RunningServer second(successor_options());
  agents[1]->client->go_to(second.endpoint());
  test::RawConnection helper(second.endpoint());
  helper.send(proof);
  ASSERT_TRUE(until([&] { return agents[1]->is(ControlState::NewSession); }));
  ASSERT_TRUE(is_renewed_after(Clock::now(), 1));
}

// Whoever speaks for the agent after its death must know of the call by then.
TEST_F(SuccessionTest, ACallIsConfirmedWhenTheCallerHasHeardOfIt) {
  std::string answer = "not read";
  {
    test::ScriptedPeer successor([&answer](test::ScriptedConnection& connection) {
      std::string opening;
      control::encode_opening(opening);
      connection.read(opening.size());
      std::string bytes;
      control::encode(bytes, 0, control::Reply(control::Welcome{}));
      control::encode(bytes, 1, control::Reply(control::Pulsed{2, 0, {}, 99}));
      connection.write(bytes);
      answer = connection.read(4'096);
    });
    ControlOptions options;
    options.job = "drun/a/";
    options.time_to_live = 30s;
    bool called = false;
    std::unique_ptr<ControlClient> client;
    client = std::make_unique<ControlClient>(io, options, [&](const ControlEvent& event) {
      if (!std::holds_alternative<ControlCall>(event)) return;
      called = true;
      client.reset();  // as if this process had died now
    });
    client->go_to(successor.endpoint());
    ASSERT_TRUE(until([&] { return called; }));
  }
  std::string confirm;
  control::encode(confirm, 2, control::Request(control::Confirm{99}));
  EXPECT_FALSE(answer.ends_with(confirm));
}

TEST_F(SuccessionTest, NobodyThereIsSaidAtOnce) {
  test::RunningServer first;
  add_agents(first.endpoint(), 1);
  ASSERT_TRUE(until([&] { return agents[0]->is(ControlState::Up); }));
  Endpoint nobody;
  {
    const test::RunningServer gone;
    nobody = gone.endpoint();
  }
  agents[0]->client->go_to(nobody);
  ASSERT_TRUE(until([&] { return agents[0]->is(ControlState::Down); }));
  EXPECT_TRUE(agents[0]->links.back().refused);
  agents[0]->client->go_to(first.endpoint());
  ASSERT_TRUE(until([&] { return agents[0]->is(ControlState::NewSession); }));
  EXPECT_EQ(agents[0]->links.back().generation, 1U);
}

}  // namespace
}  // namespace drun::store
