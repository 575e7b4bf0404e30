#include "rendezvous/watched_document.hpp"

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

class WatchMachine {
 public:
  Outbox outbox;
  WatchedDocument<int> watched;
  WatchId last = 0;
  WatchId before = 0;

  void begin() {
    watched.begin(outbox, "round");
    take();
  }
  void read_again() {
    watched.read_again(outbox, "round");
    take();
  }
  void snapshot(WatchId watch) {
    if (watched.is(watch)) watched.on_snapshot(outbox, watch);
    take();
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Unwatched", "Awaited", "Current", "Suspect"};
    return kNames[static_cast<int>(watched.state())];
  }
  std::string news() { return news_(state(), std::exchange(did_, "")); }

 private:
  void take() {
    for (const auto& action : outbox.take()) {
      if (const auto* watch = std::get_if<WatchAction>(&action)) {
        before = std::exchange(last, watch->watch);
        did_ += ", watch " + std::to_string(watch->watch);
      }
      if (const auto* end = std::get_if<UnwatchAction>(&action))
        did_ += ", unwatch " + std::to_string(end->watch);
    }
  }

  std::string did_;
  test::News news_;
};

// It begins once, and only what is watched is read again.
const test::TableEvents<WatchMachine> kEvents = {
    {"link up",
     [](WatchMachine& m) {
       if (!m.watched.begun()) m.begin();
     }},
    {"suspension",
     [](WatchMachine& m) {
       if (m.watched.begun()) m.read_again();
     }},
    {"snapshot", [](WatchMachine& m) { m.snapshot(m.last); }},
    {"snapshot of the watch before", [](WatchMachine& m) { m.snapshot(m.before); }},
    {"snapshot of another", [](WatchMachine& m) { m.snapshot(99); }},
    {"link lost", [](WatchMachine& m) { m.watched.on_link_lost(); }}};

const std::vector<test::StateRow> kTable = {
    {"Unwatched", {}, R"(
  link up -> Awaited, watch 1
  suspension; snapshot; snapshot of the watch before; snapshot of another; link lost -> nothing
)"},
    {"Awaited", {"link up"}, R"(
  suspension -> Suspect, watch 2
  snapshot -> Current
  link up; snapshot of the watch before; snapshot of another; link lost -> nothing
)"},
    {"Current", {"link up", "snapshot"}, R"(
  suspension -> Suspect, watch 2
  link lost -> Awaited
  link up; snapshot; snapshot of the watch before; snapshot of another -> nothing
)"},
    {"Suspect", {"link up", "snapshot", "suspension"}, R"(
  suspension -> Suspect, unwatch 2, watch 3
  snapshot -> Current, unwatch 1
  link up; snapshot of the watch before; snapshot of another; link lost -> nothing
)"},
    {"Suspect, twice", {"link up", "snapshot", "suspension", "suspension"}, R"(
  suspension -> Suspect, unwatch 3, watch 4
  snapshot -> Current, unwatch 1
  link up; snapshot of the watch before; snapshot of another; link lost -> nothing
)"},
    {"Current, read again", {"link up", "snapshot", "suspension", "snapshot"}, R"(
  suspension -> Suspect, watch 3
  link lost -> Awaited
  link up; snapshot; snapshot of the watch before; snapshot of another -> nothing
)"}};

TEST(WatchedDocumentTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Unwatched", "Awaited", "Current", "Suspect"});
}

// What the watch before shows still stops workers.
TEST(WatchedDocumentTest, BothWatchesAreItsOwnWhileItIsSuspect) {
  WatchMachine machine;
  EXPECT_FALSE(machine.watched.is(0)) << "nothing is watched";
  machine.begin();
  machine.read_again();
  EXPECT_TRUE(machine.watched.is(1));
  EXPECT_TRUE(machine.watched.is(2));
  machine.snapshot(2);
  EXPECT_FALSE(machine.watched.is(1));
  EXPECT_TRUE(machine.watched.is(2));
}

}  // namespace
}  // namespace drun::rendezvous
