#include "launcher/backend/store_standing.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/backend/backend_settings.hpp"
#include "rendezvous/keys.hpp"

namespace drun::launcher {
namespace {

using rendezvous::LinkEvent;
using rendezvous::Successor;
using rendezvous::Vote;
using store::Whereabouts;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr SuccessionFsm::Time kStart{std::chrono::seconds(1000)};
const Endpoint kFirst{"10.0.0.1", 29500};
const Endpoint kOwn{"10.0.0.2", 4000};
const Endpoint kThird{"10.0.0.3", 4000};

Options options(bool several_endpoints = false) {
  Options result;
  result.backend = Backend::C10d;
  result.endpoint = kFirst;
  result.run_id = "job";
  result.max_nodes = 3;
  if (several_endpoints) result.endpoints = {kFirst, kOwn, kThird};
  return result;
}

// Of a link that came up.
LinkEvent link(std::int64_t generation) {
  LinkEvent event;
  event.link = rendezvous::Link::Up;
  event.generation = generation;
  return event;
}

Vote vote_of_round(int casting = 0) {
  Vote vote;
  vote.latest = {rendezvous::kOrigins, 1, 1, 3, casting};
  return vote;
}

const std::vector<Successor> kThisIsOne = {{kThird.host, kThird.port, false},
                                           {kOwn.host, kOwn.port, true}};
const std::vector<Successor> kOthers = {{kThird.host, kThird.port, false}};

enum class Link { Settled, Retrying, Searching };

SuccessionFsm succession(Link state) {
  SuccessionFsm result({}, kFirst);
  SuccessionPlan plan;
  plan.successors = {kThird, kOwn};
  plan.nodes = 3;
  result.set_plan(plan);
  result.on_link_up();
  SuccessionFsm::Break broken;
  broken.refused = broken.over = state == Link::Searching;
  if (state != Link::Settled) (void)result.on_link_down(broken, kStart);
  EXPECT_EQ(result.is_broken(), state != Link::Settled);
  EXPECT_EQ(result.is_searching(), state == Link::Searching);
  return result;
}

// ---- what is to be said and asked ----

enum class Role { Member, Successor, Host };

struct Row {
  Role role;
  bool elsewhere;  // than everybody looks for it: a later store, or one of several endpoints
  Link link;
  LookoutTask joined;  // what it does
};

// All of them, of an agent that has joined.
const std::vector<Row> kRows = {
    {Role::Member, false, Link::Settled, LookoutTask::None},
    {Role::Member, false, Link::Retrying, LookoutTask::None},
    {Role::Member, false, Link::Searching, LookoutTask::Ask},
    {Role::Member, true, Link::Settled, LookoutTask::None},
    {Role::Member, true, Link::Retrying, LookoutTask::None},
    {Role::Member, true, Link::Searching, LookoutTask::Ask},
    // At the first store of a single endpoint nobody need be told where it is.
    {Role::Successor, false, Link::Settled, LookoutTask::None},
    {Role::Successor, false, Link::Retrying, LookoutTask::TellOfLoss},
    {Role::Successor, false, Link::Searching, LookoutTask::TellOfLoss},
    {Role::Successor, true, Link::Settled, LookoutTask::TellPlace},
    {Role::Successor, true, Link::Retrying, LookoutTask::TellOfLoss},
    {Role::Successor, true, Link::Searching, LookoutTask::TellOfLoss},
    {Role::Host, false, Link::Settled, LookoutTask::None},
    {Role::Host, false, Link::Retrying, LookoutTask::None},
    {Role::Host, false, Link::Searching, LookoutTask::Ask},
    {Role::Host, true, Link::Settled, LookoutTask::TellPlace},
    {Role::Host, true, Link::Retrying, LookoutTask::TellOfLoss},
    {Role::Host, true, Link::Searching, LookoutTask::Ask},
};

StoreStanding standing(const Options& options, Role role, bool elsewhere) {
  StoreStanding result(options);
  auto event = link(elsewhere && options.endpoints.empty() ? 2 : 1);
  result.on_link_up(BackendState::Connecting, role == Role::Host, event);
  (void)result.on_vote(vote_of_round(), role == Role::Successor ? kThisIsOne : kOthers);
  return result;
}

TEST(StoreStandingTest, EachRoleSaysAndAsksWhatTheOthersNeed) {
  for (const Row& row : kRows)
    for (const bool several : {false, true}) {
      if (several && !row.elsewhere) continue;
      const Options given = options(several);
      const auto agent = standing(given, row.role, row.elsewhere);
      const auto fsm = succession(row.link);
      SCOPED_TRACE("role " + std::to_string(static_cast<int>(row.role)) +
                   (row.elsewhere ? " elsewhere" : "") + ", link " +
                   std::to_string(static_cast<int>(row.link)) + (several ? ", several" : ""));
      for (const auto state : {BackendState::Joined, BackendState::Hosting}) {
        const bool says_early = several && row.role == Role::Member && row.link == Link::Retrying;
        EXPECT_EQ(agent.lookout(state, false, &fsm), says_early ? LookoutTask::Ask : row.joined);
        // With no successors there is nobody to tell or ask.
        EXPECT_EQ(agent.lookout(state, false, nullptr), LookoutTask::None);
      }
      auto lost = agent;
      lost.on_lost();
      EXPECT_EQ(lost.lookout(BackendState::Joined, false, &fsm), LookoutTask::None);
    }
}

// Whoever has not joined knows of no place.
TEST(StoreStandingTest, BeforeItHasJoinedAnAgentOnlyAsks) {
  const Options given = options(true);
  const auto fsm = succession(Link::Settled);
  const auto searching = succession(Link::Searching);
  for (const auto role : {Role::Member, Role::Successor, Role::Host})
    for (const auto state : {BackendState::Founding, BackendState::Connecting,
                             BackendState::Opening, BackendState::Lost}) {
      const auto agent = standing(given, role, true);
      EXPECT_EQ(agent.lookout(state, false, &fsm), LookoutTask::None);
      EXPECT_EQ(agent.lookout(state, true, &fsm), LookoutTask::AskOften);
      EXPECT_EQ(agent.lookout(state, false, &searching), LookoutTask::Ask);
    }
}

TEST(StoreStandingTest, WhoTellsTriesAgainSoonerThanWhoAsks) {
  const Options given = options();
  const StoreStanding agent(given);
  const auto ask = agent.inquiry(LookoutTask::Ask);
  EXPECT_EQ(ask.job, rendezvous::Keys("job").prefix);
  EXPECT_LT(agent.inquiry(LookoutTask::AskOften).period, ask.period);
  EXPECT_LT(agent.inquiry(LookoutTask::TellPlace).retry, ask.retry);
  EXPECT_EQ(agent.inquiry(LookoutTask::TellOfLoss).retry,
            agent.inquiry(LookoutTask::TellPlace).retry);
  // Within the time for which a store that begins listens.
  const auto quick = agent.quick_inquiry();
  EXPECT_LT(quick.retry + quick.connecting, listening(given));
}

// ---- what is told ----

TEST(StoreStandingTest, TheHostTellsItsOwnPlaceAndOthersWhereTheyAre) {
  const Options given = options();
  const auto host = standing(given, Role::Host, true);
  EXPECT_EQ(host.news(LookoutTask::TellPlace, {"", 4000}, kThird), (store::StoreNews{2, 4000, ""}));
  EXPECT_EQ(host.news(LookoutTask::TellPlace, kOwn, kThird),
            (store::StoreNews{2, kOwn.port, kOwn.host}));
  const auto successor = standing(given, Role::Successor, true);
  EXPECT_EQ(successor.news(LookoutTask::TellPlace, kOwn, kThird),
            (store::StoreNews{2, kThird.port, kThird.host}));
}

// Whoever is asked to begin a store must know that there was one.
TEST(StoreStandingTest, OfALostStoreItsGenerationIsToldIfARoundRanThere) {
  const Options given = options();
  const auto agent = standing(given, Role::Successor, true);
  for (const auto task : {LookoutTask::TellOfLoss, LookoutTask::Ask, LookoutTask::AskOften})
    EXPECT_EQ(agent.news(task, kOwn, kThird), (store::StoreNews{2, 0, ""}));
  StoreStanding newcomer(given);
  auto event = link(2);
  newcomer.on_link_up(BackendState::Connecting, false, event);
  EXPECT_EQ(newcomer.news(LookoutTask::Ask, kOwn, kThird), store::StoreNews());
}

TEST(StoreStandingTest, OnlyALaterStoreIsGoneTo) {
  const Options given = options();
  const auto agent = standing(given, Role::Member, true);
  Whereabouts answer;
  answer.place = kThird;
  answer.generation = 3;
  for (const auto kind : {Whereabouts::Kind::Unknown, Whereabouts::Kind::NoAnswer,
                          Whereabouts::Kind::Waits, Whereabouts::Kind::Sought}) {
    answer.kind = kind;
    EXPECT_EQ(agent.later_store(answer, kFirst), std::nullopt);
  }
  answer.kind = Whereabouts::Kind::There;
  EXPECT_EQ(agent.later_store(answer, kFirst), kThird);
  answer.generation = 2;
  EXPECT_EQ(agent.later_store(answer, kFirst), std::nullopt);
  answer = {.kind = Whereabouts::Kind::Here, .generation = 3};
  EXPECT_EQ(agent.later_store(answer, kFirst), kFirst);
}

// ---- what happens ----

TEST(StoreStandingTest, TheFirstStoreIsItsOwnIfItOpenedIt) {
  const Options given = options();
  for (const auto state :
       {BackendState::Opening, BackendState::Hosting, BackendState::Connecting}) {
    StoreStanding agent(given);
    auto event = link(1);
    agent.on_link_up(state, false, event);
    EXPECT_EQ(event.hosting, state != BackendState::Connecting);
    EXPECT_EQ(agent.hosts(), event.hosting);
    EXPECT_EQ(event.old_leases.count(), 0);
    // Not any more when it has been sent elsewhere.
    agent.on_followed();
    agent.on_link_up(state, false, event);
    EXPECT_FALSE(event.hosting);
  }
}

TEST(StoreStandingTest, AtALaterStoreTheOldLeasesAreWaitedForOnce) {
  const Options given = options();
  StoreStanding agent(given);
  auto event = link(2);
  agent.on_link_up(BackendState::Joined, true, event);
  EXPECT_TRUE(event.hosting);
  EXPECT_EQ(event.old_leases, control_options(given, false, kFirst, {}).time_to_live);
  EXPECT_EQ(agent.generation(), 2);
  event = link(2);
  agent.on_link_up(BackendState::Joined, true, event);
  EXPECT_EQ(event.old_leases.count(), 0);
  event = link(3);
  agent.on_link_up(BackendState::Joined, false, event);
  EXPECT_GT(event.old_leases.count(), 0);
  EXPECT_FALSE(agent.hosts());
}

TEST(StoreStandingTest, TheVoteBecomesThePlan) {
  const Options given = options();
  StoreStanding agent(given);
  auto event = link(1);
  agent.on_link_up(BackendState::Connecting, false, event);
  auto plan = agent.on_vote(vote_of_round(), kThisIsOne);
  EXPECT_EQ(plan.nodes, 3);
  EXPECT_THAT(plan.successors, ElementsAre(kThird, kOwn));
  EXPECT_EQ(plan.own, 1U);
  EXPECT_FALSE(plan.store_may_return);
  EXPECT_THAT(agent.other_successors(), ElementsAre(kThird));
  // The node with the store has left the round, and its process may end any moment.
  EXPECT_FALSE(agent.on_vote(vote_of_round(-1), kOthers).store_may_return);
  EXPECT_EQ(agent.on_vote(vote_of_round(-1), kOthers).own, std::nullopt);
  EXPECT_THAT(agent.on_vote(vote_of_round(), {}).successors, IsEmpty());
  EXPECT_THAT(agent.other_successors(), IsEmpty());
  event = link(2);
  agent.on_link_up(BackendState::Joined, false, event);
  EXPECT_FALSE(agent.on_vote(vote_of_round(-1), kOthers).store_may_return);
  // No node of the job has ever run the store: whoever does may start it again.
  StoreStanding guest(given);
  event = link(1);
  guest.on_link_up(BackendState::Connecting, false, event);
  EXPECT_TRUE(guest.on_vote(vote_of_round(-1), kOthers).store_may_return);
  EXPECT_FALSE(guest.on_vote(vote_of_round(), kOthers).store_may_return);
  guest.start_over(false);
  EXPECT_TRUE(guest.on_vote(vote_of_round(-1), kOthers).store_may_return);
  const Options several = options(true);
  StoreStanding founder(several);
  event = link(1);
  founder.on_link_up(BackendState::Founding, false, event);
  EXPECT_FALSE(founder.on_vote(vote_of_round(-1), kOthers).store_may_return);
}

TEST(StoreStandingTest, WithoutARoundAnAgentOfSeveralEndpointsMayStillMove) {
  const Options single = options();
  const Options several = options(true);
  EXPECT_FALSE(StoreStanding(single).may_still_move());
  StoreStanding agent(several);
  EXPECT_TRUE(agent.may_still_move());
  (void)agent.on_vote({}, {});
  EXPECT_TRUE(agent.may_still_move());
  (void)agent.on_vote(vote_of_round(), {});
  EXPECT_FALSE(agent.may_still_move());
}

TEST(StoreStandingTest, ASearchThatBeginsAnewForgetsTheStoreAndNotTheRound) {
  for (const bool serves_on : {false, true}) {
    const Options given = options(true);
    auto agent = standing(given, Role::Host, true);
    agent.on_founded();
    agent.on_moved(kThird);
    EXPECT_TRUE(agent.has_founded());
    EXPECT_TRUE(agent.has_moved());
    agent.start_over(serves_on);
    EXPECT_EQ(agent.has_founded(), serves_on);
    EXPECT_FALSE(agent.has_moved());
    EXPECT_FALSE(agent.hosts());
    EXPECT_EQ(agent.generation(), 0);
    EXPECT_FALSE(agent.may_still_move());
    agent.start_over(false);
    agent.start_over(true);
    EXPECT_FALSE(agent.has_founded()) << "it had none";
  }
}

// It may go back.
TEST(StoreStandingTest, AtTheFirstEndpointItHasNotMoved) {
  const Options given = options();
  StoreStanding agent(given);
  agent.on_moved(kThird);
  EXPECT_TRUE(agent.has_moved());
  agent.on_moved(kFirst);
  EXPECT_FALSE(agent.has_moved());
}

}  // namespace
}  // namespace drun::launcher
