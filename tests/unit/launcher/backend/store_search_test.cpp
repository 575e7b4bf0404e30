// What becomes of an agent's own store while it looks for another.
#include "launcher/backend/store_search.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/backend/backend_settings.hpp"
#include "unit/launcher/backend/scripted_link.hpp"

namespace drun::launcher {
namespace {

using rendezvous::Link;
using ::testing::ElementsAre;

const Endpoint kLost{"203.0.113.1", 29400};  // reserved for documentation
const Endpoint kNext{"203.0.113.2", 7};

// An agent that is the first successor of the store that it is about to lose.
class StoreSearchTest : public ::testing::Test {
 protected:
  StoreSearchTest() {
    options_.backend = Backend::C10d;
    options_.min_nodes = options_.max_nodes = 2;
    options_.endpoint = kLost;
    script_.store = kLost;
    script_.refused = true;
    identity_.address = "127.0.0.1";
  }

  // `listed`: its own store is at one of several endpoints.
  void begin(std::optional<std::size_t> listed) {
    StoreSearch::Calls calls;
    calls.moved = [this] { ++moves_; };
    calls.lost = [this](std::string text) { lost_.push_back(std::move(text)); };
    calls.changed = [] {};
    search_.emplace(options_, standing_, own_store_, std::move(calls));
    search_->set_link(&link_);
    search_->join(listed, identity_);
    rendezvous::Vote vote;
    vote.latest = {rendezvous::kOrigins, 1, 0, 2, 0};
    search_->vote(vote,
                  {{identity_.address, identity_.successor_port, true}, {kNext.host, kNext.port}});
  }
  void lose_link() {
    rendezvous::LinkEvent event;
    event.link = Link::Down;
    search_->follow(search_->on_link(event, true));
  }
  [[nodiscard]] Endpoint own() const { return {identity_.address, identity_.successor_port}; }

  Options options_;
  StoreStanding standing_{options_};
  SuccessorStore own_store_;
  LinkScript script_;
  ScriptedLink link_{script_};
  NodeIdentity identity_;
  std::optional<StoreSearch> search_;
  std::vector<std::string> lost_;
  int moves_ = 0;
};

TEST_F(StoreSearchTest, WhoGoesOnToAnotherServesNoMore) {
  begin({});
  ASSERT_NE(identity_.successor_port, 0);
  lose_link();
  EXPECT_TRUE(own_store_.stands());
  lose_link();
  EXPECT_FALSE(own_store_.stands()) << "who came there must not wait for a store that nobody uses";
  EXPECT_THAT(script_.places, ElementsAre(own(), kNext));
  EXPECT_EQ(moves_, 2);
  EXPECT_THAT(lost_, ElementsAre());
}

// Others look for the job there.
TEST_F(StoreSearchTest, AStoreAtOneOfTheEndpointsStandsOn) {
  ASSERT_TRUE(own_store_.hold(identity_.address));
  ASSERT_TRUE(own_store_.stand(server_options(options_, true)));
  begin(0);
  EXPECT_EQ(identity_.listed, 0);
  lose_link();
  EXPECT_TRUE(own_store_.stands());
  lose_link();
  EXPECT_TRUE(own_store_.stands());
  EXPECT_THAT(script_.places, ElementsAre(own(), kNext));
}

// If it does not stand any more, it begins to.
TEST_F(StoreSearchTest, AtOneOfTheEndpointsOneBeginsToStand) {
  ASSERT_TRUE(own_store_.hold(identity_.address));
  begin(0);
  lose_link();
  own_store_.step_down();
  lose_link();
  EXPECT_TRUE(own_store_.stands());
}

}  // namespace
}  // namespace drun::launcher
