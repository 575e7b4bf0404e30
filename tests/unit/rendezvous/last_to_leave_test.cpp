#include "rendezvous/last_to_leave.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "rendezvous/documents.hpp"
#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

constexpr Milliseconds kLimit{30'000};
constexpr Time kStart{std::chrono::hours(1)};

class HostMachine {
 public:
  const Keys keys{"job"};
  Outbox outbox;
  LastToLeave last{kLimit, "me", keys, outbox};
  Time now = kStart;

  void snapshot(WatchId watch, const std::vector<std::string>& tickets) {
    WatchSnapshot snapshot{watch, {}};
    for (const auto& ticket : tickets)
      snapshot.entries.push_back({keys.member(ticket), "{}"});
    last.on_snapshot(snapshot);
  }
  void change(WatchId watch, const std::string& ticket, std::optional<std::string> value) {
    last.on_changes({watch, {{keys.member(ticket), std::move(value)}}});
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Open", "Asking", "Waiting", "Alone"};
    return kNames[static_cast<int>(last.state())];
  }
  std::string news() {
    std::string did;
    for (const auto& action : outbox.take()) {
      const auto* watch = std::get_if<WatchAction>(&action);
      if (watch != nullptr && watch->prefix && watch->key == keys.members)
        did += ", asks as " + std::to_string(watch->watch);
    }
    return news_(state() + (last.limit_over(now) ? ", for too long" : ""), did);
  }

 private:
  test::News news_;
};

const test::TableEvents<HostMachine> kEvents = {
    {"the job is over", [](HostMachine& m) { m.last.listen(); }},
    {"it has to go", [](HostMachine& m) { m.last.begin(m.now); }},
    {"none is there", [](HostMachine& m) { m.snapshot(1, {}); }},
    {"it is there", [](HostMachine& m) { m.snapshot(1, {"me"}); }},
    {"another is there",
     [](HostMachine& m) {
       m.snapshot(1, {"me", "a"});
     }},
    {"another watch shows a", [](HostMachine& m) { m.snapshot(9, {"a"}); }},
    {"a comes", [](HostMachine& m) { m.change(1, "a", "{}"); }},
    {"a goes", [](HostMachine& m) { m.change(1, "a", std::nullopt); }},
    {"b goes", [](HostMachine& m) { m.change(1, "b", std::nullopt); }},
    {"it writes", [](HostMachine& m) { m.change(1, "me", "{}"); }},
    {"another watch: a comes", [](HostMachine& m) { m.change(9, "a", "{}"); }},
    {"another watch: a goes", [](HostMachine& m) { m.change(9, "a", std::nullopt); }},
    {"almost the limit", [](HostMachine& m) { m.now += kLimit - Milliseconds(1); }},
    {"the limit", [](HostMachine& m) { m.now += kLimit; }}};

const std::vector<test::StateRow> kTable = {{"Open", {}, R"(
  the job is over -> Open, asks as 1
  it has to go -> Asking, asks as 1
  none is there; it is there; another is there; another watch shows a; a comes; a goes; b goes;
      it writes; another watch: a comes; another watch: a goes; almost the limit; the limit ->
      nothing
)"},
                                            {"Asking", {"it has to go"}, R"(
  none is there; it is there -> Alone
  another is there -> Waiting
  the limit -> Asking, for too long
  the job is over; it has to go; another watch shows a; a comes; a goes; b goes; it writes;
      another watch: a comes; another watch: a goes; almost the limit -> nothing
)"},
                                            {"Waiting", {"it has to go", "another is there"}, R"(
  none is there; it is there; a goes -> Alone
  the limit -> Waiting, for too long
  the job is over; it has to go; another is there; another watch shows a; a comes; b goes; it
      writes; another watch: a comes; another watch: a goes; almost the limit -> nothing
)"},
                                            {"Alone", {"it has to go", "it is there"}, R"(
  another is there; a comes -> Waiting
  the limit -> Alone, for too long
  the job is over; it has to go; none is there; it is there; another watch shows a; a goes; b
      goes; it writes; another watch: a comes; another watch: a goes; almost the limit ->
      nothing
)"}};

TEST(LastToLeaveTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Open", "Asking", "Waiting", "Alone"});
}

// They may go while this agent's own workers are still being stopped.
TEST(LastToLeaveTest, KnowsWhoHasGoneBeforeItHadToGo) {
  HostMachine machine;
  machine.last.listen();
  machine.snapshot(1, {"me", "a"});
  MemberDocument a;
  a.end = "a's ranks";
  machine.change(1, "a", encode(a));
  machine.change(1, "a", std::nullopt);
  EXPECT_FALSE(machine.last.limit());
  machine.last.begin(kStart);
  EXPECT_EQ(machine.last.state(), LastToLeave::State::Alone);
  EXPECT_EQ(machine.last.ends(), std::vector<std::string>{"a's ranks"});
}

TEST(LastToLeaveTest, TheLimitCountsFromTheFirstWordOfTheEnd) {
  HostMachine machine;
  EXPECT_FALSE(machine.last.limit());
  machine.last.begin(kStart);
  machine.last.begin(kStart + kLimit);
  EXPECT_EQ(machine.last.limit(), kStart + kLimit);
}

}  // namespace
}  // namespace drun::rendezvous
