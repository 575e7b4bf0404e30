// What BackendLink makes of what its link says; the integration test of this name has real ones.
#include "launcher/backend/backend_link.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/keys.hpp"
#include "unit/launcher/backend/scripted_link.hpp"

namespace drun::launcher {
namespace {

using rendezvous::Link;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Endpoint kStore{"203.0.113.1", 29400};  // reserved for documentation
const Endpoint kNext{"203.0.113.2", 7};

// An agent of a job of two nodes that does not host.
class BackendLinkUnitTest : public ::testing::Test {
 protected:
  BackendLinkUnitTest() {
    options_.backend = Backend::C10d;
    options_.min_nodes = options_.max_nodes = 2;
    options_.endpoint = kStore;
    options_.conf.is_host = false;
    script_.store = kStore;
  }
  ~BackendLinkUnitTest() override {
    if (!link_) return;
    link_->leave(false);
    link_->release();
    io_.restart();
    io_.poll();
  }

  void start() {
    BackendLink::Calls calls;
    calls.waiting = [this](std::string text) { waited_for_.push_back(std::move(text)); };
    calls.joined = [this](const NodeIdentity& node) { identity_ = node; };
    calls.dispensable = [this](bool) { return !known_; };
    calls.dropped = [this] { ++dropped_; };
    calls.gave_up = [this](rendezvous::Outcome end) { outcome_ = std::move(end); };
    calls.session = [this](Farewells words) { farewells_ = std::move(words); };
    calls.event = [this](const rendezvous::KeyValueEvent& event) {
      events_.push_back(std::get<rendezvous::LinkEvent>(event));
    };
    link_.emplace(io_, options_, "node7", std::move(calls), store::start_look_up,
                  ScriptedLink::maker(script_));
    link_->start();
  }
  void join() {
    start();
    script_.tell(Link::Up);
    ASSERT_TRUE(identity_);
    known_ = true;
  }
  // The round says where its store goes on if this one is lost.
  void vote(bool self_first) {
    rendezvous::Vote vote;
    vote.latest = {rendezvous::kOrigins, 1, 0, 2, 0};
    std::vector<rendezvous::Successor> successors{{kNext.host, kNext.port}};
    if (self_first)
      successors.insert(successors.begin(), {identity_->address, identity_->successor_port, true});
    link_->vote(vote, successors);
  }
  [[nodiscard]] std::vector<Link> told() const {
    std::vector<Link> result;
    for (const auto& event : events_)
      result.push_back(event.link);
    return result;
  }
  [[nodiscard]] std::vector<std::string> others_told() const {
    std::vector<std::string> result;
    for (const auto& words : farewells_.others)
      result.push_back(words.bytes);
    return result;
  }

  Options options_;
  asio::io_context io_{1};
  LinkScript script_;
  std::optional<NodeIdentity> identity_;
  std::optional<rendezvous::Outcome> outcome_;
  std::vector<std::string> waited_for_;
  std::vector<rendezvous::LinkEvent> events_;
  Farewells farewells_;
  int dropped_ = 0;
  bool known_ = false;  // to the store
  std::optional<BackendLink> link_;
};

TEST_F(BackendLinkUnitTest, JoinsWhenTheLinkIsUp) {
  start();
  EXPECT_TRUE(script_.opened);
  EXPECT_EQ(script_.options.endpoint, kStore);
  EXPECT_FALSE(link_->is_up());
  script_.tell(Link::Up);
  EXPECT_TRUE(link_->is_up());
  ASSERT_TRUE(identity_);
  EXPECT_EQ(identity_->address, "127.0.0.1") << "as the link has it";
  EXPECT_FALSE(identity_->hosting);
  EXPECT_NE(identity_->successor_port, 0);
  ASSERT_THAT(told(), ElementsAre(Link::Up));
  EXPECT_EQ(events_.front().store, to_string(kStore));
  EXPECT_EQ(link_->moved_to(), std::nullopt);
}

// What a helper says for the agent if it is killed.
TEST_F(BackendLinkUnitTest, TheStoreIsToldOfItsDeathAndThenItsSuccessors) {
  join();
  ASSERT_TRUE(farewells_.first);
  EXPECT_EQ(farewells_.first->bytes, "end it");
  EXPECT_EQ(script_.farewell_sign, rendezvous::Keys(options_.run_id).death_of(identity_->ticket));
  EXPECT_THAT(others_told(), IsEmpty()) << "it has none";
  vote(false);
  EXPECT_EQ(script_.votes, 1);
  EXPECT_THAT(others_told(), ElementsAre("they are gone"));
  script_.proof = "called by a later one";
  script_.called();
  EXPECT_THAT(others_told(), ElementsAre("called by a later one"));
  script_.proof = "";
  script_.called();
  EXPECT_THAT(others_told(), IsEmpty()) << "nothing to prove it by";
}

TEST_F(BackendLinkUnitTest, NobodyIsToldWhenItHasSaidGoodbye) {
  join();
  vote(false);
  script_.tell(Link::Closed);
  EXPECT_FALSE(farewells_.first);
  EXPECT_THAT(others_told(), IsEmpty());
  EXPECT_FALSE(link_->is_up());
}

// The rendezvous hears of the loss, and not of each attempt to find another store.
TEST_F(BackendLinkUnitTest, ALostStoreIsToldOfOnceAndTheNextOneIsVisited) {
  join();
  vote(false);
  farewells_ = {};
  script_.refused = true;
  script_.tell(Link::Down, "it is gone");
  EXPECT_THAT(told(), ElementsAre(Link::Up, Link::Down));
  EXPECT_THAT(script_.places, ElementsAre(kNext));
  EXPECT_TRUE(farewells_.first) << "the store that it has left must not hear of its death any more";
  EXPECT_TRUE(link_->is_up());
  script_.refused = false;
  script_.tell(Link::NewSession);
  EXPECT_THAT(told(), ElementsAre(Link::Up, Link::Down, Link::NewSession));
  EXPECT_FALSE(events_.back().hosting);
  EXPECT_EQ(events_.back().store, to_string(kNext));
  EXPECT_EQ(link_->moved_to(), kNext);
}

TEST_F(BackendLinkUnitTest, ASuccessorThatIsGoneAsWellIsNoOtherLoss) {
  join();
  vote(false);
  script_.refused = true;
  script_.tell(Link::Down, "it is gone");
  script_.tell(Link::Down, "that one, too");
  EXPECT_THAT(told(), ElementsAre(Link::Up, Link::Down));
  EXPECT_TRUE(link_->is_up());
}

TEST_F(BackendLinkUnitTest, AStoreOfItsOwnIsNotToldOfItsDeath) {
  join();
  vote(true);
  script_.refused = true;
  script_.tell(Link::Down, "it is gone");
  ASSERT_EQ(script_.places.size(), 1U);
  EXPECT_EQ(script_.places.front().port, identity_->successor_port) << "it stands itself";
  script_.tell(Link::NewSession);
  EXPECT_TRUE(events_.back().hosting);
  EXPECT_FALSE(farewells_.first);
  EXPECT_THAT(others_told(), ElementsAre("they are gone"));
  link_->leave(true);
  script_.tell(Link::Closed);
  EXPECT_FALSE(farewells_.first);
  EXPECT_THAT(others_told(), ElementsAre("they are gone")) << "its store ends with it";
}

TEST_F(BackendLinkUnitTest, AHostThatLeavesAJobThatIsOverTellsNobody) {
  join();
  vote(true);
  script_.refused = true;
  script_.tell(Link::Down, "it is gone");
  script_.tell(Link::NewSession);
  link_->leave(false);
  script_.tell(Link::Closed);
  EXPECT_THAT(others_told(), IsEmpty());
}

TEST_F(BackendLinkUnitTest, ALossWithoutSuccessorsIsTheEndOfTheLink) {
  join();
  script_.resting = true;
  script_.tell(Link::Down, "it is gone");
  EXPECT_THAT(told(), ElementsAre(Link::Up, Link::Down, Link::Failed));
  EXPECT_TRUE(script_.closed);
  EXPECT_FALSE(link_->is_up());
  EXPECT_FALSE(farewells_.first);
  script_.tell(Link::NewSession);
  EXPECT_EQ(told().size(), 3U) << "no store is listened to any more";
}

TEST_F(BackendLinkUnitTest, BeginsAnewIfTheStoreNeverKnewIt) {
  start();
  script_.tell(Link::Up);
  script_.tell(Link::Down, "reset");
  EXPECT_EQ(dropped_, 1);
  EXPECT_FALSE(script_.exists);
  EXPECT_FALSE(farewells_.first);
  EXPECT_FALSE(link_->is_up());
  EXPECT_EQ(waited_for_.size(), 1U);
}

TEST_F(BackendLinkUnitTest, FollowsAStoreThatHasMovedBeforeItJoins) {
  start();
  script_.moved = kNext;
  script_.tell(Link::Down, "moved");
  EXPECT_THAT(script_.places, ElementsAre(kNext));
  EXPECT_FALSE(identity_);
  script_.moved.reset();
  script_.tell(Link::Up);
  ASSERT_TRUE(identity_);
  EXPECT_EQ(link_->moved_to(), kNext);
}

TEST_F(BackendLinkUnitTest, ALinkThatFailsBeforeItIsUpEndsIt) {
  start();
  script_.tell(Link::Failed, "no such key");
  ASSERT_TRUE(outcome_);
  EXPECT_FALSE(identity_);
}

}  // namespace
}  // namespace drun::launcher
