// How an agent reaches its store, on real sockets of the loopback interface.
#include "launcher/backend/backend_link.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.hpp"
#include "integration/launcher/backend/linked_agent.hpp"
#include "support/drun_process.hpp"
#include "support/patience.hpp"
#include "support/store_thread.hpp"

namespace drun::launcher {
namespace {

using namespace std::chrono_literals;
using rendezvous::End;
using rendezvous::Link;
using Agent = LinkedAgent;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The options are those of a job of two nodes that meet at a free port of this machine.
class BackendLinkTest : public ::testing::Test {
 protected:
  BackendLinkTest() {
    options_.backend = Backend::C10d;
    options_.min_nodes = 2;
    options_.max_nodes = 2;
    options_.endpoint = {"127.0.0.1", static_cast<std::uint16_t>(port_.number())};
  }

  const test::ReservedPort port_;
  Options options_;
  asio::io_context io_{1};
};

TEST_F(BackendLinkTest, AJobThatIsAloneNeedsNoStore) {
  options_ = Options();
  Agent agent(io_, options_);
  ASSERT_TRUE(agent.until_joined());
  EXPECT_TRUE(agent.identity->hosting);
  EXPECT_EQ(agent.identity->host_name, "node7");
  EXPECT_EQ(agent.identity->address, "127.0.0.1");
  EXPECT_NE(agent.identity->worker_store_port, 0);
  EXPECT_EQ(agent.identity->ticket.size(), 32U);
  EXPECT_TRUE(agent.link().is_up());
  EXPECT_FALSE(agent.link().hosts_for_others());
  EXPECT_EQ(agent.link().prepare_worker_store().value(), agent.identity->worker_store_port);
}

TEST_F(BackendLinkTest, TheFirstAgentHostsAndTheSecondConnects) {
  Agent host(io_, options_);
  Agent other(io_, options_);
  ASSERT_TRUE(host.until_joined());
  ASSERT_TRUE(other.until_joined());
  EXPECT_TRUE(host.identity->hosting);
  EXPECT_TRUE(host.link().hosts_for_others());
  EXPECT_FALSE(other.identity->hosting);
  EXPECT_FALSE(other.link().hosts_for_others());
  EXPECT_EQ(other.identity->address, "127.0.0.1") << "as the host sees it";
  EXPECT_NE(host.identity->worker_store_port, other.identity->worker_store_port);
  EXPECT_NE(host.identity->ticket, other.identity->ticket);
  EXPECT_THAT(host.links, testing::ElementsAre(Link::Up));
}

TEST_F(BackendLinkTest, AStaticHostHasTheWorkersStoreAtTheSamePort) {
  options_.backend = Backend::Static;
  options_.node_rank = 0;
  options_.local_addr = "127.0.0.1";
  Agent agent(io_, options_);
  ASSERT_TRUE(agent.until_joined());
  EXPECT_EQ(agent.identity->worker_store_port, options_.endpoint.port);
  EXPECT_EQ(agent.link().prepare_worker_store().value(), options_.endpoint.port);
}

TEST_F(BackendLinkTest, AnAddressOfTheUsersChoiceIsTheOneThatOthersAreTold) {
  const test::StoreThread store(options_.endpoint.port);
  options_.conf.is_host = false;
  options_.local_addr = "127.0.0.2";
  Agent agent(io_, options_);
  ASSERT_TRUE(agent.until_joined());
  EXPECT_EQ(agent.identity->address, "127.0.0.2");
}

// Its name look-up may take minutes: the agent goes on meanwhile.
TEST_F(BackendLinkTest, AnAddressOfTheUsersChoiceThatNobodyHasIsWarnedOf) {
  std::vector<std::string> said;
  log::redirect([&](std::string line) { said.push_back(std::move(line)); });
  const auto look_up = std::make_shared<store::LookUp::element_type>();
  const auto reply = [&](Result<store::Addresses> addresses) {
    look_up->post(std::make_unique<Result<store::Addresses>>(std::move(addresses)));
  };
  const auto start_look_up = [&](const Endpoint& /*endpoint*/) { return look_up; };
  options_.local_addr = "eth9";
  {
    Agent agent(io_, options_, start_look_up);
    ASSERT_TRUE(agent.until_joined());
    EXPECT_THAT(said, IsEmpty());
    reply(Error(std::make_error_code(std::errc::address_not_available), "Name not known"));
    ASSERT_TRUE(agent.until([&] { return !said.empty(); }));
    EXPECT_THAT(said.back(), HasSubstr("--local-addr 'eth9': this machine has no such interface"));
    EXPECT_THAT(said.back(), HasSubstr("Name not known"));
    EXPECT_EQ(agent.identity->address, "eth9");
  }
  options_.local_addr = "node8";
  {
    Agent agent(io_, options_, start_look_up);
    reply(store::literal_addresses({"192.0.2.1", 0}));
    ASSERT_TRUE(agent.until([&] { return said.size() == 2; }));
    EXPECT_THAT(said.back(), HasSubstr("'node8' is no address of this machine"));
  }
  options_.local_addr = "node7";
  {
    Agent agent(io_, options_, start_look_up);
    ASSERT_TRUE(agent.until_joined());
    Agent silent(io_, options_, start_look_up);
    ASSERT_TRUE(silent.until_joined()) << "and ends without an answer";
  }
  options_.local_addr = "192.0.2.1";  // reserved for documentation
  const Agent agent(io_, options_, start_look_up);
  EXPECT_EQ(said.size(), 3U);
  log::redirect({});
}

TEST_F(BackendLinkTest, HostsAfterAllWhenThePortIsFree) {
  HostedStore other;  // holds the port, and answers nobody
  ASSERT_TRUE(other.bind_rendezvous(options_.endpoint, false));
  Agent agent(io_, options_);
  ASSERT_TRUE(agent.until([&] { return !agent.waited_for.empty(); }));
  EXPECT_THAT(agent.waited_for.front(),
              AllOf(HasSubstr(": the store at " + to_string(options_.endpoint)),
                    HasSubstr("is held by process " + std::to_string(::getpid()))));
  other.end();
  ASSERT_TRUE(agent.until_joined());
  EXPECT_TRUE(agent.identity->hosting);
}

TEST_F(BackendLinkTest, ComesBackAsTheSameNodeToTheNextStore) {
  options_.conf.is_host = false;
  auto store = std::make_unique<test::StoreThread>(options_.endpoint.port);
  Agent agent(io_, options_);
  ASSERT_TRUE(agent.until_joined());
  const auto first = *agent.identity;
  store.reset();
  ASSERT_TRUE(agent.until([&] { return agent.dropped == 1; }));
  EXPECT_FALSE(agent.link().is_up());
  EXPECT_THAT(agent.waited_for.back(), HasSubstr("went away before it knew this node"));
  store = std::make_unique<test::StoreThread>(options_.endpoint.port);
  ASSERT_TRUE(agent.until_joined());
  EXPECT_EQ(agent.identity->ticket, first.ticket);
  EXPECT_THAT(agent.links, testing::ElementsAre(Link::Up, Link::Up));
}

TEST_F(BackendLinkTest, AStoreThatKnowsThisNodeIsNotGivenUp) {
  options_.conf.is_host = false;
  options_.conf.keep_alive_interval = 1ms;
  auto store = std::make_unique<test::StoreThread>(options_.endpoint.port);
  Agent agent(io_, options_);
  ASSERT_TRUE(agent.until_joined());
  agent.known = true;
  store.reset();
  ASSERT_TRUE(agent.until([&] { return agent.links.back() == Link::Failed; }));
  EXPECT_THAT(agent.links, testing::ElementsAre(Link::Up, Link::Down, Link::Failed));
  EXPECT_EQ(agent.dropped, 0);
  EXPECT_FALSE(agent.outcome) << "the participant's to say";
  EXPECT_FALSE(agent.link().is_up());
}

TEST_F(BackendLinkTest, SaysGoodbye) {
  Agent agent(io_, options_);
  ASSERT_TRUE(agent.until_joined());
  agent.link().leave(false);
  EXPECT_TRUE(agent.link().is_up());
  agent.link().key_value().close();
  ASSERT_TRUE(agent.until([&] { return agent.links.back() == Link::Closed; }));
  EXPECT_FALSE(agent.link().is_up());
}

TEST_F(BackendLinkTest, StopsHostingUnlessAKeyIsNeeded) {
  Agent agent(io_, options_);
  ASSERT_TRUE(agent.until_joined());
  agent.link().key_value().commit(1, {{}, {{"job/x", "1"}}});
  ASSERT_TRUE(agent.until([&] { return agent.commits == 1; }));
  EXPECT_FALSE(
      agent.link().stop_hosting_unless([](std::string_view key) { return key == "job/x"; }));
  EXPECT_TRUE(
      agent.link().stop_hosting_unless([](std::string_view key) { return key == "job/y"; }));
}

TEST_F(BackendLinkTest, WhatIsReleasedIsFree) {
  {
    Agent agent(io_, options_);
    ASSERT_TRUE(agent.until_joined());
  }
  HostedStore next;
  EXPECT_TRUE(next.bind_rendezvous(options_.endpoint, false));
}

TEST_F(BackendLinkTest, WhoIsToldToHostWaitsForThePort) {
  options_.conf.is_host = true;
  std::optional<test::StoreThread> other(options_.endpoint.port);
  Agent agent(io_, options_);
  ASSERT_TRUE(agent.until([&] { return !agent.waited_for.empty(); }));
  EXPECT_THAT(agent.waited_for.front(), HasSubstr("is held by process"));
  other.reset();
  EXPECT_TRUE(agent.until_joined());
}

TEST_F(BackendLinkTest, GivesUpWithoutAPortForTheWorkersStore) {
  const test::StoreThread other;
  options_.master_port = other.endpoint().port;
  for (const bool is_host : {true, false}) {
    options_.conf.is_host = is_host;
    std::optional<test::StoreThread> store;
    if (!is_host) store.emplace(options_.endpoint.port);
    Agent agent(io_, options_);
    ASSERT_TRUE(agent.until_gave_up());
    EXPECT_EQ(agent.outcome->exit_code, 125);
    EXPECT_THAT(agent.outcome->text, HasSubstr("it was to be the port of the workers' store"));
    EXPECT_FALSE(agent.identity);
    EXPECT_THAT(agent.links, IsEmpty());
  }
}

TEST_F(BackendLinkTest, TheJoinTimeoutEndsTheAttempts) {
  options_.conf.is_host = false;
  options_.conf.join_timeout = 1ms;
  Agent agent(io_, options_);
  ASSERT_TRUE(agent.until_gave_up());
  EXPECT_EQ(agent.outcome->end, End::Timeout);
  EXPECT_EQ(agent.outcome->exit_code, 124);
  EXPECT_THAT(agent.outcome->text, HasSubstr("or wait longer with --rdzv-conf join_timeout="));
}

// ---- names ----

store::LookUp unanswered() {
  return std::make_shared<store::LookUp::element_type>();
}

TEST_F(BackendLinkTest, ANameOfThisMachineMakesItTheHost) {
  options_.endpoint.host = "head";
  options_.local_addr = "127.0.0.1";
  const auto look_up = unanswered();
  Agent agent(io_, options_, [&](const Endpoint&) { return look_up; });
  look_up->post(std::make_unique<Result<store::Addresses>>(
      store::literal_addresses({"127.0.0.1", options_.endpoint.port})));
  ASSERT_TRUE(agent.until_joined());
  EXPECT_TRUE(agent.identity->hosting);
}

TEST_F(BackendLinkTest, AnUnansweredLookUpIsLeftAtOnce) {
  options_.endpoint.host = "head";
  Agent agent(io_, options_, [](const Endpoint&) { return unanswered(); });
  io_.poll();
  agent.link().leave(false);
  agent.link().release();
  io_.restart();
  io_.run();  // returns: there is nothing to wait for
  EXPECT_FALSE(agent.outcome);
}

TEST_F(BackendLinkTest, TheJoinTimeoutEndsAnUnansweredLookUp) {
  options_.endpoint.host = "head";
  options_.conf.join_timeout = 1ms;
  Agent agent(io_, options_, [](const Endpoint&) { return unanswered(); });
  ASSERT_TRUE(agent.until_gave_up());
  EXPECT_EQ(agent.outcome->exit_code, 124);
  EXPECT_EQ(agent.outcome->text, "cannot resolve 'head': no answer; check --rdzv-endpoint");
}

TEST_F(BackendLinkTest, ANameThatIsNotThereYetIsAskedForAgain) {
  options_.endpoint.host = "head";
  int asked = 0;
  Agent agent(io_, options_, [&](const Endpoint& endpoint) {
    auto look_up = unanswered();
    Result<store::Addresses> answer =
        Error(std::make_error_code(std::errc::host_unreachable), "no such name");
    if (++asked > 1) answer = store::literal_addresses({"127.0.0.1", endpoint.port});
    look_up->post(std::make_unique<Result<store::Addresses>>(std::move(answer)));
    return look_up;
  });
  ASSERT_TRUE(agent.until_joined());
  EXPECT_EQ(asked, 2);
  EXPECT_THAT(agent.waited_for.front(),
              HasSubstr("cannot resolve 'head': no such name; trying again"));
}

}  // namespace
}  // namespace drun::launcher
