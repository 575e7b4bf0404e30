// Agents whose store may be lost: each has a place of its own on this machine, where it would serve
// another one. All in one thread, on real sockets.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "base/log.hpp"
#include "integration/launcher/backend/linked_agent.hpp"
#include "launcher/backend/backend_settings.hpp"
#include "launcher/backend/hosted_store.hpp"
#include "rendezvous/keys.hpp"
#include "support/drun_process.hpp"

namespace drun::launcher {
namespace {

using namespace std::chrono_literals;
using rendezvous::Link;
using test::ReservedPort;
using Agent = LinkedAgent;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Somebody listens there.
bool answers(std::uint16_t port) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(port);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
}

class BackendSuccessionTest : public ::testing::Test {
 protected:
  BackendSuccessionTest() {
    options_.backend = Backend::C10d;
    options_.min_nodes = 1;
    options_.max_nodes = 4;
    options_.run_id = "job";
    log::configure("drun", log::Level::Info);
    log::redirect([this](std::string line) { said_ += line; });
  }
  ~BackendSuccessionTest() override {
    agents_.clear();
    log::redirect({});
  }

  void meet_at_one_endpoint() {
    options_.endpoint = {"127.0.0.1", static_cast<std::uint16_t>(ports_[0].number())};
  }
  // Each agent takes the first of them that is free.
  void meet_at_three_endpoints() {
    for (const ReservedPort& port : ports_)
      options_.endpoints.push_back({"127.0.0.1", static_cast<std::uint16_t>(port.number())});
    options_.endpoint = options_.endpoints.front();
  }
  Agent& start(BackendDiscovery::StartLookUp start_look_up = store::start_look_up) {
    each_options_.push_back(std::make_unique<Options>(options_));
    agents_.push_back(
        std::make_unique<Agent>(io_, *each_options_.back(), std::move(start_look_up)));
    return *agents_.back();
  }
  Agent& agent(std::size_t number) { return *agents_[number]; }
  [[nodiscard]] bool until(const std::function<bool()>& condition) {
    return agents_.back()->until(condition);
  }
  [[nodiscard]] bool all_join() {
    return until([this] {
      return std::all_of(agents_.begin(), agents_.end(),
                         [](const auto& each) { return each->identity.has_value(); });
    });
  }
  // The agents that are there begin a round, of which each is told.
  void begin_round(std::int64_t era, int round) {
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      std::vector<rendezvous::Successor> successors;
      for (std::size_t j = 0; j < agents_.size(); ++j) {
        const auto& node = *agent(j).identity;
        if (!is_hosting(j)) successors.push_back({node.address, node.successor_port, i == j});
      }
      rendezvous::Vote vote;
      vote.job = rendezvous::Keys(options_.run_id).prefix;
      vote.latest = {era, round, static_cast<int>(i), static_cast<int>(agents_.size()), 0};
      agent(i).known = true;
      agent(i).link().vote(vote, successors);
    }
  }
  [[nodiscard]] bool is_hosting(std::size_t number) {
    return agent(number).identity->hosting ||
           (!agent(number).link_events.empty() && agent(number).link_events.back().hosting);
  }
  [[nodiscard]] std::size_t host() {
    for (std::size_t i = 0; i < agents_.size(); ++i)
      if (is_hosting(i)) return i;
    ADD_FAILURE() << "nobody hosts";
    return 0;
  }
  // As if its machine were gone.
  void kill(std::size_t number) {
    agent(number).link().release();
    io_.restart();
    io_.poll();
    agents_.erase(agents_.begin() + static_cast<std::ptrdiff_t>(number));
  }
  // All agents that are left are at a store of this generation.
  [[nodiscard]] bool all_are_at(std::int64_t generation) {
    return until([&] {
      return std::all_of(agents_.begin(), agents_.end(), [&](const auto& each) {
        return !each->link_events.empty() && each->link_events.back().generation == generation;
      });
    });
  }
  // What one agent writes, another one reads back.
  void expect_one_store() {
    auto& one = agents_.front();
    const int commits = one->commits;
    one->link().key_value().commit(1, {{}, {{"job/x", "1"}}});
    EXPECT_TRUE(until([&] { return one->commits > commits; }));
    for (auto& each : agents_) {
      const int before = each->committed;
      each->link().key_value().commit(2, {{{"job/x", "1"}}, {}});
      EXPECT_TRUE(until([&] { return each->committed > before; }));
    }
  }

  const ReservedPort ports_[3];
  Options options_;
  asio::io_context io_{1};
  std::string said_;
  std::vector<std::unique_ptr<Options>> each_options_;
  std::vector<std::unique_ptr<Agent>> agents_;
};

// ---- one endpoint ----

TEST_F(BackendSuccessionTest, EachAgentHoldsAPortForAStoreOfItsOwn) {
  meet_at_one_endpoint();
  for (int i = 0; i < 3; ++i)
    start();
  ASSERT_TRUE(all_join());
  std::set<std::uint16_t> ports;
  for (const auto& each : agents_) {
    ports.insert(each->identity->successor_port);
    EXPECT_EQ(each->identity->listed, -1);
    EXPECT_EQ(each->link_events.back().generation, 1);
  }
  EXPECT_THAT(ports, AllOf(SizeIs(3), Not(Contains(0))));
  EXPECT_EQ(host(), 0U);
  EXPECT_TRUE(agent(0).link_events.back().hosting);
  EXPECT_FALSE(agent(1).link_events.back().hosting);
  HostedStore other;
  for (const std::uint16_t port : ports)
    EXPECT_FALSE(other.bind_rendezvous({"127.0.0.1", port}, false)) << "it is held";
}

TEST_F(BackendSuccessionTest, ThePortIsFreeAfterTheEnd) {
  meet_at_one_endpoint();
  start();
  ASSERT_TRUE(all_join());
  const std::uint16_t port = agent(0).identity->successor_port;
  kill(0);
  HostedStore other;
  EXPECT_TRUE(other.bind_rendezvous({"127.0.0.1", port}, false));
  EXPECT_TRUE(HostedStore().bind_rendezvous(options_.endpoint, false));
}

TEST_F(BackendSuccessionTest, WithoutSuccessorsNoPortIsHeld) {
  meet_at_one_endpoint();
  options_.conf.successors = 0;
  start();
  ASSERT_TRUE(all_join());
  EXPECT_EQ(agent(0).identity->successor_port, 0);
  EXPECT_EQ(agent(0).link_events.back().generation, 0);
}

TEST_F(BackendSuccessionTest, TheOthersGoOnAtTheFirstSuccessorsStore) {
  meet_at_one_endpoint();
  for (int i = 0; i < 3; ++i)
    start();
  ASSERT_TRUE(all_join());
  begin_round(1, 1);
  EXPECT_TRUE(agent(0).link().hosts_for_others());
  EXPECT_FALSE(agent(1).link().hosts_for_others());
  kill(0);
  ASSERT_TRUE(all_are_at(2)) << said_;
  for (auto& each : agents_) {
    EXPECT_THAT(each->links, ElementsAre(Link::Up, Link::Down, Link::NewSession))
        << "of all attempts once";
    const auto lease = control_options(options_, false, options_.endpoint, {}).time_to_live;
    EXPECT_EQ(each->link_events.back().old_leases, lease) << "which those of the old store have";
    EXPECT_EQ(each->link_events[0].old_leases, 0ms);
    EXPECT_TRUE(each->link().is_up());
    EXPECT_FALSE(each->link().hosts_for_others()) << "what has moved serves this job alone";
    EXPECT_EQ(each->dropped, 0);
  }
  EXPECT_TRUE(is_hosting(0)) << "the first of the successors";
  EXPECT_FALSE(is_hosting(1));
  const std::string place = "127.0.0.1:" + std::to_string(agent(0).identity->successor_port);
  EXPECT_THAT(said_, HasSubstr("the store is now at " + place + ", on this node"));
  EXPECT_THAT(said_, HasSubstr("the store is now at " + place + "\n"));
  expect_one_store();
}

// A node that comes later to where the first store was finds the present one.
TEST_F(BackendSuccessionTest, TheHostOfALaterStoreTellsWhereItIs) {
  meet_at_one_endpoint();
  for (int i = 0; i < 3; ++i)
    start();
  ASSERT_TRUE(all_join());
  begin_round(1, 1);
  kill(0);
  ASSERT_TRUE(all_are_at(2)) << said_;
  start();  // it hosts there: nobody else does
  ASSERT_TRUE(until([&] {
    return agents_.back()->identity && !agents_.back()->link_events.empty() &&
           agents_.back()->link_events.back().generation == 2;
  })) << said_;
  EXPECT_FALSE(agents_.back()->link_events.back().hosting);
  const auto place = agents_.back()->link().moved_to();
  ASSERT_TRUE(place) << "it is said where the store is";
  EXPECT_NE(place->port, options_.endpoint.port);
  EXPECT_EQ(place, agent(1).link().moved_to());
  expect_one_store();
}

// What another process says for an agent that was killed.
TEST_F(BackendSuccessionTest, AKilledAgentsWordsAreForItsStoreAndItsSuccessors) {
  meet_at_one_endpoint();
  for (int i = 0; i < 3; ++i)
    start();
  ASSERT_TRUE(all_join());
  EXPECT_THAT(agent(1).farewells.back().others, IsEmpty()) << "none is known yet";
  begin_round(1, 1);
  ASSERT_TRUE(agent(1).farewells.back().first.has_value());
  EXPECT_THAT(agent(1).farewells.back().others, SizeIs(1)) << "itself is none";
  EXPECT_THAT(agent(0).farewells.back().others, SizeIs(2));
  const auto before = agent(2).farewells.back().first->address;
  kill(0);
  ASSERT_TRUE(all_are_at(2)) << said_;
  EXPECT_NE(agent(1).farewells.back().first->address, before) << "it is at another store";
  // Without a session there is nothing to end. But the store that has heard the goodbye may be
  // lost.
  for (const bool job_goes_on : {true, false}) {
    const auto each = job_goes_on ? std::size_t{1} : std::size_t{0};
    agent(each).link().leave(job_goes_on);
    agent(each).link().key_value().close();
    ASSERT_TRUE(until([&] { return agent(each).links.back() == Link::Closed; }));
    EXPECT_FALSE(agent(each).farewells.back().first.has_value());
    EXPECT_THAT(agent(each).farewells.back().others, SizeIs(job_goes_on ? 1 : 0));
  }
}

// Nobody can look a name up for a dead agent.
TEST_F(BackendSuccessionTest, AKilledAgentsWordsHaveTheAddressesOfThoseWithNames) {
  meet_at_one_endpoint();
  options_.local_addr = "node7.test";
  for (int i = 0; i < 3; ++i)
    start([](const Endpoint& place) {
      auto answer = std::make_shared<store::LookUp::element_type>();
      answer->post(std::make_unique<Result<store::Addresses>>(
          store::literal_addresses({"127.0.0.1", place.port})));
      return answer;
    });
  ASSERT_TRUE(all_join());
  begin_round(1, 1);
  ASSERT_TRUE(until([&] { return agent(0).farewells.back().others.size() == 2; }));
  for (std::size_t i = 0; i < 2; ++i) {
    const Endpoint successor{"127.0.0.1", agent(i + 1).identity->successor_port};
    EXPECT_EQ(agent(0).farewells.back().others[i].address,
              store::literal_addresses(successor).front().bytes());
  }
  agent(0).link().leave(true);
}

// The store that has heard its goodbye ends with it.
TEST_F(BackendSuccessionTest, AHostThatLeavesAJobThatGoesOnHasTheOthersTold) {
  for (const bool goes_on : {true, false}) {
    meet_at_one_endpoint();
    for (int i = 0; i < 3; ++i)
      start();
    ASSERT_TRUE(all_join());
    begin_round(1, 1);
    agent(0).link().leave(goes_on);
    agent(0).link().key_value().close();
    ASSERT_TRUE(until([&] { return agent(0).links.back() == Link::Closed; }));
    EXPECT_FALSE(agent(0).farewells.back().first.has_value());
    EXPECT_THAT(agent(0).farewells.back().others, SizeIs(goes_on ? 2 : 0));
    agents_.clear();
  }
}

TEST_F(BackendSuccessionTest, WhoeverLeavesGoesNowhere) {
  meet_at_one_endpoint();
  for (int i = 0; i < 3; ++i)
    start();
  ASSERT_TRUE(all_join());
  begin_round(1, 1);
  start();  // of no round
  ASSERT_TRUE(all_join());
  agent(3).link().leave(false);
  kill(0);
  ASSERT_TRUE(until([&] {
    return agent(0).link_events.back().generation == 2 &&
           agent(1).link_events.back().generation == 2;
  })) << said_;
  EXPECT_THAT(agent(2).links, Not(Contains(Link::NewSession)));
}

// ---- several endpoints ----

TEST_F(BackendSuccessionTest, AStoreBeginsWhereMostOfTheEndpointsAgentsHaveMet) {
  meet_at_three_endpoints();
  start();
  ASSERT_TRUE(agent(0).until([&] { return !agent(0).waited_for.empty(); }));
  EXPECT_THAT(agent(0).waited_for.back(), HasSubstr("the agents of 2 of 3 endpoints have met: "));
  EXPECT_FALSE(agent(0).identity);
  start();
  ASSERT_TRUE(all_join()) << said_;
  start();
  ASSERT_TRUE(all_join()) << said_;
  std::set<int> listed;
  for (const auto& each : agents_) {
    const auto& node = *each->identity;
    ASSERT_GE(node.listed, 0) << "each has one of them";
    listed.insert(node.listed);
    EXPECT_EQ(node.successor_port, options_.endpoints[static_cast<std::size_t>(node.listed)].port);
    EXPECT_EQ(node.address, "127.0.0.1");
    EXPECT_EQ(each->link_events.back().generation, 1);
    EXPECT_EQ(node.hosting, each->link_events.back().hosting);
  }
  EXPECT_THAT(listed, ElementsAre(0, 1, 2));
  EXPECT_EQ(std::count_if(agents_.begin(), agents_.end(),
                          [](const auto& each) { return each->identity->hosting; }),
            1);
  EXPECT_THAT(said_, Not(HasSubstr("begins no store")));
  expect_one_store();
}

TEST_F(BackendSuccessionTest, WhoHasNoneOfTheEndpointsFindsTheStore) {
  meet_at_three_endpoints();
  for (int i = 0; i < 3; ++i)
    start();
  ASSERT_TRUE(all_join()) << said_;
  options_.conf.is_host = false;
  start();
  ASSERT_TRUE(all_join()) << said_;
  const auto& node = *agents_.back()->identity;
  EXPECT_EQ(node.listed, -1);
  EXPECT_FALSE(node.hosting);
  EXPECT_NE(node.successor_port, 0);
  for (const auto& each : options_.endpoints)
    EXPECT_NE(node.successor_port, each.port);
  EXPECT_THAT(said_, Not(HasSubstr("begins no store"))) << "it was told so";
  expect_one_store();
}

TEST_F(BackendSuccessionTest, AnEndpointThatSomebodyElseHoldsIsSaid) {
  std::vector<std::unique_ptr<HostedStore>> others;
  meet_at_three_endpoints();
  for (const auto& each : options_.endpoints) {
    others.push_back(std::make_unique<HostedStore>());
    ASSERT_TRUE(others.back()->bind_rendezvous(each, false));
  }
  start();
  ASSERT_TRUE(until([&] { return said_.find("begins no store") != std::string::npos; }));
  EXPECT_FALSE(agent(0).identity);
}

TEST_F(BackendSuccessionTest, WithoutAMajorityTheJoinTimeoutEndsTheWait) {
  meet_at_three_endpoints();
  options_.conf.join_timeout = 300ms;
  start();
  ASSERT_TRUE(agent(0).until_gave_up());
  EXPECT_EQ(agent(0).outcome->exit_code, 124);
  EXPECT_THAT(agent(0).outcome->text,
              AllOf(HasSubstr("the agents of 2 of 3 endpoints have met: "),
                    HasSubstr(to_string(options_.endpoints[0]) + ": is there"),
                    HasSubstr(to_string(options_.endpoints[1]) + ": Connection refused")));
  EXPECT_EQ(agent(0).dropped, 1);
}

TEST_F(BackendSuccessionTest, WhoLeavesWhileItWaitsWaitsForNothing) {
  meet_at_three_endpoints();
  start();
  ASSERT_TRUE(agent(0).until([&] { return !agent(0).waited_for.empty(); }));
  agent(0).link().leave(false);
  agent(0).link().release();
  io_.restart();
  io_.run();  // returns
  EXPECT_FALSE(agent(0).outcome);
  HostedStore other;
  EXPECT_TRUE(other.bind_rendezvous(options_.endpoints[0], false));
}

TEST_F(BackendSuccessionTest, TheJobGoesOnAtAnotherEndpoint) {
  meet_at_three_endpoints();
  for (int i = 0; i < 3; ++i)
    start();
  ASSERT_TRUE(all_join()) << said_;
  begin_round(1, 1);
  kill(host());
  ASSERT_TRUE(all_are_at(2)) << said_;
  for (auto& each : agents_)
    EXPECT_THAT(each->links, ElementsAre(Link::Up, Link::Down, Link::NewSession));
  expect_one_store();
  start();  // at the dead one's
  ASSERT_TRUE(all_join()) << said_;
  EXPECT_GE(agents_.back()->identity->listed, 0);
  EXPECT_EQ(agents_.back()->link_events.back().generation, 2);
  EXPECT_FALSE(agents_.back()->identity->hosting);
  expect_one_store();
}

// Nobody has to be told of the end of a store that has seen no round.
TEST_F(BackendSuccessionTest, BeforeTheFirstRoundTheOthersMeetAnew) {
  meet_at_three_endpoints();
  for (int i = 0; i < 3; ++i)
    start();
  ASSERT_TRUE(all_join()) << said_;
  const std::size_t dead = host();
  std::map<std::string, int> before;  // by ticket
  for (const auto& each : agents_)
    before[each->identity->ticket] = each->identity->listed;
  kill(dead);
  ASSERT_TRUE(until([&] {
    return std::all_of(agents_.begin(), agents_.end(),
                       [](const auto& each) { return each->dropped == 1; });
  })) << said_;
  ASSERT_TRUE(all_join()) << said_;
  for (const auto& each : agents_) {
    EXPECT_TRUE(before.contains(each->identity->ticket)) << "it is the same node";
    EXPECT_EQ(each->links.back(), Link::Up);
    EXPECT_EQ(each->link_events.back().generation, 1);
    EXPECT_EQ(each->link_events.back().old_leases, 0ms);
  }
  EXPECT_EQ(std::count_if(agents_.begin(), agents_.end(),
                          [](const auto& each) { return each->identity->hosting; }),
            1);
  expect_one_store();
}

// Its own name may have no address yet.
TEST_F(BackendSuccessionTest, ANameThatIsNotThereYetIsAskedForAgain) {
  meet_at_three_endpoints();
  for (std::size_t i = 0; i < 3; ++i)
    options_.endpoints[i].host = "node" + std::to_string(i);
  options_.endpoint = options_.endpoints.front();
  std::map<std::string, int> asked;
  each_options_.push_back(std::make_unique<Options>(options_));
  agents_.push_back(std::make_unique<Agent>(io_, *each_options_.back(), [&](const Endpoint& name) {
    auto look_up = std::make_shared<store::LookUp::element_type>();
    Result<store::Addresses> answer =
        Error(std::make_error_code(std::errc::host_unreachable), "no such name");
    if (++asked[name.host] > 1) answer = store::literal_addresses({"127.0.0.1", name.port});
    look_up->post(std::make_unique<Result<store::Addresses>>(std::move(answer)));
    return look_up;
  }));
  ASSERT_TRUE(until([&] { return answers(options_.endpoints[0].port); })) << said_;
  EXPECT_EQ(asked["node0"], 2);
  EXPECT_EQ(asked["node2"], 2);
}

// The agent has told its user meanwhile that it waits.
TEST_F(BackendSuccessionTest, ANewcomerFindsTheStoreWhenNamesAreFoundLate) {
  meet_at_three_endpoints();
  start();
  start();
  ASSERT_TRUE(all_join()) << said_;
  for (Endpoint& each : options_.endpoints)
    each.host = "127.1";  // has to be looked up, and can be reached
  std::vector<store::LookUp> asked;
  Agent& late = start([&](const Endpoint& /*name*/) {
    return asked.emplace_back(std::make_shared<store::LookUp::element_type>());
  });
  ASSERT_TRUE(until([&] { return !late.waited_for.empty() && asked.size() >= 3; }));
  for (const auto& each : asked)
    each->post(std::make_unique<Result<store::Addresses>>(
        store::literal_addresses({"192.0.2.1", 0})));  // nobody's
  ASSERT_TRUE(all_join()) << said_;
  expect_one_store();
}

}  // namespace
}  // namespace drun::launcher
