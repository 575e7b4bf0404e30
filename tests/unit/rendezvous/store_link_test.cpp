#include "rendezvous/store_link.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

constexpr Milliseconds kKeepAlive{6'000};
constexpr Time kStart{std::chrono::hours(1)};

// It looks at the time before each event, as a member does.
class LinkMachine {
 public:
  StoreLink link{kKeepAlive, kStart};
  Time now = kStart;

  void after(int ms) {
    now += Milliseconds(ms);
    suspended_ = link.note_time(now) ? ", was suspended" : "";
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Never", "Up", "Lost"};
    return kNames[static_cast<int>(link.state())];
  }
  std::string news() {
    std::string is = state();
    if (link.up()) is += " since " + since_start(link.up_since());
    if (link.state() == StoreLink::State::Lost)
      is += " since " + since_start(link.lost_since()) +
            (link.lost_for_too_long(now) ? ", for too long" : "");
    if (!link.trouble().empty()) is += ", last trouble: " + link.trouble();
    return news_(is, std::exchange(suspended_, ""));
  }

 private:
  static std::string since_start(Time time) {
    return std::to_string((time - kStart).count() / 1'000'000);
  }

  std::string suspended_;
  test::News news_;
};

const test::TableEvents<LinkMachine> kEvents = {
    {"up", [](LinkMachine& m) { m.after(1), m.link.on_up(false, m.now); }},
    {"up in a new session", [](LinkMachine& m) { m.after(1), m.link.on_up(true, m.now); }},
    {"down", [](LinkMachine& m) { m.after(1), m.link.on_down("reset", Milliseconds(0), m.now); }},
    {"silence",
     [](LinkMachine& m) { m.after(1), m.link.on_down("silent", Milliseconds(900), m.now); }},
    {"a look", [](LinkMachine& m) { m.after(2'000); }},
    {"half a lease", [](LinkMachine& m) { m.after(3'001); }},
    {"a lease", [](LinkMachine& m) { m.after(6'001); }},
    {"a lease, and down", [](LinkMachine& m) {
       m.after(6'001);
       m.link.on_down("reset", Milliseconds(0), m.now);
     }}};

const std::vector<test::StateRow> kTable = {
    {"Never", {}, R"(
  up; up in a new session -> Up since 1
  down; a lease, and down -> Never, last trouble: reset
  silence -> Never, last trouble: silent
  a look; half a lease; a lease -> nothing
)"},
    {"Up", {"up"}, R"(
  up in a new session -> Up since 2
  down -> Lost since 2, last trouble: reset
  silence -> Lost since -898, last trouble: silent
  half a lease; a lease -> Up since 1, was suspended
  a lease, and down -> Lost since 1, for too long, last trouble: reset, was suspended
  up; a look -> nothing
)"},
    {"Up, was suspended", {"up", "a lease"}, R"(
  up in a new session -> Up since 6003
  down -> Lost since 1, for too long, last trouble: reset
  silence -> Lost since 1, for too long, last trouble: silent
  half a lease; a lease -> Up since 1, was suspended
  a lease, and down -> Lost since 6002, for too long, last trouble: reset, was suspended
  up; a look -> nothing
)"},
    {"Up, was suspended a lease ago", {"up", "a lease", "half a lease", "half a lease"}, R"(
  up in a new session -> Up since 12005
  down -> Lost since 12005, last trouble: reset
  silence -> Lost since 11105, last trouble: silent
  half a lease; a lease -> Up since 1, was suspended
  a lease, and down -> Lost since 12004, for too long, last trouble: reset, was suspended
  up; a look -> nothing
)"},
    {"Lost", {"up", "down"}, R"(
  up; up in a new session -> Up since 3, last trouble: reset
  silence -> Lost since 2, last trouble: silent
  a lease; a lease, and down -> Lost since 2, for too long, last trouble: reset
  down; a look; half a lease -> nothing
)"},
    {"Lost, for long", {"up", "down", "half a lease"}, R"(
  up; up in a new session -> Up since 3004, last trouble: reset
  silence -> Lost since 2, last trouble: silent
  half a lease; a lease; a lease, and down -> Lost since 2, for too long, last trouble: reset
  down; a look -> nothing
)"}};

TEST(StoreLinkTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Never", "Up", "Lost"});
}

TEST(StoreLinkTest, LooksOftenEnoughToNoticeASuspension) {
  LinkMachine machine;
  EXPECT_FALSE(machine.link.next_touch());
  machine.link.on_up(false, machine.now);
  EXPECT_EQ(machine.link.next_touch(), kStart + kKeepAlive / 3);
  EXPECT_FALSE(machine.link.note_time(*machine.link.next_touch()));
}

}  // namespace
}  // namespace drun::rendezvous
