#include "rendezvous/job_watch.hpp"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

class JobWatchMachine {
 public:
  Outbox outbox;
  JobWatch watch{outbox, "drun/job/"};

  void note(const std::string& what) { did_ += ", " + what; }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Reading", "Current", "Hidden"};
    return kNames[static_cast<int>(watch.state())];
  }
  std::string news() {
    for (const auto& action : outbox.take()) {
      if (const auto* begun = std::get_if<WatchAction>(&action))
        note("watch " + std::to_string(begun->watch) + " of " + begun->key);
      if (const auto* ended = std::get_if<UnwatchAction>(&action))
        note("unwatch " + std::to_string(ended->watch));
    }
    return news_(state(), std::exchange(did_, ""));
  }

 private:
  std::string did_;
  test::News news_;
};

const test::TableEvents<JobWatchMachine> kEvents = {
    {"snapshot",
     [](JobWatchMachine& m) {
       if (!m.watch.on_snapshot(1)) return;
       m.note(m.watch.take_looked_away() ? "had looked away" : "has it all");
     }},
    {"snapshot of the second watch",
     [](JobWatchMachine& m) {
       if (m.watch.on_snapshot(2)) m.note("has it all");
     }},
    {"link lost", [](JobWatchMachine& m) { m.watch.on_link_lost(); }},
    {"not shown",
     [](JobWatchMachine& m) {
       if (m.watch.on_rejected(1)) m.note("told so");
     }},
    {"another is not shown",
     [](JobWatchMachine& m) {
       if (m.watch.on_rejected(9)) m.note("told so");
     }},
    {"read again", [](JobWatchMachine& m) { m.watch.read_again(); }},
    {"end", [](JobWatchMachine& m) { m.watch.end(); }}};

const std::vector<test::StateRow> kTable = {
    {"Reading", {}, R"(
  snapshot -> Current, has it all
  not shown -> Hidden, told so
  read again -> Reading, unwatch 1, watch 2 of drun/job/
  end -> Reading, unwatch 1
  snapshot of the second watch; link lost; another is not shown -> nothing
)"},
    {"Reading, the link was lost", {"snapshot", "link lost"}, R"(
  snapshot -> Current, had looked away
  not shown -> Hidden, told so
  read again -> Reading, unwatch 1, watch 2 of drun/job/
  end -> Reading, unwatch 1
  snapshot of the second watch; link lost; another is not shown -> nothing
)"},
    {"Reading, again", {"snapshot", "read again"}, R"(
  snapshot of the second watch -> Current, has it all
  read again -> Reading, unwatch 2, watch 3 of drun/job/
  end -> Reading, unwatch 2
  snapshot; link lost; not shown; another is not shown -> nothing
)"},
    {"Current", {"snapshot"}, R"(
  snapshot -> Current, has it all
  link lost -> Reading
  not shown -> Hidden, told so
  read again -> Reading, unwatch 1, watch 2 of drun/job/
  end -> Current, unwatch 1
  snapshot of the second watch; another is not shown -> nothing
)"},
    {"Hidden", {"not shown"}, R"(
  read again -> Reading, watch 2 of drun/job/
  snapshot; snapshot of the second watch; link lost; not shown; another is not shown; end ->
      nothing
)"}};

TEST(JobWatchTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Reading", "Current", "Hidden"});
}

}  // namespace
}  // namespace drun::rendezvous
