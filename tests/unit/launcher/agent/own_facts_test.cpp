#include "launcher/agent/own_facts.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/addresses.hpp"
#include "facts/sheet.hpp"
#include "support/agent_parts.hpp"
#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class OwnFactsTest : public testing::Test {
 protected:
  OwnFactsTest() {
    options_.max_nodes = 2;
    options_.preflight = Preflight::Warn;
  }
  void gather(OwnFacts& facts, const std::string& address = "127.0.0.1") {
    NodeIdentity node;
    node.address = address;
    facts.gather(node);
  }
  void run() {
    while (sheets_.empty() && io_.run_one_for(drun::test::kPatience) > 0) {
    }
  }

  asio::io_context io_{1};
  Options options_ = test::lone_job();
  std::vector<std::string> sheets_;
};

TEST_F(OwnFactsTest, ANodeSaysOnceWhatItIsLike) {
  OwnFacts facts(io_, options_, rlimit{1'000, 2'000},
                 [this](std::string sheet) { sheets_.push_back(std::move(sheet)); });
  gather(facts);
  EXPECT_THAT(sheets_, IsEmpty()) << "not from inside the call";
  run();
  gather(facts);
  io_.run_for(std::chrono::milliseconds(100));
  ASSERT_THAT(sheets_, SizeIs(1));
  EXPECT_FALSE(facts::decode(sheets_[0]).value().contains(std::string(facts::kTrouble)));
  facts.cancel();
}

TEST_F(OwnFactsTest, TheNetworkIsThatOfTheNodesAddress) {
  std::string address;
  for (const Interface& each : own_interfaces())
    for (const std::string& own : each.addresses)
      if (!is_loopback_address(own) && own.find(':') == std::string::npos) address = own;
  if (address.empty()) GTEST_SKIP() << "this machine has no address but its loopback one";
  OwnFacts facts(io_, options_, std::nullopt,
                 [this](std::string sheet) { sheets_.push_back(std::move(sheet)); });
  gather(facts, address);
  run();
  ASSERT_THAT(sheets_, SizeIs(1));
  EXPECT_TRUE(facts::decode(sheets_[0]).value().contains("mtu"));
  facts.cancel();
}

TEST_F(OwnFactsTest, AJobWhoseNodesAreNotComparedHasNoFacts) {
  const auto gathers = [this] {
    OwnFacts facts(io_, options_, std::nullopt,
                   [this](std::string sheet) { sheets_.push_back(std::move(sheet)); });
    gather(facts);
    io_.restart();
    io_.poll();
    const bool waits = !io_.stopped();
    facts.cancel();
    io_.restart();
    io_.run();
    return waits;
  };
  EXPECT_TRUE(gathers());
  options_.preflight = Preflight::Off;
  EXPECT_FALSE(gathers());
  options_.preflight = Preflight::Strict;
  options_.local_node = 1;
  EXPECT_FALSE(gathers()) << "they are on one machine";
}

TEST_F(OwnFactsTest, AfterCancelNobodyIsTold) {
  OwnFacts facts(io_, options_, std::nullopt,
                 [this](std::string sheet) { sheets_.push_back(std::move(sheet)); });
  gather(facts);
  facts.cancel();
  io_.run();
  EXPECT_THAT(sheets_, IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
