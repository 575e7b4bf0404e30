#include "launcher/backend/succession_fsm.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using enum SuccessionState;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

using Time = SuccessionFsm::Time;

constexpr Time kStart{seconds(1000)};
const SuccessionFsm::Limits kLimits;

Endpoint place(std::size_t number) {
  return {"node" + std::to_string(number), 7000};
}

// `own`: this agent is the successor of that number.
SuccessionPlan plan(std::size_t successors, std::optional<std::size_t> own = std::nullopt) {
  SuccessionPlan result;
  for (std::size_t i = 1; i <= successors; ++i)
    result.successors.push_back(place(i));
  if (own) result.own = *own - 1;
  result.nodes = 4;
  return result;
}

// The store is nobody's of the job.
SuccessionPlan patient_plan() {
  SuccessionPlan result = plan(3);
  result.store_may_return = true;
  return result;
}

std::string name_of(const SuccessionStep& step) {
  struct Namer {
    std::string operator()(std::monostate) const { return "-"; }
    std::string operator()(const Visit& visit) const { return "visit " + visit.endpoint.host; }
    std::string operator()(const Stand&) const { return "stand"; }
    std::string operator()(const GiveUpSearch&) const { return "give up"; }
  };
  return std::visit(Namer{}, step);
}

struct Machine {
  explicit Machine(const SuccessionPlan& known) { fsm.set_plan(known); }
  SuccessionFsm fsm{kLimits, {"node0", 29400}};
  Time now = kStart;
};

using Event = std::function<SuccessionStep(Machine&)>;

SuccessionStep quietly(const std::function<void()>& call) {
  call();
  return {};
}

SuccessionFsm::Break silence() {
  return {false, false, seconds(3), "no answer"};
}
SuccessionFsm::Break refusal() {
  return {true, false, milliseconds(0), "refused"};
}

SuccessionFsm::Break end() {
  return {false, true, seconds(7), "no answer"};
}

SuccessionFsm::Break move() {
  return {false, true, milliseconds(0), "moved", place(8)};
}

// Its agent is in touch with the store still.
SuccessionFsm::Break too_early() {
  SuccessionFsm::Break result;
  result.cause = "it is not the job's store";
  result.early = true;
  return result;
}

const std::map<std::string, Event> kEvents = {
    {"link up", [](Machine& m) { return quietly([&] { m.fsm.on_link_up(); }); }},
    {"silent", [](Machine& m) { return m.fsm.on_link_down(silence(), m.now); }},
    {"refused", [](Machine& m) { return m.fsm.on_link_down(refusal(), m.now); }},
    {"over", [](Machine& m) { return m.fsm.on_link_down(end(), m.now); }},
    {"too early", [](Machine& m) { return m.fsm.on_link_down(too_early(), m.now); }},
    {"moved", [](Machine& m) { return m.fsm.on_link_down(move(), m.now); }},
    {"found", [](Machine& m) { return m.fsm.on_found(place(9), m.now); }},
    {"stand failed", [](Machine& m) { return m.fsm.on_stand_failed(m.now); }},
    {"early",
     [](Machine& m) {
       if (m.fsm.next_deadline()) m.now = *m.fsm.next_deadline() - milliseconds(1);
       return m.fsm.on_time("refused", m.now);
     }},
    {"due",
     [](Machine& m) {
       m.now = m.fsm.next_deadline().value_or(m.now + seconds(1));
       return m.fsm.on_time("refused", m.now);
     }},
    {"leave", [](Machine& m) { return quietly([&] { m.fsm.leave(); }); }},
};

SuccessionStep feed(Machine& machine, const std::vector<std::string>& events) {
  SuccessionStep last;
  for (const auto& event : events)
    last = kEvents.at(event)(machine);
  return last;
}

// The steps of so many deadlines, each with the time since now.
std::vector<std::pair<std::string, Time::duration>> next_steps(Machine& machine, int count) {
  const Time begin = machine.now;
  std::vector<std::pair<std::string, Time::duration>> steps;
  for (int i = 0; i < count; ++i) {
    const std::string step = name_of(feed(machine, {"due"}));
    steps.emplace_back(step, machine.now - begin);
  }
  return steps;
}

struct Row {
  SuccessionState state;
  std::string what;
  SuccessionPlan plan;
  std::vector<std::string> way;  // from Settled
  struct Reaction {
    std::string step;
    SuccessionState state;
  };
  std::map<std::string, Reaction> reactions;  // all other events change nothing
};

const std::vector<Row> kTable = {
    {Settled,
     "of three successors",
     plan(3),
     {},
     {{"silent", {"-", Retrying}},
      {"too early", {"-", Retrying}},
      {"refused", {"visit node1", Visiting}},
      {"over", {"visit node1", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"leave", {"-", Over}}}},
    {Settled,
     "the first successor itself",
     plan(3, 1),
     {},
     {{"silent", {"-", Retrying}},
      {"too early", {"-", Retrying}},
      {"refused", {"stand", Standing}},
      {"over", {"stand", Standing}},
      {"moved", {"visit node8", Visiting}},
      {"leave", {"-", Over}}}},
    {Settled,
     "nobody succeeds",
     plan(0),
     {},
     {{"silent", {"-", Retrying}},
      {"too early", {"-", Retrying}},
      {"refused", {"-", Retrying}},
      {"over", {"give up", Over}},
      {"moved", {"visit node8", Visiting}},
      {"leave", {"-", Over}}}},
    {Retrying,
     "of three successors",
     plan(3),
     {"silent"},
     {{"link up", {"-", Settled}},
      {"refused", {"visit node1", Visiting}},
      {"over", {"visit node1", Visiting}},
      {"due", {"visit node1", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"leave", {"-", Over}}}},
    {Settled,
     "the store may return",
     patient_plan(),
     {},
     {{"silent", {"-", Retrying}},
      {"too early", {"-", Retrying}},
      {"refused", {"-", Retrying}},
      {"over", {"visit node1", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"leave", {"-", Over}}}},
    {Retrying,
     "the store may return",
     patient_plan(),
     {"refused"},
     {{"link up", {"-", Settled}},
      {"over", {"visit node1", Visiting}},
      {"due", {"visit node1", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"leave", {"-", Over}}}},
    {Visiting,
     "the first of three, after a store that may return",
     patient_plan(),
     {"refused", "due"},
     {{"link up", {"-", Settled}},
      {"refused", {"visit node2", Visiting}},
      {"over", {"visit node2", Visiting}},
      {"silent", {"visit node2", Visiting}},
      {"too early", {"-", Pausing}},
      {"due", {"visit node2", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Retrying,
     "the first successor itself",
     plan(3, 1),
     {"silent"},
     {{"link up", {"-", Settled}},
      {"refused", {"stand", Standing}},
      {"over", {"stand", Standing}},
      {"due", {"stand", Standing}},
      {"moved", {"visit node8", Visiting}},
      {"leave", {"-", Over}}}},
    {Retrying,
     "nobody succeeds",
     plan(0),
     {"refused"},
     {{"link up", {"-", Settled}},
      {"over", {"give up", Over}},
      {"due", {"give up", Over}},
      {"moved", {"visit node8", Visiting}},
      {"leave", {"-", Over}}}},
    {Visiting,
     "the first of three",
     plan(3),
     {"refused"},
     {{"link up", {"-", Settled}},
      {"refused", {"visit node2", Visiting}},
      {"over", {"visit node2", Visiting}},
      {"silent", {"visit node2", Visiting}},
      {"too early", {"-", Pausing}},
      {"due", {"visit node2", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Visiting,
     "the next is this agent",
     plan(3, 2),
     {"refused"},
     {{"link up", {"-", Settled}},
      {"refused", {"stand", Standing}},
      {"over", {"stand", Standing}},
      {"silent", {"stand", Standing}},
      {"too early", {"-", Pausing}},
      {"due", {"stand", Standing}},
      {"moved", {"visit node8", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Visiting,
     "the lost store, and all have refused",
     plan(2),
     {"refused", "refused", "refused"},
     {{"link up", {"-", Settled}},
      {"refused", {"-", Pausing}},
      {"over", {"-", Pausing}},
      {"silent", {"-", Pausing}},
      {"too early", {"-", Pausing}},
      {"due", {"visit node1", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Visiting,
     "the lost store, but one has taken time",
     plan(2),
     {"refused", "due", "refused"},
     {{"link up", {"-", Settled}},
      {"refused", {"visit node1", Visiting}},
      {"over", {"visit node1", Visiting}},
      {"silent", {"visit node1", Visiting}},
      {"too early", {"-", Pausing}},
      {"due", {"visit node1", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Standing,
     "the first of three",
     plan(3, 1),
     {"refused"},
     {{"link up", {"-", Settled}},
      {"refused", {"visit node2", Visiting}},
      {"over", {"visit node2", Visiting}},
      {"silent", {"visit node2", Visiting}},
      {"too early", {"-", Pausing}},
      {"stand failed", {"visit node2", Visiting}},
      {"due", {"visit node2", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Standing,
     "the only one",
     plan(1, 1),
     {"refused"},
     {{"link up", {"-", Settled}},
      {"refused", {"visit node0", Visiting}},
      {"over", {"visit node0", Visiting}},
      {"silent", {"visit node0", Visiting}},
      {"too early", {"-", Pausing}},
      {"stand failed", {"visit node0", Visiting}},
      {"due", {"visit node0", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Pausing,
     "all have refused",
     plan(1),
     {"refused", "refused", "refused"},
     {{"link up", {"-", Settled}},
      {"due", {"visit node1", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Pausing,
     "the first of three was early",
     plan(3),
     {"refused", "too early"},
     {{"link up", {"-", Settled}},
      {"due", {"visit node1", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Visiting,
     "the first of three, after a store that fell silent",
     plan(3),
     {"silent", "due"},
     {{"link up", {"-", Settled}},
      {"refused", {"visit node2", Visiting}},
      {"over", {"visit node2", Visiting}},
      {"silent", {"visit node2", Visiting}},
      {"too early", {"-", Pausing}},
      {"due", {"visit node2", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Visiting,
     "the only one, in the second pass",
     plan(1),
     {"silent", "due", "due", "due"},
     {{"link up", {"-", Settled}},
      {"refused", {"visit node0", Visiting}},
      {"over", {"visit node0", Visiting}},
      {"silent", {"visit node0", Visiting}},
      {"too early", {"-", Pausing}},
      {"due", {"visit node0", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Visiting,
     "the lost store for a moment, since the first of three was early",
     plan(3),
     {"silent", "due", "too early", "due"},
     {{"link up", {"-", Settled}},
      {"refused", {"visit node1", Visiting}},
      {"over", {"visit node1", Visiting}},
      {"silent", {"visit node1", Visiting}},
      {"too early", {"visit node1", Visiting}},
      {"due", {"visit node1", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Visiting,
     "a place where the store is said to be",
     plan(3, 1),
     {"moved"},
     {{"link up", {"-", Settled}},
      {"refused", {"stand", Standing}},
      {"over", {"stand", Standing}},
      {"silent", {"stand", Standing}},
      {"too early", {"stand", Standing}},
      {"due", {"stand", Standing}},
      {"moved", {"visit node8", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Visiting,
     "such a place, and there are no successors",
     plan(0),
     {"moved"},
     {{"link up", {"-", Settled}},
      {"refused", {"visit node0", Visiting}},
      {"over", {"visit node0", Visiting}},
      {"silent", {"visit node0", Visiting}},
      {"too early", {"visit node0", Visiting}},
      {"due", {"visit node0", Visiting}},
      {"moved", {"visit node8", Visiting}},
      {"found", {"visit node9", Visiting}},
      {"leave", {"-", Over}}}},
    {Over, "left", plan(3), {"leave"}, {}},
    {Over, "gave up", plan(0), {"refused", "due"}, {}},
};

TEST(SuccessionFsmTest, EveryEventInEveryState) {
  for (const auto& row : kTable) {
    for (const auto& [name, event] : kEvents) {
      SCOPED_TRACE("state " + std::to_string(static_cast<int>(row.state)) + ", " + row.what + ", " +
                   name);
      Machine machine(row.plan);
      feed(machine, row.way);
      ASSERT_EQ(machine.fsm.state(), row.state);
      const auto found = row.reactions.find(name);
      const Row::Reaction expected =
          found == row.reactions.end() ? Row::Reaction{"-", row.state} : found->second;
      EXPECT_EQ(name_of(event(machine)), expected.step);
      EXPECT_EQ(machine.fsm.state(), expected.state);
    }
  }
}

TEST(SuccessionFsmTest, TheTableHasEveryState) {
  for (int i = 0; i <= static_cast<int>(Over); ++i) {
    EXPECT_TRUE(std::any_of(kTable.begin(), kTable.end(), [i](const Row& row) {
      return static_cast<int>(row.state) == i;
    })) << i;
  }
}

TEST(SuccessionFsmTest, HowLongAStoreMayBeSilentCountsFromItsLastWord) {
  Machine machine(plan(3));
  feed(machine, {"silent"});  // for three seconds
  EXPECT_EQ(machine.fsm.next_deadline(), kStart + kLimits.silence - seconds(3));
}

// The others may be with it still, and nobody at a successor.
TEST(SuccessionFsmTest, WhoWasSuspendedForLongerLooksForItsStoreFirst) {
  Machine machine(plan(3));
  const SuccessionFsm::Break late{false, false, seconds(15), "no answer"};
  EXPECT_EQ(name_of(machine.fsm.on_link_down(late, machine.now)), "-");
  EXPECT_EQ(machine.fsm.state(), Retrying);
  EXPECT_EQ(machine.fsm.next_deadline(), kStart + kLimits.glance);
}

TEST(SuccessionFsmTest, WhenAllHaveRefusedThereIsAPause) {
  Machine machine(plan(1));
  feed(machine, {"refused", "refused", "refused"});
  ASSERT_EQ(machine.fsm.state(), Pausing);
  EXPECT_EQ(machine.fsm.next_deadline(), machine.now + kLimits.pause);
}

TEST(SuccessionFsmTest, WithoutASuccessorItIsWaitedForFromTheBreakOn) {
  Machine machine(plan(0));
  feed(machine, {"silent"});
  EXPECT_EQ(machine.fsm.next_deadline(), kStart + kLimits.keep_alive);
  EXPECT_EQ(std::get<GiveUpSearch>(feed(machine, {"due"})).text,
            "lost the store at node0:29400 and could not reach it again within 6 s: refused");
}

TEST(SuccessionFsmTest, ATurnIsAsLongAsThePassBefore) {
  Machine machine(plan(2));
  std::vector<Time::duration> turns;
  std::string at = name_of(feed(machine, {"refused"}));
  auto begin = machine.now;
  while (machine.fsm.state() != Over) {
    const std::string next = name_of(feed(machine, {"due"}));
    const bool glances = at != "visit node0" && next == "visit node0" &&
                         machine.fsm.next_deadline() == machine.now + kLimits.glance;
    if (glances || next == at) continue;
    at = next;
    turns.push_back(machine.now - std::exchange(begin, machine.now));
  }
  EXPECT_THAT(turns, testing::ElementsAre(seconds(2), seconds(2), seconds(2), seconds(6),
                                          seconds(6), milliseconds(2'300)));
  EXPECT_EQ(machine.now, kStart + kLimits.search + kLimits.glance) << "in all";
}

TEST(SuccessionFsmTest, TheLostStoreIsLookedForInBetween) {
  // Not where it is known to be dead.
  Machine dead(plan(1));
  EXPECT_EQ(name_of(feed(dead, {"refused", "due"})), "visit node0");
  EXPECT_EQ(dead.now, kStart + kLimits.turn);
  Machine machine(plan(1));
  feed(machine, {"silent", "due"});
  EXPECT_THAT(next_steps(machine, 4),
              testing::ElementsAre(std::pair("visit node0", milliseconds(2'000)),
                                   std::pair("visit node1", milliseconds(4'000)),
                                   std::pair("visit node0", milliseconds(7'700)),
                                   std::pair("visit node0", milliseconds(8'000))))
      << "in the end of the second turn";
}

// The other may be back where both were, and nobody waits here who would be lost meanwhile.
TEST(SuccessionFsmTest, OneOfTwoNodesLooksForTheLostStoreAlsoWhereItIsTheSuccessor) {
  SuccessionPlan two = plan(1, 1);
  two.nodes = 2;
  Machine machine(two);
  feed(machine, {"silent", "due", "due", "due"});
  ASSERT_EQ(machine.fsm.state(), Standing) << "in the second turn, which is longer";
  EXPECT_THAT(next_steps(machine, 4),
              testing::ElementsAre(std::pair("visit node0", milliseconds(2'000)),
                                   std::pair("stand", milliseconds(2'300)),
                                   std::pair("visit node0", milliseconds(4'000)),
                                   std::pair("stand", milliseconds(8'000))))
      << "and the lost store's own turn";
}

// It is there again, but has no majority: the turn goes on, or those who meet at the successor
// would not have this agent.
TEST(SuccessionFsmTest, ALostStoreThatIsOfNoUseEndsNoTurn) {
  Machine machine(plan(2));
  feed(machine, {"silent", "due", "too early", "due"});
  const Time begin = machine.now;
  feed(machine, {"link up"});
  machine.now += milliseconds(100);
  const SuccessionFsm::Break old{false, true, seconds(9), "most are elsewhere"};
  EXPECT_EQ(name_of(machine.fsm.on_link_down(old, machine.now)), "visit node1");
  EXPECT_EQ(machine.fsm.next_deadline(), begin - kLimits.pause + kLimits.turn);
}

TEST(SuccessionFsmTest, TheLostStoreIsAskedOnceMoreInTheEnd) {
  for (const std::string last : {"refused", "due", "too early", "over"}) {
    SCOPED_TRACE(last);
    Machine machine(plan(2, 1));
    std::string step;
    feed(machine, {"refused"});
    while (machine.now < kStart + kLimits.search)
      step = name_of(feed(machine, {"due"}));
    EXPECT_EQ(step, "visit node0");
    EXPECT_EQ(name_of(feed(machine, {last})), "give up");
  }
  Machine machine(plan(2, 1));
  feed(machine, {"refused"});
  while (machine.now < kStart + kLimits.search)
    feed(machine, {"due"});
  feed(machine, {"link up"});
  EXPECT_EQ(machine.fsm.state(), Settled);
  EXPECT_EQ(machine.fsm.store(), (Endpoint{"node0", 29400}));
}

TEST(SuccessionFsmTest, APlanThatChangesCountsFromTheNextSearchOn) {
  Machine machine(plan(2));
  feed(machine, {"refused"});
  machine.fsm.set_plan({{place(7)}, std::nullopt, 4, false});
  EXPECT_EQ(name_of(feed(machine, {"refused"})), "visit node2");
  EXPECT_EQ(name_of(feed(machine, {"link up", "refused"})), "visit node7");
}

// Its turn is no longer for that.
TEST(SuccessionFsmTest, WhoIsEarlyAsksAgainUntilTheTurnIsOver) {
  Machine machine(plan(2));
  EXPECT_EQ(name_of(feed(machine, {"refused"})), "visit node1");
  const Time begin = machine.now;
  int times = 0;
  SuccessionStep step;
  do {
    EXPECT_EQ(name_of(feed(machine, {"too early"})), "-");
    step = feed(machine, {"due"});
    ++times;
  } while (name_of(step) == "visit node1");
  EXPECT_EQ(times, 20);
  EXPECT_EQ(name_of(step), "visit node2");
  EXPECT_EQ(machine.now, begin + seconds(2));
}

// Only this agent was cut off, and the others have never left the store.
TEST(SuccessionFsmTest, WhereASuccessorIsInTouchWithTheStoreThatIsLookedForAgain) {
  Machine machine(plan(3));
  EXPECT_EQ(name_of(feed(machine, {"silent", "due", "too early", "due"})), "visit node0");
  EXPECT_EQ(machine.fsm.next_deadline(), machine.now + kLimits.glance);
  EXPECT_EQ(name_of(feed(machine, {"due", "too early", "due"})), "visit node0");
  feed(machine, {"link up"});
  EXPECT_EQ(machine.fsm.state(), Settled);
  EXPECT_EQ(machine.fsm.store(), (Endpoint{"node0", 29400}));
  EXPECT_EQ(name_of(feed(machine, {"refused"})), "visit node1") << "none has served it";
}

// Whoever has heard of the list that follows asks the others of the old one first, too.
TEST(SuccessionFsmTest, AStoreThatThisAgentHasLostIsAskedLast) {
  Machine old(plan(3));
  feed(old, {"refused", "link up"});
  EXPECT_EQ(name_of(feed(old, {"refused"})), "visit node2");
  EXPECT_EQ(name_of(feed(old, {"refused"})), "visit node3");
  EXPECT_EQ(name_of(feed(old, {"refused"})), "visit node1");
  Machine own(plan(3, 2));
  feed(own, {"refused", "link up"});
  EXPECT_EQ(name_of(feed(own, {"refused"})), "stand");
  feed(own, {"link up"});
  EXPECT_EQ(name_of(feed(own, {"over"})), "visit node3");
  EXPECT_EQ(name_of(feed(own, {"refused"})), "visit node1");
}

// At a listed endpoint, where it had the store before it was started again.
TEST(SuccessionFsmTest, ALostSuccessorThatIsNamedAgainIsNotAskedLast) {
  Machine old(plan(3));
  feed(old, {"refused", "link up", "refused", "link up"});
  Machine newcomer(plan(0));
  for (Machine* each : {&old, &newcomer}) {
    each->fsm.set_plan({{place(1), place(3)}, std::nullopt, 4, false});
    EXPECT_EQ(name_of(feed(*each, {"refused"})), "visit node1");
    EXPECT_EQ(name_of(feed(*each, {"refused"})), "visit node3");
  }
  EXPECT_EQ(name_of(feed(old, {"refused"})), "visit node2") << "the lost store";
}

// It was only cut off, and half of the others are there.
TEST(SuccessionFsmTest, TheLostStoreMayBeFoundAgain) {
  Machine machine(plan(1));
  EXPECT_EQ(name_of(feed(machine, {"silent", "due", "due"})), "visit node0");
  feed(machine, {"link up"});
  EXPECT_EQ(machine.fsm.store(), (Endpoint{"node0", 29400}));
  EXPECT_EQ(machine.fsm.state(), Settled);
}

// Whoever is at it has had no majority all the time: the time for the search goes on.
TEST(SuccessionFsmTest, AStoreThatIsFoundWithoutAMajorityEndsNoSearch) {
  Machine machine(plan(1));
  const Time begin = machine.now;
  SuccessionStep last;
  feed(machine, {"over"});
  while (machine.fsm.state() != Over && machine.now < begin + 2 * kLimits.search) {
    last = feed(machine, {"due"});
    if (name_of(last) == "visit node0") last = feed(machine, {"link up", "over"});
  }
  EXPECT_EQ(name_of(last), "give up");
  EXPECT_EQ(machine.now, begin + kLimits.search);
}

TEST(SuccessionFsmTest, SaysWhyItGivesUpAndWhatHelps) {
  Machine machine(plan(2));
  SuccessionStep last = feed(machine, {"refused"});
  while (machine.fsm.state() != Over)
    last = feed(machine, {"due"});
  const std::string text = std::get<GiveUpSearch>(last).text;
  EXPECT_THAT(text,
              HasSubstr("lost the store at node0:29400, and within 20 s no majority of the round's "
                        "4 nodes met at a successor (node1:7000, node2:7000); "));
  EXPECT_THAT(text, HasSubstr("--rdzv-conf quorum=1"));
  EXPECT_THAT(text, HasSubstr("successors=N"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(SuccessionFsmTest, TheLostStoreIsTheLastOneThatKnewThisAgent) {
  Machine machine(plan(2));
  feed(machine, {"refused", "refused", "link up"});
  machine.fsm.set_plan(plan(0));
  EXPECT_THAT(std::get<GiveUpSearch>(feed(machine, {"silent", "due"})).text,
              HasSubstr("lost the store at node2:7000 and "));
}

TEST(SuccessionFsmTest, FollowsAFewSignposts) {
  Machine machine(plan(2));
  EXPECT_EQ(name_of(feed(machine, {"moved", "moved", "moved", "moved", "moved"})), "visit node8");
  EXPECT_EQ(name_of(feed(machine, {"moved"})), "visit node1");
}

TEST(SuccessionFsmTest, WhoWasToldOfAPlaceAndFindsNothingSaysSo) {
  Machine machine(plan(0));
  SuccessionStep last = feed(machine, {"moved"});
  while (machine.fsm.state() != Over)
    last = feed(machine, {"due"});
  EXPECT_EQ(std::get<GiveUpSearch>(last).text,
            "the job's store is not at node0:29400 any more, and within 20 s it was found nowhere "
            "else");
}

TEST(SuccessionFsmTest, ThePlaceWhereItWasFoundIsTheStore) {
  Machine machine(plan(2));
  feed(machine, {"refused", "found", "link up"});
  EXPECT_EQ(machine.fsm.store(), place(9));
}

// ---- they meet ----

// Agents that look for a successor, some of which are dead. One of them serves once `majority` of
// them is with it.
struct Search {
  milliseconds delay{0};  // of a message
  std::vector<Machine> agents{};
  std::vector<Time> begin{};
  std::vector<std::size_t> at{};  // 0: nowhere; else the successor's number
  std::vector<Time> since{};      // it has been on the way there
  std::vector<bool> dead{};       // successors

  void add(Machine agent, Time begins) {
    agents.push_back(std::move(agent));
    begin.push_back(begins);
    at.push_back(0);
    since.push_back(begins);
  }

  void take(std::size_t agent, const SuccessionStep& step) {
    const std::size_t before = at[agent];
    const bool stood = before == agent + 1;
    at[agent] = 0;
    if (std::holds_alternative<Stand>(step)) at[agent] = agent + 1;
    if (const auto* visit = std::get_if<Visit>(&step))
      at[agent] = static_cast<std::size_t>(std::stoi(visit->endpoint.host.substr(4)));
    if (at[agent] != before || stood) since[agent] = agents[agent].now;
    const bool refused = at[agent] != 0 && dead[at[agent]];
    if (refused) take(agent, agents[agent].fsm.on_link_down(refusal(), agents[agent].now));
    if (!stood) return;
    // It has closed its server: whoever waited there goes on.
    for (std::size_t other = 0; other < agents.size(); ++other) {
      if (other != agent && at[other] == before)
        take(other, agents[other].fsm.on_link_down(refusal(), agents[other].now));
    }
  }

  void run_to(Time now) {
    for (std::size_t i = 0; i < agents.size(); ++i) {
      Machine& agent = agents[i];
      agent.now = now;
      if (agent.fsm.state() == Settled && now >= begin[i])
        take(i, agent.fsm.on_link_down(refusal(), now));
      if (agent.fsm.next_deadline() && now >= *agent.fsm.next_deadline())
        take(i, agent.fsm.on_time("", now));
    }
  }

  // Three messages bring an agent there, and with three more it is called, has confirmed that, and
  // is welcome.
  [[nodiscard]] bool met(std::size_t majority, Time now) const {
    for (std::size_t candidate = 1; candidate <= agents.size(); ++candidate) {
      if (at[candidate - 1] != candidate) continue;
      std::size_t there = 0;
      for (std::size_t agent = 0; agent < agents.size(); ++agent) {
        const bool own = agent + 1 == candidate;
        there += at[agent] == candidate && (own || now - since[agent] >= 6 * delay) ? 1U : 0U;
      }
      if (there >= majority) return true;
    }
    return false;
  }
};

// Five agents are left of a round of seven; three successors, of which up to two are dead. They
// notice the loss within four seconds of one another.
TEST(SuccessionFsmTest, AgentsThatBeginAtDifferentTimesMeet) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::minstd_rand random(seed);
    Search search;
    search.dead.assign(4, false);
    for (std::size_t i = 0; i < random() % 3; ++i)
      search.dead[1 + random() % 3] = true;
    for (std::size_t i = 0; i < 5; ++i) {
      const bool stands = i < 3 && !search.dead[i + 1];
      search.add(Machine(plan(3, stands ? std::optional(i + 1) : std::nullopt)),
                 kStart + milliseconds(random() % 4000));
    }
    Time now = kStart;
    while (!search.met(4, now) && now < kStart + seconds(30))
      search.run_to(now += milliseconds(10));
    EXPECT_LT(now, kStart + seconds(24));
  }
}

// Some are refused at once, the others hear nothing, and wait for as long as a store may be silent.
TEST(SuccessionFsmTest, TwoGroupsThatBeginAtDifferentTimesMeetHoweverSlowTheMessagesAre) {
  for (const milliseconds delay :
       {milliseconds(0), milliseconds(20), milliseconds(100), milliseconds(150)}) {
    for (int apart = 0; apart <= 7'000; apart += 50) {
      for (std::size_t first = 1; first < 5; ++first) {
        SCOPED_TRACE(std::to_string(delay.count()) + " ms a message, " + std::to_string(first) +
                     " first, the others " + std::to_string(apart) + " ms later");
        Search search{delay};
        search.dead.assign(4, false);
        for (std::size_t i = 0; i < 5; ++i)
          search.add(Machine(plan(3, i < 3 ? std::optional(i + 1) : std::nullopt)),
                     kStart + milliseconds(i < first ? 0 : apart));
        Time now = kStart;
        while (!search.met(4, now) && now < kStart + seconds(30))
          search.run_to(now += milliseconds(10));
        ASSERT_LT(now, kStart + seconds(20));
      }
    }
  }
}

}  // namespace
}  // namespace drun::launcher
