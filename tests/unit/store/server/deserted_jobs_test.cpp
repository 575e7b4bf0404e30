#include "store/server/deserted_jobs.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::store {
namespace {

constexpr Time kStart{std::chrono::hours(1)};
constexpr Milliseconds kPatience{1'000};

// A job is over when its patience is, or its round was deleted.
class DesertedMachine {
 public:
  DesertedJobs jobs;
  Time now = kStart;
  bool deleted = false;
  std::vector<std::string> looked_at;
  std::size_t over = 0;

  static Time due_at(const std::string&, const DesertedJobs::Job& job) {
    return job.since + kPatience;
  }
  void add(const std::string& name, bool kept) { jobs.add(name, kept, now, due_at); }
  void look() {
    over += jobs.look(
        now,
        [this](const std::string& name, const DesertedJobs::Job& job) {
          looked_at.push_back(name);
          return (job.kept && deleted) || now >= due_at(name, job);
        },
        due_at);
  }
  [[nodiscard]] std::string state() const {
    const auto due = jobs.next_deadline();
    if (jobs.empty()) return due ? "?" : "None";
    return *due - now <= DesertedJobs::kLookPause && *due > now ? "LookedAway" : "Waiting";
  }
  std::string news() {
    std::string did;
    for (const std::string& name : std::exchange(looked_at, {}))
      did += ", looks at " + name;
    if (const auto forgotten = std::exchange(over, 0); forgotten > 0)
      did += ", forgets " + std::to_string(forgotten);
    if (const auto due = jobs.next_deadline(); due && !did.empty())
      did += ", due in " +
             std::to_string(std::chrono::duration_cast<Milliseconds>(*due - now).count()) + " ms";
    return news_(state(), did);
  }

 private:
  test::News news_;
};

const test::TableEvents<DesertedMachine> kEvents = {
    {"a is deserted", [](DesertedMachine& m) { m.add("a", false); }},
    {"b is deserted, its round is kept", [](DesertedMachine& m) { m.add("b", true); }},
    {"a returns", [](DesertedMachine& m) { m.jobs.remove("a"); }},
    {"look", [](DesertedMachine& m) { m.look(); }},
    {"look in 10 ms",
     [](DesertedMachine& m) {
       m.now += Milliseconds(10);
       m.look();
     }},
    {"look after the pause",
     [](DesertedMachine& m) {
       m.now += DesertedJobs::kLookPause;
       m.look();
     }},
    {"look when patience is over",
     [](DesertedMachine& m) {
       m.now += kPatience;
       m.look();
     }},
    {"rounds are deleted, look after the pause", [](DesertedMachine& m) {
       m.deleted = true;
       m.now += DesertedJobs::kLookPause;
       m.look();
     }}};

const std::vector<test::StateRow> kTable = {
    {"None", {}, R"(
  a is deserted; b is deserted, its round is kept -> Waiting
  a returns; look; look in 10 ms; look after the pause; look when patience is over; rounds are
      deleted, look after the pause -> nothing
)"},
    {"Waiting, never looked at", {"a is deserted"}, R"(
  a returns -> None
  look -> Waiting, looks at a, due in 1000 ms
  look in 10 ms -> Waiting, looks at a, due in 990 ms
  look after the pause; rounds are deleted, look after the pause -> Waiting, looks at a, due in
      980 ms
  look when patience is over -> None, looks at a, forgets 1
  a is deserted; b is deserted, its round is kept -> nothing
)"},
    {"Waiting, just looked at", {"a is deserted", "look"}, R"(
  a returns -> None
  look; look in 10 ms -> LookedAway
  look after the pause; rounds are deleted, look after the pause -> Waiting, looks at a, due in
      980 ms
  look when patience is over -> None, looks at a, forgets 1
  a is deserted; b is deserted, its round is kept -> nothing
)"},
    {"LookedAway", {"a is deserted", "look", "look in 10 ms"}, R"(
  a returns -> None
  look in 10 ms -> Waiting, looks at a, due in 980 ms
  look after the pause; rounds are deleted, look after the pause -> Waiting, looks at a, due in
      970 ms
  look when patience is over -> None, looks at a, forgets 1
  a is deserted; b is deserted, its round is kept; look -> nothing
)"},
    {"Waiting, of a kept round", {"b is deserted, its round is kept", "look"}, R"(
  look; look in 10 ms -> LookedAway
  look after the pause -> Waiting, looks at b, due in 980 ms
  look when patience is over; rounds are deleted, look after the pause -> None, looks at b,
      forgets 1
  a is deserted; b is deserted, its round is kept; a returns -> nothing
)"}};

TEST(DesertedJobsTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"None", "Waiting", "LookedAway"});
}

TEST(DesertedJobsTest, ItsTimeCountsFromTheFirstWordOfIt) {
  DesertedMachine m;
  m.add("a", false);
  m.now += kPatience / 2;
  m.add("a", true);
  m.now += kPatience / 2;
  m.look();
  EXPECT_EQ(m.over, 1U);
  EXPECT_TRUE(m.jobs.empty());
}

}  // namespace
}  // namespace drun::store
