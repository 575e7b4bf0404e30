#include "launcher/backend/founding_fsm.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::Whereabouts;
using Kind = Whereabouts::Kind;
using Time = FoundingFsm::Time;
using State = FoundingFsm::State;
using enum FoundingFsm::State;

constexpr Time kStart{seconds(1000)};

Endpoint place(std::size_t number) {
  return {"node" + std::to_string(number), 7000};
}
std::vector<Endpoint> places(std::size_t count) {
  std::vector<Endpoint> result;
  for (std::size_t i = 0; i < count; ++i)
    result.push_back(place(i));
  return result;
}

Whereabouts refused() {
  return {Kind::NoAnswer, "refused", 0, {}};
}
Whereabouts waits() {
  return {Kind::Waits, {}, 0, {}};
}
Whereabouts here(std::uint64_t generation = 1) {
  return {Kind::Here, {}, generation, {}};
}
Whereabouts there(std::size_t number, std::uint64_t generation = 2) {
  return {Kind::There, {}, generation, place(number)};
}

Whereabouts sought() {
  return {Kind::Sought, {}, 1, {}};
}

std::string name_of(const FoundingFsm::Step& step) {
  return step ? step->host : "-";
}

// Since so long that it may go where others wait.
void start_listened(FoundingFsm& fsm) {
  fsm.start(kStart - milliseconds(300));
  EXPECT_EQ(name_of(fsm.on_time(kStart)), "-");
}

// Two of three hosts are back, and the third still says that the store is at one of them.
TEST(FoundingFsmTest, NobodyFoundsWhereOthersKnowOfTheJob) {
  FoundingFsm fsm(places(3));
  start_listened(fsm);
  EXPECT_EQ(name_of(fsm.on_answer(1, there(0), kStart)), "node0");
  EXPECT_FALSE(fsm.founds()) << "it was told to go there";
  EXPECT_EQ(name_of(fsm.on_answer(0, waits(), kStart)), "-");
  EXPECT_EQ(name_of(fsm.on_answer(2, waits(), kStart)), "-");
  EXPECT_FALSE(fsm.founds());
  EXPECT_EQ(name_of(fsm.on_answer(1, sought(), kStart)), "-");
  EXPECT_FALSE(fsm.founds());
  EXPECT_EQ(name_of(fsm.on_answer(1, waits(), kStart)), "node0") << "nobody knows any more";
  EXPECT_TRUE(fsm.founds());
}

TEST(FoundingFsmTest, SaysWhatHelpsAgainstAnotherList) {
  FoundingFsm fsm(places(2));
  start_listened(fsm);
  (void)fsm.on_answer(0, refused(), kStart);
  EXPECT_EQ(fsm.text(), "node0:7000: refused; node1:7000: no answer yet");
  (void)fsm.on_answer(1, {Kind::NoAnswer, store::control::kOtherEndpoints, 0, {}}, kStart);
  EXPECT_EQ(fsm.text(),
            "node0:7000: refused; node1:7000: it was given another --rdzv-endpoint; give all nodes "
            "the same --rdzv-endpoint, in the same order");
}

// ---- every state, every event ----

// Of two endpoints. What is due is due at the next deadline, or much later where there is none.
struct Machine {
  FoundingFsm fsm{places(2)};
  Time now = kStart;

  FoundingFsm::Step answer(std::size_t endpoint, const Whereabouts& answer) {
    return fsm.on_answer(endpoint, answer, now);
  }
  FoundingFsm::Step turned_away(const std::optional<Endpoint>& moved) {
    return fsm.on_turned_away(moved, now);
  }
  FoundingFsm::Step at(Time then) { return fsm.on_time(now = then); }
  [[nodiscard]] Time due() const { return fsm.next_deadline().value_or(now + seconds(5)); }
};

using Event = std::function<FoundingFsm::Step(Machine&)>;

const std::map<std::string, Event> kEvents = {
    {"start",
     [](Machine& m) {
       m.fsm.start(m.now);
       return FoundingFsm::Step();
     }},
    {"0 refused", [](Machine& m) { return m.answer(0, refused()); }},
    {"0 waits", [](Machine& m) { return m.answer(0, waits()); }},
    {"1 waits", [](Machine& m) { return m.answer(1, waits()); }},
    {"1 refused", [](Machine& m) { return m.answer(1, refused()); }},
    {"1 has it", [](Machine& m) { return m.answer(1, here()); }},
    {"1 seeks it", [](Machine& m) { return m.answer(1, sought()); }},
    {"1 tells", [](Machine& m) { return m.answer(1, there(7)); }},
    {"turned away", [](Machine& m) { return m.turned_away({}); }},
    {"moved", [](Machine& m) { return m.turned_away(place(8)); }},
    {"early",
     [](Machine& m) {
       const auto due = m.fsm.next_deadline();
       return m.at(due ? *due - milliseconds(1) : m.now);
     }},
    {"due", [](Machine& m) { return m.at(m.due()); }},
};

FoundingFsm::Step feed(Machine& machine, const std::vector<std::string>& events) {
  FoundingFsm::Step last;
  for (const auto& event : events)
    last = kEvents.at(event)(machine);
  return last;
}

struct StateRow {
  State state;
  std::string what;
  std::vector<std::string> way;  // from Idle
  struct Reaction {
    std::string step;
    State state;
  };
  std::map<std::string, Reaction> reactions;  // all other events change nothing
};

const std::vector<StateRow> kTable = {
    {Idle, "not asked", {}, {{"start", {"-", Listening}}}},
    {Idle, "told before", {"1 tells"}, {{"start", {"-", Listening}}}},
    {Listening,
     "nobody has answered",
     {"start"},
     {{"1 has it", {"node1", ToldEarly}},
      {"1 tells", {"node7", ToldEarly}},
      {"due", {"-", Asking}}}},
    {Listening,
     "all wait",
     {"start", "0 waits", "1 waits"},
     {{"1 has it", {"node1", ToldEarly}},
      {"1 tells", {"node7", ToldEarly}},
      {"due", {"node0", Founding}}}},
    {Listening,
     "turned away",
     {"start", "0 waits", "1 tells", "turned away"},
     {{"1 has it", {"node1", ToldEarly}}, {"due", {"-", Asking}}}},
    {Asking,
     "nobody has answered",
     {"start", "due"},
     {{"start", {"-", Listening}},
      {"1 has it", {"node1", Told}},
      {"1 tells", {"node7", Told}},
      {"due", {"-", Waiting}}}},
    {Asking,
     "one waits, the other is silent",
     {"start", "0 waits", "due"},
     {{"start", {"-", Listening}},
      {"1 waits", {"node0", Founding}},
      {"1 refused", {"node0", Founding}},
      {"1 has it", {"node1", Told}},
      {"1 tells", {"node7", Told}},
      {"due", {"node0", Founding}}}},
    {Asking,
     "nobody is there",
     {"start", "0 refused", "1 refused", "due"},
     {{"start", {"-", Listening}},
      {"0 waits", {"node0", Founding}},
      {"1 waits", {"node1", Founding}},
      {"1 has it", {"node1", Told}},
      {"1 tells", {"node7", Told}},
      {"due", {"-", Waiting}}}},
    {Waiting,
     "nobody has answered",
     {"start", "due", "due"},
     {{"start", {"-", Listening}},
      {"0 waits", {"node0", Founding}},
      {"1 waits", {"node1", Founding}},
      {"1 has it", {"node1", Told}},
      {"1 tells", {"node7", Told}}}},
    {Waiting,
     "one says that the job looks for a store",
     {"start", "0 waits", "1 seeks it", "due", "due"},
     {{"start", {"-", Listening}},
      {"1 waits", {"node0", Founding}},
      {"1 refused", {"node0", Founding}},
      {"1 has it", {"node1", Told}},
      {"1 tells", {"node7", Told}}}},
    {Waiting,
     "turned away from the only one that waits",
     {"start", "0 waits", "1 refused", "due", "turned away", "early"},
     {{"start", {"-", Listening}},
      {"1 waits", {"node1", Founding}},
      {"1 has it", {"node1", Told}},
      {"1 tells", {"node7", Told}},
      {"due", {"node0", Founding}}}},
    {ToldEarly,
     "one waits, the other tells",
     {"start", "0 waits", "1 tells"},
     {{"start", {"-", Listening}},
      {"1 has it", {"node1", ToldEarly}},
      {"turned away", {"-", Listening}},
      {"moved", {"node8", ToldEarly}},
      {"due", {"-", Told}}}},
    {ToldEarly,
     "nobody knows of it any more",
     {"start", "0 waits", "1 tells", "1 waits"},
     {{"start", {"-", Listening}},
      {"1 has it", {"node1", ToldEarly}},
      {"1 tells", {"-", ToldEarly}},
      {"turned away", {"-", Listening}},
      {"moved", {"node8", ToldEarly}},
      {"due", {"node0", Founding}}}},
    {Told,
     "one waits, the other tells",
     {"start", "0 waits", "1 tells", "due"},
     {{"start", {"-", Listening}},
      {"1 waits", {"node0", Founding}},
      {"1 refused", {"node0", Founding}},
      {"1 has it", {"node1", Told}},
      {"turned away", {"-", Asking}},
      {"moved", {"node8", Told}}}},
    {Told,
     "where somebody pointed to",
     {"start", "0 waits", "1 waits", "due", "moved"},
     {{"start", {"-", Listening}},
      {"0 refused", {"-", Told}},
      {"0 waits", {"-", Told}},  // the first has just turned it away
      {"1 waits", {"-", Told}},
      {"1 refused", {"-", Told}},
      {"1 has it", {"node1", Told}},
      {"1 tells", {"node7", Told}},
      {"turned away", {"node1", Founding}},
      {"moved", {"node1", Founding}},  // from where it was turned away
      {"early", {"-", Told}},
      {"due", {"node0", Founding}}}},
    {Founding,
     "both wait",
     {"start", "0 waits", "1 waits", "due"},
     {{"start", {"-", Listening}},
      {"0 refused", {"node1", Founding}},
      {"1 has it", {"node1", Told}},
      {"1 tells", {"node7", Told}},
      {"turned away", {"node1", Founding}},
      {"moved", {"node8", Told}}}},
    {Founding,
     "the second, and the first is not there",
     {"start", "0 refused", "1 waits", "due"},
     {{"start", {"-", Listening}},
      {"0 waits", {"node0", Founding}},
      {"1 has it", {"node1", Told}},
      {"1 tells", {"node7", Told}},
      {"turned away", {"-", Asking}},
      {"moved", {"node8", Told}}}},
};

TEST(FoundingFsmTest, EveryEventInEveryState) {
  for (const auto& row : kTable) {
    for (const auto& [name, event] : kEvents) {
      SCOPED_TRACE("state " + std::to_string(static_cast<int>(row.state)) + ", " + row.what + ", " +
                   name);
      Machine machine;
      feed(machine, row.way);
      ASSERT_EQ(machine.fsm.state(), row.state);
      const auto found = row.reactions.find(name);
      const StateRow::Reaction expected =
          found == row.reactions.end() ? StateRow::Reaction{"-", row.state} : found->second;
      EXPECT_EQ(name_of(event(machine)), expected.step);
      EXPECT_EQ(machine.fsm.state(), expected.state);
      EXPECT_EQ(machine.fsm.founds(), expected.state == Founding);
      EXPECT_EQ(machine.fsm.is_started(), expected.state != Idle);
    }
  }
}

TEST(FoundingFsmTest, TheTableHasEveryState) {
  for (int i = 0; i <= static_cast<int>(Founding); ++i) {
    EXPECT_TRUE(std::any_of(kTable.begin(), kTable.end(), [i](const StateRow& row) {
      return static_cast<int>(row.state) == i;
    })) << i;
  }
}

struct Row {
  const char* what;
  // In this order, from endpoint 0 on; nullopt: it has not answered, and a turn has passed.
  std::vector<std::optional<Whereabouts>> answers;
  std::string at;  // where it is then
};

TEST(FoundingFsmTest, GoesToTheStoreElseToTheFirstThatWaits) {
  const std::vector<Row> rows = {
      {"nobody is there", {refused(), refused(), refused()}, "-"},
      {"the first waits", {waits(), refused(), refused()}, "node0"},
      {"all wait", {waits(), waits(), waits()}, "node0"},
      {"the first is not there", {refused(), waits(), waits()}, "node1"},
      {"the last has the store", {waits(), waits(), here()}, "node2"},
      {"one knows of the store", {waits(), there(7), refused()}, "node7"},
      {"one knows that a store is looked for", {waits(), sought(), waits()}, "-"},
      {"the later store", {there(7, 2), here(3), there(8, 1)}, "node1"},
      {"one is silent", {refused(), std::nullopt, waits()}, "node2"},
      {"all but one are silent", {std::nullopt, std::nullopt, waits()}, "node2"},
      {"the first is silent, the next has the store", {std::nullopt, here(), waits()}, "node1"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    FoundingFsm fsm(places(3));
    fsm.start(kStart);
    FoundingFsm::Step at;
    const auto go = [&at](const FoundingFsm::Step& step) { at = step ? step : at; };
    for (std::size_t i = 0; i < row.answers.size(); ++i)
      if (row.answers[i]) go(fsm.on_answer(i, *row.answers[i], kStart));
    go(fsm.on_time(kStart + seconds(1)));
    EXPECT_EQ(name_of(at), row.at);
  }
}

TEST(FoundingFsmTest, AsksAllBeforeItWaitsAnywhere) {
  FoundingFsm fsm(places(3));
  EXPECT_EQ(fsm.next_deadline(), std::nullopt);
  fsm.start(kStart);
  EXPECT_EQ(fsm.next_deadline(), kStart + milliseconds(300));
  EXPECT_EQ(name_of(fsm.on_answer(0, waits(), kStart)), "-");
  EXPECT_EQ(name_of(fsm.on_answer(1, refused(), kStart)), "-");
  EXPECT_EQ(name_of(fsm.on_time(kStart + milliseconds(300))), "-");
  EXPECT_EQ(fsm.next_deadline(), kStart + seconds(1));
  EXPECT_EQ(name_of(fsm.on_time(kStart + milliseconds(999))), "-");
  EXPECT_EQ(name_of(fsm.on_time(kStart + seconds(1))), "node0");
  EXPECT_EQ(fsm.next_deadline(), std::nullopt);
}

// A job that runs may be about to say where its store is.
TEST(FoundingFsmTest, ListensBeforeItWaitsAnywhere) {
  FoundingFsm fsm(places(2));
  fsm.start(kStart);
  EXPECT_EQ(name_of(fsm.on_answer(0, waits(), kStart)), "-");
  EXPECT_EQ(name_of(fsm.on_answer(1, waits(), kStart)), "-");
  EXPECT_EQ(name_of(fsm.on_time(kStart + milliseconds(299))), "-");
  EXPECT_EQ(fsm.next_deadline(), kStart + milliseconds(300));
  EXPECT_EQ(name_of(fsm.on_time(kStart + milliseconds(300))), "node0");
  EXPECT_EQ(fsm.next_deadline(), std::nullopt);
  FoundingFsm told(places(2));
  told.start(kStart);
  (void)told.on_answer(0, waits(), kStart);
  EXPECT_EQ(name_of(told.on_answer(1, there(7), kStart)), "node7") << "at once";
}

// Nothing is due, or the caller would ask without a pause.
TEST(FoundingFsmTest, WaitsForAnswersHoweverLongTheyTake) {
  FoundingFsm fsm(places(2));
  fsm.start(kStart);
  (void)fsm.on_answer(0, refused(), kStart);
  EXPECT_EQ(name_of(fsm.on_time(kStart + seconds(1))), "-");
  EXPECT_EQ(fsm.next_deadline(), std::nullopt);
  EXPECT_EQ(name_of(fsm.on_answer(1, waits(), kStart + seconds(2))), "node1");
}

// Its own name has an address at last, and so it has another link.
TEST(FoundingFsmTest, BeginsAnewFromNowhere) {
  FoundingFsm fsm(places(2));
  start_listened(fsm);
  (void)fsm.on_answer(0, refused(), kStart);
  EXPECT_EQ(name_of(fsm.on_answer(1, waits(), kStart)), "node1");
  fsm.start(kStart);
  EXPECT_EQ(name_of(fsm.on_time(kStart + milliseconds(300))), "node1");
}

TEST(FoundingFsmTest, GoesOnWhenItHearsOfABetterPlace) {
  FoundingFsm fsm(places(3));
  start_listened(fsm);
  (void)fsm.on_answer(0, refused(), kStart);
  (void)fsm.on_answer(1, refused(), kStart);
  EXPECT_EQ(name_of(fsm.on_answer(2, waits(), kStart)), "node2");
  EXPECT_EQ(name_of(fsm.on_answer(1, waits(), kStart)), "node1") << "it comes before";
  EXPECT_EQ(name_of(fsm.on_answer(1, waits(), kStart)), "-") << "it is there";
  EXPECT_EQ(name_of(fsm.on_answer(2, there(5), kStart)), "node5");
  EXPECT_EQ(name_of(fsm.on_answer(2, there(6, 3), kStart)), "node6") << "a later one";
  EXPECT_EQ(name_of(fsm.on_answer(2, refused(), kStart)), "node1") << "nobody knows any more";
  EXPECT_EQ(name_of(fsm.on_answer(1, refused(), kStart)), "-");
}

TEST(FoundingFsmTest, APlaceThatTurnsItAwayIsTriedAgainLater) {
  FoundingFsm fsm(places(2));
  start_listened(fsm);
  (void)fsm.on_answer(0, waits(), kStart);
  EXPECT_EQ(name_of(fsm.on_answer(1, there(5), kStart)), "node5");
  EXPECT_EQ(name_of(fsm.on_turned_away({}, kStart)), "-") << "one knows of the job";
  EXPECT_EQ(fsm.next_deadline(), kStart + seconds(1));
  EXPECT_EQ(name_of(fsm.on_time(kStart + milliseconds(999))), "-");
  EXPECT_EQ(name_of(fsm.on_time(kStart + seconds(1))), "node5");
}

TEST(FoundingFsmTest, FollowsAFewSignpostsAndNotInACircle) {
  FoundingFsm fsm(places(1));
  start_listened(fsm);
  EXPECT_EQ(name_of(fsm.on_answer(0, waits(), kStart)), "node0");
  EXPECT_EQ(name_of(fsm.on_turned_away(place(1), kStart)), "node1");
  EXPECT_EQ(name_of(fsm.on_turned_away(place(0), kStart)), "-") << "from where it came";
  EXPECT_EQ(name_of(fsm.on_time(kStart + seconds(1))), "node0");
  for (std::size_t hop = 1; hop <= 4; ++hop)
    EXPECT_EQ(name_of(fsm.on_turned_away(place(hop), kStart + seconds(1))),
              "node" + std::to_string(hop));
  EXPECT_EQ(name_of(fsm.on_turned_away(place(5), kStart + seconds(1))), "-");
}

TEST(FoundingFsmTest, SaysWhomItWaitsFor) {
  FoundingFsm fsm(places(5));
  fsm.start(kStart);
  (void)fsm.on_answer(1, refused(), kStart);
  (void)fsm.on_answer(2, waits(), kStart);
  (void)fsm.on_answer(3, here(), kStart);
  (void)fsm.on_answer(4, there(7), kStart);
  EXPECT_EQ(fsm.text(),
            "node0:7000: no answer yet; node1:7000: refused; node2:7000: is there; node3:7000: has "
            "the store; node4:7000: says that the store is at node7:7000");
}

// Agents begin at different times, each hears of the others a little later, and some never come.
// As soon as a majority is there, it meets.
TEST(FoundingFsmTest, AMajorityMeets) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::minstd_rand random(seed);
    const std::size_t count = 3 + random() % 3;
    std::vector<Time> begin(count);
    std::vector<std::optional<FoundingFsm>> agents(count);
    std::vector<std::string> at(count);
    std::size_t alive = count;
    for (std::size_t i = 0; i < count; ++i) {
      const bool comes = random() % 4 != 0 || alive <= count / 2 + 1;
      alive -= comes ? 0 : 1;
      begin[i] = comes ? kStart + milliseconds(random() % 4000) : Time::max();
    }
    const auto met = [&] {
      for (std::size_t i = 0; i < count; ++i) {
        const auto there = std::count(at.begin(), at.end(), place(i).host);
        if (begin[i] != Time::max() && 2 * static_cast<std::size_t>(there) > count) return true;
      }
      return false;
    };
    Time now = kStart;
    while (!met() && now < kStart + seconds(20)) {
      now += milliseconds(50);
      for (std::size_t i = 0; i < count; ++i) {
        if (now < begin[i]) continue;
        if (!agents[i]) {
          agents[i].emplace(places(count));
          agents[i]->start(now);
        }
        const std::size_t asked = random() % count;
        const auto step = now < begin[asked] ? agents[i]->on_answer(asked, refused(), now)
                                             : agents[i]->on_answer(asked, waits(), now);
        if (step) at[i] = step->host;
        if (const auto later = agents[i]->on_time(now)) at[i] = later->host;
      }
    }
    EXPECT_LT(now, kStart + seconds(8));
  }
}

}  // namespace
}  // namespace drun::launcher
