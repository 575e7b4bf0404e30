// One agent as a member: when it starts and stops its workers, and when it leaves.
#include "rendezvous/member.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "rendezvous/membership.hpp"

namespace drun::rendezvous {
namespace {

class MemberTest : public testing::Test {
 protected:
  MemberTest() {
    config_.run_id = "job";
    config_.ticket = "me";
    config_.keep_alive = Milliseconds(6'000);
    config_.join_timeout = Milliseconds(60'000);
    config_.close_timeout = Milliseconds(30'000);
  }

  // What the agent was told to do since the last call.
  struct Done {
    std::optional<StartAction> start;
    std::optional<StopAction> stop;
    std::optional<FinishAction> finish;
    std::optional<PrepareWorkerStoreAction> prepare;
    std::optional<Time> renewed;
    int hangs = 0;
    std::vector<MemberDocument> published;
    std::vector<std::string> warnings;
  };
  Done done() {
    Done result;
    for (auto& action : outbox_.take()) {
      if (auto* start = std::get_if<StartAction>(&action)) result.start = *start;
      if (auto* stop = std::get_if<StopAction>(&action)) result.stop = *stop;
      if (auto* finish = std::get_if<FinishAction>(&action)) result.finish = *finish;
      if (auto* prepare = std::get_if<PrepareWorkerStoreAction>(&action)) result.prepare = *prepare;
      if (std::holds_alternative<HangAction>(action)) ++result.hangs;
      if (auto* renew = std::get_if<RenewLeaseAction>(&action)) result.renewed = renew->sent;
      if (auto* watch = std::get_if<WatchAction>(&action)) watches_[watch->key] = watch->watch;
      if (auto* log = std::get_if<LogAction>(&action); log != nullptr && log->warning)
        result.warnings.push_back(log->text);
      if (auto* commit = std::get_if<CommitAction>(&action)) {
        const auto& write = commit->transaction.writes.at(0);
        if (write.key == keys_.member("me"))
          result.published.push_back(decode_member(*write.value).value());
        member_->on_commit({commit->request, answer_, "it is full"}, now_);
      }
    }
    return result;
  }

  void begin() {
    member_.emplace(config_, keys_, outbox_, now_);
    member_->on_link_up({Link::Up, {}}, now_);
    done();
    for (const auto& key : {keys_.round, keys_.outcome, keys_.assignment("me")})
      member_->on_snapshot({watches_.at(key), {}});
    advance();
  }
  // The store answers in a session that is new or resumed. When that answer was asked for.
  Time reconnect(bool new_session) {
    member_->on_link_down("connection reset", {}, now_);
    now_ += Milliseconds(100);
    member_->on_link_up({new_session ? Link::NewSession : Link::Up, {}}, now_);
    member_->on_renewed({now_});
    return now_;
  }
  // Time passes for a process that runs: it looks at least every two seconds.
  void advance(Milliseconds time = Milliseconds(0)) {
    do {
      const Milliseconds step = std::min(time, Milliseconds(2'000));
      time -= step;
      now_ += step;
      member_->note_time(now_);
      member_->advance(now_);
    } while (time.count() > 0);
  }
  void put(const std::string& key, std::optional<std::string> value) {
    member_->on_changes({watches_.at(key), {{key, std::move(value)}}}, now_);
  }
  void round(int number, Phase phase) {
    RoundDocument d;
    d.number = number;
    d.phase = phase;
    d.ran = phase == Phase::Preparing ? number - 1 : number;
    d.nodes = 1;
    put(keys_.round, encode(d));
  }
  void stopping_for(int number, Cause cause) {
    RoundDocument d;
    d.number = d.ran = number;
    d.phase = Phase::Stopping;
    d.cause = cause;
    d.nodes = 1;
    put(keys_.round, encode(d));
  }
  void hangs(int number, bool hung) {
    RoundDocument d;
    d.number = d.ran = number;
    d.phase = Phase::Running;
    d.nodes = 1;
    d.hung = hung;
    put(keys_.round, encode(d));
    advance();
  }
  void place(int number, bool go) {
    AssignmentDocument d;
    d.go = go;
    d.assignment.round = number;
    put(keys_.assignment("me"), encode(d));
  }
  // Holds workers of this round.
  void run(int number) {
    begin();
    place(number, true);
    round(number, Phase::Running);
    advance();
    ASSERT_TRUE(done().start);
  }

  Config config_;
  Keys keys_{"job"};
  Outbox outbox_;
  Time now_{std::chrono::hours(1)};
  std::optional<MemberAgent> member_;
  std::map<std::string, WatchId> watches_;
  CommitOutcome answer_ = CommitOutcome::Committed;  // to what the agent writes
};

TEST_F(MemberTest, SaysWhatItIsLike) {
  config_.host = "node7";
  config_.address = "10.0.0.7";
  config_.network = "spine1/leaf4";
  config_.worker_store_port = 29'501;
  config_.local_world_size = 8;
  config_.role = "trainer";
  config_.node_rank = 3;
  config_.node_rank_is_wish = true;
  config_.is_host = true;
  config_.successor_port = 41'000;
  config_.listed = 2;
  config_.ends_ms = 1'800'000'000'000;
  member_.emplace(config_, keys_, outbox_, now_);
  member_->on_link_up({Link::Up, {}}, now_);
  advance();
  const auto published = done().published;
  ASSERT_EQ(published.size(), 1U);
  MemberDocument said;
  said.host = config_.host;
  said.address = config_.address;
  said.network = config_.network;
  said.worker_store_port = config_.worker_store_port;
  said.local_world_size = config_.local_world_size;
  said.role = config_.role;
  said.node_rank = config_.node_rank;
  said.node_rank_is_wish = config_.node_rank_is_wish;
  said.is_host = config_.is_host;
  said.successor_port = config_.successor_port;
  said.listed = config_.listed;
  said.ends_ms = config_.ends_ms;
  said.agreement = full_agreement(config_);
  EXPECT_EQ(published[0], said);
}

constexpr Phase kPhases[] = {Phase::Gathering, Phase::Preparing, Phase::Running, Phase::Stopping,
                             Phase::Closed};

TEST_F(MemberTest, StartsInARunningRoundWithAPlaceInItOnly) {
  for (const Phase phase : kPhases) {
    for (const int place_round : {1, 2, 3}) {
      for (const bool go : {false, true}) {
        for (const bool place_first : {false, true}) {
          begin();
          if (place_first) place(place_round, go);
          round(2, phase);
          if (!place_first) place(place_round, go);
          advance();
          const auto told = done();
          EXPECT_EQ(told.start.has_value(), phase == Phase::Running && place_round == 2 && go)
              << static_cast<int>(phase) << " " << place_round << " " << go;
          EXPECT_EQ(told.prepare.has_value(), phase == Phase::Preparing && place_round == 2 && !go);
        }
      }
    }
  }
}

TEST_F(MemberTest, SaysThatItsWorkersDoNotGetOnWhileTheyDoNot) {
  run(3);
  const auto said = [&](int round, bool stalled) -> std::optional<int> {
    member_->on_workers_stalled(round, stalled);
    advance();
    const auto told = done();
    if (told.published.empty()) return std::nullopt;
    return told.published.back().stalled;
  };
  EXPECT_EQ(said(3, false), std::nullopt);
  EXPECT_EQ(said(2, true), std::nullopt);  // an earlier round's
  EXPECT_EQ(said(3, true), 3);
  EXPECT_EQ(said(3, true), std::nullopt);
  EXPECT_EQ(said(3, false), 0);
}

TEST_F(MemberTest, IsToldOnceOfAHangInWhichItHasPart) {
  run(3);
  hangs(3, true);
  EXPECT_EQ(done().hangs, 0);  // its own workers make progress
  hangs(3, false);
  member_->on_workers_stalled(3, true);
  advance();
  EXPECT_EQ(done().hangs, 0);  // those of others do
  hangs(3, true);
  EXPECT_EQ(done().hangs, 1);
  advance(Milliseconds(4'000));
  EXPECT_EQ(done().hangs, 0);
  hangs(3, false);
  hangs(3, true);
  EXPECT_EQ(done().hangs, 1);
  round(4, Phase::Running);
  advance();
  EXPECT_EQ(done().hangs, 0);
}

TEST_F(MemberTest, WorkersThatAreStoppedDoNotHang) {
  run(3);
  member_->on_workers_stalled(3, true);
  round(3, Phase::Stopping);
  advance();
  done();
  hangs(3, true);
  EXPECT_EQ(done().hangs, 0);
}

// To a store that has forgotten it: no other round gets the number.
TEST_F(MemberTest, ASpareTellsWhichRoundHasRun) {
  begin();
  round(7, Phase::Running);
  round(8, Phase::Preparing);
  done();
  reconnect(true);
  advance();
  const auto told = done();
  ASSERT_FALSE(told.published.empty());
  EXPECT_EQ(told.published.back().seen, 7);
}

// The store was emptied, and newcomers began a round of their own, without knowing of this agent's.
TEST_F(MemberTest, RemembersThatTheStoreHasLostARoundOfOthers) {
  const auto document = [](int number, Phase phase, const std::string& master) {
    RoundDocument d;
    d.number = number;
    d.phase = phase;
    d.ran = is_alive(phase) || phase == Phase::Gathering ? number : number - 1;
    d.master = master;
    return encode(d);
  };
  const auto running = [&](int number, const std::string& master = "") {
    return document(number, Phase::Running, master);
  };
  struct Case {
    const char* what;
    std::optional<std::string> before, after;
    bool lost;
  };
  for (const auto& [what, before, after, lost] : {
           Case{"its own round is lost, which seen() has", running(5), std::nullopt, false},
           Case{"the others' round runs", running(5), running(1), false},
           Case{"the others' round is lost", running(1), std::nullopt, true},
           Case{"the others' round gives way", running(1), running(6), true},
           Case{"the others' round is over", running(1), document(1, Phase::Gathering, ""), false},
           Case{"nothing of others ran", document(1, Phase::Preparing, ""), std::nullopt, false},
           Case{"its own round is over", running(5, "a:1"), document(5, Phase::Gathering, ""),
                false},
           Case{"its own round goes on", running(5, "a:1"), running(6, "b:1"), false},
           Case{"another has its number", running(5, "a:1"), running(5, "b:1"), true},
           Case{"its number is tried again", running(5, "a:1"), document(5, Phase::Preparing, ""),
                true},
       }) {
    SCOPED_TRACE(what);
    begin();
    round(5, Phase::Running);
    put(keys_.round, before);
    advance(Milliseconds(1'000));
    ASSERT_FALSE(member_->seen().others_until());
    put(keys_.round, after);
    EXPECT_EQ(member_->seen().others_until(),
              lost ? std::optional(now_ + config_.keep_alive) : std::nullopt);
  }
}

TEST_F(MemberTest, KeepsItsWorkersInTheirRunningRoundOnly) {
  for (const Phase phase : kPhases) {
    for (const int number : {4, 5, 6}) {
      run(5);
      round(number, phase);
      advance();
      const bool set_back = number < 5 || (number == 5 && phase == Phase::Preparing);
      const bool keeps = (number == 5 && phase == Phase::Running) || set_back;
      EXPECT_EQ(!done().stop.has_value(), keeps) << number << " " << static_cast<int>(phase);
      if (!set_back) continue;
      // A store that was set back has its leader's time to be mended, and no longer.
      advance(config_.keep_alive * 2);
      EXPECT_TRUE(done().stop) << number << " " << static_cast<int>(phase);
    }
  }
}

TEST_F(MemberTest, SaysThatItHasLeftWhenNothingRunsAnyMore) {
  run(1);
  round(1, Phase::Stopping);
  advance();
  const auto told = done();
  ASSERT_TRUE(told.stop);
  EXPECT_FALSE(told.stop->immediately);
  EXPECT_TRUE(told.published.empty());
  member_->on_workers_stopped();
  advance();
  const auto after = done();
  ASSERT_EQ(after.published.size(), 1U);
  EXPECT_EQ(after.published[0].left, 1);
  EXPECT_EQ(after.published[0].claim.value().round, 1);  // its last place
}

// The session is resumed, but the store may have come back from an older snapshot file.
TEST_F(MemberTest, WritesItsDocumentAgainWheneverTheLinkIsBack) {
  run(3);
  member_->on_workers_succeeded(3);
  advance();
  ASSERT_EQ(done().published.size(), 1U);
  member_->on_link_down("reset", {}, now_);
  advance(Milliseconds(1'000));
  EXPECT_TRUE(done().published.empty());
  member_->on_link_up({Link::Up, {}}, now_);
  advance();
  const auto again = done().published;
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].succeeded, 3);
  member_->on_link_up({Link::Up, {}}, now_);  // without a break
  advance();
  EXPECT_TRUE(done().published.empty());
}

// For a store that forgets it.
TEST_F(MemberTest, TellsTheHighestCountsThatItHasSeen) {
  run(1);
  RoundDocument seen;
  seen.number = seen.ran = 2;
  seen.restart_count = 3;
  seen.losses = 4;
  put(keys_.round, encode(seen));
  put(keys_.round, encode(RoundDocument{}));
  reconnect(true);
  advance();
  const auto told = done();
  ASSERT_FALSE(told.published.empty());
  EXPECT_EQ(told.published.back().restarts, 3);
  EXPECT_EQ(told.published.back().losses, 4);
}

TEST_F(MemberTest, AFailureOfWorkersThatWereToldToStopIsNobodysNews) {
  run(1);
  round(1, Phase::Stopping);
  advance();
  ASSERT_TRUE(done().stop);
  member_->on_workers_failed(1, {});
  advance();
  EXPECT_TRUE(done().published.empty());
}

TEST_F(MemberTest, SaysAtOnceThatAWorkerHasFailedAndThenHow) {
  run(1);
  member_->on_workers_failing(1);
  advance();
  auto told = done();
  EXPECT_FALSE(told.stop);
  ASSERT_FALSE(told.published.empty());
  EXPECT_EQ(told.published.back().failing, 1);
  EXPECT_EQ(told.published.back().failed, 0);
  member_->on_workers_failed(1, {});
  advance();
  told = done();
  ASSERT_FALSE(told.published.empty());
  EXPECT_EQ(told.published.back().failed, 1);
}

TEST_F(MemberTest, OfWorkersThatAreBeingStoppedItDoesNotSayThatTheyFail) {
  run(1);
  round(1, Phase::Stopping);
  advance();
  (void)done();
  member_->on_workers_failing(1);
  member_->on_workers_failing(2);
  advance();
  EXPECT_TRUE(done().published.empty());
}

// Both have failed in the same moment: all want to know of both.
TEST_F(MemberTest, TellsHowItsWorkersFailedWhenAnotherNodesFailureStopsThem) {
  run(1);
  member_->on_workers_failing(1);
  stopping_for(1, Cause::Failure);
  advance();
  ASSERT_TRUE(done().stop);
  FailureSummary failure;
  failure.exit_code = 7;
  member_->on_workers_failed(1, failure);
  advance();
  const auto told = done();
  ASSERT_FALSE(told.published.empty());
  EXPECT_EQ(told.published.back().failed, 1);
  EXPECT_EQ(told.published.back().failure, failure);
}

class StoppedMemberTest : public MemberTest, public testing::WithParamInterface<Cause> {};
INSTANTIATE_TEST_SUITE_P(NotForAFailure, StoppedMemberTest,
                         testing::Values(Cause::Membership, Cause::Resize, Cause::TimeLimit));

TEST_P(StoppedMemberTest, SaysNothingOfFailures) {
  run(1);
  stopping_for(1, GetParam());
  advance();
  ASSERT_TRUE(done().stop);
  member_->on_workers_failed(1, {});
  advance();
  EXPECT_TRUE(done().published.empty());
}

TEST_F(MemberTest, NeverStartsTheSameRoundTwice) {
  run(1);
  member_->on_workers_failed(1, {});
  member_->on_workers_stopped();
  advance();
  const auto told = done();
  EXPECT_FALSE(told.start);
  ASSERT_FALSE(told.published.empty());
  EXPECT_EQ(told.published.back().failed, 1);
  round(1, Phase::Running);
  place(1, true);
  advance();
  EXPECT_FALSE(done().start);
}

TEST_F(MemberTest, OutOfTouchForTooLongItKillsItsWorkersAndGivesUp) {
  run(1);
  member_->on_link_down("reset", {}, now_);
  advance(config_.keep_alive - Milliseconds(1));
  EXPECT_FALSE(done().stop) << "it keeps its workers";
  EXPECT_EQ(member_->next_deadline(), now_ + Milliseconds(1));
  advance(Milliseconds(1));
  const auto told = done();
  ASSERT_TRUE(told.stop);
  EXPECT_TRUE(told.stop->immediately);
  EXPECT_FALSE(told.finish);
  advance(Milliseconds(1'000));
  EXPECT_FALSE(done().stop) << "once is enough";
  member_->on_workers_stopped();
  advance();
  const auto gone = done();
  ASSERT_TRUE(gone.finish);
  EXPECT_EQ(gone.finish->outcome.end, End::StoreLost);
  EXPECT_EQ(gone.finish->outcome.exit_code, kDrunFailed);
  EXPECT_NE(gone.finish->outcome.text.find("reset"), std::string::npos);
  EXPECT_EQ(gone.finish->outcome.text.find("is lost"), std::string::npos) << "who gave up says so";
}

TEST_F(MemberTest, WhoMissedTheEndSaysThatItsWorkersHadSucceeded) {
  run(1);
  member_->on_workers_succeeded(1);
  advance();
  member_->on_link_down("reset", {}, now_);
  advance(config_.keep_alive);
  ASSERT_TRUE(done().stop);
  member_->on_workers_stopped();
  advance();
  const auto gone = done();
  ASSERT_TRUE(gone.finish);
  EXPECT_EQ(gone.finish->outcome.exit_code, kDrunFailed);
  EXPECT_TRUE(gone.finish->outcome.text.ends_with(
      ": reset; all workers of this node had succeeded, how the job ended is not known"))
      << gone.finish->outcome.text;
}

TEST_F(MemberTest, BackInTimeItGoesOn) {
  run(1);
  member_->on_link_down("reset", {}, now_);
  advance(config_.keep_alive - Milliseconds(1));
  member_->on_link_up({Link::Up, {}}, now_);
  advance(config_.keep_alive);
  const auto told = done();
  EXPECT_FALSE(told.stop);
  EXPECT_FALSE(told.finish);
}

TEST_F(MemberTest, TheLimitCountsFromTheStoresLastWord) {
  run(1);
  member_->on_link_down("no answer for 4 s", Milliseconds(4'000), now_);
  advance(config_.keep_alive - Milliseconds(4'001));
  EXPECT_FALSE(done().stop);
  advance(Milliseconds(1));
  const auto told = done();
  ASSERT_TRUE(told.stop);
  EXPECT_TRUE(told.stop->immediately);
}

TEST_F(MemberTest, AProcessThatWasStoppedCountsTheTimeThatItMissed) {
  run(1);
  now_ += config_.keep_alive * 2;  // nothing was heard or done
  member_->note_time(now_);
  member_->on_link_down("closed", {}, now_);
  advance();
  const auto told = done();
  ASSERT_TRUE(told.stop);
  EXPECT_TRUE(told.stop->immediately);
}

TEST_F(MemberTest, AProcessThatStoodStillTrustsNothingThatItHasNotReadYet) {
  begin();
  const auto before = watches_;
  now_ += Milliseconds(3'500);  // within the keep-alive limit
  advance();
  done();
  EXPECT_NE(watches_.at(keys_.round), before.at(keys_.round));
  AssignmentDocument here;
  here.go = true;
  here.assignment.round = 1;
  RoundDocument running;
  running.number = running.ran = running.nodes = 1;
  running.phase = Phase::Running;
  for (const auto& watches : {before, watches_}) {
    const bool fresh = watches == watches_;
    member_->on_snapshot(
        {watches.at(keys_.assignment("me")), {{keys_.assignment("me"), encode(here)}}});
    member_->on_snapshot({watches.at(keys_.round), {{keys_.round, encode(running)}}});
    advance();
    EXPECT_EQ(done().start.has_value(), fresh);
  }
}

TEST_F(MemberTest, StartsNothingOnWordsThatAreOlderThanItsLease) {
  begin();
  member_->on_renewed({now_});
  advance(config_.keep_alive);
  place(1, true);
  round(1, Phase::Running);
  advance();
  EXPECT_FALSE(done().start);
  member_->on_renewed({now_ - config_.keep_alive + Milliseconds(1)});
  advance();
  EXPECT_TRUE(done().start);
}

TEST_F(MemberTest, OneOldWatchOfAKeyStaysUntilTheNewOneHasAnswered) {
  begin();
  const auto pause = [this] {  // this process was stopped; how many watches it begins and ends
    now_ += config_.keep_alive;
    member_->note_time(now_);
    std::pair<int, int> counts{0, 0};
    for (auto& action : outbox_.take()) {
      if (auto* watch = std::get_if<WatchAction>(&action)) {
        watches_[watch->key] = watch->watch;
        ++counts.first;
      }
      if (std::holds_alternative<UnwatchAction>(action)) ++counts.second;
    }
    return counts;
  };
  done();
  EXPECT_EQ(pause(), std::pair(2, 0)) << "the round and the own place";
  EXPECT_EQ(pause(), std::pair(2, 2));
  member_->on_snapshot({watches_.at(keys_.round), {}});
  const auto actions = outbox_.take();
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<UnwatchAction>(actions.front()));
}

TEST_F(MemberTest, EachAnswerInItsSessionRenewsTheLease) {
  run(1);
  for (int i = 0; i < 2; ++i) {
    const Time sent = now_;
    member_->on_renewed({sent});
    advance(Milliseconds(10));
    EXPECT_EQ(done().renewed, sent);
    advance();
    EXPECT_FALSE(done().renewed) << "once for each answer";
  }
}

// What the store answered in the session before says nothing of this one.
TEST_F(MemberTest, ANewSessionRenewsNothingByAnAnswerToTheLast) {
  run(1);
  member_->on_renewed({now_});
  member_->on_link_down("connection reset", {}, now_);
  now_ += Milliseconds(100);
  member_->on_link_up({Link::NewSession, {}}, now_);
  for (int i = 0; i < 3; ++i) {
    advance();
    EXPECT_FALSE(done().renewed);
  }
  member_->on_renewed({now_});
  advance();
  EXPECT_EQ(done().renewed, now_);
}

// The others do not wait for a node that the store does not show, perhaps because it is older.
TEST_F(MemberTest, WhenTheLinkIsBackTheLeaseIsRenewedOnceTheStoreShowsTheWorkers) {
  struct Case {
    bool new_session;
    CommitOutcome refusal;
  };
  for (const auto& [new_session, refusal] :
       {Case{true, CommitOutcome::Rejected}, Case{true, CommitOutcome::Refused},
        Case{true, CommitOutcome::Unknown}, Case{false, CommitOutcome::Rejected}}) {
    run(1);
    answer_ = refusal;
    const Time first = reconnect(new_session);
    for (int i = 0; i < 3; ++i) {
      advance(Milliseconds(1'000));
      EXPECT_FALSE(done().renewed) << new_session << static_cast<int>(refusal);
    }
    answer_ = CommitOutcome::Committed;
    advance(Milliseconds(6'000));
    const auto told = done();
    EXPECT_FALSE(told.renewed);
    ASSERT_EQ(told.published.size(), 1U);
    ASSERT_TRUE(told.published.front().claim);
    EXPECT_EQ(told.published.front().claim->round, 1);
    advance();
    EXPECT_EQ(done().renewed, first) << "by the answer that it has";
    member_->on_renewed({now_});
    advance();
    EXPECT_EQ(done().renewed, now_);
  }
}

TEST_F(MemberTest, WithoutWorkersANewSessionRenewsTheLeaseAtOnceAndStartsNoneUntilItShowsTheNode) {
  begin();
  answer_ = CommitOutcome::Rejected;
  const Time sent = reconnect(true);
  for (const auto& key : {keys_.round, keys_.assignment("me")})
    member_->on_snapshot({watches_.at(key), {}});
  place(1, true);
  round(1, Phase::Running);
  advance();
  auto told = done();
  EXPECT_EQ(told.renewed, sent);
  EXPECT_FALSE(told.start);
  answer_ = CommitOutcome::Committed;
  advance(Milliseconds(1'000));
  EXPECT_FALSE(done().start);
  advance();
  EXPECT_TRUE(done().start);
}

// The job has ended, but its workers have time to stop.
TEST_F(MemberTest, ANewSessionShowsWorkersThatAreStillStoppingAtTheEnd) {
  run(1);
  put(keys_.outcome, encode(Outcome{End::Stopped, 143, "told to stop", {}}));
  advance();
  EXPECT_TRUE(done().stop);
  const Time sent = reconnect(true);
  advance();
  EXPECT_EQ(done().published.size(), 1U);
  advance();
  EXPECT_EQ(done().renewed, sent);
  member_->on_workers_stopped();
  reconnect(true);
  advance();
  EXPECT_TRUE(done().published.empty()) << "nothing is left of them";
}

TEST_F(MemberTest, ThatTheStoreTakesNothingIsSaidOnce) {
  answer_ = CommitOutcome::Rejected;
  begin();
  std::vector<std::string> warnings;
  for (int i = 0; i < 5; ++i) {
    advance(Milliseconds(1'000));
    for (auto& warning : done().warnings)
      warnings.push_back(std::move(warning));
  }
  EXPECT_EQ(warnings, (std::vector<std::string>{"the store does not take what drun writes: it is "
                                                "full; trying again for 30 s"}));
}

TEST_F(MemberTest, SaysWhyItsLeaseWasNotRenewed) {
  for (const bool unsaid : {false, true}) {
    run(1);
    if (unsaid) {
      answer_ = CommitOutcome::Rejected;
      reconnect(true);
      advance();
      done();
    }
    member_->on_lease_over();
    advance();
    member_->on_workers_stopped();
    advance();
    const auto told = done();
    ASSERT_TRUE(told.finish);
    EXPECT_EQ(told.finish->outcome.text,
              unsaid ? "unknown to the store for longer than the lease of 6 s, so the workers were "
                       "killed: the store does not take what drun writes: it is full"
                     : "out of touch with the store for longer than the lease of 6 s, so the "
                       "workers were killed");
    answer_ = CommitOutcome::Committed;
  }
}

TEST_F(MemberTest, LeavesWhenItsWorkersWereKilledWithTheLease) {
  run(1);
  member_->on_lease_over();
  advance();
  auto told = done();
  ASSERT_TRUE(told.stop);
  EXPECT_TRUE(told.stop->immediately);
  EXPECT_FALSE(told.finish);
  member_->on_workers_failed(1, {});
  advance();
  for (const auto& document : done().published)
    EXPECT_EQ(document.failed, 0) << "their end is no failure of theirs";
  member_->on_workers_stopped();
  advance();
  told = done();
  ASSERT_TRUE(told.finish);
  EXPECT_EQ(told.finish->outcome.end, End::StoreLost);
  EXPECT_EQ(told.finish->outcome.exit_code, kDrunFailed);
}

TEST_F(MemberTest, WhatAStoppedProcessReadsLateStillStopsItsWorkers) {
  run(1);
  const auto before = watches_;
  now_ += Milliseconds(3'500);
  advance();
  EXPECT_FALSE(done().stop);
  RoundDocument stopping;
  stopping.number = stopping.ran = stopping.nodes = 1;
  stopping.phase = Phase::Stopping;
  member_->on_changes({before.at(keys_.round), {{keys_.round, encode(stopping)}}}, now_);
  advance();
  EXPECT_TRUE(done().stop);
}

TEST_F(MemberTest, ARefusalIsObeyedAfterTheWorkersHaveGone) {
  run(1);
  put(keys_.assignment("me"), encode(AssignmentDocument{{}, false, -1, "too late"}));
  advance();
  const auto told = done();
  ASSERT_TRUE(told.stop);
  EXPECT_FALSE(told.finish);
  member_->on_workers_stopped();
  advance();
  const auto gone = done();
  ASSERT_TRUE(gone.finish);
  EXPECT_EQ(gone.finish->outcome.end, End::Refused);
  EXPECT_EQ(gone.finish->outcome.text, "too late");
}

TEST_F(MemberTest, AJobThatHadEndedBeforeIsRefusedByItsId) {
  member_.emplace(config_, keys_, outbox_, now_);
  member_->on_link_up({Link::Up, {}}, now_);
  done();
  const Outcome ended{End::Success, 0, "", std::nullopt};
  member_->on_snapshot({watches_.at(keys_.outcome), {{keys_.outcome, encode(ended)}}});
  advance();
  const auto told = done();
  ASSERT_TRUE(told.finish);
  EXPECT_EQ(
      told.finish->outcome.text,
      "the job 'job' has ended before this node came; use another rendezvous id, or free this "
      "one at its store: drunctl delete-job job");
}

TEST_F(MemberTest, TheHostWaitsForTheOthersUntilTheCloseTimeout) {
  config_.is_host = true;
  for (const bool others_go : {true, false}) {
    begin();
    const Outcome ended{End::Success, 0, "", std::nullopt};
    put(keys_.outcome, encode(ended));
    advance();
    EXPECT_FALSE(done().finish);
    const auto other = keys_.member("other");
    member_->on_snapshot({watches_.at(keys_.members), {{keys_.member("me"), "x"}, {other, "x"}}});
    advance(config_.close_timeout - Milliseconds(1));
    EXPECT_FALSE(done().finish);
    if (others_go) {
      member_->on_changes({watches_.at(keys_.members), {{other, std::nullopt}}}, now_);
      advance();
    } else {
      advance(Milliseconds(1));
    }
    EXPECT_TRUE(done().finish) << others_go;
  }
}

// For its report: what they did goes with their documents.
TEST_F(MemberTest, TheHostHearsWhatTheOthersSayBeforeTheyGo) {
  config_.is_host = true;
  begin();
  put(keys_.outcome, encode(Outcome{End::Failure, 7, "rank 3", FailureSummary{}}));
  advance();
  done();
  MemberDocument a;
  a.end = "a's ranks";
  MemberDocument b;
  b.end = "b's ranks";
  const auto watch = watches_.at(keys_.members);
  member_->on_snapshot({watch,
                        {{keys_.member("me"), "x"},
                         {keys_.member("a"), encode(a)},
                         {keys_.member("b"), encode(MemberDocument{})}}});
  member_->on_changes({watch, {{keys_.member("b"), encode(b)}}}, now_);
  for (const char* gone : {"a", "b"})
    member_->on_changes({watch, {{keys_.member(gone), std::nullopt}}}, now_);
  advance();
  const auto told = done();
  ASSERT_TRUE(told.finish);
  EXPECT_EQ(told.finish->ends, (std::vector<std::string>{"a's ranks", "b's ranks"}));
}

// The agents of one machine have their store elsewhere.
TEST_F(MemberTest, OneThatIsToLeaveLastWaitsForTheOthersAfterAFailureOnly) {
  config_.max_nodes = 2;
  for (const End end : {End::Failure, End::Success}) {
    begin();
    member_->leave_last();
    watches_.erase(keys_.members);
    put(keys_.outcome, encode(Outcome{end, 7, "rank 3", std::nullopt}));
    advance();
    EXPECT_EQ(done().finish.has_value(), end == End::Success);
    if (end == End::Success) continue;
    const auto watch = watches_.at(keys_.members);
    MemberDocument other;
    other.end = "its ranks";
    member_->on_snapshot(
        {watch, {{keys_.member("me"), "x"}, {keys_.member("other"), encode(other)}}});
    advance();
    EXPECT_FALSE(done().finish);
    member_->on_changes({watch, {{keys_.member("other"), std::nullopt}}}, now_);
    advance();
    const auto told = done();
    ASSERT_TRUE(told.finish);
    EXPECT_EQ(told.finish->ends, std::vector<std::string>{"its ranks"});
  }
}

TEST_F(MemberTest, SaysAtTheEndWhatItsWorkersDidBeforeItGoes) {
  for (const CommitOutcome answer : {CommitOutcome::Committed, CommitOutcome::Rejected}) {
    answer_ = CommitOutcome::Committed;
    run(1);
    put(keys_.outcome, encode(Outcome{End::Failure, 7, "rank 3", std::nullopt}));
    advance();
    done();
    answer_ = answer;
    member_->on_workers_stopped("rank 0 was still running");
    advance();
    const auto told = done();
    ASSERT_EQ(told.published.size(), 1U);
    EXPECT_EQ(told.published[0].end, "rank 0 was still running");
    EXPECT_FALSE(told.finish) << "the host may not have it";
    if (answer != CommitOutcome::Committed) {
      ASSERT_TRUE(member_->next_deadline());
      EXPECT_LE(*member_->next_deadline(), now_ + Milliseconds(1'000));
      advance(Milliseconds(1'000));
    } else {
      advance();
    }
    EXPECT_TRUE(done().finish) << "nothing depends on it";
  }
  answer_ = CommitOutcome::Committed;
  for (const bool news : {false, true}) {
    SCOPED_TRACE(news);
    run(1);
    put(keys_.outcome, encode(Outcome{news ? End::Failure : End::Success, 0, "", std::nullopt}));
    advance();
    done();
    member_->on_workers_stopped(news ? std::string(kMaxEnd + 1, 'x') : "all is well");
    advance();
    const auto told = done();
    EXPECT_TRUE(told.published.empty());
    EXPECT_TRUE(told.finish);
  }
}

// A drun-store, or etcd: it would wait for a word to nobody.
TEST_F(MemberTest, WhatItsWorkersDidItTellsOnlyIfAnAgentHearsIt) {
  for (const bool has_successors : {false, true}) {
    SCOPED_TRACE(has_successors);
    config_.ends_are_heard = has_successors;
    config_.successors = has_successors ? 3 : 0;  // the store is not one that votes are cast at
    run(1);
    put(keys_.outcome, encode(Outcome{End::Failure, 7, "rank 3", std::nullopt}));
    advance();
    done();
    member_->on_workers_stopped("rank 0 was still running");
    advance();
    const auto told = done();
    EXPECT_TRUE(told.published.empty());
    EXPECT_TRUE(told.finish);
  }
}

// The next round is waited for, is made ready at once without this node, or was not seen to begin.
TEST_F(MemberTest, WhatTheWorkersOfARoundDidThatWentOnIsNoNewsAtTheEnd) {
  const std::vector<std::pair<int, Phase>> next{
      {1, Phase::Gathering}, {2, Phase::Preparing}, {2, Phase::Running}};
  for (const auto& [number, phase] : next) {
    SCOPED_TRACE(static_cast<int>(phase));
    run(1);
    round(1, Phase::Stopping);
    advance();
    member_->on_workers_stopped("rank 0 was still running");
    advance();
    done();
    round(number, phase);
    put(keys_.outcome, encode(Outcome{End::Failure, 7, "rank 3", std::nullopt}));
    advance();
    const auto told = done();
    EXPECT_TRUE(told.published.empty());
    EXPECT_TRUE(told.finish);
  }
}

TEST_F(MemberTest, TheHostOfALaterStoreWaitsForThoseWhoMayBeOnTheirWay) {
  config_.is_host = true;
  begin();
  put(keys_.outcome, encode(Outcome{End::Stopped, 130, "", std::nullopt}));
  advance();
  EXPECT_FALSE(done().finish);
  member_->on_snapshot({watches_.at(keys_.members), {{keys_.member("me"), "x"}}});
  const Time until = now_ + Milliseconds(1'000);
  member_->expect_others_until(until);
  advance();
  EXPECT_FALSE(done().finish);
  EXPECT_EQ(member_->next_deadline(), until);
  member_->expect_others_until({});  // all are heard of, or it is too late
  advance();
  EXPECT_TRUE(done().finish);
}

TEST_F(MemberTest, OthersLeaveAtOnceWithTheJobsOutcome) {
  run(1);
  const Outcome ended{End::Failure, 7, "rank 3", FailureSummary{}};
  put(keys_.outcome, encode(ended));
  advance();
  ASSERT_TRUE(done().stop);
  member_->on_workers_stopped();
  advance();
  const auto told = done();
  ASSERT_TRUE(told.finish);
  EXPECT_EQ(told.finish->outcome, ended);
}

TEST_F(MemberTest, TheSignalThatToldAnotherNodeToStopIsPassedOn) {
  for (const auto& [end, code, signal] : std::vector<std::tuple<End, int, int>>{
           {End::Stopped, 130, 2},
           {End::Stopped, 124, 0},
           {End::Failure, 137, 0},
           // Those for which an agent was lost, who may have died of anything.
           {End::Stopped, 137, 0},
           {End::Stopped, 139, 0},
           {End::Stopped, 255, 0}}) {
    run(1);
    put(keys_.outcome, encode(Outcome{end, code, "why", std::nullopt}));
    round(1, Phase::Closed);
    advance();
    const auto stop = done().stop;
    ASSERT_TRUE(stop);
    EXPECT_EQ(stop->signal, signal) << code;
  }
}

TEST_F(MemberTest, ASignalIsActedOnWhateverTheStoreDoes) {
  for (const bool up : {true, false}) {
    run(1);
    if (!up) member_->on_link_down("reset", {}, now_);
    member_->on_stop_requested("received SIGTERM", 143, now_);
    advance();
    const auto stop = done().stop;
    ASSERT_TRUE(stop);
    EXPECT_EQ(stop->signal, 15);
    member_->on_workers_stopped();
    // No leader answers. If one has just died, the next one is there after the keep-alive limit.
    advance(up ? config_.keep_alive + Milliseconds(4'999) : Milliseconds(999));
    EXPECT_FALSE(done().finish) << up;
    advance(Milliseconds(1));
    const auto told = done();
    ASSERT_TRUE(told.finish) << up;
    EXPECT_EQ(told.finish->outcome.exit_code, 143);
  }
}

TEST_F(MemberTest, ToldToGoItStopsItsWorkersAndGoesWhenTheStoreKnows) {
  run(1);
  member_->on_leave_requested("received SIGTERM", 143, now_);
  advance();
  const auto told = done();
  ASSERT_TRUE(told.stop);
  EXPECT_FALSE(told.stop->immediately);
  EXPECT_EQ(told.stop->signal, 15);
  ASSERT_EQ(told.published.size(), 1U);
  EXPECT_EQ(told.published[0].leave, (StopRequest{"received SIGTERM", 143}));
  EXPECT_FALSE(told.published[0].stop);
  advance(Milliseconds(30'000));
  EXPECT_FALSE(done().finish) << "they take their time";
  member_->on_stop_requested("--timeout is over", 124, now_);
  member_->on_workers_stopped();
  advance();
  const auto left = done();
  EXPECT_FALSE(left.finish);
  ASSERT_EQ(left.published.size(), 1U);
  EXPECT_EQ(left.published[0].left, 1);
  advance();
  const auto gone = done();
  ASSERT_TRUE(gone.finish);
  EXPECT_EQ(gone.finish->outcome.end, End::Stopped);
  EXPECT_EQ(gone.finish->outcome.exit_code, 143);
  EXPECT_EQ(gone.finish->outcome.text, "received SIGTERM; this node leaves the job");
}

TEST_F(MemberTest, ALeaderThatIsToldToGoStaysUntilItKnowsWhoElseIs) {
  begin();
  advance(Milliseconds(10'000));
  done();
  member_->lead_until(Time{});
  member_->on_leave_requested("received SIGTERM", 143, now_);
  advance();
  done();
  EXPECT_FALSE(member_->has_left(now_));
  advance(kLeaveWindow - Milliseconds(1));
  EXPECT_EQ(member_->next_deadline(), now_ + Milliseconds(1));
  const Time later = now_ + Milliseconds(500);
  member_->lead_until(later);  // another was told to
  advance(Milliseconds(1));
  EXPECT_FALSE(done().finish);
  advance(Milliseconds(499));
  EXPECT_TRUE(member_->has_left(later));
  EXPECT_TRUE(done().finish);
}

TEST_F(MemberTest, ALeaderThatIsRefusedStaysWhileOthersMayBeToldToGo) {
  begin();
  done();
  const Time until = now_ + kLeaveWindow;
  member_->lead_until(until);
  member_->refuse("its rank is another's");
  advance(kLeaveWindow - Milliseconds(1));
  EXPECT_FALSE(done().finish);
  EXPECT_FALSE(member_->has_left(now_));
  EXPECT_EQ(member_->next_deadline(), until);
  advance(Milliseconds(1));
  EXPECT_TRUE(member_->has_left(now_)) << "the next round is the next leader's";
  const auto gone = done();
  ASSERT_TRUE(gone.finish);
  EXPECT_EQ(gone.finish->outcome.end, End::Refused);
}

TEST_F(MemberTest, ToldToGoItWaitsForNoStoreThatDoesNotAnswer) {
  run(1);
  member_->on_link_down("reset", {}, now_);
  member_->on_leave_requested("received SIGTERM", 143, now_);
  advance();
  ASSERT_TRUE(done().stop);
  member_->on_workers_stopped();
  advance();
  advance(Milliseconds(999));
  EXPECT_FALSE(done().finish);
  EXPECT_EQ(member_->next_deadline(), now_ + Milliseconds(1));
  advance(Milliseconds(1));
  EXPECT_TRUE(done().finish);
}

TEST_F(MemberTest, AStopThatCameWithoutAStoreIsTheFirstThatTheNextOneIsTold) {
  run(1);
  done();
  member_->on_link_down("reset", {}, now_);
  member_->on_stop_requested("received SIGINT", 130, now_);
  advance();
  EXPECT_TRUE(done().published.empty());
  member_->on_link_up({Link::NewSession, {}}, now_);
  advance();
  const auto told = done();
  ASSERT_FALSE(told.published.empty());
  EXPECT_EQ(told.published[0].stop, (StopRequest{"received SIGINT", 130}));
}

TEST_F(MemberTest, ToldToGoTheHostEndsTheJob) {
  config_.is_host = true;
  run(1);
  member_->on_leave_requested("received SIGTERM", 143, now_);
  advance();
  const auto told = done();
  ASSERT_EQ(told.published.size(), 1U);
  EXPECT_TRUE(told.published[0].stop);
  EXPECT_FALSE(told.published[0].leave);
}

// Their stacks are of use only if they are stopped for that.
TEST_F(MemberTest, SaysWhetherAHangStopsTheWorkers) {
  for (const bool hung : {false, true}) {
    for (const char* who_stops : {"the round", "a signal", "a farewell"}) {
      SCOPED_TRACE(who_stops + std::string(hung ? ", hung" : ""));
      run(1);
      hangs(1, hung);
      if (who_stops == std::string("a signal"))
        member_->on_stop_requested("SIGTERM", 143, now_);
      else if (who_stops == std::string("a farewell"))
        member_->on_leave_requested("SIGTERM", 143, now_);
      RoundDocument d;
      d.number = d.ran = d.nodes = 1;
      d.phase = Phase::Stopping;
      d.hung = hung;
      put(keys_.round, encode(d));
      advance();
      const auto told = done();
      ASSERT_TRUE(told.stop);
      EXPECT_EQ(told.stop->hang, hung && who_stops == std::string("the round"));
    }
  }
}

TEST_F(MemberTest, SaysWhetherTheNextRoundTakesNodesIn) {
  for (const bool told_to_stop : {false, true}) {
    for (const Cause cause : {Cause::Resize, Cause::Membership}) {
      run(1);
      if (told_to_stop) member_->on_stop_requested("SIGTERM", 143, now_);
      RoundDocument d;
      d.number = d.ran = d.nodes = 1;
      d.phase = Phase::Stopping;
      d.cause = cause;
      put(keys_.round, encode(d));
      advance();
      const auto told = done();
      ASSERT_TRUE(told.stop);
      EXPECT_EQ(told.stop->resize, cause == Cause::Resize && !told_to_stop);
    }
  }
}

TEST_F(MemberTest, SaysWhetherATimeLimitOrAFailureStopsTheWorkers) {
  struct Case {
    const char* what;
    std::function<void()> stop;
    bool limit;
  };
  const auto end_job = [&](Outcome outcome) { put(keys_.outcome, encode(outcome)); };
  const auto close_round = [&](Cause cause) {
    RoundDocument d;
    d.number = d.ran = d.nodes = 1;
    d.phase = Phase::Closed;
    d.cause = cause;
    put(keys_.round, encode(d));
  };
  for (const auto& [what, stop, limit] : std::vector<Case>{
           {"here", [&] { member_->on_stop_requested("--timeout is over", 124, now_); }, true},
           {"a signal here", [&] { member_->on_stop_requested("SIGTERM", 143, now_); }, false},
           {"elsewhere",
            [&] {
              end_job({End::Stopped, 124, "--timeout is over", {}});
            },
            true},
           {"a signal elsewhere",
            [&] {
              end_job({End::Stopped, 143, "SIGTERM", {}});
            },
            false},
           {"a worker's own 124",
            [&] {
              end_job({End::Failure, 124, "rank 0", {}});
            },
            false},
           {"the round tells first", [&] { close_round(Cause::TimeLimit); }, true},
           {"another end", [&] { close_round(Cause::Failure); }, false}}) {
    run(1);
    stop();
    advance();
    const auto told = done();
    ASSERT_TRUE(told.stop) << what;
    EXPECT_EQ(told.stop->time_limit, limit) << what;
    EXPECT_EQ(told.stop->failure, what == std::string_view("a worker's own 124") ||
                                      what == std::string_view("another end"))
        << what;
  }
}

TEST_F(MemberTest, NoRoundInTimeIsATimeoutEvenWithoutALeader) {
  begin();
  advance(config_.join_timeout + Milliseconds(9'999));
  EXPECT_FALSE(done().finish);
  advance(Milliseconds(1));
  const auto told = done();
  ASSERT_TRUE(told.finish);
  EXPECT_EQ(told.finish->outcome.exit_code, kTimeLimit);
}

// A leader that joined later has a later time limit; its word is the better one.
TEST_F(MemberTest, ANewLeaderIsGivenItsOwnTime) {
  begin();
  advance(Milliseconds(30'000));
  member_->on_new_leader(now_);
  advance(config_.join_timeout + Milliseconds(9'999));
  EXPECT_FALSE(done().finish);
  advance(Milliseconds(1));
  EXPECT_TRUE(done().finish);
}

// A leader that stood still for a while and then writes is there.
TEST_F(MemberTest, AWordOfTheLeaderRenewsThePatienceWithIt) {
  begin();
  advance(config_.join_timeout + Milliseconds(9'999));
  round(1, Phase::Preparing);
  advance(config_.join_timeout + Milliseconds(9'999));
  EXPECT_FALSE(done().finish);
  advance(Milliseconds(1));
  EXPECT_TRUE(done().finish);
}

TEST_F(MemberTest, DamagedDocumentsChangeNothing) {
  run(1);
  round(2'147'483'647, Phase::Running);
  place(2'147'483'647, true);
  for (const auto& key : {keys_.round, keys_.outcome, keys_.assignment("me")})
    put(key, "{damaged");
  advance();
  const auto told = done();
  EXPECT_FALSE(told.stop);
  EXPECT_FALSE(told.finish);
}

// ---- stores that succeed one another ----

class SucceededMemberTest : public MemberTest {
 protected:
  SucceededMemberTest() {
    config_.successors = 3;
    config_.successor_port = 41'000;
    config_.address = "10.0.0.1";
    config_.search_timeout = Milliseconds(20'000);
    come();
    done();
  }
  void come() {
    member_.emplace(config_, keys_, outbox_, now_);
    LinkEvent up{Link::Up, {}};
    up.generation = 1;
    member_->on_link_up(up, now_);
    done();
    for (const auto& key : {keys_.round, keys_.outcome, keys_.assignment("me")})
      member_->on_snapshot({watches_.at(key), {}});
    advance();
  }
  // The round runs, and this node has that rank in it; -1: none.
  void runs(int number, int rank, const Place& before) {
    if (rank >= 0) {
      AssignmentDocument d;
      d.go = true;
      d.assignment.round = number;
      d.assignment.group_rank = rank;
      d.assignment.group_world_size = d.assignment.world_size = 2;
      put(keys_.assignment("me"), encode(d));
    }
    RoundDocument d;
    d.number = d.ran = number;
    d.phase = Phase::Running;
    d.nodes = 2;
    d.latest = {1, number, -1, 2, 0};
    d.before = before;
    d.successors = {{"10.0.0.1", 41'000}, {"10.0.0.2", 41'000}};
    put(keys_.round, encode(d));
    advance();
  }
  void ends() {
    RoundDocument d;
    d.number = d.ran = 1;
    d.phase = Phase::Gathering;
    d.latest = {1, 1, -1, 2, 0};
    put(keys_.round, encode(d));
    advance();
    member_->on_workers_stopped();
    advance();
    done();
  }
  void renewed(int settled_round) {
    member_->on_renewed({now_, 1, settled_round});
    advance();
  }
  std::optional<VoteAction> said() {
    std::optional<VoteAction> last;
    for (auto& action : outbox_.take())
      if (const auto* vote = std::get_if<VoteAction>(&action)) last = *vote;
    return last;
  }
};

TEST_F(SucceededMemberTest, TellsTheHostWhatItsWorkersDid) {
  runs(1, 1, {});
  renewed(1);
  ASSERT_TRUE(done().start);
  put(keys_.outcome, encode(Outcome{End::Failure, 7, "rank 3", std::nullopt}));
  advance();
  done();
  member_->on_workers_stopped("rank 0 was still running");
  advance();
  const auto told = done();
  ASSERT_EQ(told.published.size(), 1U);
  EXPECT_EQ(told.published[0].end, "rank 0 was still running");
}

TEST_F(SucceededMemberTest, AStopOrALeaveWaitsForTheNextStoreForAsLongAsForALeader) {
  for (const bool goes : {false, true}) {
    SCOPED_TRACE(goes ? "leave" : "stop");
    member_.emplace(config_, keys_, outbox_, now_);
    LinkEvent up{Link::Up, {}};
    up.generation = 1;
    member_->on_link_up(up, now_);
    done();
    for (const auto& key : {keys_.round, keys_.outcome, keys_.assignment("me")})
      member_->on_snapshot({watches_.at(key), {}});
    advance();
    done();
    runs(1, 1, {});
    done();
    member_->on_link_down("silent", {}, now_);
    if (goes)
      member_->on_leave_requested("received SIGTERM", 143, now_);
    else
      member_->on_stop_requested("received SIGTERM", 143, now_);
    advance();
    member_->on_workers_stopped();
    advance();
    advance(config_.keep_alive + Milliseconds(4'999));
    EXPECT_FALSE(done().finish);
    advance(Milliseconds(1));
    const auto told = done();
    ASSERT_TRUE(told.finish);
    EXPECT_EQ(told.finish->outcome.exit_code, 143);
  }
}

TEST_F(SucceededMemberTest, SaysForWhichRoundItSpeaksAndWhereItGoes) {
  runs(1, 1, {});
  const auto vote = said();
  ASSERT_TRUE(vote);
  EXPECT_EQ(vote->vote, (Vote{"drun/job/", {1, 1, 1, 2, 0}}));
  EXPECT_EQ(vote->successors,
            (std::vector<Successor>{{"10.0.0.1", 41'000, true}, {"10.0.0.2", 41'000, false}}));
}

// The round and the node's place in it are in two documents.
TEST_F(SucceededMemberTest, SpeaksWithItsRankOnceItIsKnown) {
  runs(1, 1, {});
  (void)said();
  runs(2, -1, {1, 1, -1, 2, 0});
  EXPECT_EQ(said().value().vote.latest, (Place{1, 2, -1, 2, 0}));
  AssignmentDocument d;
  d.assignment.round = 2;
  d.assignment.group_world_size = d.assignment.world_size = 2;
  for (const bool go : {false, true}) {
    d.go = go;
    put(keys_.assignment("me"), encode(d));
    advance();
    const auto vote = said();
    ASSERT_EQ(vote.has_value(), go);
    EXPECT_EQ(vote ? vote->vote.latest.rank : -1, go ? 0 : -1);
  }
}

// The leader of a later store takes who knows of the last round for one that comes over to it.
TEST_F(SucceededMemberTest, ANewcomerSaysNothingOfARoundFirstThoughItHasReadOfIt) {
  config_.unfit = [](const std::vector<NodeFacts>&) {
    return std::map<std::string, std::string>();
  };
  come();
  runs(1, -1, {});
  EXPECT_TRUE(done().published.empty()) << "its facts are not known yet";
  member_->on_facts("a sheet");
  advance();
  const auto first = done().published;
  ASSERT_EQ(first.size(), 1U);
  EXPECT_FALSE(first[0].latest.exists());
  reconnect(true);
  advance();
  const auto again = done().published;
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].latest.round, 1);
}

TEST_F(SucceededMemberTest, SpeaksForEachRoundOnce) {
  runs(1, 1, {});
  renewed(1);
  ends();
  runs(2, 0, {1, 1, -1, 2, 0});
  const auto vote = said();
  ASSERT_TRUE(vote) << "the successors are the same";
  EXPECT_EQ(vote->vote.latest, (Place{1, 2, 0, 2, 0}));
  runs(2, 0, {1, 1, -1, 2, 0});
  EXPECT_FALSE(said());
}

TEST_F(SucceededMemberTest, OneThatMaySucceedTheStoreKeepsItsHistory) {
  runs(1, 1, {});
  done();
  History history;
  history.begin({1, 2, 2, 0, 1'000, 0, 0, Cause::None, "", 0});
  member_->on_snapshot({watches_.at(keys_.history), {{keys_.history, encode(history)}}});
  EXPECT_EQ(member_->vote().history(), history);
  history.begin({2, 2, 2, 0, 2'000, 0, 0, Cause::None, "", 0});
  put(keys_.history, encode(history));
  EXPECT_EQ(member_->vote().history(), history);
  // The next store knows of none.
  member_->on_snapshot({watches_.at(keys_.history), {}});
  EXPECT_EQ(member_->vote().history(), history);
}

TEST_F(SucceededMemberTest, OneThatMayNotIsNotToldOfIt) {
  config_.successor_port = 0;
  runs(1, 1, {});
  done();
  EXPECT_FALSE(watches_.contains(keys_.history));
}

TEST_F(SucceededMemberTest, StartsNothingBeforeTheRoundIsSettled) {
  runs(1, 1, {});
  renewed(0);
  EXPECT_FALSE(done().start);
  renewed(1);
  EXPECT_TRUE(done().start);
}

TEST_F(SucceededMemberTest, AWordThatARoundIsSettledAgesAsALeaseDoes) {
  runs(1, 1, {});
  member_->on_renewed({now_ - config_.keep_alive, 1, 1});
  advance();
  EXPECT_FALSE(done().start);
}

TEST_F(SucceededMemberTest, WhoseRoundFollowsFromASettledOneStartsAtOnce) {
  runs(1, 1, {});
  renewed(1);
  ends();
  runs(2, 0, {1, 1, -1, 2, 0});
  EXPECT_TRUE(done().start);
}

TEST_F(SucceededMemberTest, WhoWasNotInTheRoundBeforeWaits) {
  runs(1, 1, {});
  renewed(1);
  ends();
  runs(3, 0, {1, 2, -1, 2, 0});
  EXPECT_FALSE(done().start);
  renewed(3);
  EXPECT_TRUE(done().start);
}

TEST_F(SucceededMemberTest, ASpareOfTheRoundBeforeWaits) {
  runs(1, -1, {});
  renewed(1);
  runs(2, 0, {1, 1, -1, 2, 0});
  EXPECT_FALSE(done().start);
}

TEST_F(SucceededMemberTest, LooksForASuccessorAfterItsLease) {
  runs(1, 1, {});
  renewed(1);
  ASSERT_TRUE(done().start);
  member_->on_link_down("refused", {}, now_);
  advance(config_.keep_alive + Milliseconds(1));
  member_->on_lease_over();
  member_->on_workers_stopped();
  advance();
  EXPECT_FALSE(done().finish);
  LinkEvent up{Link::NewSession, {}};
  up.generation = 2;
  up.hosting = true;
  member_->on_link_up(up, now_);
  EXPECT_TRUE(member_->is_host());
  advance();
  const auto told = done();
  EXPECT_FALSE(told.finish);
  ASSERT_FALSE(told.published.empty());
  EXPECT_EQ(told.published.back().left, 1);
  EXPECT_EQ(told.published.back().latest, (Place{1, 1, 1, 2, 0}));
}

// It ran on after it had been stopped, and found the store before its guardian's word was read.
TEST_F(SucceededMemberTest, JoinsAgainWhenNothingIsLeftOfItsWorkers) {
  runs(1, 1, {});
  renewed(1);
  ASSERT_TRUE(done().start);
  member_->on_link_down("it ended the session", config_.keep_alive + Milliseconds(1), now_);
  LinkEvent up{Link::NewSession, {}};
  up.generation = 1;
  member_->on_link_up(up, now_);
  advance();
  auto told = done();
  EXPECT_TRUE(told.published.empty());
  ASSERT_TRUE(told.stop);
  EXPECT_TRUE(told.stop->immediately);
  member_->on_lease_over();
  member_->on_workers_stopped();
  advance();
  told = done();
  ASSERT_EQ(told.published.size(), 1U);
  EXPECT_EQ(told.published[0].left, 1);
}

// Its store ends with it, but not the job.
TEST_F(SucceededMemberTest, AHostGoesAsTheOthersDo) {
  LinkEvent up{Link::NewSession, {}};
  up.generation = 1;
  up.hosting = true;
  member_->on_link_up(up, now_);
  ASSERT_TRUE(member_->is_host());
  runs(1, 0, {});
  done();
  member_->on_leave_requested("received SIGTERM", 143, now_);
  advance();
  const auto told = done();
  ASSERT_EQ(told.published.size(), 1U);
  EXPECT_TRUE(told.published[0].leave);
  EXPECT_FALSE(told.published[0].stop);
}

TEST_F(SucceededMemberTest, AHostThatIsASpareJustLeaves) {
  LinkEvent up{Link::NewSession, {}};
  up.generation = 1;
  up.hosting = true;
  member_->on_link_up(up, now_);
  runs(1, -1, {});
  done();
  member_->on_stop_requested("received SIGTERM", 143, now_);
  advance();
  const auto told = done();
  EXPECT_TRUE(told.published.empty() || !told.published.back().stop);
  ASSERT_TRUE(told.finish);
  EXPECT_EQ(told.finish->outcome.end, End::Stopped);
}

// The guardian has killed them: that is no failure, which would cost the job a restart or its end.
TEST_F(SucceededMemberTest, HasLeftTheRoundWhenItsLeaseIsOver) {
  runs(1, 1, {});
  renewed(1);
  ASSERT_TRUE(done().start);
  member_->on_link_down("silent", {}, now_);
  advance(config_.keep_alive + Milliseconds(1));
  member_->on_lease_over();
  member_->on_workers_failed(1, {});
  advance();
  const auto killed = done();
  ASSERT_TRUE(killed.stop);
  EXPECT_TRUE(killed.stop->immediately);
  member_->on_workers_stopped();
  member_->on_link_up({Link::Up, {}}, now_);
  advance();
  const auto told = done();
  ASSERT_FALSE(told.published.empty());
  EXPECT_EQ(told.published.back().left, 1);
  EXPECT_EQ(told.published.back().failed, 0);
}

// Of the next round it does not stop the workers for what has become of those.
TEST_F(SucceededMemberTest, AfterItsLeaseItTakesPartInTheNextRound) {
  runs(1, 1, {});
  renewed(1);
  ASSERT_TRUE(done().start);
  member_->on_lease_over();
  advance();
  member_->on_workers_stopped();
  ends();
  runs(2, 0, {1, 1, -1, 2, 0});
  EXPECT_TRUE(done().start);
  member_->on_workers_failed(2, {});
  advance();
  const auto told = done();
  EXPECT_FALSE(told.stop);
  ASSERT_FALSE(told.published.empty());
  EXPECT_EQ(told.published.back().failed, 2);
}

TEST_F(SucceededMemberTest, GivesUpAtTheEndOfTheSearch) {
  runs(1, 1, {});
  member_->on_link_down("refused", {}, now_);
  advance(config_.search_timeout - Milliseconds(1));
  EXPECT_FALSE(done().finish);
  advance(Milliseconds(1));
  const auto told = done();
  ASSERT_TRUE(told.finish);
  EXPECT_EQ(told.finish->outcome.end, End::StoreLost);
}

}  // namespace
}  // namespace drun::rendezvous
