#include "rendezvous/seen_rounds.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

constexpr Milliseconds kKeepAlive{6'000};
constexpr Time kStart{std::chrono::hours(1)};

RoundDocument round(int number, Phase phase, const char* master = "node0:1") {
  RoundDocument result;
  result.number = number;
  result.phase = phase;
  result.ran = phase == Phase::Preparing ? number - 1 : number;
  result.master = master;
  return result;
}

// What a store shows an agent, one after the other.
class SightMachine {
 public:
  SeenRounds seen{kKeepAlive};

  void see(std::optional<RoundDocument> next) {
    seen.note(shown_ ? &*shown_ : nullptr, next ? &*next : nullptr, kStart);
    shown_ = std::move(next);
  }
  [[nodiscard]] std::string state() const { return seen.others_until() ? "Others" : "Alone"; }
  std::string news() {
    EXPECT_EQ(seen.others_until().value_or(kStart + kKeepAlive), kStart + kKeepAlive);
    constexpr const char* kPhases[] = {"gathering", "preparing", "running", "stopping", "closed"};
    const RoundDocument& latest = seen.latest();
    return news_(state() + ", latest is " + std::to_string(latest.number) + ", " +
                 kPhases[static_cast<int>(latest.phase)] + " " + latest.master);
  }

 private:
  std::optional<RoundDocument> shown_;
  test::News news_;
};

const test::TableEvents<SightMachine> kEvents = {
    {"nothing", [](SightMachine& m) { m.see({}); }},
    {"1 runs", [](SightMachine& m) { m.see(round(1, Phase::Running)); }},
    {"2 is prepared", [](SightMachine& m) { m.see(round(2, Phase::Preparing)); }},
    {"2 runs", [](SightMachine& m) { m.see(round(2, Phase::Running)); }},
    {"2 runs elsewhere", [](SightMachine& m) { m.see(round(2, Phase::Running, "node9:1")); }},
    {"2 is stopped", [](SightMachine& m) { m.see(round(2, Phase::Stopping)); }},
    {"2 has ended", [](SightMachine& m) { m.see(round(2, Phase::Gathering)); }},
    {"3 is prepared", [](SightMachine& m) { m.see(round(3, Phase::Preparing)); }},
    {"3 runs", [](SightMachine& m) { m.see(round(3, Phase::Running)); }}};

const std::vector<test::StateRow> kTable = {
    {"Alone", {}, R"(
  1 runs -> Alone, latest is 1, running node0:1
  2 is prepared -> Alone, latest is 2, preparing node0:1
  2 runs -> Alone, latest is 2, running node0:1
  2 runs elsewhere -> Alone, latest is 2, running node9:1
  2 is stopped -> Alone, latest is 2, stopping node0:1
  2 has ended -> Alone, latest is 2, gathering node0:1
  3 is prepared -> Alone, latest is 3, preparing node0:1
  3 runs -> Alone, latest is 3, running node0:1
  nothing -> nothing
)"},
    {"Alone, 2 runs", {"2 runs"}, R"(
  2 is prepared -> Others, latest is 2, preparing node0:1
  2 runs elsewhere -> Others, latest is 2, running node9:1
  2 is stopped -> Alone, latest is 2, stopping node0:1
  2 has ended -> Alone, latest is 2, gathering node0:1
  3 is prepared -> Alone, latest is 3, preparing node0:1
  3 runs -> Alone, latest is 3, running node0:1
  nothing; 1 runs; 2 runs -> nothing
)"},
    {"Alone, 2 is stopped", {"2 runs", "2 is stopped"}, R"(
  2 is prepared -> Others, latest is 2, preparing node0:1
  2 runs -> Alone, latest is 2, running node0:1
  2 runs elsewhere -> Others, latest is 2, running node9:1
  2 has ended -> Alone, latest is 2, gathering node0:1
  3 is prepared -> Alone, latest is 3, preparing node0:1
  3 runs -> Alone, latest is 3, running node0:1
  nothing; 1 runs; 2 is stopped -> nothing
)"},
    {"Alone, 2 has ended", {"2 runs", "2 has ended"}, R"(
  2 is prepared -> Alone, latest is 2, preparing node0:1
  2 runs -> Alone, latest is 2, running node0:1
  2 runs elsewhere -> Alone, latest is 2, running node9:1
  2 is stopped -> Alone, latest is 2, stopping node0:1
  3 is prepared -> Alone, latest is 3, preparing node0:1
  3 runs -> Alone, latest is 3, running node0:1
  nothing; 1 runs; 2 has ended -> nothing
)"},
    {"Alone, the store is emptied", {"2 runs", "nothing"}, R"(
  2 is prepared -> Others, latest is 2, preparing node0:1
  2 runs elsewhere -> Others, latest is 2, running node9:1
  2 is stopped -> Alone, latest is 2, stopping node0:1
  2 has ended -> Alone, latest is 2, gathering node0:1
  3 is prepared -> Alone, latest is 3, preparing node0:1
  3 runs -> Alone, latest is 3, running node0:1
  nothing; 1 runs; 2 runs -> nothing
)"},
    {"Alone, the store is set back", {"2 runs", "1 runs"}, R"(
  nothing; 2 runs -> Others, latest is 2, running node0:1
  2 is prepared -> Others, latest is 2, preparing node0:1
  2 runs elsewhere -> Others, latest is 2, running node9:1
  2 is stopped -> Others, latest is 2, stopping node0:1
  2 has ended -> Others, latest is 2, gathering node0:1
  3 is prepared -> Others, latest is 3, preparing node0:1
  3 runs -> Others, latest is 3, running node0:1
  1 runs -> nothing
)"},
    {"Others, where round 1 was", {"2 runs", "1 runs", "nothing"}, R"(
  2 is prepared -> Others, latest is 2, preparing node0:1
  2 runs elsewhere -> Others, latest is 2, running node9:1
  2 is stopped -> Others, latest is 2, stopping node0:1
  2 has ended -> Others, latest is 2, gathering node0:1
  3 is prepared -> Others, latest is 3, preparing node0:1
  3 runs -> Others, latest is 3, running node0:1
  nothing; 1 runs; 2 runs -> nothing
)"}};

TEST(SeenRoundsTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Alone", "Others"});
}

}  // namespace
}  // namespace drun::rendezvous
