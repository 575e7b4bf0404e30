// The leader's decisions: when a round begins, why it stops, how the job ends.
#include "rendezvous/membership.hpp"

#include <csignal>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/messages.hpp"
#include "support/board.hpp"

namespace drun::rendezvous {
namespace {

using test::Board;

Config config(int min_nodes, int max_nodes) {
  Config s;
  s.min_nodes = min_nodes;
  s.max_nodes = max_nodes;
  s.quiet_period = Milliseconds(2'000);
  s.last_call_timeout = Milliseconds(30'000);
  s.join_timeout = Milliseconds(600'000);
  s.keep_alive = Milliseconds(6'000);
  s.stop_timeout = Milliseconds(60'000);
  return s;
}

std::string ticket(int number) {
  return std::to_string(number);
}

// A round of "a" and "b" runs, if they are enough.
Board two_running(const Config& config) {
  Board board(config);
  board.join("a");
  board.join("b");
  board.run();
  return board;
}

// The tickets of the planned or running round, by group rank.
std::vector<std::string> order(const State& state) {
  std::vector<std::string> result(state.slots.size());
  for (const auto& [name, place] : state.slots)
    result[static_cast<std::size_t>(place.group_rank)] = name;
  return result;
}

TEST(GatheringTest, BeginsARoundAtOnceWhenFullAndAfterAQuietPeriodWithEnough) {
  for (int min = 1; min <= 4; ++min) {
    for (int max = min; max <= 4; ++max) {
      for (int there = 0; there <= 5; ++there) {
        for (const int quiet_ms : {0, 1'999, 2'000}) {
          Board board(config(min, max));
          for (int i = 0; i < there; ++i)
            board.join(ticket(i));
          board.pass(Milliseconds(quiet_ms));
          board.settle();
          const bool begins = there >= max || (there >= min && quiet_ms >= 2'000);
          EXPECT_EQ(board.phase() == Phase::Preparing, begins)
              << there << " of " << min << ":" << max << " after " << quiet_ms;
          EXPECT_EQ(board.state().round.nodes, begins ? std::min(there, max) : 0);
        }
      }
    }
  }
}

// Nobody looks at what time brings before it is due.
TEST(GatheringTest, LooksAgainAtTheEndOfTheQuietPeriodOrOfTheLastCall) {
  Board board(config(1, 30));
  const Time begin = board.now();
  for (int i = 0; i < 20; ++i) {
    board.join(ticket(i));
    board.settle();
    board.state().progress_due = false;  // what is waited for needs no telling
    EXPECT_EQ(next_deadline(board.state(), board.config()),
              std::min(board.now() + Milliseconds(2'000), begin + Milliseconds(30'000)));
    board.pass(Milliseconds(1'500));
  }
  EXPECT_EQ(board.phase(), Phase::Gathering);
}

TEST(GatheringTest, LooksAgainWhenItIsSureThatNobodyRuns) {
  Board board(config(1, 1));
  board.join("a");
  board.state().unsure_until = board.now() + Milliseconds(5'000);
  board.settle();
  board.state().progress_due = false;
  EXPECT_EQ(board.phase(), Phase::Gathering);
  EXPECT_EQ(next_deadline(board.state(), board.config()), board.now() + Milliseconds(5'000));
}

TEST(GatheringTest, EachMemberRemembersTheCounts) {
  Board board(config(3, 3));
  auto d = board.document("a");
  d.restarts = 2;
  d.losses = 3;
  board.put("a", d);
  board.join("b");
  EXPECT_EQ(board.state().restarts_floor, 2);
  EXPECT_EQ(board.state().losses_floor, 3);
}

TEST(GatheringTest, AtALaterStoreWhoWasLostHasItsNameToo) {
  auto s = config(2, 2);
  s.successors = 3;
  Board board(s);
  board.state().succession = {2, board.now()};
  board.join("a");
  board.join("b");
  board.run();
  ASSERT_TRUE(board.state().round.latest.exists());
  board.gone("b");
  board.settle();
  board.all_left();
  board.settle();
  EXPECT_THAT(board.state().round.waiting,
              testing::EndsWith("b (group rank 1) was lost in round 1"));
}

TEST(GatheringTest, ThatTheRoundBeforeHasEndedIsSaidOnce) {
  auto s = config(2, 2);
  s.max_restarts = 1;
  Board first(s);
  first.join("a");
  EXPECT_THAT(first.step().log, testing::IsEmpty()) << "there was none";
  Board board = two_running(s);
  board.gone("b");
  board.settle();
  board.all_left();
  const auto begun = board.step();
  EXPECT_THAT(begun.log, testing::Contains(testing::HasSubstr("has ended; waiting for nodes")));
  for (int i = 0; i < 3; ++i) {
    board.pass(Milliseconds(60'000));
    board.state().next_progress = board.now();
    board.state().progress_due = true;
    EXPECT_THAT(board.step().log, testing::IsEmpty());
  }
}

TEST(GatheringTest, CountsThatOthersRememberAreWrittenAtOnce) {
  for (const int known : {0, 3}) {
    Board board(config(2, 2));
    board.join("a");
    board.settle();
    board.state().losses_floor = known;
    board.state().restarts_floor = known;
    board.state().round.losses = board.state().round.restart_count = 1;
    const auto decision = decide(board.state(), board.config(), board.now());
    EXPECT_EQ(decision.round.losses, std::max(known, 1));
    EXPECT_EQ(decision.round.restart_count, std::max(known, 1));
  }
}

TEST(GatheringTest, AnUnfitNodeIsNotReady) {
  Board board(config(2, 2));
  board.join("a");
  board.join("b", 1);
  ASSERT_EQ(board.state().ready, 2);
  Decision decision;
  decision.round = board.state().round;
  decision.unfit = {"b", "nobody"};
  for (int time = 0; time < 2; ++time) {
    adopt(board.state(), board.config(), decision, board.now());
    EXPECT_EQ(board.state().ready, 1);
    EXPECT_EQ(board.state().members.at("b").standing, Standing::Unfit);
    EXPECT_TRUE(board.state().rank_holders.empty()) << "another may have its rank";
  }
}

// It waited for a rank that somebody else had, and was told to stop meanwhile.
TEST(GatheringTest, AStopOfANodeThatWaitsForItsRankIsNotForgotten) {
  Board board(config(2, 2));
  board.join("a", 0);
  board.join("b", 0);
  auto told = board.document("b");
  told.stop = StopRequest{"SIGTERM", 143};
  board.put("b", told);
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Gathering);
  board.gone("a");
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Closed);
}

// The store may show what a worker did before it answers the leader's write that started it.
TEST(RunningTest, AFailureThatCameBeforeTheAnswerToTheStartCounts) {
  Board board(config(2, 2));
  board.join("a");
  board.join("b");
  board.settle();
  board.prepared(board.state().plan.front().ticket);
  const auto starts = decide(board.state(), board.config(), board.now());
  ASSERT_EQ(starts.round.phase, Phase::Running);
  auto d = board.document("b");
  d.failed = starts.round.number;
  d.failure.emplace().exit_code = 7;
  board.put("b", d);
  adopt(board.state(), board.config(), starts, board.now());
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Stopping);
  ASSERT_EQ(board.state().failures.size(), 1U);
  EXPECT_EQ(board.state().failures.front().ticket, "b");
}

// It has left a round that the store has forgotten; that of the newcomers has the same number.
TEST(RunningTest, WhoWasInAnotherRoundOfTheNumberTakesNobodysRank) {
  Board board = two_running(config(2, 2));
  ASSERT_EQ(order(board.state()), (std::vector<std::string>{"a", "b"}));
  board.join("A");
  auto other = board.document("A");
  other.claim = Assignment{};
  other.claim->round = other.left = 1;
  other.claim->group_rank = 1;
  board.put("A", other);
  board.gone("a");
  board.settle();
  board.all_left();
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Preparing);
  EXPECT_EQ(board.state().plan.back().ticket, "b");
}

// Newcomers led an emptied store first, and gave their round a number that has workers elsewhere.
TEST(RunningTest, WorkersOfAnotherRoundWithItsNumberEndBoth) {
  Board board(config(2, 2));
  board.join("a");
  board.join("b");
  board.settle();
  board.prepared(board.state().plan.front().ticket);
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Running);
  board.holds("a");
  board.holds("b");
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Running);
  auto stranger = board.document("c");
  stranger.claim = Assignment{};
  stranger.claim->round = 1;
  board.put("c", stranger);
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Stopping);
  for (const std::string ticket : {"a", "b", "c"}) {
    auto d = board.document(ticket);
    d.left = 1;
    board.put(ticket, d);
  }
  board.pass(Milliseconds(5'999));
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering) << "others of that round may be out of touch";
  board.pass(Milliseconds(1));
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Preparing);
  EXPECT_EQ(board.state().round.number, 2);
  EXPECT_EQ(board.state().round.restart_count, 0);
}

// They do no harm to a later round; but others of theirs may be out of touch when that is over.
TEST(RunningTest, WorkersOfAForgottenRoundMakeTheNextWait) {
  Board board(config(2, 2));
  board.state().floor = 4;
  board.join("a");
  board.join("b");
  board.run();
  ASSERT_EQ(board.state().round.number, 5);
  auto stranger = board.document("c");
  stranger.claim = Assignment{};
  stranger.claim->round = 3;
  board.put("c", stranger);
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Running);
  EXPECT_TRUE(board.state().round.unsure);
  stranger.left = 3;
  board.put("c", stranger);
  board.gone("b");
  board.settle();
  board.left("a");
  board.pass(Milliseconds(5'999));
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering);
  board.pass(Milliseconds(1));
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Preparing);
}

TEST(PreparingTest, WaitsForANodeThatStillHasWorkers) {
  Board board(config(2, 3));
  board.join("a");
  board.join("b");
  board.pass(Milliseconds(2'000));
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Preparing);
  board.holds("c");  // of a round that nobody here knew
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering);
  board.pass(Milliseconds(6'000));
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering);
  EXPECT_TRUE(board.state().round.unsure) << "another leader may not see it";
  board.left("c");
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Preparing);
  EXPECT_FALSE(board.state().round.unsure);
}

TEST(GatheringTest, TheLastCallBoundsTheQuietPeriod) {
  Board board(config(1, 100));
  for (int i = 0; i < 30; ++i) {  // one a second: never quiet
    EXPECT_EQ(board.phase(), Phase::Gathering) << i;
    board.join(ticket(i));
    board.settle();
    board.pass(Milliseconds(1'000));
  }
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Preparing);
}

TEST(GatheringTest, TheLastCallBeginsAnewWhenThereWereTooFew) {
  Board board(config(2, 100));
  board.join("a");
  board.join("b");
  board.gone("b");
  board.pass(Milliseconds(29'000));
  board.join("c");
  board.pass(Milliseconds(1'000));
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering);
}

TEST(GatheringTest, WhoIsWaitedForIsWrittenAgainWhenItHasChanged) {
  Board board(config(3, 3));
  board.join("a");
  board.settle();
  EXPECT_THAT(board.state().round.waiting, testing::StartsWith("1 of 3 nodes (a)"));
  board.join("b");
  board.pass(Milliseconds(60'000));
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering);
  EXPECT_THAT(board.state().round.waiting, testing::StartsWith("2 of 3 nodes (a, b)"));
}

// Some of it is gone when the agents meet.
TEST(GatheringTest, TheTimeToJoinIsToldAsItWasGiven) {
  auto s = config(2, 2);
  s.join_timeout = Milliseconds(7'900);
  s.given_join_timeout = Milliseconds(8'000);
  Board board(s);
  board.join("a");
  board.settle();
  board.pass(Milliseconds(7'900));
  const auto decision = board.step();
  ASSERT_TRUE(decision.outcome);
  EXPECT_THAT(decision.outcome->text, testing::StartsWith("not enough nodes within 8 s: "));
}

TEST(GatheringTest, TheTimeToJoinEndsTheJobWithWhoIsMissing) {
  Board board(config(4, 4));
  board.join("a", 0);
  board.join("b", 2);
  board.pass(Milliseconds(599'999));
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering);
  board.pass(Milliseconds(1));
  const auto decision = board.step();
  ASSERT_TRUE(decision.outcome);
  EXPECT_EQ(decision.outcome->end, End::Timeout);
  EXPECT_EQ(decision.outcome->exit_code, kTimeLimit);
  EXPECT_EQ(
      decision.outcome->text,
      "not enough nodes within 600 s: 2 of 4 nodes (a, b); missing node ranks 1, 3; start drun "
      "on every node with this endpoint, or wait longer with --rdzv-conf "
      "join_timeout=SECONDS");
}

TEST(GatheringTest, OfRanksOfWhichSomeAreTakenItSaysHowManyAreMissing) {
  Board board(config(4, 4));
  board.join("a", 3);
  board.join("b");
  const auto text = [&] { return waiting_text(board.state(), board.config(), board.now()); };
  EXPECT_EQ(text(), "2 of 4 nodes (a, b); missing 2 of node ranks 0-2");
  board.join("c", 1);
  EXPECT_EQ(text(), "3 of 4 nodes (a, b, c); missing 1 of node ranks 0, 2");
  board.gone("b");
  EXPECT_EQ(text(), "2 of 4 nodes (a, c); missing node ranks 0, 2");
}

TEST(RunningTest, ARoundThatMakesRoomNamesWhoHasJoined) {
  for (const int newcomers : {1, 3}) {
    Board board(config(2, 5));
    board.join("node0");
    board.join("node1");
    board.pass(Milliseconds(2'000));
    board.run();
    ASSERT_EQ(board.phase(), Phase::Running);
    for (int i = 0; i < newcomers; ++i)
      board.join("node" + std::to_string(5 + i));
    board.pass(Milliseconds(2'000));
    board.settle();
    EXPECT_EQ(board.state().round.reason,
              newcomers == 1 ? "node5 has joined" : "node[5-7] have joined");
  }
}

TEST(GatheringTest, TheTimeToJoinSaysWithWhichFlagsOthersFindTheJob) {
  Config own = config(2, 2);
  own.run_id = "job7.group1";
  own.job_flags = "--rdzv-id job7, --replica-groups 2 and --replica-group-id 1";
  Board board(own);
  board.join("a");
  board.pass(Milliseconds(600'000));
  const auto decision = board.step();
  ASSERT_TRUE(decision.outcome);
  EXPECT_NE(decision.outcome->text.find("with this endpoint and --rdzv-id job7, --replica-groups 2 "
                                        "and --replica-group-id 1, or wait"),
            std::string::npos)
      << decision.outcome->text;
}

TEST(GatheringTest, TheTimeToJoinEndsTheJobWithWhoWasLost) {
  const auto ended_without = [](int lost, bool told) {
    Board board(config(lost + 1, lost + 1));
    for (int i = 0; i <= lost; ++i)
      board.join(std::string(1, static_cast<char>('a' + i)));
    board.run();
    for (int i = 1; i <= lost; ++i) {
      const std::string node(1, static_cast<char>('a' + i));
      if (told) board.leaves(node);
      board.gone(node);
    }
    board.settle();
    board.left("a");
    board.settle();
    board.pass(Milliseconds(600'000));
    const auto decision = board.step();
    return decision.outcome ? decision.outcome->text : "no outcome";
  };
  const std::string end =
      "; start drun on every node with this endpoint, or wait longer with --rdzv-conf "
      "join_timeout=SECONDS";
  EXPECT_EQ(ended_without(1, true), "not enough nodes within 600 s: 1 of 2 nodes (a)" + end);
  EXPECT_EQ(ended_without(1, false),
            "not enough nodes within 600 s: 1 of 2 nodes (a); b (group rank 1) was lost in round "
            "1" +
                end);
  EXPECT_EQ(ended_without(6, false),
            "not enough nodes within 600 s: 1 of 7 nodes (a); b (group rank 1), c (group rank 2), "
            "d (group rank 3), e (group rank 4) and 2 more were lost in round 1" +
                end);
}

TEST(GatheringTest, OtherJobsOfTheStoreAreNamed) {
  Board board(config(2, 2));
  board.join("a");
  board.state().other_jobs = "'typo' (1 node)";
  EXPECT_EQ(waiting_text(board.state(), board.config(), board.now()),
            "1 of 2 nodes (a); other rendezvous ids on this store: 'typo' (1 node)");
}

struct DuplicateCase {
  int join_timeout_ms;
  int refused_after_ms;
};

TEST(DuplicateRankTest, IsHeldForTheLifeOfADeadSessionOrTheTimeToJoin) {
  for (const auto& [join_timeout, refused_after] : std::vector<DuplicateCase>{
           {600'000, 9'000}, {9'001, 9'000}, {9'000, 9'000}, {8'999, 8'999}, {1'000, 1'000}}) {
    auto s = config(2, 2);
    s.join_timeout = Milliseconds(join_timeout);
    Board board(s);
    board.join("a", 0);
    board.join("b", 0);
    board.settle();
    EXPECT_EQ(waiting_text(board.state(), board.config(), board.now()),
              "1 of 2 nodes (a); missing node rank 1; b asks for node rank 0, which a has");
    board.pass(Milliseconds(refused_after - 1));
    board.settle();
    EXPECT_EQ(board.state().members.at("b").standing, Standing::Held) << join_timeout;
    board.pass(Milliseconds(1));
    const auto due = next_deadline(board.state(), board.config());
    ASSERT_TRUE(due);
    EXPECT_LE(*due, board.now());
    const auto decision = board.step();
    ASSERT_EQ(decision.refused.count("b"), 1U) << join_timeout;
    EXPECT_EQ(decision.refused.at("b"), "b asks for node rank 0, which a has");
    EXPECT_FALSE(decision.outcome);
    const auto next = board.step();
    EXPECT_EQ(next.outcome.has_value(), refused_after >= join_timeout) << join_timeout;
    if (!next.outcome) continue;
    EXPECT_NE(next.outcome->text.find("missing node rank 1; refused: b asks for node "
                                      "rank 0, which a has"),
              std::string::npos)
        << next.outcome->text;
  }
}

// Nobody waits for the workers of one that is refused.
TEST(DuplicateRankTest, WhoHasWorkersStopsThemBeforeItIsRefused) {
  Board board(config(1, 2));
  board.join("a", 0);
  auto other = board.document("b");
  other.node_rank = 0;
  other.claim = Assignment{};
  other.claim->round = 3;
  board.put("b", other);
  ASSERT_EQ(board.state().members.at("b").standing, Standing::Held);
  board.settle();
  board.pass(Milliseconds(9'000));
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering);
  EXPECT_EQ(board.state().members.at("b").standing, Standing::Held);
  const auto due = next_deadline(board.state(), board.config());
  ASSERT_TRUE(due);
  EXPECT_GT(*due, board.now());
  other.left = 3;
  board.put("b", other);
  EXPECT_EQ(board.step().refused.count("b"), 1U);
}

TEST(DuplicateRankTest, TheFirstThatWaitsInheritsTheRankOfOneThatGoes) {
  Board board(config(2, 2));
  board.join("a", 0);
  board.join("b", 0);
  board.join("c", 0);
  board.pass(Milliseconds(1'000));
  board.gone("a");
  EXPECT_EQ(board.state().ready, 1);
  EXPECT_EQ(board.state().last_join, board.now());
  EXPECT_EQ(board.state().members.at("b").standing, Standing::Eligible);
  EXPECT_EQ(board.state().members.at("c").standing, Standing::Held);
  EXPECT_THAT(board.state().held, testing::ElementsAre("c"));
  board.gone("b");
  EXPECT_EQ(board.state().ready, 1);
  EXPECT_EQ(board.state().members.at("c").standing, Standing::Eligible);
}

// The store has forgotten the round, and who runs in it comes back after one that has not been in
// it.
TEST(DuplicateRankTest, WhoGaveItsRankToOneThatRunsWithItInheritsIt) {
  Board board(config(2, 2));
  board.state().round.number = 5;
  board.state().round.phase = Phase::Running;
  board.join("a", 0);
  auto runs = board.document("b");
  runs.node_rank = 0;
  runs.claim = Assignment{};
  runs.claim->round = 5;
  board.put("b", runs);
  EXPECT_EQ(board.state().members.at("a").standing, Standing::Held);
  EXPECT_EQ(board.state().members.at("b").standing, Standing::Eligible);
  board.gone("b");
  EXPECT_EQ(board.state().members.at("a").standing, Standing::Eligible);
}

TEST(RefusalTest, ARoundMoreThanAMillionAheadIsImpossible) {
  RoundDocument known;
  known.number = 3;
  MemberDocument d;
  d.host = "a";
  d.left = 1'000'003;
  EXPECT_EQ(impossible(known, d), "");
  d.left = 1'000'004;
  EXPECT_EQ(impossible(known, d), "a speaks of round 1000004, the job is in round 3");
}

TEST(RefusalTest, ADocumentThatMakesNoSenseRefusesANewMemberOnly) {
  Board board(config(2, 2));
  board.join("a");
  board.join("b");
  const auto unreadable = [&board](const std::string& ticket) {
    observe(board.state(), config(2, 2), ticket, {}, Time{}, "malformed");
  };
  unreadable("a");
  unreadable("c");
  EXPECT_EQ(board.state().members.at("a").standing, Standing::Eligible);
  EXPECT_EQ(board.state().members.at("a").document.host, "a") << "the last that made sense";
  EXPECT_EQ(board.state().members.at("c").standing, Standing::Refused);
  EXPECT_EQ(board.step().round.phase, Phase::Preparing) << "the two that are known begin";
}

TEST(RefusalTest, EveryFieldOfADisagreementIsNamed) {
  Board board(config(2, 2));
  auto d = board.document("b");
  d.agreement["nnodes"] = "3";
  d.agreement["max-restarts"] = "5";
  d.agreement["max-losses"] = "2";
  d.agreement["min-runtime"] = "30s";
  d.agreement.erase("resize");
  board.put("b", d);
  const auto decision = board.step();
  EXPECT_EQ(
      decision.refused.at("b"),
      "b has --max-losses 2, --max-restarts 5, --min-runtime 30s, --nnodes 3, ...; the job "
      "has no --max-losses, --max-restarts 0, no --min-runtime, --nnodes 2, ...; give all nodes "
      "the same");
  EXPECT_EQ(board.step().refused.size(), 0U) << "told once";
}

TEST(RefusalTest, AnotherProtocolOrARankBeyondTheJobIsRefused) {
  Board board(config(2, 2));
  auto d = board.document("a");
  d.version = kProtocolVersion + 1;
  board.put("a", d);
  board.join("b", 2);
  const auto decision = board.step();
  EXPECT_EQ(decision.refused.at("a"), "a speaks rendezvous protocol 2, the job 1");
  EXPECT_EQ(decision.refused.at("b"), "b asks for node rank 2, the job has 2 nodes");
}

TEST(PreparingTest, WhoIsPlannedIsKnownUntilTheRoundRuns) {
  Board board(config(2, 3));
  board.join("a");
  board.join("b");
  board.pass(Milliseconds(2'000));
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Preparing);
  EXPECT_EQ(board.state().planned.size(), 2U);
  EXPECT_EQ(next_deadline(board.state(), board.config()), board.now() + kPrepareTimeout);
  board.prepared(board.state().plan.front().ticket);
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Running);
  EXPECT_TRUE(board.state().planned.empty());
}

TEST(PreparingTest, RunsWhenTheFirstNodeIsReadyAndIsGivenUpOtherwise) {
  Board board(config(1, 3));
  board.join("a");
  board.join("b");
  board.pass(Milliseconds(2'000));
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Preparing);
  EXPECT_TRUE(board.step().writes.empty()) << "nothing happens until it is ready";
  board.prepared("b");
  EXPECT_TRUE(board.step().writes.empty()) << "b is not the first";
  board.prepared("a");
  board.step();
  EXPECT_EQ(board.phase(), Phase::Running);
  EXPECT_EQ(order(board.state()), (std::vector<std::string>{"a", "b"}));
}

// Another leader would not know it: the one before has taken the old places back.
TEST(PreparingTest, TheFirstNodesLastRankIsInItsPlace) {
  Board board = two_running(config(1, 2));
  ASSERT_EQ(order(board.state()), (std::vector<std::string>{"a", "b"}));
  board.gone("a");
  board.settle();
  board.left("b");
  board.pass(Milliseconds(2'000));
  std::vector<int> last_ranks;
  for (auto decision = board.step(); !decision.writes.empty(); decision = board.step()) {
    for (const auto& write : decision.writes)
      if (write.key == board.state().keys.assignment("b") && write.value)
        last_ranks.push_back(decode_assignment(*write.value).value().last_rank);
  }
  EXPECT_EQ(board.phase(), Phase::Preparing);
  EXPECT_EQ(last_ranks, std::vector<int>{1});
}

// Else who has seen it would take the round that runs with its number for another.
TEST(PreparingTest, TheRoundHasNoStoreOfTheOneBefore) {
  Board board = two_running(config(1, 2));
  ASSERT_NE(board.state().round.master, "");
  board.gone("a");
  board.settle();
  board.left("b");
  board.pass(Milliseconds(2'000));
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Preparing);
  EXPECT_EQ(board.state().round.master, "");
}

// The order says who is like the most: whoever ran before, by rank, then whoever came first.
TEST(PreparingTest, NodesAreComparedInTheirOrder) {
  std::vector<std::string> compared;
  auto s = config(3, 4);
  s.unfit = [&compared](const std::vector<NodeFacts>& nodes) {
    compared.clear();
    for (const auto& node : nodes)
      compared.push_back(node.ticket + " " + std::to_string(node.group_rank));
    return std::map<std::string, std::string>();
  };
  Board board(s);
  for (const char* each : {"c", "b", "d"})
    board.join(each);
  board.pass(Milliseconds(2'000));
  board.run();
  ASSERT_EQ(board.phase(), Phase::Running);
  EXPECT_EQ(compared, (std::vector<std::string>{"c -1", "b -1", "d -1"}));
  board.gone("b");
  board.settle();
  board.join("a");
  board.all_left();
  board.pass(Milliseconds(2'000));
  board.settle();
  EXPECT_EQ(compared, (std::vector<std::string>{"c 1", "d 2", "a -1"}));
}

TEST(PreparingTest, AMemberThatGoesOrOneThatComesMakesANewPlan) {
  Board lost(config(1, 3));
  lost.join("a");
  lost.join("b");
  lost.pass(Milliseconds(2'000));
  lost.settle();
  lost.gone("b");
  lost.step();
  EXPECT_NE(lost.state().round.nodes, 2);

  Board more(config(1, 3));
  more.join("a");
  more.pass(Milliseconds(2'000));
  more.settle();
  const int number = more.state().round.number;
  more.join("b");
  more.pass(Milliseconds(2'000));
  more.settle();
  EXPECT_EQ(more.phase(), Phase::Preparing);
  EXPECT_GT(more.state().round.number, number);
  EXPECT_EQ(more.state().round.nodes, 2);
}

TEST(PreparingTest, AFirstNodeThatDoesNotGetReadyIsLeftBehind) {
  Board board(config(1, 2));
  board.join("a");
  board.join("b");
  board.settle();
  board.pass(kPrepareTimeout);
  EXPECT_EQ(board.step().refused.count("a"), 1U);
  board.pass(Milliseconds(2'000));
  board.run();
  EXPECT_EQ(board.phase(), Phase::Running);
  EXPECT_EQ(order(board.state()), (std::vector<std::string>{"b"}));
}

// What happens in a running round of a and b, and what is decided.
struct RunningCase {
  const char* name;
  void (*event)(Board&);
  Phase phase;
  Cause cause;
};

// Ranks of other nodes that wait for the same one would look like it if they were stopped at once.
TEST(RunningTest, AfterATimeOutTheOthersGetTimeToRunIntoItToo) {
  const auto time_out = [](Board& board, const std::string& ticket) {
    auto d = board.document(ticket);
    d.failed = board.state().round.number;
    d.failure.emplace();
    d.failure->cause = "exit code 1";
    d.failure->rank = board.state().slots.at(ticket).group_rank;
    d.failure->timed_out = true;
    board.put(ticket, std::move(d));
  };
  const auto two = [](int most = 3) {
    auto s = config(3, most);
    s.ticket = "a";
    Board board(s);
    for (const char* name : {"a", "b", "c"})
      board.join(name);
    board.run();
    return board;
  };
  {
    Board board = two();
    const Time since = board.now();
    time_out(board, "a");
    board.settle();
    EXPECT_EQ(board.phase(), Phase::Running);
    EXPECT_EQ(next_deadline(board.state(), board.config()), since + kOthersTimeOut);
    board.pass(kOthersTimeOut - Milliseconds(1));
    board.fails("b", 7);  // it does not begin anew
    board.settle();
    EXPECT_EQ(board.phase(), Phase::Running);
    board.pass(Milliseconds(1));
    board.settle();
    EXPECT_EQ(board.phase(), Phase::Stopping);
    EXPECT_EQ(board.state().round.root, "a") << "the first one";
    EXPECT_EQ(board.state().failures.size(), 2U);
  }
  {
    Board board = two();
    time_out(board, "a");
    board.fails("b");
    board.settle();
    EXPECT_EQ(board.phase(), Phase::Running);
    board.fails("c");
    board.settle();
    EXPECT_EQ(board.phase(), Phase::Stopping) << "nobody is left";
  }
  {
    Board board = two();
    time_out(board, "a");
    board.gone("c");
    board.settle();
    EXPECT_EQ(board.phase(), Phase::Stopping);
    EXPECT_EQ(board.state().round.cause, Cause::Failure);
  }
  {
    Board board = two();
    board.fails("b");
    time_out(board, "a");
    board.settle();
    EXPECT_EQ(board.phase(), Phase::Stopping) << "that was no wait for others";
  }
  {
    Board board = two(5);
    board.pass(Milliseconds(2'000));
    board.run();
    ASSERT_EQ(board.phase(), Phase::Running);
    board.join("d");
    board.pass(Milliseconds(1'500));
    const Time since = board.now();
    time_out(board, "a");
    board.pass(Milliseconds(500));
    board.settle();
    EXPECT_EQ(board.phase(), Phase::Running);
    EXPECT_EQ(next_deadline(board.state(), board.config()), since + kOthersTimeOut)
        << "there is no time for a newcomer to wait for";
  }
}

TEST(RunningTest, ANodeWhoseLeaseWasOverIsNamed) {
  auto s = config(2, 2);
  s.ticket = "a";
  Board board(s);
  board.join("a");
  board.join("b");
  board.run();
  board.left("b");
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Stopping);
  EXPECT_EQ(board.state().round.reason,
            "b (group rank 1) was out of touch for too long, so its workers were stopped");
}

// Three nodes, a, b and c, whose round runs.
class ThreeNodesTest : public testing::Test {
 protected:
  explicit ThreeNodesTest(int max_restarts) : board_(three(max_restarts)) {
    for (const char* name : {"a", "b", "c"})
      board_.join(name);
    board_.run();
  }

  Board board_;

 private:
  static Config three(int max_restarts) {
    auto c = config(3, 3);
    c.ticket = "a";
    c.max_restarts = max_restarts;
    return c;
  }
};

// The report of how a worker has failed takes a moment, in which others
// fail for it.
class FailingNodesTest : public ThreeNodesTest {
 protected:
  FailingNodesTest() : ThreeNodesTest(2) {}
  std::string reported() {
    std::string tickets;
    for (const Failure& each : board_.state().failures)
      tickets += each.ticket;
    return tickets;
  }
};

TEST_F(FailingNodesTest, TheFirstThatSaidSoIsTheCause) {
  board_.begins_to_fail("b");
  board_.settle();
  EXPECT_EQ(board_.phase(), Phase::Running) << "how it has failed is not known yet";
  const Time since = board_.now();
  board_.fails("a");
  board_.fails("c");
  board_.settle();
  EXPECT_EQ(board_.phase(), Phase::Running);
  EXPECT_EQ(next_deadline(board_.state(), board_.config()), since + kReportFollows);
  board_.pass(Milliseconds(150));
  board_.fails("b", 7);
  board_.settle();
  EXPECT_EQ(board_.phase(), Phase::Stopping);
  EXPECT_EQ(board_.state().round.root, "b");
  EXPECT_EQ(board_.state().round.reason, "rank 1 on b: exit code 7");
  EXPECT_EQ(reported(), "bca");
}

TEST_F(FailingNodesTest, ALaterOneIsNotWaitedFor) {
  board_.fails("a");
  board_.begins_to_fail("b");
  board_.settle();
  EXPECT_EQ(board_.phase(), Phase::Stopping);
  EXPECT_EQ(board_.state().round.root, "a");
}

TEST_F(FailingNodesTest, OneThatSaysNoMoreIsNotWaitedForForEver) {
  board_.begins_to_fail("b");
  board_.fails("a");
  board_.pass(kReportFollows - Milliseconds(1));
  board_.settle();
  EXPECT_EQ(board_.phase(), Phase::Running);
  board_.pass(Milliseconds(1));
  board_.settle();
  EXPECT_EQ(board_.phase(), Phase::Stopping);
  EXPECT_EQ(board_.state().round.root, "a");
}

TEST_F(FailingNodesTest, OneThatIsGoneIsNotWaitedFor) {
  board_.begins_to_fail("b");
  board_.fails("c");
  board_.gone("b");
  board_.settle();
  EXPECT_EQ(board_.phase(), Phase::Stopping);
  EXPECT_EQ(board_.state().round.cause, Cause::Failure);
  EXPECT_EQ(board_.state().round.root, "c");
}

TEST_F(FailingNodesTest, WhatComesAfterTheStopIsNotTheCause) {
  board_.begins_to_fail("b");
  board_.begins_to_fail("c");
  board_.fails("a");
  board_.pass(kReportFollows);
  board_.settle();
  ASSERT_EQ(board_.state().round.root, "a");
  board_.fails("c");
  board_.fails("b");
  board_.settle();
  EXPECT_EQ(reported(), "acb");
}

TEST_F(FailingNodesTest, TheNextRoundKnowsNothingOfIt) {
  board_.begins_to_fail("c");
  board_.fails("b");
  board_.pass(kReportFollows);
  board_.settle();
  for (const char* name : {"a", "b", "c"})
    board_.left(name);
  board_.run();
  ASSERT_EQ(board_.phase(), Phase::Running);
  board_.fails("a");
  board_.settle();
  EXPECT_EQ(board_.phase(), Phase::Stopping);
  EXPECT_EQ(board_.state().round.root, "a");
}

// One rank on each node hangs, and the nodes tell so one after the other.
class HungNodesTest : public ThreeNodesTest {
 protected:
  HungNodesTest() : ThreeNodesTest(1) {}
  void hangs(const std::string& ticket, bool behind = false, std::optional<int> step = {}) {
    auto d = board_.document(ticket);
    d.failed = board_.state().round.number;
    d.failure.emplace();
    d.failure->host = ticket;
    d.failure->exit_code = 124;
    d.failure->cause = behind ? "it is behind" : "it waits";
    d.failure->rank = board_.state().slots.at(ticket).group_rank;
    if (step) d.failure->cause = "gave no heartbeat after step " + std::to_string(*step);
    d.failure->hung = true;
    d.failure->timed_out = !step;
    d.failure->clue = {behind, step, 1, Milliseconds(5'000)};
    board_.put(ticket, std::move(d));
    board_.settle();
  }
};

// It waits elsewhere than all others; its node has named one that waits as they do.
TEST_F(HungNodesTest, TheOddRankIsNamedThoughItsNodeNamedAnother) {
  auto d = board_.document("b");
  d.failed = board_.state().round.number;
  d.failure.emplace().hung = true;
  d.failure->rank = 1;
  d.failure->cause = "it waits";
  d.failure->clue.alike = 1;
  d.failure->others = {{{{7, 7}}, "it sleeps", "", 4711}};
  board_.put("b", std::move(d));
  hangs("a");
  hangs("c");
  ASSERT_EQ(board_.phase(), Phase::Stopping);
  EXPECT_EQ(board_.state().round.root, "b");
  EXPECT_THAT(board_.state().round.reason, testing::HasSubstr("rank 7"));
  EXPECT_THAT(board_.state().round.reason, testing::HasSubstr("it sleeps"));
}

// Each node has its own limits for stacks and dumps.
TEST_F(HungNodesTest, TheLongestThatANodeMayNeedIsWaitedFor) {
  hangs("a");
  auto d = board_.document("b");
  d.failed = board_.state().round.number;
  d.failure = board_.document("a").failure;
  d.failure->rank = 1;
  d.failure->clue.others_within = Milliseconds(9'000);
  board_.put("b", std::move(d));
  board_.settle();
  board_.pass(Milliseconds(8'999));
  board_.settle();
  ASSERT_EQ(board_.phase(), Phase::Running);
  board_.pass(Milliseconds(1));
  board_.settle();
  EXPECT_EQ(board_.phase(), Phase::Stopping);
}

TEST_F(HungNodesTest, WhoIsBehindIsTheRootCauseWhoeverTellsFirst) {
  hangs("a");
  hangs("b");
  board_.pass(Milliseconds(4'999));
  board_.settle();
  ASSERT_EQ(board_.phase(), Phase::Running) << "one has not told yet";
  hangs("c", true);
  ASSERT_EQ(board_.phase(), Phase::Stopping) << "nobody is left";
  EXPECT_EQ(board_.state().round.root, "c");
  EXPECT_EQ(board_.state().failures.front().ticket, "c");
  board_.all_left();
  board_.settle();
  EXPECT_EQ(board_.state().history.rounds.back().reason, "rank 2 on c: it is behind");
  EXPECT_EQ(board_.state().crash_rank, 2);
}

TEST_F(HungNodesTest, NobodyWaitsForANodeLongerThanItsTime) {
  hangs("a");
  hangs("c", true);
  EXPECT_EQ(next_deadline(board_.state(), board_.config()), board_.now() + Milliseconds(5'000));
  board_.pass(Milliseconds(5'000));
  board_.settle();
  ASSERT_EQ(board_.phase(), Phase::Stopping);
  EXPECT_EQ(board_.state().round.root, "c");
}

TEST_F(HungNodesTest, NorForOneThatHasSucceeded) {
  board_.succeeds("b");
  hangs("a");
  hangs("c", true);
  ASSERT_EQ(board_.phase(), Phase::Stopping);
  EXPECT_EQ(board_.state().round.root, "c");
}

// By their heartbeats: these say how far each has come.
TEST_F(HungNodesTest, OfThoseThatTellTheirStepsTheLowestIsTheRootCause) {
  board_.config().exclude_after = 1;
  for (const auto& [ticket, step] : {std::pair{"a", 4}, {"c", 3}, {"b", 4}}) {
    hangs(ticket, false, step);
    EXPECT_EQ(board_.phase(), ticket[0] == 'b' ? Phase::Stopping : Phase::Running);
  }
  EXPECT_EQ(board_.state().round.root, "c");
  board_.all_left();
  board_.settle();
  ASSERT_EQ(board_.state().round.costs.size(), 1U);
  EXPECT_TRUE(board_.state().round.costs.contains("c"));
}

TEST_F(HungNodesTest, IfTheLowestIsThatOfSeveralNodesNobodyIsToBlame) {
  board_.config().exclude_after = 1;
  for (const char* ticket : {"a", "b", "c"})
    hangs(ticket, false, 3);
  board_.all_left();
  board_.settle();
  EXPECT_EQ(board_.state().round.restart_count, 1);
  EXPECT_TRUE(board_.state().round.costs.empty());
}

// The workers of all nodes may have ended before the round is stopped, and with it the job.
TEST_F(HungNodesTest, TheJobEndsWithTheSameOne) {
  board_.state().round.restart_count = 1;  // none is left
  hangs("b");
  hangs("a");
  for (const char* ticket : {"a", "b"})
    board_.left(ticket);
  auto d = board_.document("c");
  d.left = board_.state().round.number;
  d.claim.reset();
  board_.put("c", d);
  hangs("c", true);
  ASSERT_EQ(board_.phase(), Phase::Closed);
  EXPECT_THAT(board_.state().history.rounds.back().reason,
              testing::StartsWith("rank 2 on c: it is behind"));
}

TEST(RunningTest, StopsForItsReasonsOnly) {
  const std::vector<RunningCase> cases = {
      {"nothing", [](Board&) {}, Phase::Running, Cause::None},
      {"a failure", [](Board& b) { b.fails("a"); }, Phase::Stopping, Cause::Failure},
      {"two failures", [](Board& b) { b.fails("b"), b.fails("a"); }, Phase::Stopping,
       Cause::Failure},
      {"a loss", [](Board& b) { b.gone("a"); }, Phase::Stopping, Cause::Membership},
      {"a loss that came back", [](Board& b) { b.gone("a"), b.join("a"); }, Phase::Running,
       Cause::None},
      {"one success", [](Board& b) { b.succeeds("a"); }, Phase::Running, Cause::None},
      {"a success that goes", [](Board& b) { b.succeeds("a"), b.left("a"), b.gone("a"); },
       Phase::Running, Cause::None},
      {"all succeed", [](Board& b) { b.succeeds("a"), b.succeeds("b"); }, Phase::Closed,
       Cause::None},
      {"a joiner, at once", [](Board& b) { b.join("c"); }, Phase::Running, Cause::None},
      {"a joiner, after the quiet period",
       [](Board& b) { b.join("c"), b.pass(Milliseconds(2'000)); }, Phase::Stopping, Cause::Resize},
      {"joiners that fill the job", [](Board& b) { b.join("c"), b.join("d"); }, Phase::Stopping,
       Cause::Resize},
      {"a joiner after a success",
       [](Board& b) { b.succeeds("a"), b.join("c"), b.pass(Milliseconds(60'000)); }, Phase::Running,
       Cause::None},
      {"a joiner that went again",
       [](Board& b) { b.join("c"), b.gone("c"), b.pass(Milliseconds(60'000)); }, Phase::Running,
       Cause::None},
      {"a stop", [](Board& b) { b.stops("b"); }, Phase::Closed, Cause::None},
      {"a stranger's stop", [](Board& b) { b.join("c"), b.stops("c"); }, Phase::Running,
       Cause::None},
      {"one that leaves", [](Board& b) { b.leaves("b"); }, Phase::Stopping, Cause::Membership},
      {"one that leaves as another fails", [](Board& b) { b.leaves("b"), b.fails("a"); },
       Phase::Stopping, Cause::Failure},
      {"a spare that leaves", [](Board& b) { b.join("c"), b.leaves("c"); }, Phase::Running,
       Cause::None},
      {"one that leaves after its success", [](Board& b) { b.succeeds("b"), b.leaves("b"); },
       Phase::Running, Cause::None},
      {"all leave", [](Board& b) { b.leaves("b"), b.leaves("a"); }, Phase::Closed, Cause::None},
  };
  for (const auto& each : cases) {
    auto s = config(1, 4);
    s.ticket = "a";
    Board board(s);
    board.join("a");
    board.join("b");
    board.pass(Milliseconds(2'000));
    board.run();
    ASSERT_EQ(board.phase(), Phase::Running);
    each.event(board);
    board.settle();
    EXPECT_EQ(board.phase(), each.phase) << each.name;
    EXPECT_EQ(board.state().round.cause, each.cause) << each.name;
  }
}

void fails_with(Board& board, const std::string& ticket, FailureSummary failure) {
  auto document = board.document(ticket);
  document.failed = board.state().round.number;
  failure.rank = board.state().slots.at(ticket).group_rank;
  document.failure = std::move(failure);
  board.put(ticket, std::move(document));
}

TEST(StoppingTest, AStopTellsOfTheFailureThatCameBefore) {
  struct Case {
    const char* name;
    void (*event)(Board&);
    int failed;  // rank; -1: none is told of
  };
  const std::vector<Case> cases = {
      {"none", [](Board&) {}, -1},
      {"one for which the round stops", [](Board& b) { b.fails("b"), b.settle(); }, 1},
      {"one that waits for the others'",
       [](Board& b) {
         FailureSummary late;
         late.exit_code = 1;
         late.timed_out = true;
         fails_with(b, "b", late);
         b.settle();
         ASSERT_EQ(b.phase(), Phase::Running);
       },
       1},
      {"one that was just told of", [](Board& b) { b.fails("b"); }, -1},
      {"the same signal",
       [](Board& b) {
         FailureSummary killed;
         killed.signal = SIGTERM;
         fails_with(b, "b", killed);
         b.settle();
       },
       -1},
      {"one whose restart is under way",
       [](Board& b) {
         b.fails("b");
         b.settle();
         b.all_left();
         b.settle();
         ASSERT_EQ(b.phase(), Phase::Preparing);
       },
       -1},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.name);
    auto settings = config(2, 2);
    settings.max_restarts = 1;
    Board board = two_running(settings);
    each.event(board);
    board.stops("a");
    const auto decision = board.step();
    ASSERT_TRUE(decision.outcome);
    EXPECT_EQ(decision.outcome->end, End::Stopped);
    EXPECT_EQ(decision.outcome->exit_code, 143);
    EXPECT_EQ(decision.outcome->text, "received SIGTERM");
    const auto& failure = decision.outcome->failure;
    EXPECT_EQ(failure ? failure->rank : -1, each.failed);
  }
}

// Whether the round hangs, once that has happened.
struct HangCase {
  const char* name;
  void (*event)(Board&);
  bool hung;
};

TEST(RunningTest, HangsOnlyIfNobodyGetsOn) {
  const std::vector<HangCase> cases = {
      {"nothing", [](Board&) {}, false},
      {"one of two", [](Board& b) { b.stalls("a"); }, false},
      {"both", [](Board& b) { b.stalls("a"), b.stalls("b"); }, true},
      {"both, and one makes progress again",
       [](Board& b) { b.stalls("a"), b.stalls("b"), b.settle(), b.stalls("a", false); }, false},
      {"both, twice",
       [](Board& b) {
         b.stalls("a"), b.stalls("b"), b.settle(), b.stalls("a", false), b.settle(), b.stalls("a");
       },
       true},
      {"one, and the other has succeeded", [](Board& b) { b.succeeds("a"), b.stalls("b"); }, true},
      {"one that succeeds after all",
       [](Board& b) { b.succeeds("a"), b.stalls("b"), b.settle(), b.succeeds("b"); }, false},
      {"one, and the other is gone", [](Board& b) { b.stalls("a"), b.gone("b"); }, false},
      {"both, and one fails",
       [](Board& b) { b.stalls("a"), b.stalls("b"), b.settle(), b.fails("a"); }, false},
      {"a spare does not count", [](Board& b) { b.join("c"), b.stalls("c"), b.stalls("a"); },
       false},
      {"a spare does not count against it",
       [](Board& b) { b.join("c"), b.stalls("a"), b.stalls("b"); }, true},
      {"in another round",
       [](Board& b) {
         for (const std::string ticket : {"a", "b"}) {
           auto d = b.document(ticket);
           d.stalled = b.state().round.number + 1;
           b.put(ticket, d);
         }
       },
       false},
  };
  for (const auto& each : cases) {
    auto s = config(2, 2);
    s.ticket = "a";
    Board board = two_running(s);
    ASSERT_EQ(board.phase(), Phase::Running);
    each.event(board);
    board.settle();
    EXPECT_EQ(board.state().round.hung, each.hung) << each.name;
  }
}

// What node b has said before that is out of date when a lets it go on, and ends.
TEST(RunningTest, AfterANodeHasSucceededTheOthersHaveTheWholeTime) {
  auto s = config(2, 2);
  s.ticket = "a";
  s.hang_timeout = Milliseconds(600'000);
  Board board = two_running(s);
  board.stalls("b");
  board.pass(Milliseconds(3'600'000));
  board.succeeds("a");
  board.settle();
  EXPECT_FALSE(board.state().round.hung);
  EXPECT_EQ(next_deadline(board.state(), s), board.now() + s.hang_timeout);
  board.pass(s.hang_timeout - Milliseconds(1));
  board.settle();
  EXPECT_FALSE(board.state().round.hung);
  board.pass(Milliseconds(1));
  board.settle();
  EXPECT_TRUE(board.state().round.hung);
  EXPECT_EQ(next_deadline(board.state(), s), std::nullopt);
}

TEST(RunningTest, ANodeThatIsToldToGoAndGoesIsLostOnce) {
  Board board = two_running(config(1, 2));
  board.leaves("b");
  EXPECT_EQ(board.state().lost, 1);
  board.gone("b");
  EXPECT_EQ(board.state().lost, 1);
}

TEST(RunningTest, WhereNoStoreCanSucceedAnotherNoMajorityCounts) {
  for (const int generation : {0, 1}) {
    auto s = config(2, 2);
    s.successors = 3;
    Board board(s);
    board.state().succession.generation = generation;
    board.join("a");
    board.join("b");
    board.run();
    ASSERT_EQ(board.phase(), Phase::Running);
    EXPECT_EQ(board.state().round.latest.exists(), generation > 0);
  }
}

// All nodes know from it that the stacks of those workers are wanted.
TEST(RunningTest, ARoundThatIsStoppedForAHangSaysSo) {
  for (const bool hung : {false, true}) {
    Board board = two_running(config(2, 2));
    auto d = board.document("b");
    d.failed = board.state().round.number;
    d.failure.emplace().exit_code = 124;
    d.failure->hung = hung;
    board.put("b", d);
    board.settle();
    ASSERT_EQ(board.phase(), Phase::Stopping);
    EXPECT_EQ(board.state().round.hung, hung);
  }
}

// A node that has not read of it by then must still know what its ranks are to fail for.
TEST(RunningTest, AHangStaysOneWhileItsRanksFail) {
  Board board = two_running(config(2, 2));
  board.stalls("a");
  board.stalls("b");
  board.settle();
  auto d = board.document("a");
  d.failed = board.state().round.number;
  d.failure.emplace().exit_code = 124;
  d.failure->hung = d.failure->timed_out = true;
  board.put("a", d);
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Running);
  EXPECT_TRUE(board.state().round.hung);
}

TEST(RunningTest, AHangEndsWithItsRound) {
  auto s = config(2, 2);
  s.max_restarts = 1;
  Board board = two_running(s);
  board.stalls("a");
  board.stalls("b");
  board.settle();
  ASSERT_TRUE(board.state().round.hung);
  board.fails("a", 124);
  board.settle();
  board.all_left();
  board.run();
  ASSERT_EQ(board.phase(), Phase::Running);
  EXPECT_EQ(board.state().round.number, 2);
  EXPECT_FALSE(board.state().round.hung);
  EXPECT_EQ(board.state().stalled, 0);
}

TEST(RunningTest, SparesAndResizeAtRestartDoNotStopARound) {
  Board full = two_running(config(1, 2));
  full.join("c");
  full.pass(Milliseconds(600'000));
  full.settle();
  EXPECT_EQ(full.phase(), Phase::Running);

  auto s = config(1, 2);
  s.resize = Resize::Restart;
  Board late(s);
  late.join("a");
  late.pass(Milliseconds(2'000));
  late.run();
  late.join("b");
  late.pass(Milliseconds(600'000));
  late.settle();
  EXPECT_EQ(late.phase(), Phase::Running);
}

TEST(RunningTest, AfterALossNobodyWaitsForThoseWhoWereIn) {
  Board board(config(1, 4));
  for (const char* each : {"a", "b", "c"})
    board.join(each);
  board.pass(Milliseconds(2'000));
  board.run();
  board.gone("b");
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Stopping);
  board.left("a");
  board.left("c");
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Preparing) << "at once, though all have joined just now";
}

TEST(RunningTest, AfterALossANewcomerIsGivenCompany) {
  Board board(config(1, 4));
  board.join("a");
  board.join("b");
  board.pass(Milliseconds(2'000));
  board.run();
  board.gone("b");
  board.join("c");
  board.settle();
  board.left("a");
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering) << "others may come with it";
  board.pass(Milliseconds(2'000));
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Preparing);
}

// A running round of a to d with room for fewer; the leader is a.
Board four(int min_nodes, int max_restarts = 0) {
  auto s = config(min_nodes, 4);
  s.ticket = "a";
  s.max_restarts = max_restarts;
  Board board(s);
  for (const char* name : {"a", "b", "c", "d"})
    board.join(name);
  board.run();
  return board;
}

TEST(LeavingTest, TheOthersGoOnWithoutItWhenItsWorkersAreGoneAndItsTimeIsOver) {
  for (const bool failed : {false, true}) {
    for (const bool gone : {false, true}) {
      Board board = four(2);
      board.pass(Milliseconds(60'000));
      board.leaves("c");
      if (failed) board.fails("b");
      const auto decision = board.step();
      EXPECT_EQ(decision.stopping, failed
                                       ? "rank 1 on b: exit code 1"
                                       : "c (group rank 2) leaves the job: received SIGTERM on c");
      for (const char* name : {"a", "b", "d"})
        board.left(name);
      board.pass(Milliseconds(5'000));
      board.settle();
      ASSERT_EQ(board.phase(), Phase::Stopping) << "its workers run";
      board.left("c");
      if (gone) board.gone("c");
      board.settle();
      EXPECT_EQ(board.phase(), Phase::Preparing);
      EXPECT_EQ(board.state().round.nodes, 3);
      EXPECT_EQ(board.state().round.restart_count, 0);
      board.run();
      EXPECT_EQ(order(board.state()), (std::vector<std::string>{"a", "b", "d"}));
    }
  }
}

TEST(LeavingTest, NoRoundBeginsWhileOthersMayBeToldToo) {
  Board board = four(1);
  const auto leaves = [&](const std::string& name) {
    board.leaves(name);
    board.settle();
    board.all_left();
    board.gone(name);
    board.settle();
    EXPECT_EQ(board.phase(), Phase::Gathering) << name;
  };
  leaves("d");
  const auto text = [&] { return waiting_text(board.state(), board.config(), board.now()); };
  EXPECT_THAT(text(), ::testing::EndsWith("received SIGTERM on d: waiting 3 s for others that are "
                                          "told to go"));
  board.pass(kLeaveWindow - Milliseconds(1));
  EXPECT_THAT(text(), ::testing::EndsWith(": waiting 1 s for others that are told to go"));
  board.settle();
  leaves("c");
  EXPECT_EQ(next_deadline(board.state(), board.config()), board.now() + kLeaveWindow);
  board.pass(kLeaveWindow);
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Preparing);
  // Nothing has been started yet, so this takes it back.
  board.leaves("b");
  board.prepared("a");
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering);
  board.gone("b");
  board.leaves("a");
  const auto decision = board.step();
  ASSERT_TRUE(decision.outcome);
  EXPECT_EQ(decision.outcome->end, End::Stopped);
  EXPECT_EQ(decision.outcome->exit_code, 143);
  EXPECT_EQ(decision.outcome->text, "received SIGTERM on d");
}

TEST(LeavingTest, TooFewThatStayWaitForMore) {
  Board board = four(4);
  board.leaves("c");
  board.settle();
  board.all_left();
  board.gone("c");
  // The wait is for another node.
  EXPECT_THAT(waiting_text(board.state(), board.config(), board.now()),
              ::testing::Not(::testing::HasSubstr("told to go")));
  board.pass(kLeaveWindow);
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering);
  board.join("e");
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Preparing);
}

TEST(LeavingTest, ALeaderThatHasNotSeenItselfEndsNothing) {
  Board board = four(1);
  board.gone("a");
  for (const char* name : {"b", "c", "d"})
    board.leaves(name);
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Stopping);
  board.join("a");
  board.all_left();
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering);
}

TEST(LeavingTest, TheRankThatItAskedForIsFree) {
  auto s = config(2, 2);
  s.ticket = "a";
  Board board(s);
  board.join("a", 0);
  board.join("b", 1);
  board.run();
  board.leaves("b");
  board.join("c", 1);
  EXPECT_EQ(board.state().members.at("c").standing, Standing::Eligible);
}

struct StoppingCase {
  const char* name;
  int max_restarts;
  bool restartable;
  bool also_lost;
  Phase phase;
  int restart_count;
};

TEST(StoppingTest, FailuresSpendTheBudgetAndLossesDoNot) {
  for (const auto& each : std::vector<StoppingCase>{
           {"a failure with a restart left", 1, true, false, Phase::Preparing, 1},
           {"a failure without one", 0, true, false, Phase::Closed, 0},
           {"a failure that forbids another try", 5, false, false, Phase::Closed, 0},
           {"the echo of a loss", 0, true, true, Phase::Gathering, 0}}) {
    auto s = config(3, 3);
    s.max_restarts = each.max_restarts;
    Board board(s);
    for (const char* name : {"a", "b", "c"})
      board.join(name);
    board.run();
    ASSERT_EQ(board.phase(), Phase::Running);
    board.fails("b", 7, each.restartable);
    if (each.also_lost) board.gone("c");
    board.settle();
    ASSERT_EQ(board.phase(), Phase::Stopping);
    board.left("a");
    board.settle();
    ASSERT_EQ(board.phase(), Phase::Stopping) << "b has not left: " << each.name;
    board.all_left();
    board.settle();
    EXPECT_EQ(board.phase(), each.phase) << each.name;
    EXPECT_EQ(board.state().round.restart_count, each.restart_count) << each.name;
  }
}

TEST(StoppingTest, AJobThatMayRestartSaysWhyItDoesNot) {
  for (const int max_restarts : {0, 3}) {
    auto s = config(2, 2);
    s.max_restarts = max_restarts;
    Board board = two_running(s);
    auto d = board.document("b");
    d.failed = board.state().round.number;
    d.failure.emplace();
    d.failure->exit_code = 8;
    d.failure->restartable = false;
    d.failure->why_no_restart = "--restart-on does not list exit code 8";
    board.put("b", d);
    board.settle();
    board.left("a");
    board.left("b");
    const auto outcome = board.step().outcome;
    ASSERT_TRUE(outcome);
    const std::vector<std::string> notes{"not restarted: --restart-on does not list exit code 8"};
    EXPECT_EQ(outcome->notes, max_restarts == 0 ? std::vector<std::string>() : notes);
  }
}

// What kills a node and not only its worker, such as a pod that is out of memory, may come again in
// every round.
TEST(StoppingTest, NoMoreRoundsAreLostThanAllowed) {
  for (const bool failure_first : {false, true}) {
    auto s = config(2, 3);
    s.max_losses = 1;
    s.max_restarts = 5;
    Board board(s);
    for (const char* name : {"a", "b", "c"})
      board.join(name);
    board.run();
    const auto lose_c = [&] {
      if (failure_first) board.fails("b");
      board.gone("c");
      board.settle();
      board.all_left();
    };
    lose_c();
    board.settle();
    EXPECT_EQ(board.state().round.losses, 1);
    EXPECT_EQ(board.state().round.restart_count, 0);
    board.join("c");
    board.run();
    ASSERT_EQ(board.phase(), Phase::Running);
    lose_c();
    const auto decision = board.step();
    ASSERT_TRUE(decision.outcome);
    EXPECT_EQ(decision.outcome->end, End::NodesLost);
    EXPECT_EQ(decision.outcome->exit_code, 125);
    EXPECT_EQ(decision.outcome->text,
              "c (group rank 2) is gone; nodes were lost in 2 rounds, --max-losses allows 1");
  }
}

// How a round of a, b and c ends: a node is lost, is told to go, or comes; a worker fails first.
enum class RoundEnd { Lost, Told, Joined, FailedAndLost };
struct BriefCase {
  const char* name;
  RoundEnd end;
  int ran_ms;
  int restarts;  // that it spends
};

TEST(StoppingTest, ARoundThatIsStoppedTooSoonSpendsARestartWhateverStoppedItButNewcomers) {
  for (const auto& each :
       std::vector<BriefCase>{{"lost at once", RoundEnd::Lost, 0, 1},
                              {"lost just before", RoundEnd::Lost, 29'999, 1},
                              {"lost in time", RoundEnd::Lost, 30'000, 0},
                              {"told to go", RoundEnd::Told, 29'999, 1},
                              {"told to go in time", RoundEnd::Told, 30'000, 0},
                              {"newcomers", RoundEnd::Joined, 5'000, 0},
                              {"the echo of a loss", RoundEnd::FailedAndLost, 5'000, 1},
                              {"the echo of a loss in time", RoundEnd::FailedAndLost, 30'000, 0}}) {
    auto s = config(2, 4);
    s.min_runtime = Milliseconds(30'000);
    s.max_restarts = 5;
    Board board(s);
    for (const char* name : {"a", "b", "c"})
      board.join(name);
    board.pass(s.quiet_period);
    board.run();
    ASSERT_EQ(board.phase(), Phase::Running);
    board.pass(Milliseconds(each.ran_ms));
    if (each.end == RoundEnd::FailedAndLost) board.fails("b");
    if (each.end == RoundEnd::Joined) {
      board.join("d");
    } else if (each.end == RoundEnd::Told) {
      board.leaves("c");
    } else {
      board.gone("c");
    }
    board.settle();
    ASSERT_EQ(board.phase(), Phase::Stopping) << each.name;
    EXPECT_EQ(board.state().round.brief, each.restarts == 1) << each.name;
    board.pass(Milliseconds(40'000));  // stopping takes long: that does not count
    board.all_left();
    board.settle();
    EXPECT_EQ(board.state().round.restart_count, each.restarts) << each.name;
    EXPECT_FALSE(board.state().round.brief);
    EXPECT_EQ(board.state().history.rounds.back().restart, each.restarts) << each.name;
  }
}

TEST(StoppingTest, ABriefRoundWithoutARestartLeftEndsTheJob) {
  for (const bool failure_first : {false, true}) {
    auto s = config(2, 3);
    s.min_runtime = Milliseconds(30'000);
    s.max_restarts = 1;
    Board board(s);
    for (const char* name : {"a", "b", "c"})
      board.join(name);
    board.run();
    for (const int spent : {0, 1}) {
      ASSERT_EQ(board.phase(), Phase::Running);
      ASSERT_EQ(board.state().round.restart_count, spent);
      if (failure_first) board.fails("b", 7);
      board.gone("c");
      board.settle();
      board.all_left();
      if (spent == 1) break;
      const auto goes_on = board.step();
      EXPECT_FALSE(goes_on.outcome);
      ASSERT_EQ(goes_on.news.size(), 1U);
      EXPECT_EQ(goes_on.news.front().what, News::What::Restarted);
      EXPECT_EQ(goes_on.news.front().restarts, 1);
      EXPECT_THAT(goes_on.log, testing::Contains(testing::StartsWith("restart 1/1 after ")));
      board.join("c");
      board.run();
    }
    const auto decision = board.step();
    ASSERT_TRUE(decision.outcome);
    EXPECT_EQ(decision.outcome->end, failure_first ? End::Failure : End::NodesLost);
    EXPECT_EQ(decision.outcome->exit_code, failure_first ? 7 : 125);
    if (failure_first) continue;
    EXPECT_EQ(
        decision.outcome->text,
        "c (group rank 2) is gone, and round 3 had run for less than --min-runtime 30 s; that "
        "spends a restart, and --max-restarts 1 leaves none");
  }
}

TEST(StoppingTest, ANodeThatWasToldToGoIsNoLossButOneThatHasLostItsGuardianIs) {
  for (const bool told : {true, false}) {
    auto s = config(2, 3);
    s.max_losses = 5;
    Board board(s);
    for (const char* name : {"a", "b", "c"})
      board.join(name);
    board.run();
    auto d = board.document("c");
    d.leave = StopRequest{"it goes", told ? 128 + SIGTERM : kDrunFailed};
    board.put("c", d);
    board.settle();
    board.all_left();
    board.gone("c");
    board.pass(kLeaveWindow);
    board.settle();
    EXPECT_EQ(board.phase(), Phase::Preparing);
    EXPECT_EQ(board.state().round.losses, told ? 0 : 1);
  }
}

TEST(StoppingTest, TheFirstFailureIsTheRootCauseAndTheExitCodeFollowsThePolicy) {
  for (const auto& [policy, code] :
       std::vector<std::pair<ExitCodePolicy, int>>{{ExitCodePolicy::FirstFailure, 3},
                                                   {ExitCodePolicy::LowestRank, 3},
                                                   {ExitCodePolicy::Highest, 9}}) {
    auto s = config(2, 2);
    s.exit_code = policy;
    Board board = two_running(s);
    board.fails("b", 3);
    board.fails("a", 9);
    board.settle();
    board.left("a");
    board.left("b");
    const auto outcome = board.step().outcome;
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->end, End::Failure);
    EXPECT_EQ(outcome->exit_code, code);
    EXPECT_EQ(outcome->failure->host, "b");
  }
}

TEST(StoppingTest, AFailureThatNoOtherJobHelpsAgainstEndsWithACodeThatSaysSo) {
  Board board = two_running(config(2, 2));
  auto d = board.document("b");
  d.failed = board.state().round.number;
  d.failure.emplace();
  d.failure->exit_code = 3;
  d.failure->restartable = d.failure->requeue = false;
  d.failure->rank = 1;
  board.put("b", d);
  board.settle();
  board.left("a");
  board.left("b");
  const auto outcome = board.step().outcome;
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, End::Failure);
  EXPECT_EQ(outcome->exit_code, 93);
  EXPECT_EQ(outcome->failure->exit_code, 3);
  EXPECT_EQ(outcome->notes,
            std::vector<std::string>(
                {"--no-requeue-on: exit code 93 says that another run would fail, too"}));
}

// The round of the nodes a and b stops, because a worker of a has failed.
Board stopping(int min_nodes) {
  Board board = two_running(config(min_nodes, 2));
  board.fails("a");
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Stopping);
  return board;
}

TEST(StoppingTest, ANodeThatDoesNotStopIsLeftBehind) {
  Board board = stopping(1);
  board.left("a");
  board.pass(Milliseconds(52'999));
  EXPECT_TRUE(board.step().writes.empty());
  board.pass(Milliseconds(1));
  EXPECT_EQ(next_deadline(board.state(), board.config()), board.now());
  EXPECT_EQ(board.step().writes.size(), 1U) << "to see whether the store takes something";
  EXPECT_TRUE(board.step().writes.empty());
  board.pass(Milliseconds(6'999));
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Stopping);
  board.pass(Milliseconds(1));
  EXPECT_EQ(next_deadline(board.state(), board.config()), board.now());
  EXPECT_EQ(board.step().refused.count("b"), 1U);
}

TEST(StoppingTest, TheRankOfANodeThatIsLeftBehindGoesToWhoWaitsForIt) {
  Board board(config(2, 2));
  board.join("a", 0);
  board.join("b", 1);
  board.run();
  board.fails("a");
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Stopping);
  board.left("a");
  board.pass(Milliseconds(53'000));
  board.join("c", 1);
  board.settle();
  EXPECT_EQ(board.state().members.at("c").standing, Standing::Held);
  board.pass(Milliseconds(7'000));
  EXPECT_EQ(board.step().refused.count("b"), 1U);
  EXPECT_EQ(board.state().members.at("c").standing, Standing::Eligible);
}

// They were turned away, and ask again when the store has taken something.
TEST(StoppingTest, NobodyIsLeftBehindJustAfterTheStoreHasTakenAWrite) {
  Board board = stopping(1);
  board.left("a");
  board.pass(Milliseconds(80'000));
  EXPECT_TRUE(board.step().refused.empty());
  board.pass(Milliseconds(6'999));
  EXPECT_TRUE(board.step().refused.empty());
  board.pass(Milliseconds(1));
  EXPECT_EQ(board.step().refused.count("b"), 1U);
}

TEST(StoppingTest, WhoCannotSayThatItHasStoppedIsGivenTime) {
  Board board = stopping(2);
  board.pass(Milliseconds(19'000));
  give_time_to_stop(board.state(), board.now());
  board.pass(board.config().stop_timeout - Milliseconds(7'000));
  EXPECT_TRUE(board.step().refused.empty());
  board.pass(Milliseconds(6'999));
  EXPECT_TRUE(board.step().refused.empty());
  board.pass(Milliseconds(1));
  EXPECT_EQ(board.step().refused.size(), 2U);
}

TEST(StoppingTest, SurvivorsKeepTheirRankAndASpareTakesTheDeadNodes) {
  Board board(config(3, 3));
  for (const char* name : {"a", "b", "c", "spare"})
    board.join(name);
  board.run();
  ASSERT_EQ(order(board.state()), (std::vector<std::string>{"a", "b", "c"}));
  board.gone("b");
  board.settle();
  board.left("a");
  board.left("c");
  board.run();
  EXPECT_EQ(board.phase(), Phase::Running);
  EXPECT_EQ(order(board.state()), (std::vector<std::string>{"a", "spare", "c"}));
  EXPECT_EQ(board.state().round.restart_count, 0);
}

// Nobody asks a newcomer, but its workers run by the time that the round is known to have begun.
TEST(RunningTest, AStopOfANewcomerThatWasTakenInMeanwhileEndsTheJob) {
  Board board(config(1, 2));
  board.join("a");
  board.pass(Milliseconds(2'000));
  board.run();
  ASSERT_EQ(board.phase(), Phase::Running);
  board.join("b");
  board.pass(Milliseconds(2'000));
  board.settle();
  board.all_left();
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Preparing);
  board.prepared(board.state().plan.front().ticket);
  const auto starts = decide(board.state(), board.config(), board.now());
  ASSERT_EQ(starts.round.phase, Phase::Running);
  board.stops("b");
  adopt(board.state(), board.config(), starts, board.now());
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Closed);
}

// Of a job that is over the store keeps only how it ended.
TEST(ClosedTest, WhatTheNextJobMustNotFindIsRemoved) {
  Board board = two_running(config(2, 2));
  const Keys& keys = board.state().keys;
  const std::set<std::string> given(board.state().assignment_keys.begin(),
                                    board.state().assignment_keys.end());
  EXPECT_EQ(given, (std::set<std::string>{"a", "b"}));
  board.stops("a");
  const auto decision = board.step();
  ASSERT_TRUE(decision.outcome);
  std::set<std::string> removed;
  for (const auto& write : decision.writes)
    if (!write.value) removed.insert(write.key);
  EXPECT_EQ(removed, (std::set<std::string>{keys.job, keys.assignment("a"), keys.assignment("b")}));
  EXPECT_TRUE(board.state().assignment_keys.empty());
}

TEST(ClosedTest, ANodeThatWasSetAsideIsNotedHoweverTheJobEnds) {
  for (const bool succeeds : {true, false}) {
    Board board = two_running(config(2, 2));
    board.state().round.set_aside = {{"x", "node7", "its disk is full", -1, ""},
                                     {"y", "node8", "its disk is full", 1, "exit code 1", true}};
    for (const char* ticket : {"a", "b"})
      succeeds ? board.succeeds(ticket) : board.stops(ticket);
    const auto decision = board.step();
    ASSERT_TRUE(decision.outcome);
    EXPECT_EQ(decision.outcome->exit_code, succeeds ? 0 : 143);
    EXPECT_EQ(decision.outcome->notes,
              std::vector<std::string>{"node7 was set aside: its disk is full"});
  }
}

// Its first node may have been told already.
TEST(ClosedTest, ThePlaceOfARoundThatWasBeingPreparedIsRemoved) {
  Board board(config(2, 2));
  board.join("a");
  board.join("b");
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Preparing);
  const std::string first = board.state().keys.assignment(board.state().plan.front().ticket);
  board.stops("a");
  int removed = 0;
  for (const auto& write : board.step().writes)
    removed += write.key == first && !write.value ? 1 : 0;
  EXPECT_EQ(removed, 1);
}

TEST(StoppingTest, FailuresOfARoundAreNoneOfTheNext) {
  Config s = config(2, 2);
  s.max_restarts = 3;
  Board board = two_running(s);
  board.fails("a", 7);
  EXPECT_EQ(board.state().failed_ranks, 1);
  board.settle();
  board.all_left();
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Preparing);
  EXPECT_EQ(board.state().failed_ranks, 0);
  EXPECT_TRUE(board.state().failures.empty());
  EXPECT_TRUE(board.state().failed.empty());
}

TEST(ClosedTest, NothingIsDecidedAnyMore) {
  Board board(config(1, 1));
  board.join("a");
  board.run();
  board.succeeds("a");
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Closed);
  board.join("b");
  board.gone("a");
  board.pass(Milliseconds(1'000'000));
  EXPECT_TRUE(board.step().writes.empty());
  EXPECT_FALSE(next_deadline(board.state(), board.config()));
}

TEST(RankWishTest, ARankThatIsTakenIsAnyRank) {
  Board board(config(3, 3));
  for (const std::string name : {"a", "b", "c"}) {
    auto d = board.document(name);
    d.node_rank = name == "a" ? 2 : 0;
    d.node_rank_is_wish = true;
    board.put(name, d);
  }
  const auto& members = board.state().members;
  EXPECT_EQ(members.at("a").document.node_rank, 2);
  EXPECT_EQ(members.at("b").document.node_rank, 0);
  EXPECT_EQ(members.at("c").document.node_rank, std::nullopt);
  EXPECT_EQ(members.at("c").standing, Standing::Eligible);
}

TEST(RankWishTest, WhoAsksInEarnestGoesFirst) {
  Board board(config(3, 3));
  auto d = board.document("a");
  d.node_rank = 0;
  d.node_rank_is_wish = true;
  board.put("a", d);
  board.join("b", 0);
  const auto& members = board.state().members;
  EXPECT_EQ(members.at("a").document.node_rank, std::nullopt);
  EXPECT_EQ(members.at("a").standing, Standing::Eligible);
  EXPECT_EQ(members.at("b").standing, Standing::Eligible);
  EXPECT_EQ(board.state().rank_holders.at(0), "b");
}

// A new leader may see it before the one that has the rank.
TEST(RankWishTest, WhoRunsWithAnotherRankWishesNoMore) {
  Board board(config(2, 2));
  auto d = board.document("a");
  d.node_rank = 0;
  d.node_rank_is_wish = true;
  d.claim.emplace().group_rank = 1;
  board.put("a", d);
  EXPECT_EQ(board.state().members.at("a").document.node_rank, std::nullopt);
}

// What the store says is not trusted: a member that asks for another rank later is not followed.
TEST(HostileMemberTest, ALaterRankIsIgnored) {
  Board board(config(2, 2));
  board.join("a", 0);
  board.join("b", 0);
  auto d = board.document("b");
  d.node_rank = 1;
  board.put("b", d);
  board.pass(Milliseconds(9'000));
  EXPECT_EQ(board.step().refused.count("b"), 1U);
}

// ---- stores that succeed one another ----

// `listed`: for each node which of the job's endpoints is its own.
Board with_successors(int nodes, const std::vector<int>& listed = {}, std::int64_t epoch = 1) {
  Config s = config(1, nodes);
  s.successors = 2;
  Board board(s);
  board.state().succession.generation = 1;
  board.state().epoch = epoch;
  for (int i = 0; i < nodes; ++i) {
    auto d = board.document(ticket(i));
    d.is_host = i == 0;
    d.successor_port = static_cast<std::uint16_t>(40'000 + i);
    if (!listed.empty()) d.listed = listed[static_cast<std::size_t>(i)];
    board.put(ticket(i), d);
  }
  board.run();
  return board;
}

TEST(ElectorateTest, EachRoundSaysWhoseMajorityCountsAndWhereTheNextStoresAre) {
  Board board = with_successors(4);
  const RoundDocument& round = board.state().round;
  EXPECT_EQ(round.latest, (Place{round.latest.era, round.number, -1, 4, 0}));
  EXPECT_EQ(round.latest.era / kOrigins, 1) << "the generation of the store";
  EXPECT_EQ(round.store_host, board.state().members.at(ticket(0)).document.host);
  EXPECT_FALSE(round.before.exists());
  ASSERT_EQ(round.successors.size(), 2U);
  EXPECT_EQ(round.successors[0].port, 40'001);
  EXPECT_EQ(round.successors[1].port, 40'002);
}

// Who leads at a store that begins where another one was lost does not know of it.
TEST(ElectorateTest, EachFirstRoundHasAnEraOfItsOwnAndTheLaterOnesGoBackToIt) {
  const std::int64_t era = with_successors(2).state().round.latest.era;
  EXPECT_EQ(with_successors(2).state().round.latest.era, era);
  EXPECT_NE(with_successors(2, {}, 2).state().round.latest.era, era) << "of another leadership";
  Board board = with_successors(3);
  const Place first = board.state().round.latest;
  board.state().succession.generation = 7;
  board.gone(ticket(1));
  board.settle();
  board.all_left();
  board.pass(Milliseconds(20'000));
  board.run();
  const Place& later = board.state().round.latest;
  EXPECT_TRUE(first.before(later));
  EXPECT_EQ(later.era - first.era, 6 * kOrigins);
}

TEST(ElectorateTest, ThoseWhereOthersLookComeFirst) {
  Board board = with_successors(5, {0, -1, 2, -1, 1});
  const auto& successors = board.state().round.successors;
  ASSERT_EQ(successors.size(), 2U);
  EXPECT_EQ(successors[0].port, 40'004) << "in the order of the endpoints";
  EXPECT_EQ(successors[1].port, 40'002);
  board = with_successors(3, {-1, -1, 2});
  EXPECT_EQ(board.state().round.successors.at(0).port, 40'002);
  EXPECT_EQ(board.state().round.successors.at(1).port, 40'001) << "then by rank";
}

// Neighbours in rank often share a rack, and are lost together.
TEST(ElectorateTest, SuccessorsAreSpreadOverTheRanks) {
  Board board = with_successors(9);
  const auto& successors = board.state().round.successors;
  ASSERT_EQ(successors.size(), 2U);
  EXPECT_EQ(successors[0].port, 40'001) << "the next one after the host";
  EXPECT_EQ(successors[1].port, 40'005);
  board = with_successors(9, {-1, -1, -1, 3, -1, -1, -1, -1, -1});
  EXPECT_EQ(board.state().round.successors.at(0).port, 40'003) << "an endpoint first";
  EXPECT_EQ(board.state().round.successors.at(1).port, 40'001);
}

TEST(ElectorateTest, ARestartOfTheSameNodesKeepsIt) {
  Board board = with_successors(3);
  board.config().max_restarts = 1;
  const RoundDocument first = board.state().round;
  board.fails(ticket(1));
  board.settle();
  board.all_left();
  board.run();
  ASSERT_GT(board.state().round.number, first.number);
  EXPECT_EQ(board.state().round.latest, first.latest);
}

TEST(ElectorateTest, OtherNodesAreAnotherOne) {
  Board board = with_successors(3);
  const RoundDocument first = board.state().round;
  board.gone(ticket(1));
  board.settle();
  board.all_left();
  board.pass(Milliseconds(2'000));
  board.run();
  const RoundDocument& next = board.state().round;
  ASSERT_EQ(next.nodes, 2);
  EXPECT_EQ(next.latest, (Place{first.latest.era, next.number, -1, 2, 0}));
  EXPECT_EQ(next.before, first.latest);
  ASSERT_EQ(next.successors.size(), 1U);
  EXPECT_EQ(next.successors[0].port, 40'002);
}

// Another first store has begun a round of a later era: who knows of that takes the next one of
// this store for the later.
TEST(ElectorateTest, TheNextOneComesAfterThatOfAnotherFirstStore) {
  Board board = with_successors(3);
  const Place first = board.state().round.latest;
  const Place other{first.era + 1, first.round, 0, 2, 0};
  board.state().others = {other};
  board.gone(ticket(1));
  board.settle();
  board.all_left();
  board.pass(Milliseconds(2'000));
  board.run();
  const RoundDocument& next = board.state().round;
  ASSERT_EQ(next.nodes, 2);
  EXPECT_TRUE(other.before(next.latest));
  EXPECT_EQ(next.before, first) << "it follows from the round that ran";
  EXPECT_TRUE(board.state().others.empty());
}

TEST(ElectorateTest, ARoundThatIsTakenUpKeepsItsSuccessorsAndNamesNoMoreThanWanted) {
  Board board = with_successors(4);
  State& state = board.state();
  const Successor old{"10.0.0.99", 40'099};
  state.succession.generation = 2;
  state.round.successors = {old};
  state.round_written = false;
  board.settle();
  ASSERT_EQ(board.state().round.successors.size(), 2U);
  EXPECT_EQ(board.state().round.successors[0], old);
  EXPECT_EQ(board.state().round.successors[1].port, 40'001);
}

TEST(ElectorateTest, WithoutSuccessorsNothingIsSaid) {
  Board board(config(1, 2));
  board.state().succession.generation = 1;
  board.join("a");
  board.join("b");
  board.run();
  EXPECT_FALSE(board.state().round.latest.exists());
  EXPECT_TRUE(board.state().round.successors.empty());
}

}  // namespace
}  // namespace drun::rendezvous
