// What a new leader makes of the keys that it finds, and how it writes.
#include "rendezvous/leader.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/messages.hpp"
#include "rendezvous/other_jobs.hpp"

namespace drun::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;

constexpr Time kNow{std::chrono::hours(1)};

Config config(int nodes) {
  Config s;
  s.run_id = "job";
  s.ticket = "me";
  s.host = "host";
  s.min_nodes = s.max_nodes = nodes;
  return s;
}

// The keys of a job, as a store holds them.
class Found {
 public:
  explicit Found(Config s) : config_(std::move(s)), keys_("job") {}

  Found& member(const std::string& ticket, const std::function<void(MemberDocument&)>& more = {}) {
    MemberDocument d;
    d.host = "host-" + ticket;
    d.agreement = full_agreement(config_);
    if (more) more(d);
    return add(keys_.member(ticket), encode(d));
  }
  Found& round(int number, Phase phase, int nodes, int ran, int restarts = 0) {
    RoundDocument d;
    d.number = number;
    d.phase = phase;
    d.nodes = nodes;
    d.ran = ran;
    d.restart_count = restarts;
    return add(keys_.round, encode(d));
  }
  Found& place(const std::string& ticket, int number, int group_rank, int nodes, bool go = true) {
    AssignmentDocument d;
    d.go = go;
    d.assignment.round = number;
    d.assignment.group_rank = group_rank;
    d.assignment.group_world_size = nodes;
    d.assignment.world_size = nodes;
    d.assignment.first_rank = group_rank;
    d.assignment.role_world_size = nodes;
    d.host = "host-" + ticket;
    return add(keys_.assignment(ticket), encode(d));
  }
  Found& refusal(const std::string& ticket) {
    return add(keys_.assignment(ticket), encode(AssignmentDocument{{}, false, -1, "no"}));
  }
  Found& job(const Config& s) { return add(keys_.job, encode(JobDocument{full_agreement(s)})); }
  Found& add(std::string key, std::string value) {
    entries_.push_back({std::move(key), std::move(value)});
    return *this;
  }
  State restore(std::optional<Time> grace = {}, const RoundDocument& seen = {},
                const State* previous = nullptr, std::optional<Time> others = {}) {
    problems.clear();
    return rendezvous::restore(config_, 5, entries_, previous, seen, grace, others, kNow, problems);
  }
  [[nodiscard]] const Keys& keys() const { return keys_; }
  [[nodiscard]] const std::vector<Change>& entries() const { return entries_; }

  std::vector<std::string> problems;

 private:
  Config config_;
  Keys keys_;
  std::vector<Change> entries_;
};

MemberDocument& holding(MemberDocument& d, int round, int group_rank, int nodes) {
  d.claim = Assignment{};
  d.claim->round = round;
  d.claim->group_rank = group_rank;
  d.claim->group_world_size = nodes;
  d.claim->world_size = nodes;
  d.claim->first_rank = group_rank;
  d.claim->role_world_size = nodes;
  return d;
}

TEST(RestoreTest, AnEmptyStoreIsANewJob) {
  const State s = Found(config(2)).restore();
  EXPECT_EQ(s.round.phase, Phase::Gathering);
  EXPECT_EQ(s.round.number, 0);
  EXPECT_FALSE(s.round_written);
  EXPECT_FALSE(s.job_written);
  EXPECT_EQ(s.epoch, 5);
  EXPECT_EQ(s.waiting_since, kNow);
}

TEST(RestoreTest, ARunningRoundGoesOnWithWhoIsThere) {
  const auto hold = [](MemberDocument& d) { holding(d, 3, 0, 2); };
  Found found(config(2));
  found.member("a", hold).round(3, Phase::Running, 2, 3, 1).place("a", 3, 0, 2).place("b", 3, 1, 2);
  const State lost = found.restore();
  EXPECT_EQ(lost.round.phase, Phase::Running);
  EXPECT_EQ(lost.round.restart_count, 1);
  EXPECT_TRUE(lost.round_written);
  EXPECT_EQ(lost.unleft, 1);
  EXPECT_EQ(lost.lost, 1);
  EXPECT_EQ(lost.missing, 0);
  EXPECT_TRUE(lost.slots.at("b").lost);
  const State graced = found.restore(kNow + Milliseconds(1'000));
  EXPECT_EQ(graced.lost, 0);
  EXPECT_EQ(graced.missing, 1);
}

TEST(RestoreTest, WhatWasBeingPreparedIsDecidedAgain) {
  const State s = Found(config(2))
                      .member("a")
                      .member("b")
                      .round(4, Phase::Preparing, 2, 3)
                      .place("a", 4, 0, 2, false)
                      .restore();
  EXPECT_EQ(s.round.phase, Phase::Gathering);
  EXPECT_EQ(s.round.number, 4);
  EXPECT_EQ(s.ready, 2);
}

// A store that comes back from a snapshot file is older than what the leader has seen.
TEST(RestoreTest, ARoundNeverGoesBack) {
  struct Case {
    Phase seen, found;
    int found_number;
    Phase result;
  };
  for (const auto& c : {Case{Phase::Running, Phase::Preparing, 3, Phase::Running},
                        Case{Phase::Stopping, Phase::Running, 3, Phase::Stopping},
                        Case{Phase::Gathering, Phase::Stopping, 3, Phase::Gathering},
                        Case{Phase::Running, Phase::Running, 2, Phase::Running},
                        Case{Phase::Running, Phase::Stopping, 3, Phase::Stopping},
                        Case{Phase::Stopping, Phase::Gathering, 3, Phase::Gathering}}) {
    RoundDocument seen;
    seen.number = seen.ran = 3;
    seen.phase = c.seen;
    seen.nodes = 2;
    seen.restart_count = 1;
    const int ran = c.found == Phase::Preparing ? c.found_number - 1 : c.found_number;
    const State s = Found(config(2))
                        .member("a", [](MemberDocument& d) { holding(d, 3, 0, 2); })
                        .member("b", [](MemberDocument& d) { holding(d, 3, 1, 2); })
                        .round(c.found_number, c.found, 2, ran, 1)
                        .restore({}, seen);
    EXPECT_EQ(s.round.phase, c.result);
    EXPECT_EQ(s.round.number, 3);
    EXPECT_EQ(s.round.restart_count, 1);
    EXPECT_EQ(s.lost, 0);
    const bool older = c.found_number < 3 || c.found != c.result;
    EXPECT_EQ(s.round_written, !older);
    EXPECT_EQ(s.grace_until.has_value(), older) << "members may not have written again yet";
  }
}

// Whether this agent led when its number was tried, or the store has that try: others have run it
// since, and are out of touch.
TEST(RestoreTest, ANumberThatWasTriedInVainIsNotLaterThanTheRoundThatRanWithIt) {
  RoundDocument seen;
  seen.number = seen.ran = seen.nodes = 1;
  seen.phase = Phase::Running;
  const State led = Found(config(1)).member("me").round(1, Phase::Preparing, 1, 0).restore();
  ASSERT_EQ(led.round.phase, Phase::Gathering);
  for (const State& state :
       {Found(config(1)).member("me").restore({}, seen, &led),
        Found(config(1)).member("me").round(1, Phase::Gathering, 0, 0).restore({}, seen)}) {
    EXPECT_EQ(state.round.phase, Phase::Running);
    EXPECT_EQ(state.missing, 1);
    EXPECT_TRUE(decide(state, config(1), kNow).plan.empty());
  }
}

// The store was emptied, and this leader is new: it learns of the round from members that come back
// after it has begun to lead.
TEST(RestoreTest, WorkersOfAnUnknownRoundAreOfThePresentOne) {
  Config s = config(2);
  s.min_nodes = 1;
  s.max_restarts = 3;
  State state = Found(s).member("me").restore();
  EXPECT_EQ(state.round.number, 0);
  MemberDocument survivor;
  holding(survivor, 5, 1, 2);
  survivor.claim->restart_count = 2;
  EXPECT_TRUE(claims_unknown_round(state.round, survivor));
  state = Found(s)
              .member("me")
              .member("b",
                      [](MemberDocument& d) {
                        holding(d, 5, 1, 2);
                        d.claim->restart_count = 2;
                      })
              .round(1, Phase::Running, 1, 1)
              .restore({}, {}, &state);
  EXPECT_EQ(state.round.number, 5);
  EXPECT_EQ(state.round.phase, Phase::Running);
  EXPECT_EQ(state.round.restart_count, 2);
  EXPECT_EQ(state.missing, 1);
  EXPECT_FALSE(claims_unknown_round(state.round, survivor));
  survivor.left = 5;
  EXPECT_FALSE(claims_unknown_round(RoundDocument{}, survivor));
}

TEST(RestoreTest, NoRoundIsPlannedWhileANodeHoldsWorkersOfAnEarlierOne) {
  Config s = config(2);
  s.min_nodes = 1;
  const auto hold = [](MemberDocument& d) { holding(d, 5, 1, 2); };
  State state =
      Found(s).member("a").member("b", hold).round(5, Phase::Gathering, 0, 5, 1).restore();
  EXPECT_EQ(state.holding, 1);
  EXPECT_TRUE(decide(state, s, kNow + s.quiet_period * 2).writes.empty() ||
              decide(state, s, kNow + s.quiet_period * 2).round.phase == Phase::Gathering);
  const auto trial = decide(state, s, kNow + s.stop_timeout);
  EXPECT_TRUE(trial.refused.empty());
  adopt(state, s, trial, kNow + s.stop_timeout);
  const auto expelled = decide(state, s, kNow + s.stop_timeout + Milliseconds(7'000)).refused;
  ASSERT_EQ(expelled.size(), 1U);
  EXPECT_EQ(expelled.begin()->first, "b");
}

// A round ran that the store has forgotten: nodes that are out of touch may have workers of it.
TEST(RestoreTest, AForgottenRoundIsWaitedForAlsoByTheNextLeader) {
  Config s = config(1);
  const Time sure = kNow + s.keep_alive;
  const auto saw = [](MemberDocument& d) { d.seen = 4; };
  // Nobody here knew of it; or newcomers have tried its number, and others, in vain.
  for (const int tried : {0, 4, 6}) {
    Found found(s);
    found.member("a", saw);
    if (tried > 0) found.round(tried, Phase::Preparing, 1, 0);
    const State state = found.restore();
    EXPECT_EQ(state.round.ran, 4) << tried;
    EXPECT_EQ(state.round.number, std::max(tried, 4));
    EXPECT_EQ(state.unsure_until, sure) << tried;
    const auto decision = decide(state, s, kNow);
    EXPECT_EQ(decision.round.phase, Phase::Gathering);
    EXPECT_TRUE(decision.round.unsure);
    EXPECT_EQ(decide(state, s, sure).round.phase, Phase::Preparing);
    EXPECT_FALSE(decide(state, s, sure).round.unsure);

    // The next leader does not know since when. The same, which reads again, does.
    RoundDocument unsure = decision.round;
    Found later(s);
    later.member("a", saw).add(later.keys().round, encode(unsure));
    EXPECT_EQ(later.restore().unsure_until, sure);
    State previous = state;
    previous.unsure_until = kNow + Milliseconds(10);
    previous.grace_until.reset();
    EXPECT_EQ(later.restore({}, {}, &previous).unsure_until, previous.unsure_until);
    previous.unsure_until.reset();
    EXPECT_FALSE(later.restore({}, {}, &previous).unsure_until);

    // It had written nothing when the store lost its sessions, and leads again.
    previous = state;
    previous.epoch = 4;
    EXPECT_EQ(found.restore({}, {}, &previous).unsure_until, sure) << tried;
  }
  // It led the round; then others led, who were not sure, and the store went back to its
  // leadership.
  State led = Found(s).member("a").round(4, Phase::Running, 1, 4).place("a", 4, 0, 1).restore();
  RoundDocument unsure = led.round;
  unsure.phase = Phase::Gathering;
  unsure.unsure = true;
  EXPECT_EQ(Found(s).member("a", saw).restore({}, unsure, &led).unsure_until, sure);
  // What the store and its leader know of is over for all.
  EXPECT_FALSE(Found(s).member("a", saw).round(4, Phase::Gathering, 0, 4).restore().unsure_until);
  RoundDocument seen;
  seen.number = seen.ran = 4;
  EXPECT_FALSE(Found(s).member("a", saw).restore({}, seen).unsure_until);
  // To have left it is no sign that it ran.
  const auto left = [](MemberDocument& d) { d.left = 4; };
  EXPECT_FALSE(Found(s).member("a", left).round(4, Phase::Preparing, 1, 3).restore().unsure_until);
}

// The place that is missing belongs to a node of the same round, not of another with its number.
TEST(RestoreTest, APlaceIsNotTakenByANodeOfAnotherRound) {
  const Config s = config(2);
  const auto hold = [](int rank, std::uint16_t port) {
    return [rank, port](MemberDocument& d) { holding(d, 7, rank, 2).claim->master_port = port; };
  };
  const State mixed = Found(s).member("a", hold(0, 1)).member("b", hold(1, 2)).restore();
  EXPECT_EQ(mixed.missing, 1);
  EXPECT_EQ(mixed.strangers, 1);
  EXPECT_TRUE(mixed.unsure_until);
  const State whole = Found(s).member("a", hold(0, 1)).member("b", hold(1, 1)).restore();
  EXPECT_EQ(whole.missing, 0);
  EXPECT_EQ(whole.strangers, 0);
}

// The store forgot all places of the round that "me" has seen stop. It has left another with that
// number, and so tells nothing of who may still run in this one.
TEST(RestoreTest, APlaceIsNotTakenByWhoHasLeftAnotherRound) {
  const Config s = config(1);
  RoundDocument seen;
  seen.number = seen.ran = seen.nodes = seen.world_size = 1;
  seen.phase = Phase::Stopping;
  seen.master = "me:1";
  for (const std::uint16_t port : {std::uint16_t{1}, std::uint16_t{2}}) {
    const State state = Found(s)
                            .member("me",
                                    [port](MemberDocument& d) {
                                      auto& claim = holding(d, 1, 0, 1).claim;
                                      claim->master_address = "me";
                                      claim->master_port = port;
                                      d.left = 1;
                                    })
                            .restore({}, seen);
    EXPECT_EQ(state.missing, port == 1 ? 0 : 1);
    const auto next = decide(state, s, kNow).round.phase;
    EXPECT_EQ(next, port == 1 ? Phase::Preparing : Phase::Stopping);
  }
}

// What it knows of the round that it led says nothing of the one that it has seen since.
TEST(RestoreTest, ARoundThatWasLedIsNotAnotherThatWasSeen) {
  const Config s = config(1);
  State previous = Found(s).member("me").round(1, Phase::Stopping, 1, 1).restore();
  previous.round.master = "me:1";
  RoundDocument seen = previous.round;
  seen.phase = Phase::Running;
  seen.master = "b:1";
  const auto left = [](MemberDocument& d) { d.left = 1; };
  const State state = Found(s).member("me", left).restore({}, seen, &previous);
  EXPECT_EQ(state.round.phase, Phase::Running);
  EXPECT_EQ(state.round.master, "b:1");
  EXPECT_EQ(state.missing, 1);
}

// Nobody tells of that one: all its nodes are out of touch. The round that "me" knows goes on, but
// is not followed by another before their leases are over.
TEST(RestoreTest, ARoundThatOnlyThisAgentHasSeenIsWaitedFor) {
  const Config s = config(1);
  RoundDocument seen;
  seen.number = seen.ran = seen.nodes = seen.world_size = 2;
  seen.phase = Phase::Running;
  const Time until = kNow + Milliseconds(5'000);
  Found found(s);
  found.member("me", [](MemberDocument& d) {
    holding(d, 2, 0, 2);
    d.left = 2;
  });
  for (const auto& others : {std::optional<Time>(), std::optional(kNow), std::optional(until)}) {
    const bool waits = others == until;
    const State state = found.restore({}, seen, nullptr, others);
    EXPECT_EQ(state.unsure_until.has_value(), waits);
    EXPECT_EQ(state.grace_until, kNow + s.keep_alive) << "others are not missed in this round";
    State ended = state;
    ended.round.phase = Phase::Gathering;
    recount(ended, s, kNow);
    EXPECT_EQ(decide(ended, s, kNow).round.unsure, waits) << "for the next leader";
    EXPECT_EQ(decide(ended, s, until - Milliseconds(1)).plan.empty(), waits);
    EXPECT_FALSE(decide(ended, s, until).plan.empty());
  }
}

TEST(RestoreTest, NodesThatAreMissedAreMissedByTheNextLeader) {
  const Config s = config(2);
  const auto hold = [](MemberDocument& d) { holding(d, 7, 0, 2); };
  const State first = Found(s).member("a", hold).restore();
  ASSERT_EQ(first.missing, 1);
  const auto decision = decide(first, s, kNow);
  EXPECT_TRUE(decision.round.unsure);
  Found later(s);
  later.member("a", hold).place("a", 7, 0, 2).add(later.keys().round, encode(decision.round));
  const State next = later.restore();
  EXPECT_EQ(next.missing, 1);
  EXPECT_EQ(next.lost, 0);
  EXPECT_EQ(next_deadline(next, s), kNow + s.keep_alive);
}

// Whoever can write to the store can write this; the next round must still have a number.
TEST(RestoreTest, ANumberFarAheadIsRefusedAndMovesNothing) {
  for (const bool left : {true, false}) {
    const auto far = [&](MemberDocument& d) {
      if (left) {
        d.left = 1'000'000'000;
      } else {
        holding(d, 1'000'000'000, 0, 2);
      }
    };
    Config s = config(2);
    s.min_nodes = 1;
    const State state =
        Found(s).member("a").member("b", far).round(3, Phase::Gathering, 0, 3).restore();
    EXPECT_EQ(state.round.number, 3);
    EXPECT_EQ(state.members.at("b").standing, Standing::Refused);
    EXPECT_LE(state.floor, 3);
  }
}

// The store was emptied, and newcomers began again with round 1; one that led the first round 1 is
// elected when their leader has died.
TEST(RestoreTest, AnotherRoundOfTheSameNumberIsNotStoppedForWhatIsKnownOfTheFirst) {
  const auto left = [](MemberDocument& d) {
    holding(d, 1, 0, 2);
    d.seen = d.left = 1;
  };
  const State previous = Found(config(2))
                             .member("me", left)
                             .round(1, Phase::Stopping, 2, 1)
                             .place("me", 1, 0, 2)
                             .place("b", 1, 1, 2)
                             .restore();
  ASSERT_EQ(previous.round.phase, Phase::Stopping);
  RoundDocument seen;
  seen.number = seen.ran = 1;
  seen.nodes = 2;
  seen.phase = Phase::Running;
  const State state = Found(config(2))
                          .member("me", left)
                          .member("c", [](MemberDocument& d) { holding(d, 1, 0, 2); })
                          .member("d", [](MemberDocument& d) { holding(d, 1, 1, 2); })
                          .round(1, Phase::Running, 2, 1)
                          .place("c", 1, 0, 2)
                          .place("d", 1, 1, 2)
                          .restore({}, seen, &previous);
  EXPECT_EQ(state.round.phase, Phase::Running);
  EXPECT_TRUE(state.round_written);
  EXPECT_EQ(state.lost, 0);
  EXPECT_EQ(state.strangers, 0);
}

// The store went back to before they began, and one that has not written yet what it held would
// come behind the others.
TEST(RestoreTest, RanksThatTheStoreForgotAreKnownToWhoLedTheRound) {
  const auto left = [](int rank) {
    return [rank](MemberDocument& d) {
      holding(d, 3, rank, 2);
      d.seen = d.left = 3;
    };
  };
  const State previous = Found(config(2))
                             .member("me", left(0))
                             .member("b", left(1))
                             .round(3, Phase::Gathering, 2, 3)
                             .place("me", 3, 0, 2)
                             .place("b", 3, 1, 2)
                             .restore();
  const State state = Found(config(2))
                          .member("b", left(1))
                          .member("me")
                          .round(2, Phase::Gathering, 2, 2)
                          .restore({}, previous.round, &previous);
  const auto plan = decide(state, config(2), kNow + config(2).keep_alive * 2);
  ASSERT_EQ(plan.plan.size(), 2U);
  EXPECT_EQ(plan.plan[0].ticket, "me");
}

// The same while it runs, and a full store lets nobody say what it holds before the round is over.
TEST(RestoreTest, RanksOfTheRunningRoundThatTheStoreForgotAreKeptInTheNext) {
  const Config s = config(2);
  const State previous = Found(s)
                             .member("me", [](MemberDocument& d) { holding(d, 3, 0, 2); })
                             .member("b", [](MemberDocument& d) { holding(d, 3, 1, 2); })
                             .round(3, Phase::Running, 2, 3)
                             .place("me", 3, 0, 2)
                             .place("b", 3, 1, 2)
                             .restore();
  Found found(s);
  found.member("a").member("me").round(3, Phase::Preparing, 2, 2).place("me", 3, 0, 2, false);
  const State once = found.restore({}, previous.round, &previous);
  const State twice = found.restore({}, previous.round, &once);
  for (const State* state : {&once, &twice}) {
    ASSERT_EQ(state->round.phase, Phase::Running);
    EXPECT_EQ(state->missing, 2);
    const auto next = decide(*state, s, kNow + s.keep_alive);
    ASSERT_EQ(next.plan.size(), 2U);
    EXPECT_EQ(next.plan[0].ticket, "me");
    EXPECT_EQ(next.plan[1].ticket, "a");
  }
}

TEST(RestoreTest, TheCountOfRestartsSurvivesInTheMembers) {
  const Config s = config(1);
  const State state = Found(s)
                          .member("a",
                                  [](MemberDocument& d) {
                                    d.left = d.seen = 4;
                                    d.restarts = 2;
                                  })
                          .restore();
  // Somebody who is out of touch may still have workers of round 4.
  const auto wait = decide(state, s, kNow);
  EXPECT_EQ(wait.round.phase, Phase::Gathering);
  EXPECT_EQ(wait.round.restart_count, 2) << "the member may be gone before the next round";
  const auto plan = decide(state, s, kNow + s.keep_alive);
  EXPECT_EQ(plan.round.phase, Phase::Preparing);
  EXPECT_EQ(plan.round.number, 5);
  EXPECT_EQ(plan.round.restart_count, 2);
}

TEST(RestoreTest, TheCountOfRestartsOfAnEarlierRoundIsTheLeastThatALaterOneHas) {
  const State state = Found(config(1))
                          .member("a", [](MemberDocument& d) { d.left = d.seen = 4; })
                          .round(3, Phase::Running, 1, 3, 2)
                          .restore();
  EXPECT_EQ(state.round.number, 4);
  EXPECT_EQ(state.round.restart_count, 2);
}

TEST(RestoreTest, TheCountOfLossesOfAnEarlierRoundIsTheLeastThatALaterOneHas) {
  Found found(config(1));
  found.member("a", [](MemberDocument& d) { d.left = d.seen = 4; });
  RoundDocument earlier;
  earlier.number = earlier.ran = 3;
  earlier.phase = Phase::Running;
  earlier.nodes = 1;
  earlier.losses = 2;
  found.add(found.keys().round, encode(earlier));
  const State state = found.restore();
  EXPECT_EQ(state.round.number, 4);
  EXPECT_EQ(state.round.losses, 2);
}

// Of what is in no document.
TEST(RestoreTest, ALeaderThatReadsAgainForgetsNothing) {
  Found found(config(2));
  found.member("a").round(3, Phase::Gathering, 2, 3);
  State previous = found.restore();
  previous.crashes = 2;
  previous.crash_rank = 1;
  previous.crash_cause = "exit code 7";
  previous.refusals = {"c speaks another language"};
  previous.other_jobs = "'b' (1 node)";
  previous.waiting_since = kNow - Milliseconds(500);
  const State state = found.restore({}, {}, &previous);
  EXPECT_EQ(state.crashes, 2);
  EXPECT_EQ(state.crash_rank, 1);
  EXPECT_EQ(state.crash_cause, "exit code 7");
  EXPECT_EQ(state.refusals, previous.refusals);
  EXPECT_EQ(state.other_jobs, previous.other_jobs);
  EXPECT_EQ(state.waiting_since, previous.waiting_since);
}

TEST(RestoreTest, ARankThatSomebodyHasIsNotTheOneThatIsMissed) {
  const auto hold = [](MemberDocument& d) { holding(d, 3, 1, 3); };
  const State state = Found(config(3))
                          .member("b", hold)
                          .round(3, Phase::Running, 3, 3)
                          .place("a", 3, 0, 3)
                          .restore();
  EXPECT_EQ(state.occupied, (std::set<int>{0, 1}));
  EXPECT_EQ(state.vacant, 1);
}

TEST(RestoreTest, ARequestToStopIsReadToo) {
  const Config s = config(1);
  const auto stops = [](MemberDocument& d) { d.stop = StopRequest{"SIGTERM", 143}; };
  const auto end = decide(Found(s).member("a", stops).restore(), s, kNow);
  ASSERT_TRUE(end.outcome);
  EXPECT_EQ(end.outcome->end, End::Stopped);
  EXPECT_EQ(end.outcome->exit_code, 143);
}

TEST(RestoreTest, TheCountOfLossesSurvivesInTheMembers) {
  const Config s = [] {
    Config c = config(2);
    c.min_nodes = 1;
    c.max_losses = 1;
    return c;
  }();
  const Time later = kNow + s.keep_alive;
  const auto left = [](MemberDocument& d) {
    d.left = d.seen = 4;
    d.losses = 1;
  };
  const auto plan = decide(Found(s).member("a", left).member("me").restore(), s, later);
  EXPECT_EQ(plan.round.phase, Phase::Preparing);
  EXPECT_EQ(plan.round.losses, 1);
  // The round goes on, and its other node does not come back.
  State state = Found(s)
                    .member("a",
                            [](MemberDocument& d) {
                              holding(d, 4, 0, 2);
                              d.seen = 4;
                              d.losses = 1;
                            })
                    .member("me")
                    .restore();
  EXPECT_EQ(state.round.phase, Phase::Running);
  EXPECT_EQ(state.round.losses, 1);
  const auto stop = decide(state, s, later);
  ASSERT_EQ(stop.round.phase, Phase::Stopping);
  adopt(state, s, stop, later);
  MemberDocument gone = state.members.at("a").document;
  gone.left = 4;
  observe(state, s, "a", gone, later);
  const auto end = decide(state, s, later);
  ASSERT_TRUE(end.outcome);
  EXPECT_EQ(end.outcome->end, End::NodesLost);
}

TEST(RestoreTest, ADocumentThatMakesNoSenseChangesNothingForALeaderThatKnowsTheMember) {
  const Config s = config(2);
  const State before = Found(s).job(s).member("a").member("me").restore();
  Found found(s);
  found.job(s).add(Keys("job").member("a"), "[]").member("me");
  const State after = found.restore({}, {}, &before);
  EXPECT_EQ(after.members.at("a").standing, before.members.at("a").standing);
  EXPECT_EQ(after.members.at("a").document.host, "host-a");
  EXPECT_EQ(found.restore().members.at("a").standing, Standing::Refused) << "nobody knows it";
  const State ahead = Found(s)
                          .job(s)
                          .member("a", [](MemberDocument& d) { d.left = 2'000'000; })
                          .member("me")
                          .restore({}, {}, &before);
  EXPECT_EQ(ahead.members.at("a").document.left, 0);
}

// The next leader reckons with the time of day at which the one before began the round.
TEST(RestoreTest, HowLongTheRoundHasRunIsKnownToTheNextLeader) {
  struct Case {
    const char* name;
    std::int64_t since_ms;
    bool in_store;  // the round's document; else this agent alone has seen it
    bool brief;
  };
  Config s = config(2);
  s.min_nodes = 1;
  s.max_restarts = 3;
  s.min_runtime = Milliseconds(30'000);
  s.unix_offset_ms = 1'700'000'000'000;
  const std::int64_t now_ms = 3'600'000 + s.unix_offset_ms;
  for (const Case& each : std::vector<Case>{{"a moment before", now_ms - 29'999, true, true},
                                            {"long before", now_ms - 30'000, true, false},
                                            {"a clock that is ahead", now_ms + 5'000, true, true},
                                            {"far ahead", now_ms + 30'000, true, false},
                                            {"nobody knows", 0, true, false},
                                            {"the store forgot it", now_ms - 20'000, false, true},
                                            {"forgot a long one", now_ms - 40'000, false, false}}) {
    RoundDocument round;
    round.number = round.ran = 3;
    round.phase = Phase::Running;
    round.nodes = 2;
    round.since_ms = each.since_ms;
    Found found(s);
    found.member("a", [](MemberDocument& d) { holding(d, 3, 0, 2); }).member("me");
    if (each.in_store)
      found.add(found.keys().round, encode(round)).place("a", 3, 0, 2).place("b", 3, 1, 2);
    State state = found.restore(std::nullopt, each.in_store ? RoundDocument{} : round);
    if (!each.in_store) {
      const auto again = decide(state, s, kNow);
      ASSERT_EQ(again.round.phase, Phase::Running) << each.name;
      EXPECT_EQ(again.round.since_ms, each.since_ms) << each.name;
      state.grace_until = kNow;
    }
    const auto stop = decide(state, s, kNow);
    ASSERT_EQ(stop.round.phase, Phase::Stopping) << each.name;
    EXPECT_EQ(stop.round.brief, each.brief) << each.name;
    EXPECT_EQ(stop.round.restart_count, 0) << each.name;
  }
}

// Some have seen how the round ended; the store went back to when it ran.
TEST(RestoreTest, ALossThatTheStoreForgotIsNotCountedTwice) {
  const Config s = [] {
    Config c = config(2);
    c.min_nodes = 1;
    c.max_losses = 1;
    return c;
  }();
  State state = Found(s)
                    .member("a",
                            [](MemberDocument& d) {
                              holding(d, 1, 0, 2);
                              d.seen = d.left = d.losses = 1;
                            })
                    .member("me")
                    .round(1, Phase::Running, 2, 1)
                    .place("a", 1, 0, 2)
                    .place("b", 1, 1, 2)
                    .restore();
  const auto plan = decide(state, s, kNow);
  EXPECT_FALSE(plan.outcome);
  EXPECT_EQ(plan.round.losses, 1);
}

// The next round was planned with it, and the store went back to before the failure.
TEST(RestoreTest, ARestartThatTheStoreForgotIsNotCountedTwice) {
  const Config s = [] {
    Config c = config(1);
    c.max_restarts = 3;
    return c;
  }();
  Found found(s);
  found
      .member("a",
              [](MemberDocument& d) {
                holding(d, 1, 0, 1);
                d.seen = d.failed = d.left = 1;
                d.failure.emplace();
                d.failure->host = "a";
                d.failure->cause = "exit code 1";
                d.restarts = 1;
              })
      .round(1, Phase::Running, 1, 1)
      .place("a", 1, 0, 1);
  RoundDocument seen;
  seen.number = seen.ran = 1;
  seen.nodes = 1;
  seen.phase = Phase::Stopping;
  const auto plan = decide(found.restore({}, seen), s, kNow + s.keep_alive);
  EXPECT_EQ(plan.round.phase, Phase::Preparing);
  EXPECT_EQ(plan.round.restart_count, 1);
}

// Two rounds ran, each without knowing of the other: nothing new begins while either has workers.
TEST(RestoreTest, NodesOfARoundThatGivesWayHaveWorkersUntilTheyHaveLeft) {
  Config s = config(2);
  s.min_nodes = 1;
  Found found(s);
  found.member("a")
      .member("b", [](MemberDocument& d) { d.left = 1; })
      .member("c", [](MemberDocument& d) { holding(d, 3, 0, 1); })
      .round(1, Phase::Running, 2, 1)
      .place("a", 1, 0, 2)
      .place("b", 1, 1, 2);
  const State state = found.restore();
  EXPECT_EQ(state.round.number, 3);
  EXPECT_EQ(state.holding, 2);
  EXPECT_EQ(state.joiners, 1);
}

// Whether the round of its place is the last one or not: it may need long to stop its workers.
TEST(RestoreTest, WhoWasGivenAPlaceHasWorkersUntilItHasLeft) {
  for (const int left : {0, 1}) {
    const auto leaves = [left](MemberDocument& d) { d.left = left; };
    Found found(config(2));
    found.member("a", [](MemberDocument& d) { d.left = 2; })
        .member("b", leaves)
        .round(2, Phase::Gathering, 0, 2)
        .place("a", 2, 0, 1)
        .place("b", 1, 0, 1);
    EXPECT_EQ(found.restore().holding, 1 - left);
  }
}

TEST(RestoreTest, AnOutcomeClosesTheJob) {
  Found found(config(1));
  found.member("a").round(1, Phase::Running, 1, 1);
  found.add(found.keys().outcome, encode(Outcome{}));
  EXPECT_EQ(found.restore().round.phase, Phase::Closed);
}

TEST(RestoreTest, AWaitForNodesEndsWithTheRoundThatRanMeanwhile) {
  State previous = Found(config(2)).round(4, Phase::Gathering, 0, 4).restore();
  const Time long_ago = kNow - std::chrono::hours(1);
  previous.waiting_since = long_ago;
  const auto found = [&](int number, Phase phase, int ran) {
    return Found(config(2)).round(number, phase, 2, ran).restore({}, {}, &previous).waiting_since;
  };
  EXPECT_EQ(found(4, Phase::Gathering, 4), long_ago);
  EXPECT_EQ(found(5, Phase::Preparing, 4), long_ago);
  EXPECT_EQ(found(5, Phase::Gathering, 5), kNow);
  EXPECT_EQ(found(5, Phase::Running, 5), std::nullopt);
  EXPECT_EQ(found(5, Phase::Stopping, 5), std::nullopt);
}

TEST(RestoreTest, AStoreThatForgotIsToldByItsMembers) {
  // The store has lost all but the members that came back: they still run round 7.
  const State s = Found(config(2))
                      .member("a", [](MemberDocument& d) { holding(d, 7, 0, 2); })
                      .member("b", [](MemberDocument& d) { holding(d, 7, 1, 2); })
                      .restore(kNow + Milliseconds(6'000));
  EXPECT_EQ(s.round.phase, Phase::Running);
  EXPECT_EQ(s.round.number, 7);
  EXPECT_EQ(s.round.nodes, 2);
  EXPECT_EQ(s.unleft, 2);
  EXPECT_EQ(s.missing, 0);
  EXPECT_EQ(s.vacant, 0);
  EXPECT_EQ(s.reclaimed.size(), 2U);
  std::map<std::string, std::string> hosts;
  for (const auto& write : decide(s, config(2), kNow).writes)
    for (const char* ticket : {"a", "b"})
      if (write.key == Keys("job").assignment(ticket))
        hosts[ticket] = decode_assignment(*write.value).value().host;
  const std::map<std::string, std::string> all{{"a", "host-a"}, {"b", "host-b"}};
  EXPECT_EQ(hosts, all) << "whose it is when it is gone";

  // Of the members one is not back yet: its place is waited for.
  const State half = Found(config(2))
                         .member("a", [](MemberDocument& d) { holding(d, 7, 0, 2); })
                         .restore(kNow + Milliseconds(6'000));
  EXPECT_EQ(half.missing, 1);
  EXPECT_EQ(half.vacant, 1);

  // All have left round 7: the next has a higher number.
  const State left = Found(config(2)).member("a", [](MemberDocument& d) { d.left = 7; }).restore();
  EXPECT_EQ(left.round.phase, Phase::Gathering);
  EXPECT_EQ(left.round.number, 7);

  // The leader itself has seen a later round than the store knows.
  RoundDocument seen;
  seen.number = 9;
  seen.phase = Phase::Stopping;
  seen.restart_count = 2;
  const State older = Found(config(2)).round(8, Phase::Running, 2, 8).restore({}, seen);
  EXPECT_EQ(older.round.number, 9);
  EXPECT_EQ(older.round.phase, Phase::Stopping);
  EXPECT_EQ(older.round.restart_count, 2);
}

TEST(RestoreTest, DamagedDocumentsAreNamedAndHarmOnlyTheirWriter) {
  Found found(config(2));
  found.member("a").member("b");
  found.add(found.keys().member("bad"), "{}");
  found.add(found.keys().assignment("worse"), "[]");
  found.add(found.keys().round, "no JSON");
  found.add(found.keys().job, "{\"agreement\":1}");
  const State s = found.restore();
  EXPECT_EQ(found.problems.size(), 3U);
  EXPECT_EQ(s.ready, 2);
  EXPECT_EQ(s.to_refuse, (std::set<std::string, std::less<>>{"bad"}));
  EXPECT_TRUE(s.assignment_keys.contains("worse")) << "to be deleted with the next round";
  EXPECT_EQ(s.round.phase, Phase::Gathering);
}

TEST(RestoreTest, WhoWasRefusedStaysSoAndIsNotToldTwice) {
  const State s = Found(config(2)).member("a").refusal("a").restore();
  EXPECT_EQ(s.members.at("a").standing, Standing::Refused);
  EXPECT_TRUE(s.to_refuse.empty());
  EXPECT_EQ(s.ready, 0);
}

TEST(RestoreTest, AFailureThatWasReportedIsKnownAgainTheRootCauseFirst) {
  const auto failed = [](int code) {
    return [code](MemberDocument& d) {
      d.failed = 2;
      d.failure.emplace();
      d.failure->exit_code = code;
    };
  };
  Found found(config(2));
  found.member("a", failed(1)).member("b", failed(2)).place("a", 2, 0, 2).place("b", 2, 1, 2);
  RoundDocument round;
  round.number = round.ran = 2;
  round.nodes = 2;
  round.phase = Phase::Stopping;
  round.root = "b";
  found.add(found.keys().round, encode(round));
  const State s = found.restore();
  ASSERT_EQ(s.failures.size(), 2U);
  EXPECT_EQ(s.failures.front().ticket, "b");
}

// ---- at a store that has succeeded another ----

const Succession kLater{2, kNow + Milliseconds(10'000)};

// Nodes that hold workers of round 5, in which there were three.
Found returned(int nodes) {
  Found found(config(3));
  for (int rank = 1; rank <= nodes; ++rank)
    found.member(std::to_string(rank), [&](MemberDocument& d) {
      holding(d, 5, rank, 3).latest = {1, 5, rank, 3, 0};
    });
  return found;
}

State restore_later(const Found& found, const Succession& succession = kLater) {
  std::vector<std::string> problems;
  return restore(config(3), 5, found.entries(), nullptr, {}, {}, {}, kNow, problems, succession);
}

TEST(SuccessionRestoreTest, WhoIsNotHeardOfIsWaitedForUntilTheOldLeasesAreOver) {
  const State s = restore_later(returned(2));
  EXPECT_EQ(s.round.phase, Phase::Running);
  EXPECT_EQ(s.round.latest, (Place{1, 5, -1, 3, 0}));
  EXPECT_EQ(s.unheard, (std::set<Place>{{1, 5, 0}}));
  EXPECT_EQ(s.missing, 1);
  EXPECT_EQ(s.grace_until, kLater.sure_from);
  EXPECT_TRUE(decide(s, config(3), kNow).stopping.empty());
  EXPECT_FALSE(decide(s, config(3), kLater.sure_from).stopping.empty());
}

TEST(SuccessionRestoreTest, WhatTheLeaderSawOfTheLastRoundCounts) {
  RoundDocument seen;
  seen.number = seen.ran = 5;
  seen.phase = Phase::Running;
  seen.nodes = 3;
  seen.latest = {1, 5, -1, 3, 0};
  seen.before = {1, 4, -1, 3, 0};
  seen.store_host = "node0";
  std::vector<std::string> problems;
  // Somebody who led there in between did not know of it.
  Found found(config(3));
  found.round(6, Phase::Gathering, 0, 5);
  const State s =
      restore(config(3), 5, found.entries(), nullptr, seen, {}, {}, kNow, problems, kLater);
  EXPECT_EQ(s.round.latest, seen.latest);
  EXPECT_EQ(s.round.before, seen.before);
  EXPECT_EQ(s.round.store_host, "node0");
}

TEST(SuccessionRestoreTest, TheHistoryOfTheOldStoreIsWrittenToTheNewOne) {
  Succession succession = kLater;
  succession.history.begin({5, 3, 3, 0, 1'000, 0, 0, Cause::None, "", 0});
  const State s = restore_later(returned(2), succession);
  const Decision decision = decide(s, config(3), kNow);
  ASSERT_TRUE(decision.history);
  EXPECT_EQ(decision.history->rounds, succession.history.rounds);
  State after = s;
  adopt(after, config(3), decision, kNow);
  EXPECT_FALSE(decide(after, config(3), kNow).history) << "once";
}

TEST(SuccessionRestoreTest, AHistoryThatTheNewStoreHasCounts) {
  Succession succession = kLater;
  succession.history.begin({5, 3, 3, 0, 1'000, 0, 0, Cause::None, "", 0});
  History known;
  known.begin({6, 2, 2, 0, 2'000, 0, 0, Cause::None, "", 0});
  Found found = returned(2);
  found.add(found.keys().history, encode(known));
  const State s = restore_later(found, succession);
  EXPECT_EQ(s.history, known);
  EXPECT_FALSE(decide(s, config(3), kNow).history);
}

TEST(SuccessionRestoreTest, ForAsLongAsTheOldStoreHadBeenSilentNobodyIsWaitedForAgain) {
  Found found = returned(2);
  found.add(found.keys().silence, "6000");
  const State s = restore_later(found);
  const Time sure = kLater.sure_from - Milliseconds(6'000);
  EXPECT_EQ(s.grace_until, sure);
  EXPECT_TRUE(decide(s, config(3), sure - Milliseconds(1)).stopping.empty());
  EXPECT_FALSE(decide(s, config(3), sure).stopping.empty());
  Found unreadable = returned(2);
  unreadable.add(unreadable.keys().silence, "-6000");
  EXPECT_EQ(restore_later(unreadable).grace_until, kLater.sure_from);
}

TEST(SuccessionRestoreTest, WhoIsProvenToBeGoneIsWaitedForNoMore) {
  Found found = returned(2);
  State s = restore_later(found);
  note_gone(s, {1, 4, 0}, kNow);  // of another round
  EXPECT_TRUE(decide(s, config(3), kNow).stopping.empty());
  note_gone(s, {1, 5, 0}, kNow);
  EXPECT_FALSE(decide(s, config(3), kNow).stopping.empty());
  found.add(found.keys().gone + "1.5.0", "");
  const State told = restore_later(found);
  EXPECT_EQ(told.lost, 1);
  EXPECT_EQ(decide(told, config(3), kNow).stopping,
            "the node (group rank 0) is gone: its agent has died (killed, or crashed)");
  EXPECT_FALSE(told.unsure_until);
}

TEST(SuccessionRestoreTest, TheHostOfTheLostStoreHasAName) {
  Found found = returned(2);
  found.add(found.keys().gone + "1.5.0", "");
  RoundDocument seen;
  seen.number = seen.ran = 5;
  seen.phase = Phase::Running;
  seen.nodes = seen.world_size = 3;
  seen.latest = {1, 5, -1, 3, 0};
  seen.store_host = "node0";
  std::vector<std::string> problems;
  const auto stopping = [&] {
    const State s =
        restore(config(3), 6, found.entries(), nullptr, seen, {}, {}, kNow, problems, kLater);
    return decide(s, config(3), kNow).stopping;
  };
  EXPECT_EQ(stopping(), "node0 (group rank 0) is gone: its agent has died (killed, or crashed)");
  seen.latest.round = 4;
  EXPECT_EQ(stopping(), "the node (group rank 0) is gone: its agent has died (killed, or crashed)")
      << "that was another round";
}

// They have stopped their workers, and wait.
TEST(SuccessionRestoreTest, WhoDidNotComeOverFromTheLostStoreIsNamed) {
  RoundDocument seen;
  seen.number = seen.ran = 5;
  seen.phase = Phase::Gathering;
  seen.latest = {1, 5, -1, 4, 0};
  seen.store_host = "node0";
  seen.reason = "node0 (group rank 0) is gone";
  const auto waiting = [&](const std::vector<int>& gone, Time now = kNow) {
    Found found(config(4));
    for (const int rank : {1, 3, -1})
      found.member("node" + std::to_string(rank), [&](MemberDocument& d) {
        d.left = d.seen = 5;
        d.latest = {1, 5, rank, 4, 0};
      });
    for (const int rank : gone)
      found.add(found.keys().gone + "1.5." + std::to_string(rank), "");
    std::vector<std::string> problems;
    const State s =
        restore(config(4), 6, found.entries(), nullptr, seen, {}, {}, kNow, problems, kLater);
    return waiting_text(s, config(4), now);
  };
  EXPECT_THAT(waiting({0, 2}), EndsWith("); node0 (group rank 0), a node (group rank 2) were lost "
                                        "in round 5"));
  EXPECT_THAT(waiting({0}), EndsWith("); node0 (group rank 0) was lost in round 5"))
      << "the other may yet come";
  EXPECT_THAT(waiting({0}, kLater.sure_from),
              EndsWith("a node (group rank 2) were lost in round 5"));
  seen.reason = "node0 (group rank 0) leaves the job: received SIGTERM on node0";
  EXPECT_THAT(waiting({0, 2}), EndsWith("); a node (group rank 2) was lost in round 5"));
  seen.reason = "node2 (group rank 2) leaves the job: received SIGTERM on node2";
  EXPECT_THAT(waiting({0, 2}), EndsWith("); node0 (group rank 0) was lost in round 5"));
}

TEST(SuccessionRestoreTest, ARoundAllOfWhoseNodesAreThereRunsOn) {
  Found found(config(3));
  for (int rank = 0; rank < 3; ++rank)
    found.member(std::to_string(rank), [&](MemberDocument& d) {
      holding(d, 5, rank, 3).latest = {1, 5, rank, 3, 0};
    });
  const State s = restore_later(found);
  EXPECT_FALSE(s.grace_until);
  EXPECT_FALSE(s.unsure_until);
  EXPECT_EQ(s.lost + s.missing, 0);
  const Decision decision = decide(s, config(3), kLater.sure_from);
  EXPECT_EQ(decision.round.phase, Phase::Running);
  EXPECT_TRUE(decision.stopping.empty());
}

TEST(SuccessionRestoreTest, WhoComesIsHeardOf) {
  State s = restore_later(returned(1));
  ASSERT_EQ(s.unheard, (std::set<Place>{{1, 5, 0}, {1, 5, 2}}));
  MemberDocument d;
  d.host = "host-2";
  d.agreement = full_agreement(config(3));
  holding(d, 5, 2, 3).latest = {1, 5, 2, 3, 0};
  observe(s, config(3), "2", d, kNow);
  EXPECT_EQ(s.unheard, (std::set<Place>{{1, 5, 0}}));
  EXPECT_EQ(s.missing, 1);
}

// A host that does not lead stays until nobody can come any more, unless it is told that all came.
TEST(SuccessionRestoreTest, TheOutcomeSaysWhetherAllWereHeardOf) {
  const auto outcome = [](State s) {
    s.stop = StopRequest{"received SIGINT", 130};
    return decide(s, config(3), kNow).outcome.value();
  };
  Found all = returned(2);
  EXPECT_FALSE(outcome(restore_later(all)).all_heard);
  all.add(all.keys().gone + "1.5.0", "");
  EXPECT_TRUE(outcome(restore_later(all)).all_heard);
  EXPECT_FALSE(outcome(restore_later(all, {1, {}})).all_heard) << "nobody asks at the first store";
}

// No two seconds of quiet, as for those that come by themselves: they all come at once.
TEST(SuccessionRestoreTest, ThoseWhoComeOverAreWaitedForAMomentOnly) {
  Config elastic = config(3);
  elastic.min_nodes = 2;
  Found found(elastic);
  for (int rank = 1; rank < 3; ++rank)
    found.member(std::to_string(rank), [&](MemberDocument& d) {
      d.left = d.seen = 5;
      d.latest = {1, 5, rank, 3, 0};
    });
  found.add(found.keys().gone + "1.5.0", "");
  const auto begins = [&](const State& s, Milliseconds after) {
    return decide(s, elastic, kNow + after).round.phase == Phase::Preparing;
  };
  std::vector<std::string> problems;
  State s = restore(elastic, 5, found.entries(), nullptr, {}, {}, {}, kNow, problems, kLater);
  EXPECT_FALSE(begins(s, Milliseconds(100)));
  EXPECT_TRUE(begins(s, Milliseconds(200)));
  // One that was not there before is a newcomer here as anywhere.
  MemberDocument d;
  d.host = "host-9";
  d.agreement = full_agreement(elastic);
  observe(s, elastic, "9", d, kNow);
  s.ready = 2;  // else all are there
  EXPECT_FALSE(begins(s, Milliseconds(1'900)));
  EXPECT_TRUE(begins(s, elastic.quiet_period));
}

TEST(SuccessionRestoreTest, WhenTheOldLeasesAreOverNobodyIsWaitedFor) {
  const State s = restore_later(returned(2), {2, kNow});
  EXPECT_EQ(s.lost, 1);
  EXPECT_FALSE(s.grace_until);
}

TEST(SuccessionRestoreTest, WhatOneMemberAloneKnowsOfIsTakenOver) {
  Found found = returned(2);
  found.round(5, Phase::Gathering, 0, 5).member("late", [](MemberDocument& d) {
    d.latest = {1, 6, 1, 2};
    d.seen = 6;
  });
  const State s = restore_later(found);
  EXPECT_EQ(s.round.latest, (Place{1, 6, -1, 2}));
  EXPECT_EQ(s.unheard, (std::set<Place>{{1, 6, 0}}));
  EXPECT_EQ(decide(s, config(3), kNow).round.latest, s.round.latest);
}

// ---- where the founders of several endpoints have begun two first stores ----

constexpr std::int64_t kOurs = kOrigins + 46;
constexpr std::int64_t kTheirs = kOrigins + 48;  // the later, by its number

// Ranks 0 and 1 of three run the first round of this store; who speaks of the other store's never
// ran anything.
Found begun_twice() {
  Found found(config(3));
  for (int rank = 0; rank < 2; ++rank)
    found.member(std::to_string(rank), [&](MemberDocument& d) {
      holding(d, 1, rank, 3).latest = {kOurs, 1, rank, 3, 2};
      d.seen = 1;
    });
  return found.member("other", [](MemberDocument& d) {
    d.latest = {kTheirs, 1, 0, 2, 0};
    d.seen = 1;
  });
}

RoundDocument our_round() {
  RoundDocument round;
  round.number = round.ran = 1;
  round.phase = Phase::Running;
  round.nodes = 3;
  round.latest = {kOurs, 1, -1, 3, 2};
  return round;
}

TEST(TwoFirstStoresTest, WhoComesFromTheOtherOneChangesNothingButTheNextEra) {
  Found found = begun_twice();
  found.add(found.keys().round, encode(our_round()));
  const State s = restore_later(found, {1, {}});
  EXPECT_EQ(s.round.latest, our_round().latest);
  EXPECT_TRUE(s.latest_written);
  ASSERT_EQ(s.others.size(), 1U);
  EXPECT_EQ(s.others[0], (Place{kTheirs, 1, 0, 2, 0}));
  EXPECT_FALSE(is_unknown(s, s.round.latest, {kTheirs, 1, 1, 2, 0}));
  EXPECT_TRUE(is_unknown(s, s.round.latest, {kTheirs, 2, 1, 2, 0}));
  EXPECT_TRUE(is_unknown(s, s.round.latest, {kOurs, 2, 1, 3, 2}));
}

TEST(TwoFirstStoresTest, OfTheOtherOneOnlyItsLatestRoundIsKnown) {
  Found found = begun_twice();
  for (const int round : {3, 2})
    found.member("other" + std::to_string(round), [&](MemberDocument& d) {
      d.latest = {kTheirs, round, 0, 2, 0};
    });
  found.add(found.keys().round, encode(our_round()));
  EXPECT_THAT(restore_later(found, {1, {}}).others, ElementsAre(Place{kTheirs, 3, 0, 2, 0}));
}

TEST(TwoFirstStoresTest, AtALaterStoreTheSettledRoundCountsAndTheNodesOfBothAreWaitedFor) {
  Succession later = kLater;
  later.settled_era = kOurs;
  const State s = restore_later(begun_twice(), later);
  EXPECT_EQ(s.round.latest, our_round().latest);
  EXPECT_EQ(s.unheard, (std::set<Place>{{kOurs, 1, 2}, {kTheirs, 1, 1}}));
  EXPECT_EQ(s.grace_until, kLater.sure_from);
}

TEST(TwoFirstStoresTest, OneWhoNamesTheOtherTwiceIsNotWaitedForAgain) {
  Succession later = kLater;
  later.settled_era = kOurs;
  State s = restore_later(begun_twice(), later);
  note_gone(s, {kTheirs, 1, 1}, kNow);
  note_gone(s, {kOurs, 1, 2}, kNow);
  EXPECT_EQ(s.grace_until, kNow);
  std::vector<std::string> problems;
  const Found found = begun_twice();
  const State again = restore(config(3), 5, found.entries(), &s, {}, {}, {}, kNow, problems, later);
  EXPECT_TRUE(again.unheard.empty());
  // Nobody has spoken of these yet.
  Found third = begun_twice();
  third.member("third", [](MemberDocument& d) { d.latest = {kOrigins + 47, 1, 0, 2, 0}; });
  EXPECT_EQ(restore(config(3), 5, third.entries(), &s, {}, {}, {}, kNow, problems, later).unheard,
            (std::set<Place>{{kOrigins + 47, 1, 1}}));
}

TEST(TwoFirstStoresTest, ALaterGenerationLeavesBothBehind) {
  RoundDocument round = our_round();
  round.latest = {2 * kOrigins + 46, 2, -1, 3, 2};
  round.number = round.ran = 2;
  Found found(config(3));
  found.add(found.keys().round, encode(round)).member("other", [](MemberDocument& d) {
    d.latest = {kTheirs, 1, 0, 2, 0};
  });
  const State s = restore_later(found);
  EXPECT_TRUE(s.others.empty());
  EXPECT_FALSE(s.unheard.contains({kTheirs, 1, 1}));
}

// A leader with an outbox, and what it has asked for.
class LeaderTest : public testing::Test {
 protected:
  void begin(Config s, std::optional<Time> grace_until = {}, LeaderDocument before = {},
             const Succession& succession = {}) {
    config_ = std::move(s);
    leader_ = std::make_unique<Leader>(config_, outbox_, "value", 3, nullptr, seen_, grace_until,
                                       std::nullopt, kNow, succession, std::move(before));
  }
  // "host: reason" of each node that this leader tells is gone; or has joined.
  std::vector<std::string> gone(Time now = kNow) { return told(News::What::Gone, now); }
  std::vector<std::string> told(News::What what, Time now = kNow) {
    leader_->advance(now);
    std::vector<std::string> told;
    for (auto& action : outbox_.take()) {
      if (auto* news = std::get_if<NewsAction>(&action); news != nullptr && news->news.what == what)
        told.push_back(news->news.host + ": " + news->news.reason);
      if (auto* commit = std::get_if<CommitAction>(&action))
        leader_->on_commit({commit->request, CommitOutcome::Committed, ""}, now);
    }
    return told;
  }
  std::vector<CommitAction> commits() {
    std::vector<CommitAction> result;
    for (auto& action : outbox_.take()) {
      if (auto* commit = std::get_if<CommitAction>(&action)) result.push_back(std::move(*commit));
      if (auto* watch = std::get_if<WatchAction>(&action)) watches_.push_back(*watch);
      if (std::holds_alternative<UnwatchAction>(action)) ++unwatched_;
    }
    return result;
  }
  void snapshot(const Found& found, Time now = kNow) {
    leader_->on_snapshot({watches_.back().watch, found.entries()}, now);
  }

  Config config_;
  Outbox outbox_;
  RoundDocument seen_;
  std::unique_ptr<Leader> leader_;
  std::vector<WatchAction> watches_;
  int unwatched_ = 0;
};

TEST_F(LeaderTest, WritesNothingBeforeItKnowsAndGuardsAllThatItWrites) {
  begin(config(1));
  leader_->advance(kNow);
  EXPECT_TRUE(commits().empty());
  snapshot(Found(config_).member("a"));
  leader_->advance(kNow);
  const auto written = commits();
  ASSERT_EQ(written.size(), 1U);
  ASSERT_EQ(written[0].transaction.guards.size(), 1U);
  EXPECT_EQ(written[0].transaction.guards[0].key, "drun/job/leader");
  EXPECT_EQ(written[0].transaction.guards[0].expected, "value");
  EXPECT_EQ(written[0].transaction.writes.back().key, "drun/job/round");
  leader_->advance(kNow);
  EXPECT_TRUE(commits().empty()) << "one decision at a time";
  EXPECT_FALSE(leader_->next_deadline());
}

// Its session ends with it, so there is nobody to tell of it but the next.
TEST_F(LeaderTest, TellsOfTheLeaderThatDiedAndOfWhoWentWithIt) {
  const auto hold = [](MemberDocument& d) { holding(d, 3, 0, 3); };
  Found found(config(3));
  found.member("me", hold).round(3, Phase::Running, 3, 3);
  found.place("me", 3, 0, 3).place("old", 3, 1, 3).place("b", 3, 2, 3);
  begin(config(3), {}, {"old", 2, "host-old"});
  commits();
  snapshot(found);
  EXPECT_THAT(gone(),
              ElementsAre("host-b: its session has ended: nothing was heard of it any more",
                          "host-old: its session has ended: nothing was heard of it any more"));
  EXPECT_TRUE(gone().empty());
}

// The leader at the store before has told of those who come over, at once or a moment later; not of
// a newcomer that waited at this one.
TEST_F(LeaderTest, AtALaterStoreOnlyNewcomersHaveJoined) {
  const auto of_round = [](int number, int rank) {
    return [number, rank](MemberDocument& d) {
      d.host = "host-" + std::to_string(rank);
      holding(d, 5, rank, 3).latest = {1, number, rank, 3, 0};
    };
  };
  Found found(config(3));
  found.member("1", of_round(5, 1)).member("new");
  begin(config(3), {}, {}, kLater);
  commits();
  snapshot(found);
  EXPECT_THAT(told(News::What::Joined), ElementsAre("host-new: "));
  const auto comes = [&](const std::string& ticket, const auto& change) {
    Found one(config(3));
    one.member(ticket, change);
    leader_->on_changes({watches_.back().watch, one.entries()}, kNow);
    return told(News::What::Joined);
  };
  EXPECT_THAT(comes("2", of_round(5, 2)), testing::IsEmpty());
  leader_->on_changes({watches_.back().watch, {{found.keys().member("2"), std::nullopt}}}, kNow);
  EXPECT_THAT(comes("2", of_round(5, 2)), ElementsAre("host-2: ")) << "it was gone";
  EXPECT_THAT(comes("old", of_round(4, 0)), ElementsAre("host-0: ")) << "it has missed a round";
}

TEST_F(LeaderTest, TellsOfTheLeaderThatDiedWithoutAPlace) {
  begin(config(2), {}, {"old", 2, "host-old"});
  commits();
  snapshot(Found(config(2)).member("me"));
  EXPECT_THAT(gone(),
              ElementsAre("host-old: its session has ended: nothing was heard of it any more"));
}

// A crash is known by the last word of the agent's helpers, which goes with its session; silence by
// nothing.
TEST_F(LeaderTest, TellsAnAgentThatDiedFromOneThatIsSilent) {
  const auto hold = [](int rank) { return [rank](MemberDocument& d) { holding(d, 3, rank, 3); }; };
  for (const bool died : {false, true}) {
    Found found(config(3));
    found.member("me", hold(0)).member("b", hold(1)).member("c", hold(2));
    found.round(3, Phase::Running, 3, 3);
    found.place("me", 3, 0, 3).place("b", 3, 1, 3).place("c", 3, 2, 3);
    begin(config(3));
    commits();
    snapshot(found);
    gone();
    const Keys& keys = found.keys();
    const auto change = [&](const std::string& key, std::optional<std::string> value) {
      leader_->on_changes({watches_.back().watch, {{key, std::move(value)}}}, kNow);
    };
    if (died) change(keys.death_of("b"), "");
    leader_->on_changes({watches_.back().watch,
                         {{keys.member("b"), std::nullopt}, {keys.death_of("b"), std::nullopt}}},
                        kNow);
    EXPECT_THAT(gone(), ElementsAre(died ? "host-b: its agent has died (killed, or crashed)"
                                         : "host-b: its session has ended: nothing was heard of "
                                           "it any more"));
    EXPECT_EQ(leader_->state()->round.reason,
              died ? "host-b (group rank 1) is gone: its agent has died (killed, or crashed)"
                   : "host-b (group rank 1) is gone");
  }
}

// Whoever went before the round was stopped was told of by who led then.
TEST_F(LeaderTest, TellsOfTheLeaderAloneOnceTheRoundIsOver) {
  Found found(config(3));
  found.member("me").round(3, Phase::Gathering, 3, 3);
  found.place("me", 3, 0, 3).place("old", 3, 1, 3).place("b", 3, 2, 3);
  begin(config(3), {}, {"old", 2, "host-old"});
  commits();
  snapshot(found);
  EXPECT_THAT(gone(),
              ElementsAre("host-old: its session has ended: nothing was heard of it any more"));
}

TEST_F(LeaderTest, SaysWhyTheLeaderWent) {
  RoundDocument round;
  round.number = round.ran = 3;
  round.nodes = 2;
  round.phase = Phase::Stopping;
  round.reason = "host-old (group rank 1) leaves the job: received SIGTERM";
  Found found(config(2));
  found.member("me")
      .place("me", 3, 0, 2)
      .place("old", 3, 1, 2)
      .add(found.keys().round, encode(round));
  begin(config(2), {}, {"old", 2, "host-old"});
  commits();
  snapshot(found);
  EXPECT_TRUE(leader_->state()->slots.at("old").told) << "that is no loss";
  EXPECT_THAT(gone(), ElementsAre("host-old: received SIGTERM"));
}

TEST_F(LeaderTest, TellsOfNobodyWhoComesBackWithinTheGrace) {
  const Time grace = kNow + Milliseconds(5'000);
  const auto hold = [](int rank) { return [rank](MemberDocument& d) { holding(d, 3, rank, 3); }; };
  Found found(config(3));
  found.member("me", hold(0)).round(3, Phase::Running, 3, 3);
  found.place("me", 3, 0, 3).place("old", 3, 1, 3).place("b", 3, 2, 3);
  begin(config(3), grace, {"old", 2, "host-old"});
  commits();
  snapshot(found);
  EXPECT_TRUE(gone().empty());
  found.member("old", hold(1));
  leader_->on_changes({watches_.back().watch, {found.entries().back()}}, kNow);
  EXPECT_TRUE(gone().empty());
  // It goes again before that is over.
  leader_->on_changes({watches_.back().watch, {{found.entries().back().key, std::nullopt}}}, kNow);
  EXPECT_THAT(gone(),
              ElementsAre("host-old: its session has ended: nothing was heard of it any more"));
  EXPECT_THAT(gone(grace),
              ElementsAre("host-b: its session has ended: nothing was heard of it any more"));
}

TEST_F(LeaderTest, TellsOfWhoWentWhileItLookedAway) {
  begin(config(3));
  commits();
  snapshot(Found(config(3)).member("me").member("b"));
  EXPECT_TRUE(gone().empty());
  leader_->on_link_lost();
  snapshot(Found(config(3)).member("me"));
  EXPECT_THAT(gone(),
              ElementsAre("host-b: its session has ended: nothing was heard of it any more"));
}

TEST_F(LeaderTest, DecidesNothingUntilItSeesTheStoreAgain) {
  begin(config(1));
  commits();
  snapshot(Found(config_));
  leader_->on_link_lost();
  Found found(config_);
  found.member("me");
  leader_->on_changes({watches_.back().watch, found.entries()}, kNow);
  leader_->advance(kNow);
  EXPECT_TRUE(commits().empty());
  snapshot(found);
  leader_->advance(kNow);
  EXPECT_FALSE(commits().empty());
}

// The store may have been set back since, so what was decided before may be wrong now.
TEST_F(LeaderTest, WhatItWroteBeforeItLookedAwayIsDecidedAgain) {
  begin(config(1));
  commits();
  snapshot(Found(config_).member("a"));
  leader_->advance(kNow);
  const auto before = commits();
  ASSERT_EQ(before.size(), 1U);
  leader_->on_link_lost();
  snapshot(Found(config_).member("b"));
  leader_->advance(kNow);
  ASSERT_EQ(commits().size(), 1U);
  leader_->on_commit({before[0].request, CommitOutcome::Committed, ""}, kNow);
  EXPECT_EQ(leader_->state()->round.phase, Phase::Gathering) << "that answers nothing any more";
}

TEST_F(LeaderTest, CountsItsOwnWaitOnlyWhereNodesAreWaitedFor) {
  for (const Phase phase : {Phase::Gathering, Phase::Running, Phase::Stopping}) {
    begin(config(2));
    commits();
    snapshot(Found(config_).round(3, phase, 2, 3).member("a"));
    ASSERT_NE(leader_->state(), nullptr);
    EXPECT_EQ(leader_->state()->waiting_since.has_value(), phase == Phase::Gathering);
  }
}

// The round is older than this leader and the store: it reads all again, and takes the round up.
TEST_F(LeaderTest, WorkersOfARoundThatNobodyKnewOfRunOn) {
  begin(config(2));
  config_.min_nodes = 1;
  commits();
  snapshot(Found(config_).member("me"));
  leader_->advance(kNow);
  commits();  // gathering, not answered yet
  const std::size_t watches = watches_.size();
  Found found(config_);
  found.member("me").member("b", [](MemberDocument& d) { holding(d, 5, 1, 2); });
  leader_->on_changes({watches_.back().watch, {found.entries().back()}}, kNow);
  leader_->advance(kNow);
  EXPECT_TRUE(commits().empty());
  ASSERT_EQ(watches_.size(), watches + 1);
  snapshot(found);
  leader_->advance(kNow);
  const auto written = commits();
  ASSERT_EQ(written.size(), 1U);
  const auto round = decode_round(*written[0].transaction.writes.back().value).value();
  EXPECT_EQ(round.number, 5);
  EXPECT_EQ(round.phase, Phase::Running);
}

// The store lost its sessions, and went back after that to before "b" had come again.
TEST_F(LeaderTest, WhoIsForgottenAgainIsWaitedForAgain) {
  const Time grace = kNow + config(2).keep_alive;
  const Time later = grace + Milliseconds(10);
  begin(config(2), grace);
  commits();
  Found found(config_);
  found.member("me", [](MemberDocument& d) { holding(d, 3, 0, 2); });
  found.round(3, Phase::Running, 2, 3).place("me", 3, 0, 2).place("b", 3, 1, 2);
  Found all = found;
  snapshot(all.member("b", [](MemberDocument& d) { holding(d, 3, 1, 2); }));
  ASSERT_EQ(leader_->state()->unleft, 2);
  leader_->on_link_lost();
  snapshot(found, later);
  EXPECT_EQ(leader_->state()->missing, 1);
  EXPECT_EQ(leader_->state()->grace_until, later + config_.keep_alive);
  snapshot(found, later + Milliseconds(10));
  EXPECT_EQ(leader_->state()->grace_until, later + config_.keep_alive) << "the link was there";
}

// A store that knows it knows its nodes.
TEST_F(LeaderTest, NobodyIsWaitedForAgainInARoundThatTheLeaderBegan) {
  const Time grace = kNow + config(1).keep_alive;
  begin(config(1), grace);
  commits();
  snapshot(Found(config_).member("me"));
  leader_->advance(kNow);
  leader_->on_commit({commits().at(0).request, CommitOutcome::Committed, ""}, kNow);
  ASSERT_EQ(leader_->state()->round.phase, Phase::Preparing);
  leader_->on_link_lost();
  snapshot(Found(config_).round(1, Phase::Running, 1, 1).place("me", 1, 0, 1), grace);
  EXPECT_EQ(leader_->state()->missing, 1);
  EXPECT_EQ(leader_->state()->grace_until, grace);
}

// At its beginning a leader warns only of what no member wrote, here the round.
TEST_F(LeaderTest, WhoSaysWhatCannotBeIsRefusedWithAWarning) {
  Found found(config(1));
  found.add(found.keys().round, "{");
  found.member("b", [](MemberDocument& d) { d.left = 1'000'000'000; });
  found.add(found.keys().member("c"), "{");
  for (const bool at_once : {true, false}) {
    begin(config(1));
    commits();
    if (at_once) {
      snapshot(found);
    } else {
      snapshot(Found(config_).member("me"));
      leader_->on_changes({watches_.back().watch, found.entries()}, kNow);
    }
    const auto& members = leader_->state()->members;
    for (const char* ticket : {"b", "c"}) {
      ASSERT_TRUE(members.contains(ticket)) << ticket;
      EXPECT_EQ(members.at(ticket).standing, Standing::Refused) << ticket;
    }
    int warnings = 0;
    for (const auto& action : outbox_.take())
      if (const auto* log = std::get_if<LogAction>(&action)) warnings += log->warning ? 1 : 0;
    EXPECT_EQ(warnings, at_once ? 1 : 2);
  }
}

// Of that round only a spare tells, while its number is being tried.
TEST_F(LeaderTest, ARoundThatOnlyASpareHasSeenIsLookedInto) {
  begin(config(1));
  commits();
  snapshot(Found(config_).member("me"));
  leader_->advance(kNow);
  leader_->on_commit({commits().at(0).request, CommitOutcome::Committed, ""}, kNow);
  ASSERT_EQ(leader_->state()->round.phase, Phase::Preparing);
  const std::size_t watches = watches_.size();
  Found found(config_);
  found.member("b", [](MemberDocument& d) { d.seen = 1; });
  leader_->on_changes({watches_.back().watch, {found.entries().back()}}, kNow);
  commits();
  EXPECT_EQ(watches_.size(), watches + 1);
}

TEST_F(LeaderTest, ARefusedWriteMeansThatSomebodyElseLeads) {
  begin(config(1));
  commits();
  snapshot(Found(config_).member("a"));
  leader_->advance(kNow);
  leader_->on_commit({commits().at(0).request, CommitOutcome::Refused, ""}, kNow);
  EXPECT_TRUE(leader_->deposed());
  leader_->advance(kNow);
  EXPECT_TRUE(commits().empty());
}

// It asks again less and less often; in the end it says no more than that the job is over, and why.
TEST_F(LeaderTest, AStoreThatTakesNothingEndsTheJobAndDeposesNobody) {
  begin(config(1));
  commits();
  snapshot(Found(config_).member("a"));
  Time now = kNow;
  std::vector<std::size_t> writes;
  std::string last;
  while (now < kNow + kRejectedLimit) {
    leader_->advance(now);
    const auto asked = commits();
    ASSERT_EQ(asked.size(), 1U) << writes.size();
    writes.push_back(asked[0].transaction.writes.size());
    last = *asked[0].transaction.writes.back().value;
    ASSERT_EQ(asked[0].transaction.guards.size(), 1U) << "also the last word is a leader's";
    EXPECT_EQ(asked[0].transaction.guards[0].key, "drun/job/leader");
    leader_->on_commit({asked[0].request, CommitOutcome::Rejected, "the store is full"}, now);
    EXPECT_FALSE(leader_->deposed());
    const auto due = leader_->next_deadline();
    ASSERT_TRUE(due);
    ASSERT_GT(*due, now);
    leader_->advance(*due - Milliseconds(1));
    EXPECT_TRUE(commits().empty());
    now = *due;
  }
  EXPECT_TRUE(leader_->rejections().over(now));
  EXPECT_LE(writes.size(), 15U);
  EXPECT_GT(writes.front(), 1U);
  EXPECT_EQ(writes.back(), 1U);
  const auto outcome = decode_outcome(last);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_code, 125);
  EXPECT_EQ(outcome->text, "the store does not take what drun writes: the store is full");
}

TEST_F(LeaderTest, WhoIsRefusedIsToldOfOnceTheStoreHasIt) {
  begin(config(2));
  commits();
  snapshot(Found(config_).member("me").member("b", [](MemberDocument& d) { d.version = 99; }));
  leader_->advance(kNow);
  const auto refused = [this] {
    std::vector<std::string> tickets;
    for (const auto& action : outbox_.take()) {
      const auto* told = std::get_if<NewsAction>(&action);
      if (told != nullptr && told->news.what == News::What::Refused) {
        EXPECT_EQ(told->news.host, "host-b");
        EXPECT_NE(told->news.reason.find("99"), std::string::npos) << told->news.reason;
        tickets.push_back(told->news.ticket);
      }
    }
    return tickets;
  };
  const auto asked = commits();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_TRUE(refused().empty());
  leader_->on_commit({asked[0].request, CommitOutcome::Committed, ""}, kNow);
  EXPECT_EQ(refused(), std::vector<std::string>{"b"});
}

TEST_F(LeaderTest, HowTheJobEndedIsSaidInFewWordsToAFullStore) {
  begin(config(1));
  commits();
  snapshot(Found(config_)
               .member("a",
                       [](MemberDocument& d) {
                         holding(d, 1, 0, 1).left = 1;
                         d.failed = 1;
                         d.failure.emplace();
                         d.failure->exit_code = 7;
                         d.failure->cause = "exit code 7";
                         d.failure->traceback = "long";
                       })
               .member("b", [](MemberDocument& d) { d.version = 99; })
               .job(config_)
               .round(1, Phase::Stopping, 1, 1)
               .place("a", 1, 0, 1));
  leader_->advance(kNow);
  auto asked = commits();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_GT(asked[0].transaction.writes.size(), 1U);
  leader_->on_commit({asked[0].request, CommitOutcome::Rejected, "full"}, kNow);
  const Time again = leader_->next_deadline().value();
  leader_->advance(again);
  asked = commits();
  ASSERT_EQ(asked.size(), 1U);
  ASSERT_EQ(asked[0].transaction.writes.size(), 1U);
  const auto outcome = decode_outcome(*asked[0].transaction.writes[0].value);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, End::Failure);
  EXPECT_EQ(outcome->exit_code, 7);
  EXPECT_EQ(outcome->failure->cause, "exit code 7");
  EXPECT_EQ(outcome->failure->traceback, "");
  leader_->on_commit({asked[0].request, CommitOutcome::Committed, ""}, again);
  for (const auto& action : outbox_.take())
    EXPECT_FALSE(std::holds_alternative<NewsAction>(action)) << "the store has no refusal";
  EXPECT_TRUE(leader_->state()->assignment_keys.contains("a")) << "that key is still there";
  leader_->advance(again);
  EXPECT_TRUE(commits().empty());
  EXPECT_EQ(leader_->state()->round.phase, Phase::Closed);
}

TEST_F(LeaderTest, AStoreThatDoesNotShowTheJobEndsItToo) {
  begin(config(1));
  commits();
  Time now = kNow;
  std::optional<Outcome> outcome;
  while (!outcome && now < kNow + kRejectedLimit) {
    leader_->on_watch_rejected({watches_.back().watch, "reply too long"}, now);
    now = leader_->next_deadline().value();
    const auto before = watches_.size();
    leader_->advance(now);
    const auto asked = commits();
    EXPECT_EQ(watches_.size() + asked.size(), before + 1);
    if (!asked.empty()) outcome = decode_outcome(*asked[0].transaction.writes.at(0).value).value();
  }
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->text, "the store does not show what drun watches: reply too long");
}

// The store says how many keys it takes in one request. The round begins with the last of them.
TEST_F(LeaderTest, WhatIsTooMuchForOneRequestIsWrittenPartByPart) {
  begin(config(3));
  commits();
  leader_->limit_writes(2);
  Found found(config_);
  for (const std::string ticket : {"a", "b", "c"})
    found.member(ticket, [](MemberDocument& d) { d.prepared = 1; });
  snapshot(found);
  std::vector<std::string> keys;
  for (int i = 0; i < 10 && leader_->state()->round.phase != Phase::Running; ++i) {
    leader_->advance(kNow);
    const auto asked = commits();
    if (asked.empty()) break;
    ASSERT_EQ(asked.size(), 1U) << "the next part waits for the one before";
    EXPECT_LE(asked[0].transaction.writes.size(), 2U);
    EXPECT_EQ(asked[0].transaction.guards.size(), 1U);
    keys.clear();
    for (const auto& write : asked[0].transaction.writes)
      keys.push_back(write.key);
    leader_->on_commit({asked[0].request, CommitOutcome::Committed, ""}, kNow);
  }
  EXPECT_EQ(leader_->state()->round.phase, Phase::Running);
  EXPECT_EQ(keys.back(), found.keys().round);
}

TEST_F(LeaderTest, AfterAPartThatWasNotTakenItLooksWhatTheStoreHas) {
  begin(config(3));
  commits();
  leader_->limit_writes(1);
  snapshot(Found(config_).member("a"));
  leader_->advance(kNow);
  leader_->on_commit({commits().at(0).request, CommitOutcome::Committed, ""}, kNow);
  const auto watches = watches_.size();
  leader_->on_commit({commits().at(0).request, CommitOutcome::Rejected, "full"}, kNow);
  commits();
  EXPECT_EQ(watches_.size(), watches + 1);
  snapshot(Found(config_).member("a").job(config_));
  leader_->advance(kNow);
  EXPECT_TRUE(commits().empty());
  leader_->advance(leader_->next_deadline().value());
  const auto asked = commits();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].transaction.writes.at(0).key, Keys("job").round) << "the job is there already";
  EXPECT_TRUE(leader_->rejections().any());
  leader_->on_commit({asked[0].request, CommitOutcome::Committed, ""}, kNow);
  EXPECT_FALSE(leader_->rejections().any());
}

TEST_F(LeaderTest, AfterALostAnswerItLooksBeforeItWrites) {
  begin(config(1));
  commits();
  snapshot(Found(config_).member("a"));
  leader_->advance(kNow);
  leader_->on_commit({commits().at(0).request, CommitOutcome::Unknown, ""}, kNow);
  leader_->advance(kNow);
  EXPECT_TRUE(commits().empty());
  EXPECT_EQ(unwatched_, 1);
  ASSERT_EQ(watches_.size(), 2U);
  snapshot(Found(config_).member("a"));
  leader_->advance(kNow);
  EXPECT_EQ(commits().size(), 1U);
}

TEST_F(LeaderTest, DoesNotLeadAJobThatItDisagreesWith) {
  begin(config(3));
  commits();
  snapshot(Found(config(3)).member("a").job(config(2)));
  EXPECT_EQ(leader_->disagreement(),
            "host has --nnodes 3; the job has --nnodes 2; give all nodes the same");
  leader_->advance(kNow);
  EXPECT_TRUE(commits().empty());
  EXPECT_FALSE(leader_->next_deadline());
}

TEST_F(LeaderTest, LooksForOtherJobsWhileNodesAreMissing) {
  auto s = config(2);
  s.join_timeout = Milliseconds(60'000);
  begin(s);
  commits();
  snapshot(Found(config_).member("a"));
  leader_->advance(kNow);
  leader_->on_commit({commits().at(0).request, CommitOutcome::Committed, ""}, kNow);
  for (const int at_ms : {5'000, 59'000}) {
    const auto before = watches_.size();
    leader_->advance(kNow + Milliseconds(at_ms - 1));
    for (const auto& each : commits())
      leader_->on_commit({each.request, CommitOutcome::Committed, ""}, kNow);
    EXPECT_EQ(watches_.size(), before) << at_ms;
    const auto due = leader_->next_deadline();
    ASSERT_TRUE(due);
    EXPECT_LE(*due, kNow + Milliseconds(at_ms));
    leader_->advance(kNow + Milliseconds(at_ms));
    for (const auto& each : commits())
      leader_->on_commit({each.request, CommitOutcome::Committed, ""}, kNow);
    ASSERT_EQ(watches_.size(), before + 1) << at_ms;
    EXPECT_EQ(watches_.back().key, "drun/");
    leader_->on_snapshot(
        {watches_.back().watch, {{"drun/typo/member/t1", "{}"}, {"drun/job/member/a", "{}"}}},
        kNow);
    EXPECT_EQ(leader_->state()->other_jobs, "'typo' (1 node)");
    EXPECT_TRUE(leader_->state()->progress_due) << "those who wait are told";
  }
}

TEST(OtherJobsTest, CountsTheMembersOfOtherIds) {
  OtherJobs others(Keys("a"));
  EXPECT_TRUE(others.empty());
  EXPECT_EQ(others.text(), "");
  others.on_snapshot({{"drun/a/member/1", "x"},
                      {"drun/b%2Fc/member/1", "x"},
                      {"drun/b%2Fc/member/2", "x"},
                      {"drun/d/round", "x"},
                      {"drun/d/member/9", "x"},
                      {"drun/", "x"},
                      {"other", "x"}});
  EXPECT_EQ(others.text(), "'b/c' (2 nodes), 'd' (1 node)");
  EXPECT_TRUE(others.names_one("drun/b%2Fc/member/1"));
  for (const char* key : {"drun/a/member/1", "drun/d/round", "drun/", "other", ""})
    EXPECT_FALSE(others.names_one(key)) << key;
  others.on_changes({{"drun/b%2Fc/member/1", std::nullopt},
                     {"drun/b%2Fc/member/7", std::nullopt},
                     {"drun/d/member/9", std::nullopt},
                     {"drun/e/member/9", std::nullopt}});
  EXPECT_EQ(others.text(), "'b/c' (1 node)");
  others.on_snapshot({});
  EXPECT_TRUE(others.empty());
  std::vector<Change> many;
  for (char id = 'b'; id < 'm'; ++id)
    many.push_back({std::string("drun/") + id + "/member/1", "x"});
  others.on_snapshot(many);
  EXPECT_TRUE(others.text().ends_with("'i' (1 node), ...")) << others.text();
}

TEST(KeysTest, WhoIsGoneIsNamedByItsPlace) {
  const Keys keys("job");
  EXPECT_EQ(keys.place_of_gone("drun/job/gone/3.12.7"), (Place{3, 12, 7}));
  for (const char* other : {"drun/job/gone/3.12", "drun/job/gone/3.12.", "drun/job/gone/3..7",
                            "drun/job/gone/3.12.x", "drun/job/round", "drun/job/gone/"})
    EXPECT_FALSE(keys.place_of_gone(other)) << other;
}

TEST(KeysTest, NoIdReachesIntoAnothersKeys) {
  for (const std::string id : {"", "a", "a/b", "../x", "drun/a/", "%2F", "\xC3\xA4", "a b", "."}) {
    EXPECT_EQ(unescape_id(escape_id(id)), id);
    EXPECT_EQ(escape_id(id).find('/'), std::string::npos);
  }
  EXPECT_EQ(unescape_id("%"), "%");
  EXPECT_EQ(unescape_id("%zz%4"), "%zz%4");
}

}  // namespace
}  // namespace drun::rendezvous
