#include "launcher/backend/store_founding.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;

const Endpoint kAnother{"203.0.113.1", 29400};  // reserved for documentation
const Endpoint kThird{"203.0.113.2", 29400};
const Endpoint kStore{"203.0.113.9", 29400};

// Names are answered when a test says so.
class StoreFoundingTest : public ::testing::Test {
 protected:
  StoreFoundingTest() {
    options_.backend = Backend::C10d;
    options_.min_nodes = options_.max_nodes = 3;
    options_.endpoints = {{"node0", 0}, kAnother, kThird};
    options_.endpoint = options_.endpoints.front();
  }

  StoreFounding& start() {
    founding_.start();
    return founding_;
  }
  void reply(Result<store::Addresses> addresses) {
    look_up_->post(std::make_unique<Result<store::Addresses>>(std::move(addresses)));
    io_.restart();
    io_.poll();
  }

  StoreFounding::Calls calls() {
    StoreFounding::Calls calls;
    calls.drop_link = [this] { did_.emplace_back("drop"); };
    calls.make_link = [this](const store::ControlOptions& options) {
      did_.push_back("make, place " + std::to_string(options.founder.rank));
    };
    calls.begun = [this] { did_.emplace_back("begun"); };
    calls.go_to = [this](const Endpoint& place, bool founds) {
      did_.push_back("go to " + to_string(place) + (founds ? ", founds" : ""));
    };
    calls.changed = [this] { ++changes_; };
    return calls;
  }

  Options options_;
  asio::io_context io_{1};
  SuccessorStore own_store_;
  store::LookUp look_up_ = std::make_shared<store::LookUp::element_type>();
  std::vector<std::string> did_;
  int changes_ = 0;
  StoreFounding founding_{io_, options_, own_store_,
                          [this](const Endpoint& /*endpoint*/) { return look_up_; }, calls()};
};

TEST_F(StoreFoundingTest, WaitsAtTheEndpointThatIsItsOwn) {
  StoreFounding& founding = start();
  EXPECT_TRUE(founding.is_under_way());
  EXPECT_FALSE(founding.is_asking());
  EXPECT_THAT(did_, ElementsAre()) << "a name has no answer yet";
  reply(store::literal_addresses({"127.0.0.1", 0}));
  EXPECT_THAT(did_, ElementsAre("drop", "make, place 0", "begun"));
  EXPECT_EQ(founding.listed(), 0U);
  EXPECT_TRUE(own_store_.stands());
  EXPECT_TRUE(founding.is_asking());
  EXPECT_GT(changes_, 0);
  EXPECT_TRUE(founding.next_deadline());
  founding.end();
  EXPECT_FALSE(founding.is_under_way());
  EXPECT_FALSE(founding.next_deadline());
  EXPECT_EQ(founding.listed(), 0U) << "it waits there still";
  EXPECT_TRUE(own_store_.stands());
}

TEST_F(StoreFoundingTest, WaitsNowhereIfItMayNotHost) {
  options_.conf.is_host = false;
  StoreFounding& founding = start();
  reply(store::literal_addresses({"127.0.0.1", 0}));
  EXPECT_TRUE(founding.is_asking());
  EXPECT_EQ(founding.listed(), std::nullopt);
  EXPECT_FALSE(own_store_.stands());
}

TEST_F(StoreFoundingTest, GoesToTheStoreOfWhichAnEndpointKnows) {
  StoreFounding& founding = start();
  reply(store::literal_addresses({"203.0.113.3", 0}));
  EXPECT_EQ(founding.listed(), std::nullopt);
  did_.clear();
  store::Whereabouts there;
  there.kind = store::Whereabouts::Kind::There;
  there.generation = 2;
  there.place = kStore;
  founding.on_answer(kThird, there);
  EXPECT_THAT(did_, ElementsAre("go to " + to_string(kStore)));
}

TEST_F(StoreFoundingTest, HearsOfNothingWhenItHasEnded) {
  StoreFounding& founding = start();
  founding.end();
  reply(store::literal_addresses({"127.0.0.1", 0}));
  founding.on_answer(kThird, {});
  founding.on_turned_away(kStore);
  founding.on_time();
  EXPECT_THAT(did_, ElementsAre());
}

}  // namespace
}  // namespace drun::launcher
