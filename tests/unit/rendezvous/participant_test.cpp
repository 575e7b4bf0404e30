#include "rendezvous/participant.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/exit_codes.hpp"
#include "rendezvous/agreement.hpp"
#include "rendezvous/documents.hpp"
#include "rendezvous/keys.hpp"
#include "support/cluster.hpp"

namespace drun::rendezvous {
namespace {

using test::Cluster;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParticipantTest, OneNodeStartsAtOnceAndSucceeds) {
  Cluster c;
  auto config = c.config(1, 1);
  config.is_host = true;
  config.local_world_size = 4;
  c.start(config);
  ASSERT_TRUE(c[0].workers);
  EXPECT_EQ(c[0].workers->world_size, 4);
  EXPECT_EQ(c[0].workers->master_address, "10.0.0.0");
  EXPECT_EQ(c[0].workers->master_port, 5000);
  c.succeed(0);
  ASSERT_TRUE(c[0].outcome);
  EXPECT_EQ(c[0].outcome->end, End::Success);
  EXPECT_EQ(c[0].outcome->exit_code, 0);
}

TEST(ParticipantTest, IsDispensableUntilTheStoreKnowsItOrItWasToldToStop) {
  Cluster c;
  Participant fresh(c.config(2, 2), c.now());
  EXPECT_TRUE(fresh.dispensable());
  fresh.on_key_value(LinkEvent{Link::Up, "", {}}, c.now());
  EXPECT_TRUE(fresh.dispensable());
  for (const auto& action : fresh.take_actions()) {
    const auto* commit = std::get_if<CommitAction>(&action);
    if (commit == nullptr) continue;
    fresh.on_key_value(CommitResult{commit->request, CommitOutcome::Unknown}, c.now());
  }
  EXPECT_TRUE(fresh.dispensable());
  fresh.on_stop_requested("SIGTERM", 143, c.now());
  EXPECT_FALSE(fresh.dispensable());
  c.start(c.config(2, 2));
  EXPECT_FALSE(c[0].participant->dispensable());
  EXPECT_TRUE(c[0].participant->dispensable(true)) << "no round has begun";
  c[0].participant->on_stop_requested("SIGTERM", 143, c.now());
  EXPECT_FALSE(c[0].participant->dispensable(true));
}

// Nobody leads: neither too late, nor again and again.
TEST(ParticipantTest, StandsAgainOneSecondAfterItWasNotElected) {
  Cluster c;
  auto config = c.config(2, 2);
  config.is_host = true;
  Participant agent(config, c.now());
  const std::string leader = Keys(config.run_id).leader;
  const auto stand = [&]() -> std::optional<RequestId> {
    for (const auto& action : agent.take_actions()) {
      const auto* commit = std::get_if<CommitAction>(&action);
      if (commit != nullptr && commit->transaction.writes.front().key == leader)
        return commit->request;
    }
    return std::nullopt;
  };
  agent.on_key_value(LinkEvent{Link::Up, "", {}}, c.now());
  auto now = c.now();
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto request = stand();
    ASSERT_TRUE(request) << attempt;
    agent.on_key_value(CommitResult{*request, CommitOutcome::Refused}, now);
    ASSERT_TRUE(agent.next_deadline());
    EXPECT_LE(*agent.next_deadline(), now + Milliseconds(1'000));
    agent.on_time(now + Milliseconds(999));
    EXPECT_FALSE(stand());
    now += Milliseconds(1'000);
    agent.on_time(now);
  }
}

// One agent whose store is the test.
class Alone {
 public:
  explicit Alone(const LinkEvent& up = LinkEvent{Link::Up, "", {}}, bool store_can_be_lost = false)
      : config_(config(store_can_be_lost)), keys_(config_.run_id), agent_(config_, now_) {
    take(up);
  }

  const Keys& keys() const { return keys_; }
  void take(const KeyValueEvent& event) {
    agent_.on_key_value(event, now_);
    act();
  }
  void pass(Milliseconds time) {
    agent_.on_time(now_ += time);
    act();
  }
  // What it asked the store to write since the last input; the key that comes first in it.
  std::string asked_for() const {
    return commits_.empty() ? "" : commits_.front().transaction.writes.front().key;
  }
  bool asks_for(const std::string& key) const {
    return std::any_of(commits_.begin(), commits_.end(), [&](const CommitAction& each) {
      return each.transaction.writes.front().key == key;
    });
  }
  bool ends_the_round() const {
    for (const auto& commit : commits_) {
      for (const auto& write : commit.transaction.writes)
        if (write.key == keys_.round && decode_round(*write.value).value().phase != Phase::Running)
          return true;
    }
    return false;
  }
  void answer(CommitOutcome outcome) { take(CommitResult{commits_.at(0).request, outcome}); }
  std::string written() const { return commits_.at(0).transaction.writes.front().value.value(); }
  // What it writes that over.
  std::optional<std::string> instead_of() const {
    return commits_.at(0).transaction.guards.front().expected;
  }
  bool watches(const std::string& key) const { return watches_.contains(key); }
  // Or removes the key.
  bool writes_something() const {
    return commits_.at(0).transaction.writes.front().value.has_value();
  }
  std::optional<std::string> guard() const {
    return commits_.at(0).transaction.guards.front().expected;
  }
  WatchId watch(const std::string& key) const { return watches_.at(key); }
  bool finished() const { return finished_; }
  bool has_workers() const { return started_; }

 private:
  static Config config(bool store_can_be_lost) {
    auto config = Cluster().config(1, 1);
    config.is_host = true;
    config.store_can_be_lost = store_can_be_lost;
    return config;
  }
  void act() {
    commits_.clear();
    for (auto& action : agent_.take_actions()) {
      if (const auto* watch = std::get_if<WatchAction>(&action))
        watches_[watch->key] = watch->watch;
      if (const auto* commit = std::get_if<CommitAction>(&action)) commits_.push_back(*commit);
      finished_ |= std::holds_alternative<FinishAction>(action);
      started_ |= std::holds_alternative<StartAction>(action);
    }
  }

  Time now_{std::chrono::hours(1)};
  Config config_;
  Keys keys_;
  Participant agent_;
  std::map<std::string, WatchId> watches_;
  std::vector<CommitAction> commits_;
  bool finished_ = false;
  bool started_ = false;
};

// The answer to its write comes before it sees who leads now: it stops leading, and may lead again.
TEST(ParticipantTest, WhoseWriteIsRefusedStandsAgainOnceNobodyLeads) {
  Alone agent;
  const auto& leader = agent.keys().leader;
  ASSERT_EQ(agent.asked_for(), leader);
  agent.answer(CommitOutcome::Committed);
  agent.take(WatchSnapshot{agent.watch(agent.keys().prefix), {}});
  ASSERT_NE(agent.asked_for(), "");
  const WatchId before = agent.watch(leader);
  agent.answer(CommitOutcome::Refused);
  EXPECT_EQ(agent.asked_for(), "");
  ASSERT_NE(agent.watch(leader), before);
  agent.take(WatchSnapshot{agent.watch(leader), {}});
  agent.pass(Milliseconds(1'000));
  EXPECT_EQ(agent.asked_for(), leader);
}

// It may have been elected, or another may have.
TEST(ParticipantTest, WhoseWriteHasNoAnswerLooksBeforeItStandsAgain) {
  Alone agent;
  const auto& leader = agent.keys().leader;
  ASSERT_EQ(agent.asked_for(), leader);
  const WatchId before = agent.watch(leader);
  agent.answer(CommitOutcome::Unknown);
  ASSERT_NE(agent.watch(leader), before);
  agent.pass(Milliseconds(2'000));
  EXPECT_FALSE(agent.asks_for(leader));
  agent.take(WatchSnapshot{agent.watch(leader), {}});
  EXPECT_TRUE(agent.asks_for(leader));
}

// The answer comes before the watch shows it, the second time as the first.
TEST(ParticipantTest, WhoIsElectedAgainLeadsFromTheAnswerOn) {
  Alone agent;
  const auto& leader = agent.keys().leader;
  ASSERT_EQ(agent.asked_for(), leader);
  const std::string value = agent.written();
  agent.answer(CommitOutcome::Committed);
  agent.take(WatchSnapshot{agent.watch(leader), {{leader, value}}});
  agent.take(WatchChanges{agent.watch(leader), {{leader, std::nullopt}}});
  ASSERT_EQ(agent.asked_for(), leader);
  agent.answer(CommitOutcome::Committed);
  agent.pass(Milliseconds(1));
  agent.take(WatchSnapshot{agent.watch(agent.keys().prefix), {}});
  EXPECT_NE(agent.asked_for(), "");
}

// What it led by has ended with its session, whether it had read of it or not.
TEST(ParticipantTest, WhoHasANewSessionStandsAgain) {
  for (const bool answered : {false, true}) {
    SCOPED_TRACE(answered ? "it led" : "it stood");
    Alone agent;
    const auto& leader = agent.keys().leader;
    ASSERT_EQ(agent.asked_for(), leader);
    if (answered) agent.answer(CommitOutcome::Committed);
    agent.take(LinkEvent{Link::Down, "reset", {}});
    agent.take(LinkEvent{Link::NewSession, "", {}});
    agent.take(WatchSnapshot{agent.watch(leader), {}});
    agent.pass(Milliseconds(1'000));
    EXPECT_TRUE(agent.asks_for(leader));
  }
}

// Only who leads knows whether all of the round have come to a later store, and says so.
TEST(ParticipantTest, AHostThatDoesNotLeadWaitsUntilNobodyCanComeAnyMore) {
  for (const auto& [generation, all_heard] : {std::pair(1, false), {2, false}, {2, true}}) {
    SCOPED_TRACE(std::to_string(generation) + (all_heard ? ", all were heard of" : ""));
    const bool at_once = generation == 1 || all_heard;
    LinkEvent up{Link::NewSession, "", {}};
    up.generation = generation;
    up.old_leases = Milliseconds(3'000);
    up.hosting = true;
    Alone agent(up);
    const Keys& keys = agent.keys();
    agent.take(WatchSnapshot{agent.watch(keys.leader),
                             {{keys.leader, encode(LeaderDocument{"other", 7})}}});
    agent.take(WatchSnapshot{agent.watch(keys.outcome), {}});
    Outcome outcome{End::Stopped, 130, "", std::nullopt};
    outcome.all_heard = all_heard;
    agent.take(WatchChanges{agent.watch(keys.outcome), {{keys.outcome, encode(outcome)}}});
    agent.take(WatchSnapshot{agent.watch(keys.members), {}});
    EXPECT_EQ(agent.finished(), at_once);
    agent.pass(Milliseconds(2'999));
    EXPECT_EQ(agent.finished(), at_once);
    agent.pass(Milliseconds(1));
    EXPECT_TRUE(agent.finished());
  }
}

class FalseLeaderTest : public testing::Test {
 protected:
  // It did not come to lead: somebody did before.
  void show(const std::string& value) {
    agent.answer(CommitOutcome::Refused);
    agent.take(WatchSnapshot{agent.watch(keys.leader), {{keys.leader, value}}});
  }

  Alone agent;
  const Keys& keys = agent.keys();
  const std::string own = agent.written();
};

TEST_F(FalseLeaderTest, WhatNamesNobodyIsReplaced) {
  for (const std::string value : {"null", "", R"({"ticket":"a","epoch":9223372036854775807})"}) {
    show(value);
    ASSERT_EQ(agent.asked_for(), keys.leader) << value;
    EXPECT_EQ(agent.instead_of(), value);
    EXPECT_TRUE(decode_leader(agent.written()).ok());
  }
  agent.answer(CommitOutcome::Committed);
  agent.take(WatchSnapshot{agent.watch(keys.prefix), {}});
  EXPECT_NE(agent.asked_for(), "") << "it leads";
}

TEST_F(FalseLeaderTest, WhoIsNoMemberIsReplacedAfterFiveSeconds) {
  const std::string value = encode(LeaderDocument{"other", 7});
  show(value);
  agent.pass(Milliseconds(4'999));
  EXPECT_FALSE(agent.watches(keys.member("other")));
  agent.pass(Milliseconds(1));
  ASSERT_TRUE(agent.watches(keys.member("other")));
  EXPECT_EQ(agent.asked_for(), "") << "it does not know yet";
  agent.take(WatchSnapshot{agent.watch(keys.member("other")), {}});
  ASSERT_EQ(agent.asked_for(), keys.leader);
  EXPECT_EQ(agent.instead_of(), value);
  EXPECT_GT(decode_leader(agent.written())->epoch, 7);
}

TEST_F(FalseLeaderTest, WhoIsAMemberIsLookedForAgainAfterAMinute) {
  show(encode(LeaderDocument{"other", 7}));
  const std::string member = keys.member("other");
  agent.pass(Milliseconds(5'000));
  const WatchId first = agent.watch(member);
  agent.take(WatchSnapshot{first, {{member, "it"}}});
  agent.pass(Milliseconds(59'999));
  EXPECT_EQ(agent.watch(member), first);
  EXPECT_EQ(agent.asked_for(), "");
  agent.pass(Milliseconds(1));
  ASSERT_NE(agent.watch(member), first);
  agent.take(WatchSnapshot{agent.watch(member), {}});
  EXPECT_EQ(agent.asked_for(), keys.leader);
}

// A leader that was followed by another in the meantime is not looked for.
TEST_F(FalseLeaderTest, TheNextLeaderHasItsOwnTime) {
  show(encode(LeaderDocument{"other", 7}));
  agent.pass(Milliseconds(5'000));
  const std::string next = encode(LeaderDocument{"next", 8});
  agent.take(WatchChanges{agent.watch(keys.leader), {{keys.leader, next}}});
  agent.take(WatchSnapshot{agent.watch(keys.member("other")), {}});
  EXPECT_EQ(agent.asked_for(), "");
}

// The key would not go with its session.
TEST_F(FalseLeaderTest, WhomAnotherNamesWritesItself) {
  const auto document = decode_leader(own);
  const std::string value = encode(LeaderDocument{document->ticket, 70, "elsewhere"});
  show(value);
  ASSERT_EQ(agent.asked_for(), keys.leader);
  EXPECT_EQ(agent.instead_of(), value);
}

// It leaves, and the others need a leader.
TEST(ParticipantTest, WhoDisagreesWithItsJobLetsAnotherLead) {
  Alone agent;
  const auto& keys = agent.keys();
  ASSERT_EQ(agent.asked_for(), keys.leader);
  const std::string value = agent.written();
  agent.answer(CommitOutcome::Committed);
  const JobDocument other{full_agreement(Cluster().config(2, 2))};
  agent.take(WatchSnapshot{agent.watch(keys.prefix), {{keys.job, encode(other)}}});
  EXPECT_EQ(agent.asked_for(), keys.leader);
  EXPECT_FALSE(agent.writes_something());
  EXPECT_EQ(agent.guard(), value) << "not another's";
  EXPECT_TRUE(agent.finished());
  agent.pass(Milliseconds(1));
  EXPECT_FALSE(agent.asks_for(keys.leader)) << "once";
}

// Its workers are stopped first, and until then it is there.
TEST(ParticipantTest, WhoDisagreesAndHasWorkersLetsAnotherLeadAtOnce) {
  Alone agent;
  const auto& keys = agent.keys();
  agent.answer(CommitOutcome::Committed);
  RoundDocument round;
  round.number = round.ran = round.nodes = 1;
  round.phase = Phase::Running;
  AssignmentDocument place;
  place.go = true;
  place.assignment.round = 1;
  place.assignment.group_world_size = place.assignment.world_size = 1;
  place.assignment.role_world_size = 1;
  const auto own = keys.assignment(Cluster().config(1, 1).ticket);
  agent.take(WatchSnapshot{agent.watch(keys.round), {{keys.round, encode(round)}}});
  agent.take(WatchSnapshot{agent.watch(own), {{own, encode(place)}}});
  ASSERT_TRUE(agent.has_workers());
  const JobDocument other{full_agreement(Cluster().config(2, 2))};
  agent.take(WatchSnapshot{agent.watch(keys.prefix), {{keys.job, encode(other)}}});
  EXPECT_TRUE(agent.asks_for(keys.leader));
  EXPECT_FALSE(agent.finished());
  agent.pass(Milliseconds(1));
  EXPECT_FALSE(agent.asks_for(keys.leader)) << "once";
}

// Other sessions may have ended with the store, not with their agents.
TEST(ParticipantTest, WhereAStoreCanBeLostItsFirstLeaderWaitsForTheNodesOfTheRound) {
  for (const bool can_be_lost : {false, true}) {
    SCOPED_TRACE(can_be_lost);
    Alone agent(LinkEvent{Link::Up, "", {}}, can_be_lost);
    const auto& keys = agent.keys();
    agent.answer(CommitOutcome::Committed);
    RoundDocument round;
    round.number = round.ran = round.nodes = 1;
    round.phase = Phase::Running;
    AssignmentDocument place;
    place.go = true;
    place.assignment.round = 1;
    place.assignment.group_world_size = place.assignment.world_size = 1;
    place.assignment.role_world_size = 1;
    agent.take(
        WatchSnapshot{agent.watch(keys.prefix),
                      {{keys.round, encode(round)}, {keys.assignment("other"), encode(place)}}});
    EXPECT_EQ(agent.ends_the_round(), !can_be_lost);
  }
}

// What is written of a round while it is waited for or stopped is not true of the next.
TEST(ParticipantTest, ARoundThatRunsTellsNothingOfTheOneBefore) {
  Cluster c;
  const auto round = [&] {
    const auto entry = c.store().keys().find(Keys("job").round);
    return decode_round(entry->second.text).value();
  };
  auto config = c.config(2, 2);
  config.max_restarts = 1;
  config.is_host = true;
  c.start(config);
  c.advance(Milliseconds(20'000));
  EXPECT_THAT(round().waiting, HasSubstr("1 of 2 nodes"));
  auto other = c.config(2, 2);
  other.max_restarts = 1;
  c.start(other);
  c.advance(Milliseconds(1'000));
  ASSERT_TRUE(c[1].workers);
  EXPECT_EQ(round().waiting, "");
  c[0].answers_stop = false;
  c.fail(1, 7);
  EXPECT_EQ(round().root, c[1].config.ticket);
  c.workers_gone(0);
  c.advance(Milliseconds(1'000));
  ASSERT_EQ(c[1].workers->restart_count, 1);
  EXPECT_EQ(round().root, "");
}

// Only the next leader can.
TEST(ParticipantTest, TheEndOfWhoLedIsToldOnce) {
  for (const bool leaves : {false, true}) {
    Cluster c;
    for (int i = 0; i < 3; ++i)
      c.start(c.config(2, 3));
    c.advance(Milliseconds(60'000));
    int led = 0;
    while (led < 2 && !c[led].participant->leads())
      ++led;
    ASSERT_TRUE(c[led].participant->leads());
    ASSERT_TRUE(c[led].workers);
    const auto gone = [&] {
      std::vector<std::string> told;
      for (int i = 0; i < 3; ++i)
        for (const News& news : c[i].news)
          if (news.what == News::What::Gone) told.push_back(news.host);
      return told;
    };
    if (leaves) {
      c.leave(led);
    } else {
      c.kill(led);
    }
    c.advance(Milliseconds(60'000));
    EXPECT_THAT(gone(), ElementsAre(c[led].config.host));
  }
}

TEST(ParticipantTest, AStoreThatIsOutOfReachForGoodEndsTheJob) {
  Cluster c;
  Participant agent(c.config(2, 2), c.now());
  agent.on_key_value(LinkEvent{Link::Up, "", {}}, c.now());
  (void)agent.take_actions();
  agent.on_key_value(LinkEvent{Link::Failed, "could not reach it again", {}}, c.now());
  std::optional<Outcome> outcome;
  for (const auto& action : agent.take_actions()) {
    if (const auto* finish = std::get_if<FinishAction>(&action)) outcome = finish->outcome;
  }
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, End::StoreLost);
  EXPECT_THAT(outcome->text, HasSubstr("could not reach it again"));
}

// A store that ends the sessions of agents that live: those of the others have ended, too, perhaps.
TEST(ParticipantTest, WhoseOwnSessionWasEndedEarlyWaitsForTheOthers) {
  for (const bool early : {true, false}) {
    SCOPED_TRACE(early);
    Cluster c;
    for (int i = 0; i < 2; ++i) {
      auto config = c.config(1, 2);
      config.store_can_be_lost = false;
      config.sessions_can_end_early = early;
      c.start(config);
    }
    c.advance(Milliseconds(60'000));
    ASSERT_EQ(c[0].workers->group_world_size, 2);
    const std::size_t started = c[0].started.size();
    c.cut(0);
    c.cut(1);
    c.store().expire(c[1].session);
    c.reconnect(0, true);
    c.advance(Milliseconds(1'000));
    c.reconnect(1, true);
    c.advance(Milliseconds(20'000));
    EXPECT_EQ(c[0].started.size() == started, early);
    ASSERT_TRUE(c[0].workers);
    EXPECT_EQ(c[0].workers->group_world_size, 2);
  }
}

// Where the store is no agent's, nobody needs to wait for the one that has it.
TEST(ParticipantTest, TheFirstNodeStandsAtOnceIfNobodyHosts) {
  for (const bool at_once : {true, false}) {
    Cluster c;
    auto config = c.config(1, 1);
    config.stands_at_once = at_once;
    c.start(config);
    EXPECT_EQ(c[0].workers.has_value(), at_once);
  }
}

TEST(ParticipantTest, NodesStartTogetherWithDenseRanks) {
  Cluster c;
  c.start_all(4);
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, 1, 2, 3));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(c[i].workers->round, c[0].workers->round);
    EXPECT_EQ(c[i].workers->master_address, "10.0.0.0");
    EXPECT_EQ(c[i].workers->group_world_size, 4);
  }
}

TEST(ParticipantTest, NobodyStartsBeforeTheLastHasCome) {
  Cluster c;
  auto config = c.config(2, 2);
  config.is_host = true;
  c.start(config);
  c.advance(Milliseconds(60'000));
  EXPECT_FALSE(c[0].workers);
  EXPECT_EQ(c[0].progress, "waiting 01:00 (09:00 left): 1 of 2 nodes (node0)");
  c.start(c.config(2, 2));
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, 1));
  EXPECT_EQ(c[0].progress, "");
}

TEST(ParticipantTest, FailureRestartsAllWithOneCounterUntilTheBudgetIsSpent) {
  Cluster c;
  c.start_all(3, 1);
  c.fail(1, 7);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(c[i].started.size(), 2U) << i;
    EXPECT_EQ(c[i].workers->restart_count, 1);
    EXPECT_EQ(c[i].workers->group_rank, i);
  }
  c.fail(2, 9);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(c[i].outcome) << i;
    EXPECT_EQ(c[i].outcome->end, End::Failure);
    EXPECT_EQ(c[i].outcome->exit_code, 9);
    ASSERT_TRUE(c[i].outcome->failure);
    EXPECT_EQ(c[i].outcome->failure->rank, 2);
    EXPECT_EQ(c[i].outcome, c[0].outcome);
  }
}

TEST(ParticipantTest, ARankThatFailsEachTimeInTheSameWayIsACrashLoop) {
  const std::string loop = "crash loop: rank 1 ended in the same way 3 times in a row";
  const std::vector<std::pair<std::vector<int>, bool>> cases{
      {{1, 1, 1}, true}, {{0, 0, 1, 1, 1}, true}, {{1, 1, 0, 1}, false}, {{1, 1, 1, 0}, false}};
  for (const auto& [failing, is_loop] : cases) {
    Cluster c;
    c.start_all(2, static_cast<int>(failing.size()) - 1);
    for (const int node : failing) {
      c.fail(node, 7);
      c.advance(Milliseconds(10'000));
    }
    ASSERT_TRUE(c[0].outcome);
    EXPECT_EQ(c[0].outcome->text.find(loop) != std::string::npos, is_loop) << c[0].outcome->text;
  }
}

TEST(ParticipantTest, SuccessOfAllEndsTheJob) {
  Cluster c;
  c.start_all(3);
  c.succeed(2);
  c.succeed(0);
  c.advance(std::chrono::hours(5));
  EXPECT_FALSE(c[0].outcome);
  c.succeed(1);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(c[i].outcome.value().end, End::Success);
}

TEST(ParticipantTest, StopOfOneStopsAllWithItsCode) {
  Cluster c;
  c.start_all(3);
  c.stop(1, 143);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(c[i].outcome) << i;
    EXPECT_EQ(c[i].outcome->end, End::Stopped);
    EXPECT_EQ(c[i].outcome->exit_code, 143);
    ASSERT_EQ(c[i].stops.size(), 1U);
    EXPECT_FALSE(c[i].stops[0].immediately);
  }
}

// It waits for the end that it asked for, and is there to bring it about if the leader is not.
TEST(ParticipantTest, WhoIsToldToStopIsNotSentAwayByTheNextSignal) {
  Cluster c;
  for (int i = 0; i < 2; ++i)
    c.start(c.config(3, 3));
  c.cut(0);  // it leads
  c.stop(1);
  c.leave(1);
  EXPECT_FALSE(c[1].outcome);
  c.kill(0);
  c.advance(Milliseconds(1'000));
  ASSERT_TRUE(c[1].outcome);
  EXPECT_EQ(c[1].outcome->text, "told to stop by SIGTERM");
  EXPECT_TRUE(c.store().keys().contains("drun/job/outcome"));
}

TEST(ParticipantTest, TheJobGoesOnWithoutANodeThatIsToldToGo) {
  for (const int goes : {0, 1, 2}) {  // one of them leads
    Cluster c;
    for (int i = 0; i < 3; ++i)
      c.start(c.config(2, 3));
    c.advance(Milliseconds(1'000));  // an election
    const auto leader = decode_leader(c.store().keys().at("drun/job/leader").text);
    c.leave(goes);
    EXPECT_EQ(c[goes].outcome.has_value(), leader->ticket != c[goes].config.ticket);
    for (int i = 0; i < 3; ++i)
      EXPECT_FALSE(c[i].workers) << i;
    c.advance(Milliseconds(3'500));
    ASSERT_TRUE(c[goes].outcome);
    EXPECT_EQ(c[goes].outcome->exit_code, 143);
    for (int i = 0; i < 3; ++i) {
      if (i == goes) continue;
      ASSERT_TRUE(c[i].workers) << i;
      EXPECT_EQ(c[i].workers->group_world_size, 2);
      EXPECT_EQ(c[i].workers->restart_count, 0);
      EXPECT_EQ(c[i].workers->round, 2);
    }
  }
}

using testing::Contains;
using testing::Each;
using testing::Not;

TEST(ParticipantTest, ARestartSaysOnceWhoFailedWhereHowAndWhen) {
  Cluster c;
  c.start_all(2, 3);
  c.fail(1, 7);
  std::vector<std::string> restarts;
  for (int i = 0; i < 2; ++i)
    for (const auto& line : c[i].log)
      if (line.starts_with("restart ")) restarts.push_back(line);
  ASSERT_EQ(restarts.size(), 1U);
  EXPECT_THAT(restarts.front(), testing::StartsWith("restart 1/3 after rank 1 (local rank 0 on "));
  EXPECT_THAT(restarts.front(), HasSubstr(": exit code 7"));
}

// It waits in case the other agent is dead; its user is told at once what to do if it is not.
TEST(ParticipantTest, ASecondJobOfOneNodeWithTheSameIdIsNotCalledASpare) {
  Cluster c;
  const auto own = [&] {
    Config config = c.config(1, 1);
    config.run_id = kNoRunId;
    config.node_rank = 0;
    return config;
  };
  c.start(own());
  c.advance(Milliseconds(1'000));
  ASSERT_TRUE(c[0].workers);
  c.start(own());
  c.advance(Milliseconds(1'500));
  EXPECT_EQ(c[1].progress,
            "not started yet: a job of one node without an --rdzv-id already runs at this "
            "endpoint; give this one an --rdzv-id or a port of its own");
}

TEST(ParticipantTest, ASpareThatIsTakenInSaysSoAndSoDoesTheLeader) {
  Cluster c;
  c.start_all(2);
  c.start(c.config(2, 2));
  EXPECT_FALSE(c[2].workers);
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(c[i].log, Each(Not(HasSubstr("taken in")))) << i;
  c.kill(1);
  c.advance(Milliseconds(20'000));
  ASSERT_TRUE(c[2].workers);
  const std::string line = c[2].config.host + " is taken in from round 2 on, as group rank 1";
  EXPECT_THAT(c[0].log, Contains(line));
  EXPECT_THAT(c[2].log, Contains(line));
  // Once: it is no spare any more.
  c.fail(2, 7);
  c.advance(Milliseconds(20'000));
  EXPECT_EQ(std::count(c[2].log.begin(), c[2].log.end(), line), 1);
}

TEST(ParticipantTest, ASpareBeyondTheLastWholeStepSaysWhatItWaitsFor) {
  Cluster c;
  const auto stepped = [&] {
    Config config = c.config(2, 4);
    config.node_step = 2;
    config.is_host = c.size() == 0;
    return config;
  };
  for (int i = 0; i < 3; ++i)
    c.start(stepped());
  c.advance(Milliseconds(60'000));
  EXPECT_EQ(c.group_ranks(), (std::vector<int>{0, 1, -1}));
  EXPECT_THAT(c[0].log, Contains(HasSubstr("; 1 spare waits (steps of 2)")));
  EXPECT_EQ(c[2].progress,
            "spare: the job runs with 2 of 2 to 4 nodes, in steps of 2, this one waits until a "
            "whole step is there");
  c.start(stepped());
  c.advance(Milliseconds(60'000));
  EXPECT_EQ(c.group_ranks(), (std::vector<int>{0, 1, 2, 3}));
}

TEST(ParticipantTest, ManySparesThatAreTakenInAreOneLine) {
  Cluster c;
  c.start(c.config(1, 9));
  c.advance(Milliseconds(60'000));
  ASSERT_TRUE(c[0].workers);
  for (int i = 0; i < 8; ++i)
    c.start(c.config(1, 9));
  c.advance(Milliseconds(60'000));
  EXPECT_EQ(c.group_ranks(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_THAT(c[0].log, Contains(HasSubstr("8 nodes are taken in from round 2 on: ")));
  EXPECT_THAT(c[0].log, Each(Not(HasSubstr(" is taken in"))));
  EXPECT_THAT(c[8].log, Contains(HasSubstr(" is taken in from round 2 on, as group rank ")));
}

// One of its limits is reached: nobody turns in circles, and nobody waits for ever.
TEST(ParticipantTest, AStoreThatTakesNothingMoreEndsTheJobInOneLine) {
  for (const std::size_t room : {0U, 1U}) {
    Cluster c;
    c.start_all(3, 3);
    c.fill_store(room);
    c.fail(1, 7);
    c.advance(Milliseconds(60'000));
    for (int i = 0; i < 3; ++i) {
      if (room == 0 && i != 1) continue;  // they know of nothing and run on
      ASSERT_TRUE(c[i].outcome) << i;
      EXPECT_EQ(c[i].outcome->end, End::StoreLost);
      EXPECT_EQ(c[i].outcome->exit_code, 125);
      EXPECT_EQ(c[i].outcome->text, "the store does not take what drun writes: the store is full");
    }
    for (int i = 0; i < 3; ++i)
      EXPECT_LT(c[i].rejected, 20) << i;
  }
}

TEST(ParticipantTest, AStoreThatIsFullForAMomentCostsNothing) {
  Cluster c;
  c.start_all(3, 3);
  c.fill_store(0);
  c.fail(1, 7);
  c.advance(Milliseconds(20'000));
  EXPECT_EQ(c[1].log.back(),
            "the store does not take what drun writes: the store is full; trying again for 30 s");
  c.fill_store(SIZE_MAX);
  c.advance(Milliseconds(6'000));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(c[i].workers) << i;
    EXPECT_EQ(c[i].workers->restart_count, 1);
  }
}

// The nodes have stopped their workers, and cannot say so for longer than they may take for that.
TEST(ParticipantTest, WhoStoppedWhileTheStoreWasFullIsNotLeftBehind) {
  Cluster c;
  c.start_all(3, 3);
  for (int i = 0; i < 3; ++i)
    c[i].answers_stop = false;
  c.fail(1, 7);
  c.fill_store(0);
  for (int i = 0; i < 3; ++i)
    c.workers_gone(i);
  c.advance(Milliseconds(22'000));
  c.fill_store(SIZE_MAX);
  c.advance(Milliseconds(6'000));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(c[i].workers) << i << c[i].outcome.value_or(Outcome{}).text;
    EXPECT_EQ(c[i].workers->restart_count, 1);
  }
}

TEST(ParticipantTest, AFullStoreThatNobodyLeadsEndsTheJobToo) {
  Cluster c;
  c.fill_store(0);
  for (int i = 0; i < 3; ++i)
    c.start(c.config(3, 3));
  c.advance(Milliseconds(60'000));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(c[i].outcome) << i;
    EXPECT_EQ(c[i].outcome->exit_code, 125);
    EXPECT_LT(c[i].rejected, 40) << i;
  }
}

TEST(ParticipantTest, AnAgentThatTheStoreShowsNothingLeaves) {
  Cluster c;
  Participant agent(c.config(2, 2), c.now());
  agent.on_key_value(LinkEvent{Link::Up, "", {}}, c.now());
  for (const auto& action : agent.take_actions()) {
    if (const auto* watch = std::get_if<WatchAction>(&action); watch != nullptr)
      agent.on_key_value(WatchRejected{watch->watch, "the store is full"}, c.now());
  }
  std::optional<Outcome> outcome;
  for (const auto& action : agent.take_actions()) {
    if (const auto* finish = std::get_if<FinishAction>(&action)) outcome = finish->outcome;
  }
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_code, 125);
  EXPECT_EQ(outcome->text, "the store does not show what drun watches: the store is full");
}

// Its write has no answer, so it waits; what it would decide as leader is not its own any more.
TEST(ParticipantTest, ALeaderThatHasLeftIsNotWokenForWhatItNoLongerDecides) {
  Cluster c;
  auto config = c.config(2, 2);
  config.join_timeout = Milliseconds(20'000);
  c.start(config);
  c.advance(Milliseconds(15'000));  // it leads, and waits for the other
  c[0].loses_writes = true;
  c.leave(0);
  auto& participant = *c[0].participant;
  while (!c[0].outcome) {
    const auto due = participant.next_deadline();
    ASSERT_TRUE(due);
    ASSERT_GT(*due, c.now());
    c.advance(std::chrono::ceil<Milliseconds>(*due - c.now()));
  }
}

TEST(ParticipantTest, IfAllAreToldToGoTheJobEnds) {
  Cluster c;
  for (int i = 0; i < 3; ++i)
    c.start(c.config(1, 3));
  c.advance(Milliseconds(1'000));
  for (const int goes : {0, 2, 1}) {
    c.leave(goes);
    c.advance(Milliseconds(1'900));
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(c[i].outcome) << i;
    EXPECT_EQ(c[i].outcome->end, End::Stopped);
    EXPECT_EQ(c[i].outcome->exit_code, 143);
    EXPECT_EQ(c[i].started.size(), 1U);
  }
  EXPECT_TRUE(c.store().keys().contains("drun/job/outcome"));
}

TEST(ParticipantTest, TimeoutSaysWhoIsThereAndWhichRankIsMissing) {
  Cluster c;
  for (int i = 0; i < 2; ++i) {
    auto config = c.config(3, 3);
    config.is_host = i == 0;
    config.node_rank = i == 0 ? 0 : 2;
    c.start(config);
  }
  c.advance(Milliseconds(601'000));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(c[i].outcome);
    EXPECT_EQ(c[i].outcome->end, End::Timeout);
    EXPECT_EQ(c[i].outcome->exit_code, 124);
    EXPECT_EQ(c[i].outcome->text,
              "not enough nodes within 600 s: 2 of 3 nodes (node[0-1]); missing node rank 1; "
              "start drun on every node with this endpoint and --rdzv-id job, or wait longer with "
              "--rdzv-conf join_timeout=SECONDS");
  }
}

TEST(ParticipantTest, AnIdThatNobodyGaveIsNotAskedFor) {
  Cluster c;
  auto config = c.config(2, 2);
  config.run_id = kNoRunId;
  config.endpoint = "node0:29400";
  c.start(config);
  c.advance(Milliseconds(601'000));
  ASSERT_TRUE(c[0].outcome);
  EXPECT_EQ(
      c[0].outcome->text,
      "not enough nodes within 600 s: 1 of 2 nodes (node0); start drun on every node with the "
      "endpoint node0:29400, or wait longer with --rdzv-conf join_timeout=SECONDS");
}

TEST(ParticipantTest, AnEndpointThatOtherMachinesCannotReachIsSaidToBeOne) {
  Cluster c;
  auto config = c.config(2, 2);
  config.run_id = kNoRunId;
  config.endpoint = "127.0.0.1:29400";
  config.endpoint_is_local = true;
  c.start(config);
  c.advance(Milliseconds(60'000));
  EXPECT_EQ(c[0].progress,
            "waiting 01:00 (09:00 left): 1 of 2 nodes at 127.0.0.1:29400, this machine only "
            "(node0)");
  c.advance(Milliseconds(541'000));
  ASSERT_TRUE(c[0].outcome);
  EXPECT_THAT(c[0].outcome->text,
              HasSubstr("the endpoint 127.0.0.1:29400 (which only this machine can reach: "
                        "other machines need another), or wait"));
}

std::vector<std::string> sheets(const CompareFactsAction& action) {
  std::vector<std::string> result;
  for (const NodeFacts& node : action.nodes)
    result.push_back(node.host + "=" + node.sheet);
  return result;
}

TEST(ParticipantFactsTest, TheLeaderComparesOnceAllNodesOfTheRoundHaveToldTheirs) {
  Cluster c;
  c.start_all(3);
  c.tell_facts(2, "c");
  c.tell_facts(0, "a");
  EXPECT_TRUE(c[0].compared.empty());
  c.tell_facts(1, "b");
  ASSERT_EQ(c[0].compared.size(), 1U);
  EXPECT_THAT(
      sheets(c[0].compared[0]),
      ElementsAre(c[0].config.host + "=a", c[1].config.host + "=b", c[2].config.host + "=c"));
  c.advance(Milliseconds(10'000));
  EXPECT_EQ(c[0].compared.size(), 1U);
  EXPECT_TRUE(c[1].compared.empty());
}

TEST(ParticipantFactsTest, NothingIsComparedBeforeARoundRuns) {
  Cluster c;
  auto config = c.config(2, 2);
  config.is_host = true;
  c.start(config);
  c.tell_facts(0, "a");
  c.advance(Milliseconds(10'000));
  EXPECT_TRUE(c[0].compared.empty());
  c.start(c.config(2, 2));
  c.tell_facts(1, "b");
  ASSERT_EQ(c[0].compared.size(), 1U);
  EXPECT_EQ(c[0].compared[0].nodes.size(), 2U);
}

TEST(ParticipantFactsTest, ANewcomerIsComparedOnceItIsInTheRound) {
  Cluster c;
  auto config = c.config(1, 2);
  config.is_host = true;
  c.start(config);
  c.advance(Milliseconds(60'000));
  c.tell_facts(0, "a");
  ASSERT_EQ(c[0].compared.size(), 1U);
  c.start(c.config(1, 2));
  c.tell_facts(1, "b");
  c.advance(Milliseconds(60'000));
  ASSERT_TRUE(c[1].workers);
  ASSERT_EQ(c[0].compared.size(), 2U);
  EXPECT_EQ(c[0].compared[1].nodes.size(), 2U);
}

TEST(ParticipantFactsTest, TheyAreToldAgainToAStoreThatForgotTheSession) {
  Cluster c;
  c.start_all(2);
  c.tell_facts(0, "a");
  c.cut(1);
  c.reconnect(1, true);
  c.tell_facts(1, "b");
  EXPECT_EQ(c[0].compared.size(), 1U);
  const std::string key = Keys(c[1].config.run_id).facts_of(c[1].config.ticket);
  EXPECT_TRUE(c.store().keys().contains(key));
  c.cut(1);
  c.reconnect(1, true);
  EXPECT_TRUE(c.store().keys().contains(key));
}

TEST(ParticipantFactsTest, AFullStoreThatDoesNotTakeThemIsNoTrouble) {
  Cluster c;
  c.start_all(2);
  c.fill_store(0);
  c.tell_facts(0, "a");
  c.tell_facts(1, "b");
  c.fill_store(SIZE_MAX);
  c.advance(Milliseconds(10'000));
  EXPECT_TRUE(c[0].compared.empty());
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, 1));
}

// Two of the three take part; `exclude_after` is 2.
void start_with_spare(Cluster& c) {
  for (int i = 0; i < 3; ++i) {
    auto config = c.config(2, 2);
    config.is_host = i == 0;
    config.max_restarts = 10;
    config.exclude_after = 2;
    c.start(config);
  }
  ASSERT_THAT(c.group_ranks(), ElementsAre(0, 1, -1));
}

TEST(ParticipantExcludeTest, ANodeThatCostTwoRestartsGivesItsPlaceToTheSpare) {
  Cluster c;
  start_with_spare(c);
  c.fail(1);
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, 1, -1));
  EXPECT_TRUE(c[0].set_aside.empty());
  c.fail(1);
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, -1, 1));
  ASSERT_EQ(c[0].set_aside.size(), 1U);
  EXPECT_EQ(c[0].set_aside[0].host, c[1].config.host);
  EXPECT_THAT(c[0].set_aside[0].why, HasSubstr("2 rounds, last rank 1: exit code 1"));
  c.succeed(0);
  c.succeed(2);
  EXPECT_EQ(c[0].outcome->end, End::Success);
  EXPECT_EQ(c[1].outcome->end, End::Success);
}

TEST(ParticipantExcludeTest, WhatOthersDoAsWellIsTheProgram) {
  Cluster c;
  start_with_spare(c);
  c.fail(1);
  c.fail(0);
  c.fail(1);
  c.fail(0);
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, 1, -1));
  EXPECT_TRUE(c[0].set_aside.empty());
}

TEST(ParticipantExcludeTest, TheSameAtTheSamePlaceOnAnotherNodeIsTheProgramToo) {
  Cluster c;
  start_with_spare(c);
  c.fail(1);
  c.fail(1);
  ASSERT_THAT(c.group_ranks(), ElementsAre(0, -1, 1));
  c.fail(2);
  c.fail(2);
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, -1, 1));
  ASSERT_EQ(c[0].set_aside.size(), 2U);
  EXPECT_FALSE(c[0].set_aside[0].cleared);
  EXPECT_TRUE(c[0].set_aside[1].cleared);
  EXPECT_EQ(c[0].set_aside[1].host, c[1].config.host);
  EXPECT_EQ(c[0].set_aside[1].why, c[0].set_aside[0].why);
}

TEST(ParticipantExcludeTest, AProgramThatCannotBeRunSaysNothingOfANode) {
  Cluster c;
  start_with_spare(c);
  c.fail(1, 127);
  c.fail(1, 126);
  c.fail(1, 127);
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, 1, -1));
}

TEST(ParticipantExcludeTest, WithoutASpareItStays) {
  Cluster c;
  for (int i = 0; i < 2; ++i) {
    auto config = c.config(2, 2);
    config.is_host = i == 0;
    config.max_restarts = 10;
    config.exclude_after = 2;
    c.start(config);
  }
  for (int i = 0; i < 4; ++i)
    c.fail(1);
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, 1));
  EXPECT_TRUE(c[0].set_aside.empty());
}

TEST(ParticipantExcludeTest, OneThatWasSetAsideIsBetterThanNone) {
  Cluster c;
  start_with_spare(c);
  c.fail(1);
  c.fail(1);
  ASSERT_THAT(c.group_ranks(), ElementsAre(0, -1, 1));
  c.kill(2);
  EXPECT_TRUE(c[1].workers);
}

TEST(ParticipantExcludeTest, AnotherLeaderKnowsWhatANodeHasCost) {
  Cluster c;
  const auto start = [&c] {
    auto config = c.config(2, 2);
    config.max_restarts = 10;
    config.exclude_after = 2;
    c.start(config);
  };
  for (int i = 0; i < 3; ++i)
    start();
  c.advance(Milliseconds(60'000));
  ASSERT_THAT(c.group_ranks(), ElementsAre(0, 1, -1));
  c.fail(1);
  c.advance(Milliseconds(60'000));
  c.kill(0);  // it led
  c.advance(Milliseconds(60'000));
  ASSERT_TRUE(c[1].workers);
  ASSERT_TRUE(c[2].workers);
  start();
  c.fail(1);
  c.advance(Milliseconds(60'000));
  EXPECT_FALSE(c[1].workers);
  EXPECT_TRUE(c[2].workers);
  EXPECT_TRUE(c[3].workers);
}

TEST(ParticipantExcludeTest, AListedHostLeavesItsPlaceWhenThereIsASpare) {
  Cluster c;
  for (int i = 0; i < 3; ++i) {
    auto config = c.config(2, 2);
    config.is_host = i == 0;
    config.max_restarts = 3;
    if (i == 1) config.host = "bad";
    config.excluded_hosts = {{"bad", "listed"}};
    c.start(config);
  }
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, 1, -1)) << "there was no spare yet";
  c.fail(0);
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, -1, 1));
  ASSERT_EQ(c[0].set_aside.size(), 1U);
  EXPECT_EQ(c[0].set_aside[0].why, "listed");
}

// Whose sheet is not "good" is unfit.
std::map<std::string, std::string> only_good(const std::vector<NodeFacts>& nodes) {
  std::map<std::string, std::string> unfit;
  for (const NodeFacts& node : nodes)
    if (node.sheet != "good") unfit[node.ticket] = node.host + " is " + node.sheet;
  return unfit;
}

TEST(ParticipantStrictTest, AnUnfitNodeIsRefusedAndTheOthersWaitForAnother) {
  Cluster c;
  for (int i = 0; i < 2; ++i) {
    auto config = c.config(2, 2);
    config.is_host = i == 0;
    config.unfit = only_good;
    c.start(config);
  }
  EXPECT_FALSE(c[0].workers) << "no node joins before it has told its facts";
  c.tell_facts(0, "good");
  c.tell_facts(1, "bad");
  ASSERT_TRUE(c[1].outcome);
  EXPECT_EQ(c[1].outcome->exit_code, kUnfit);
  EXPECT_THAT(c[1].outcome->text, HasSubstr("is bad"));
  EXPECT_FALSE(c[0].workers);
  auto config = c.config(2, 2);
  config.unfit = only_good;
  c.start(config);
  c.tell_facts(2, "good");
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, -1, 1));
}

TEST(ParticipantStrictTest, OfAJobThatCanChangeItsSizeItStaysAndNeverRuns) {
  Cluster c;
  for (int i = 0; i < 3; ++i) {
    auto config = c.config(1, 3);
    config.is_host = i == 0;
    config.max_restarts = 3;
    config.unfit = only_good;
    c.start(config);
    c.tell_facts(i, i == 1 ? "bad" : "good");
  }
  c.advance(Milliseconds(60'000));
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, -1, 1));
  EXPECT_FALSE(c[1].outcome);
  c.fail(2);
  c.advance(Milliseconds(60'000));
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, -1, 1));
  c.kill(2);
  c.advance(Milliseconds(60'000));
  EXPECT_THAT(c.group_ranks(), ElementsAre(0, -1, -1));
  c.succeed(0);
  ASSERT_TRUE(c[1].outcome);
  EXPECT_EQ(c[1].outcome->end, End::Success);
}

}  // namespace
}  // namespace drun::rendezvous
