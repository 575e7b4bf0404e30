#include "rendezvous/member_vote.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

Config config_of_member() {
  Config config;
  config.address = "node1";
  config.successor_port = 7'000;
  return config;
}

RoundDocument round(int number, int before, std::vector<Successor> successors = {}) {
  RoundDocument result;
  result.number = result.ran = number;
  if (number > 0) result.latest = {kOrigins, number, -1, 3};
  if (before > 0) result.before = {kOrigins, before, -1, 3};
  result.successors = std::move(successors);
  return result;
}

Renewed settled(int round) {
  Renewed renewed{};
  if (round > 0) renewed.settled_era = kOrigins;
  renewed.settled_round = round;
  return renewed;
}

class VoteMachine {
 public:
  const Config config = config_of_member();
  const Keys keys{"job"};
  Outbox outbox;
  MemberVote vote{config, keys, outbox};

  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Silent", "InDoubt", "Firm"};
    return kNames[static_cast<int>(vote.state())];
  }
  std::string news() {
    std::string did;
    for (const auto& action : outbox.take()) {
      if (const auto* said = std::get_if<VoteAction>(&action)) {
        EXPECT_EQ(said->vote.job, keys.prefix);
        const Place& place = said->vote.latest;
        did +=
            ", votes as " + std::to_string(place.rank) + " of round " + std::to_string(place.round);
        for (const Successor& each : said->successors)
          did += ", successor " + each.address + (each.self ? " is itself" : "");
      }
      if (const auto* watch = std::get_if<WatchAction>(&action))
        did += watch->key == keys.history ? ", watches the history" : ", watches " + watch->key;
      if (std::holds_alternative<UnwatchAction>(action)) did += ", ends that";
    }
    std::string is = state();
    if (!vote.may_start(round(1, 0))) is += ", may not start";
    EXPECT_TRUE(vote.may_start(round(0, 0))) << "no store succeeds another in such a job";
    return news_(is, did);
  }

 private:
  test::News news_;
};

const test::TableEvents<VoteMachine> kEvents = {
    {"begin", [](VoteMachine& m) { m.vote.begin(); }},
    {"round 1, rank 2", [](VoteMachine& m) { m.vote.speak(round(1, 0), 2); }},
    {"round 1, without it", [](VoteMachine& m) { m.vote.speak(round(1, 0), {}); }},
    {"round 2 after 1, rank 0", [](VoteMachine& m) { m.vote.speak(round(2, 1), 0); }},
    {"round 3 after 2, rank 0", [](VoteMachine& m) { m.vote.speak(round(3, 2), 0); }},
    {"round 2 after 1, without it", [](VoteMachine& m) { m.vote.speak(round(2, 1), {}); }},
    {"a round of another kind of job", [](VoteMachine& m) { m.vote.speak(round(0, 0), 0); }},
    {"it may succeed",
     [](VoteMachine& m) {
       m.vote.speak(round(1, 0, {{"node0", 7'000}, {"node1", 7'000}}), 2);
     }},
    {"node0 may succeed",
     [](VoteMachine& m) {
       m.vote.speak(round(1, 0, {{"node0", 7'000}}), 2);
     }},
    {"another of its host may succeed",
     [](VoteMachine& m) {
       m.vote.speak(round(1, 0, {{"node1", 7'001}}), 2);
     }},
    {"1 is settled", [](VoteMachine& m) { m.vote.on_renewed(settled(1)); }},
    {"2 is settled", [](VoteMachine& m) { m.vote.on_renewed(settled(2)); }}};

const std::vector<test::StateRow> kTable = {
    {"Silent", {}, R"(
  begin -> InDoubt, may not start, votes as -1 of round 0
  round 1, rank 2; round 1, without it; round 2 after 1, rank 0; round 3 after 2, rank 0; round
      2 after 1, without it; a round of another kind of job; it may succeed; node0 may succeed;
      another of its host may succeed; 1 is settled; 2 is settled -> nothing
)"},
    {"InDoubt", {"begin"}, R"(
  round 1, rank 2 -> InDoubt, may not start, votes as 2 of round 1
  round 1, without it -> InDoubt, may not start, votes as -1 of round 1
  round 2 after 1, rank 0 -> InDoubt, may not start, votes as 0 of round 2
  round 3 after 2, rank 0 -> InDoubt, may not start, votes as 0 of round 3
  round 2 after 1, without it -> InDoubt, may not start, votes as -1 of round 2
  it may succeed -> InDoubt, may not start, votes as 2 of round 1, successor node0, successor
      node1 is itself, watches the history
  node0 may succeed -> InDoubt, may not start, votes as 2 of round 1, successor node0
  another of its host may succeed -> InDoubt, may not start, votes as 2 of round 1, successor
      node1
  begin; a round of another kind of job; 1 is settled; 2 is settled -> nothing
)"},
    {"InDoubt, in round 1", {"begin", "round 1, rank 2"}, R"(
  round 2 after 1, rank 0 -> InDoubt, may not start, votes as 0 of round 2
  round 3 after 2, rank 0 -> InDoubt, may not start, votes as 0 of round 3
  round 2 after 1, without it -> InDoubt, may not start, votes as -1 of round 2
  it may succeed -> InDoubt, may not start, votes as 2 of round 1, successor node0, successor
      node1 is itself, watches the history
  node0 may succeed -> InDoubt, may not start, votes as 2 of round 1, successor node0
  another of its host may succeed -> InDoubt, may not start, votes as 2 of round 1, successor
      node1
  1 is settled -> Firm
  begin; round 1, rank 2; round 1, without it; a round of another kind of job; 2 is settled ->
      nothing
)"},
    {"InDoubt, not in round 1", {"begin", "round 1, without it"}, R"(
  round 1, rank 2 -> InDoubt, may not start, votes as 2 of round 1
  round 2 after 1, rank 0 -> InDoubt, may not start, votes as 0 of round 2
  round 3 after 2, rank 0 -> InDoubt, may not start, votes as 0 of round 3
  round 2 after 1, without it -> InDoubt, may not start, votes as -1 of round 2
  it may succeed -> InDoubt, may not start, votes as 2 of round 1, successor node0, successor
      node1 is itself, watches the history
  node0 may succeed -> InDoubt, may not start, votes as 2 of round 1, successor node0
  another of its host may succeed -> InDoubt, may not start, votes as 2 of round 1, successor
      node1
  1 is settled -> Firm
  begin; round 1, without it; a round of another kind of job; 2 is settled -> nothing
)"},
    {"Firm", {"begin", "round 1, rank 2", "1 is settled"}, R"(
  round 2 after 1, rank 0 -> Firm, votes as 0 of round 2
  round 3 after 2, rank 0 -> InDoubt, may not start, votes as 0 of round 3
  round 2 after 1, without it -> Firm, votes as -1 of round 2
  it may succeed -> Firm, votes as 2 of round 1, successor node0, successor node1 is itself,
      watches the history
  node0 may succeed -> Firm, votes as 2 of round 1, successor node0
  another of its host may succeed -> Firm, votes as 2 of round 1, successor node1
  begin; round 1, rank 2; round 1, without it; a round of another kind of job; 1 is settled; 2
      is settled -> nothing
)"},
    {"Firm, and a successor", {"begin", "it may succeed", "1 is settled"}, R"(
  round 1, rank 2; round 1, without it -> Firm, votes as 2 of round 1, ends that
  round 2 after 1, rank 0 -> Firm, votes as 0 of round 2, ends that
  round 3 after 2, rank 0 -> InDoubt, may not start, votes as 0 of round 3, ends that
  round 2 after 1, without it -> Firm, votes as -1 of round 2, ends that
  node0 may succeed -> Firm, votes as 2 of round 1, successor node0, ends that
  another of its host may succeed -> Firm, votes as 2 of round 1, successor node1, ends that
  begin; a round of another kind of job; it may succeed; 1 is settled; 2 is settled -> nothing
)"},
    {"Firm, not in the last round", {"begin", "round 1, without it", "1 is settled"}, R"(
  round 1, rank 2 -> Firm, votes as 2 of round 1
  round 2 after 1, rank 0 -> InDoubt, may not start, votes as 0 of round 2
  round 3 after 2, rank 0 -> InDoubt, may not start, votes as 0 of round 3
  round 2 after 1, without it -> InDoubt, may not start, votes as -1 of round 2
  it may succeed -> Firm, votes as 2 of round 1, successor node0, successor node1 is itself,
      watches the history
  node0 may succeed -> Firm, votes as 2 of round 1, successor node0
  another of its host may succeed -> Firm, votes as 2 of round 1, successor node1
  begin; round 1, without it; a round of another kind of job; 1 is settled; 2 is settled ->
      nothing
)"}};

TEST(MemberVoteTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Silent", "InDoubt", "Firm"});
}

TEST(MemberVoteTest, KnowsTheEraThatIsSettled) {
  VoteMachine machine;
  EXPECT_EQ(machine.vote.settled_era(), 0);
  machine.vote.on_renewed(settled(1));
  EXPECT_EQ(machine.vote.settled_era(), kOrigins);
}

// A later store may have none yet.
TEST(MemberVoteTest, KeepsTheHistoryThatItsWatchHasShown) {
  VoteMachine machine;
  History history;
  history.nnodes = "2:8";
  machine.vote.take_history(0, encode(history));
  EXPECT_EQ(machine.vote.history(), History()) << "nothing is watched";
  test::go(machine, kEvents, {"begin", "it may succeed"});
  machine.vote.take_history(9, encode(history));
  EXPECT_EQ(machine.vote.history(), History()) << "of another watch";
  machine.vote.take_history(1, encode(history));
  machine.vote.take_history(1, std::nullopt);
  EXPECT_EQ(machine.vote.history(), history);
}

}  // namespace
}  // namespace drun::rendezvous
