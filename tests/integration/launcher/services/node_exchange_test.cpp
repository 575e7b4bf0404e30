// What nodes say to one another, through a real store.
#include "launcher/services/node_exchange.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/base/log.hpp"
#include "drun/store/client.hpp"
#include "support/patience.hpp"
#include "support/store_thread.hpp"

namespace drun::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Texts = std::vector<std::string>;

class NodeExchangeTest : public testing::Test {
 protected:
  NodeExchangeTest() {
    log::redirect([this](std::string line) { said_.push_back(std::move(line)); });
  }
  ~NodeExchangeTest() override {
    nodes_.clear();
    io_.restart();
    io_.poll();
    log::redirect({});
  }
  void add(int group_rank, int nodes, const Endpoint& store) {
    rendezvous::Assignment place;
    place.group_rank = group_rank;
    place.group_world_size = nodes;
    place.master_address = store.host;
    place.master_port = store.port;
    nodes_[group_rank] = std::make_unique<NodeExchange>(io_, place, "pmi", "--framework mpi");
  }
  void begin(int group_rank, int number, const std::string& text) {
    nodes_.at(group_rank)->begin(number, text, [this, group_rank](const Texts& texts) {
      EXPECT_TRUE(heard_.emplace(group_rank, texts).second) << "told twice";
    });
  }
  // Until so many nodes have heard the others.
  bool until_heard(std::size_t nodes) {
    return until([&] { return heard_.size() >= nodes; });
  }
  bool until(const std::function<bool()>& condition) {
    return test::eventually([&] {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(1));
      return condition();
    });
  }

  test::StoreThread store_;
  asio::io_context io_{1};
  std::vector<std::string> said_;
  std::map<int, std::unique_ptr<NodeExchange>> nodes_;
  std::map<int, Texts> heard_;
};

TEST_F(NodeExchangeTest, ANodeThatIsAloneNeedsNoStore) {
  add(0, 1, Endpoint{"127.0.0.1", 1});
  begin(0, 0, "mine");
  EXPECT_THAT(heard_, IsEmpty()) << "not from inside the call";
  io_.run();
  EXPECT_THAT(heard_.at(0), ElementsAre("mine"));
}

// Its texts would go to the caller of the other, and under that one's number.
TEST_F(NodeExchangeTest, AnExchangeThatGoesOnIsNotReplaced) {
  add(0, 2, store_.endpoint());
  add(1, 2, store_.endpoint());
  begin(0, 0, "first");
  nodes_.at(0)->begin(1, "second", [](const Texts&) { ADD_FAILURE() << "nothing has begun"; });
  begin(1, 0, "other");
  ASSERT_TRUE(until_heard(2));
  EXPECT_THAT(heard_.at(0), ElementsAre("first", "other"));
}

TEST_F(NodeExchangeTest, AllHearAllInTheOrderOfTheirRanks) {
  for (const int node : {2, 0, 1}) {
    add(node, 3, store_.endpoint());
    EXPECT_THAT(heard_, IsEmpty());
    begin(node, 0, "text " + std::to_string(node));
  }
  ASSERT_TRUE(until_heard(3));
  for (const auto& [node, texts] : heard_)
    EXPECT_THAT(texts, ElementsAre("text 0", "text 1", "text 2")) << node;
}

TEST_F(NodeExchangeTest, TheNextOneIsAnotherAndTheLastIsTidiedAway) {
  for (const int node : {0, 1})
    add(node, 2, store_.endpoint());
  for (const int number : {0, 1, 2}) {
    heard_.clear();
    for (const int node : {0, 1})
      begin(node, number, std::to_string(number) + " of " + std::to_string(node));
    ASSERT_TRUE(until_heard(2));
    EXPECT_THAT(heard_.at(0),
                ElementsAre(std::to_string(number) + " of 0", std::to_string(number) + " of 1"));
  }
  auto client = store::Client::connect(store_.endpoint(), test::kPatience).value();
  EXPECT_FALSE(client.check({"drun/pmi/0/0"}).value());
  EXPECT_FALSE(client.check({"drun/pmi/1/1"}).value());
  EXPECT_TRUE(client.check({"drun/pmi/2/0", "drun/pmi/2/1"}).value());
}

TEST_F(NodeExchangeTest, AConnectionThatBreaksIsMadeAgain) {
  test::Wire wire(store_.endpoint());
  add(0, 2, wire.endpoint());
  add(1, 2, store_.endpoint());
  begin(0, 0, "zero");
  auto client = store::Client::connect(store_.endpoint(), test::kPatience).value();
  ASSERT_TRUE(until([&] { return client.check({"drun/pmi/0/0"}).value(); }));
  wire.cut();
  ASSERT_TRUE(until([this] { return !said_.empty(); }));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("--framework mpi: the workers' store: ")));
  begin(1, 0, "one");
  ASSERT_TRUE(until_heard(2));
  EXPECT_THAT(heard_.at(0), ElementsAre("zero", "one"));
  EXPECT_THAT(said_, SizeIs(1));
}

TEST_F(NodeExchangeTest, OneThatIsGoneHearsNothing) {
  for (const int node : {0, 1}) {
    add(node, 2, store_.endpoint());
    begin(node, 0, "text");
    if (node == 0) {
      nodes_.erase(0);
      add(0, 2, store_.endpoint());
    }
  }
  nodes_.at(0)->begin(0, "again", [this](const Texts& texts) { heard_[7] = texts; });
  ASSERT_TRUE(until_heard(2));
  EXPECT_FALSE(heard_.contains(0));
  EXPECT_TRUE(heard_.contains(7));
}

TEST_F(NodeExchangeTest, WhoHearsMayEndIt) {
  add(0, 1, store_.endpoint());
  nodes_.at(0)->begin(0, "text", [this](const Texts& texts) {
    nodes_.clear();
    heard_[0] = texts;
  });
  ASSERT_TRUE(until_heard(1));
  EXPECT_THAT(heard_.at(0), ElementsAre("text"));
}

}  // namespace
}  // namespace drun::launcher
