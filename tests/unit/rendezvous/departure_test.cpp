#include "rendezvous/departure.hpp"

#include <chrono>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

constexpr Time kStart{std::chrono::hours(1)};
constexpr int kTerminated = 128 + SIGTERM;

Config config_of_member() {
  Config config;
  config.keep_alive = Milliseconds(6'000);
  config.max_nodes = 2;
  return config;
}

// An agent in the midst of a round, whose entry is in the store.
class DepartureMachine {
 public:
  const Config config = config_of_member();
  Departure departure{config, kStart};
  Departure::Surroundings around{true, true, true, true, true, true, true, {}};
  Time now = kStart;

  // It is asked whether it ends after each event.
  void then_advance() {
    if (!departure.gone() && departure.advance(around, now)) {
      did_ += ", tells the leader to " + std::string(departure.stop_asked() ? "stop" : "leave");
      around.written = false;
    }
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Staying",   "AskedToStop", "StopTold", "AskedToLeave",
                                      "LeaveTold", "Ending",      "Gone"};
    return kNames[static_cast<int>(departure.state())];
  }
  std::string news() {
    std::string is = state();
    if (departure.ending()) {
      const Outcome& outcome = departure.outcome();
      constexpr const char* kEnds[] = {"success",    "failure", "stopped",   "time-out",
                                       "nodes lost", "refused", "store lost"};
      is += " with " + std::string(kEnds[static_cast<int>(outcome.end)]) + " " +
            std::to_string(outcome.exit_code) + (outcome.leaves ? " alone" : "");
    }
    if (!departure.staying() && (departure.asked() || departure.ending()))
      is += ", \"" + departure.reason() + "\"";
    if (departure.is_hurried()) is += " at once";
    if (departure.stop_signal() != 0) is += ", signal " + std::to_string(departure.stop_signal());
    if (departure.has_left(around, now)) is += ", has left";
    return news_(is, std::exchange(did_, ""));
  }

 private:
  std::string did_;
  test::News news_;
};

test::TableEvents<DepartureMachine> all_events() {
  using Machine = DepartureMachine;
  test::TableEvents<Machine> events = {
      {"nothing", [](Machine&) {}},
      {"stop",
       [](Machine& m) {
         m.departure.ask_to_stop({"SIGTERM", kTerminated}, m.now);
       }},
      {"leave",
       [](Machine& m) {
         m.departure.ask_to_leave({"SIGUSR1", 128 + SIGUSR1}, m.now);
       }},
      {"refused", [](Machine& m) { m.departure.refuse("no place", false); }},
      {"unfit", [](Machine& m) { m.departure.refuse("old driver", true); }},
      {"failed", [](Machine& m) { m.departure.fail("no route"); }},
      {"given up", [](Machine& m) { m.departure.give_up("it is full"); }},
      {"the job has ended", [](Machine& m) { m.departure.on_outcome({}); }},
      {"trouble",
       [](Machine& m) {
         if (m.departure.staying()) m.departure.end({End::StoreLost, 1, "out of touch", {}});
       }},
      {"workers gone", [](Machine& m) { m.around.holds_workers = false; }},
      {"written", [](Machine& m) { m.around.written = true; }},
      {"link down",
       [](Machine& m) { m.around.up = m.around.written = m.around.may_be_heard = false; }},
      {"leads until later", [](Machine& m) { m.around.leads_until = m.now + Milliseconds(9'000); }},
      {"no part in the job any more", [](Machine& m) { m.around.stop_ends_job = false; }},
      {"1 s", [](Machine& m) { m.now += Milliseconds(1'000); }},
      {"11 s", [](Machine& m) { m.now += Milliseconds(11'000); }},
      {"gone", [](Machine& m) {
         if (m.departure.ending()) m.departure.go();
       }}};
  for (auto& [name, event] : events)
    event = [event = event](Machine& m) {
      event(m);
      m.then_advance();
    };
  return events;
}

const std::vector<test::StateRow> kTable = {
    {"Staying", {}, R"(
  stop -> StopTold, "SIGTERM", signal 15, tells the leader to stop
  leave -> LeaveTold, "SIGUSR1", signal 10, tells the leader to leave
  refused -> Ending with refused 125, "no place"
  unfit -> Ending with refused 94, "old driver"
  the job has ended -> Ending with success 0, ""
  trouble -> Ending with store lost 1, "out of touch" at once
  nothing; failed; given up; workers gone; written; link down; leads until later; no part in the
      job any more; 1 s; 11 s; gone -> nothing
)"},
    {"Staying, has failed", {"failed"}, R"(
  stop -> Ending with stopped 143, "SIGTERM", signal 15
  leave -> LeaveTold, "SIGUSR1", signal 10, tells the leader to leave
  refused -> Ending with refused 125, "no place"
  unfit -> Ending with refused 94, "old driver"
  the job has ended -> Ending with success 0, ""
  trouble -> Ending with store lost 1, "out of touch" at once
  nothing; failed; given up; workers gone; written; link down; leads until later; no part in the
      job any more; 1 s; 11 s; gone -> nothing
)"},
    {"Staying, has given up", {"given up"}, R"(
  stop -> Ending with stopped 143, "SIGTERM", signal 15
  leave -> LeaveTold, "SIGUSR1", signal 10, tells the leader to leave
  refused -> Ending with refused 125, "no place"
  unfit -> Ending with refused 94, "old driver"
  the job has ended -> Ending with success 0, ""
  trouble -> Ending with store lost 1, "out of touch"
  nothing; failed; given up; workers gone; written; link down; leads until later; no part in the
      job any more; 1 s; 11 s; gone -> nothing
)"},
    {"StopTold", {"stop"}, R"(
  refused -> Ending with refused 125, "SIGTERM", signal 15
  unfit -> Ending with refused 94, "SIGTERM", signal 15
  failed; given up; 11 s -> Ending with stopped 143, "SIGTERM", signal 15
  the job has ended -> Ending with success 0, "SIGTERM", signal 15
  nothing; stop; leave; trouble; workers gone; written; link down; leads until later; no part in
      the job any more; 1 s; gone -> nothing
)"},
    {"StopTold, link down", {"stop", "link down"}, R"(
  refused -> Ending with refused 125, "SIGTERM", signal 15
  unfit -> Ending with refused 94, "SIGTERM", signal 15
  failed; given up; 1 s; 11 s -> Ending with stopped 143, "SIGTERM", signal 15
  the job has ended -> Ending with success 0, "SIGTERM", signal 15
  nothing; stop; leave; trouble; workers gone; written; link down; leads until later; no part in
      the job any more; gone -> nothing
)"},
    {"LeaveTold", {"leave"}, R"(
  refused -> Ending with refused 125, "SIGUSR1", signal 10
  unfit -> Ending with refused 94, "SIGUSR1", signal 10
  the job has ended -> Ending with success 0, "SIGUSR1", signal 10
  workers gone -> LeaveTold, "SIGUSR1", signal 10, has left
  nothing; stop; leave; failed; given up; trouble; written; link down; leads until later; no
      part in the job any more; 1 s; 11 s; gone -> nothing
)"},
    {"LeaveTold, without workers", {"leave", "workers gone"}, R"(
  refused -> Ending with refused 125, "SIGUSR1", signal 10, has left
  unfit -> Ending with refused 94, "SIGUSR1", signal 10, has left
  failed; written; 11 s -> Ending with stopped 138 alone, "SIGUSR1", signal 10, has left
  the job has ended -> Ending with success 0, "SIGUSR1", signal 10, has left
  leads until later -> LeaveTold, "SIGUSR1", signal 10
  nothing; stop; leave; given up; trouble; workers gone; link down; no part in the job any more;
      1 s; gone -> nothing
)"},
    {"LeaveTold, leads", {"leads until later", "leave", "workers gone", "written"}, R"(
  refused -> Ending with refused 125, "SIGUSR1", signal 10
  unfit -> Ending with refused 94, "SIGUSR1", signal 10
  failed -> Ending with stopped 138 alone, "SIGUSR1", signal 10
  the job has ended -> Ending with success 0, "SIGUSR1", signal 10
  11 s -> Ending with stopped 138 alone, "SIGUSR1", signal 10, has left
  nothing; stop; leave; given up; trouble; workers gone; written; link down; leads until later;
      no part in the job any more; 1 s; gone -> nothing
)"},
    {"Ending, refused", {"refused"}, R"(
  stop -> Ending with refused 125, "SIGTERM", signal 15
  leave -> Ending with refused 125, "SIGUSR1", signal 10
  the job has ended -> Ending with success 0, ""
  gone -> Gone with refused 125, "no place"
  nothing; refused; unfit; failed; given up; trouble; workers gone; written; link down; leads
      until later; no part in the job any more; 1 s; 11 s -> nothing
)"},
    {"Ending, with the job", {"the job has ended"}, R"(
  stop -> Ending with success 0, "SIGTERM", signal 15
  leave -> Ending with success 0, "SIGUSR1", signal 10
  gone -> Gone with success 0, ""
  nothing; refused; unfit; failed; given up; the job has ended; trouble; workers gone; written;
      link down; leads until later; no part in the job any more; 1 s; 11 s -> nothing
)"},
    {"Ending, out of touch", {"trouble"}, R"(
  stop -> Ending with store lost 1, "SIGTERM" at once, signal 15
  leave -> Ending with store lost 1, "SIGUSR1" at once, signal 10
  given up -> Ending with store lost 1, "out of touch"
  the job has ended -> Ending with success 0, ""
  gone -> Gone with store lost 1, "out of touch" at once
  nothing; refused; unfit; failed; trouble; workers gone; written; link down; leads until later;
      no part in the job any more; 1 s; 11 s -> nothing
)"},
    {"Ending, stopped", {"stop", "11 s"}, R"(
  the job has ended -> Ending with success 0, "SIGTERM", signal 15
  gone -> Gone with stopped 143, "SIGTERM", signal 15
  nothing; stop; leave; refused; unfit; failed; given up; trouble; workers gone; written; link
      down; leads until later; no part in the job any more; 1 s; 11 s -> nothing
)"},
    {"Gone", {"the job has ended", "gone"}, R"(
  stop -> Gone with success 0, "SIGTERM", signal 15
  leave -> Gone with success 0, "SIGUSR1", signal 10
  nothing; refused; unfit; failed; given up; the job has ended; trouble; workers gone; written;
      link down; leads until later; no part in the job any more; 1 s; 11 s; gone -> nothing
)"}};

// Two states are over as soon as it is asked whether it ends.
const test::TableEvents<DepartureMachine> kRequests = {
    {"is told to stop",
     [](auto& m) {
       m.departure.ask_to_stop({"SIGTERM", kTerminated}, m.now);
     }},
    {"is told to leave", [](auto& m) {
       m.departure.ask_to_leave({"SIGUSR1", 128 + SIGUSR1}, m.now);
     }}};

const std::vector<test::StateRow> kAskedTable = {
    {"AskedToStop", {"is told to stop"}, R"(
  nothing; stop; leave; trouble; workers gone; written; link down; leads until later; 1 s; gone
      -> StopTold, "SIGTERM", signal 15, tells the leader to stop
  refused -> Ending with refused 125, "SIGTERM", signal 15
  unfit -> Ending with refused 94, "SIGTERM", signal 15
  failed; given up; no part in the job any more -> Ending with stopped 143, "SIGTERM", signal 15
  the job has ended -> Ending with success 0, "SIGTERM", signal 15
  11 s -> Ending with stopped 143, "SIGTERM", signal 15, tells the leader to stop
  is told to stop; is told to leave -> nothing
)"},
    {"AskedToStop, has failed", {"failed", "is told to stop"}, R"(
  nothing; stop; leave; failed; given up; trouble; workers gone; written; link down; leads until
      later; no part in the job any more; 1 s; 11 s; gone -> Ending with stopped 143, "SIGTERM",
      signal 15
  refused -> Ending with refused 125, "SIGTERM", signal 15
  unfit -> Ending with refused 94, "SIGTERM", signal 15
  the job has ended -> Ending with success 0, "SIGTERM", signal 15
  is told to stop; is told to leave -> nothing
)"},
    {"AskedToLeave", {"is told to leave"}, R"(
  nothing; stop; leave; failed; given up; trouble; written; link down; leads until later; no
      part in the job any more; 1 s; 11 s; gone -> LeaveTold, "SIGUSR1", signal 10, tells the
      leader to leave
  refused -> Ending with refused 125, "SIGUSR1", signal 10
  unfit -> Ending with refused 94, "SIGUSR1", signal 10
  the job has ended -> Ending with success 0, "SIGUSR1", signal 10
  workers gone -> LeaveTold, "SIGUSR1", signal 10, has left, tells the leader to leave
  is told to stop; is told to leave -> nothing
)"},
    {"AskedToLeave, without workers", {"workers gone", "is told to leave"}, R"(
  nothing; stop; leave; given up; trouble; workers gone; written; link down; no part in the job
      any more; 1 s; 11 s; gone -> LeaveTold, "SIGUSR1", signal 10, has left, tells the leader
      to leave
  refused -> Ending with refused 125, "SIGUSR1", signal 10, has left
  unfit -> Ending with refused 94, "SIGUSR1", signal 10, has left
  failed -> Ending with stopped 138 alone, "SIGUSR1", signal 10, has left, tells the leader to
      leave
  the job has ended -> Ending with success 0, "SIGUSR1", signal 10, has left
  leads until later -> LeaveTold, "SIGUSR1", signal 10, tells the leader to leave
  is told to stop; is told to leave -> nothing
)"}};

TEST(DepartureTest, DoesWhenItIsAskedWhatTheTableSays) {
  auto events = all_events();
  events.insert(events.end(), kRequests.begin(), kRequests.end());
  test::expect_table(events, kAskedTable, {"AskedToStop", "AskedToLeave"});
}

TEST(DepartureTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(all_events(), kTable, {"Staying", "StopTold", "LeaveTold", "Ending", "Gone"});
}

TEST(DepartureTest, WhatItIsAskedFirstCounts) {
  DepartureMachine machine;
  machine.departure.ask_to_leave({"SIGUSR1", 138}, machine.now);
  EXPECT_EQ(machine.state(), "AskedToLeave");
  machine.departure.ask_to_stop({"SIGTERM", kTerminated}, machine.now);
  EXPECT_EQ(machine.state(), "AskedToLeave");
  DepartureMachine other;
  other.departure.ask_to_stop({"SIGTERM", kTerminated}, other.now);
  EXPECT_EQ(other.state(), "AskedToStop");
  other.departure.ask_to_leave({"SIGUSR1", 138}, other.now);
  EXPECT_EQ(other.departure.request().reason, "SIGTERM");
}

// A job of one node has no spares: whoever held no rank in it belongs to another job.
TEST(DepartureTest, TheOutcomeOfAForeignJobIsNotItsOwn) {
  for (const bool had_place : {false, true}) {
    for (const int nodes : {1, 2}) {
      for (const End end : {End::Success, End::Failure, End::Stopped}) {
        Config config = config_of_member();
        config.max_nodes = nodes;
        Departure departure(config, kStart);
        Departure::Surroundings around;
        around.had_place = had_place;
        Outcome outcome;
        outcome.end = end;
        departure.on_outcome(outcome);
        EXPECT_FALSE(departure.advance(around, kStart));
        const bool foreign = !had_place && nodes == 1 && end != End::Stopped;
        EXPECT_EQ(departure.outcome().end, foreign ? End::Refused : end);
      }
    }
  }
}

// In each state, when time alone changes something.
TEST(DepartureTest, IsDueWhenTimeChangesSomething) {
  struct Row {
    test::Way way;
    std::optional<Milliseconds> due;  // after the start
  };
  const std::vector<Row> table = {
      {{}, {}},
      {{"stop"}, Milliseconds(11'000)},
      {{"link down", "stop"}, Milliseconds(1'000)},
      {{"leave"}, {}},
      {{"leave", "workers gone"}, Milliseconds(11'000)},
      {{"leads until later", "leave", "workers gone", "written"}, Milliseconds(9'000)},
      {{"refused"}, {}},
      {{"leads until later", "refused", "workers gone"}, Milliseconds(9'000)},
      {{"leads until later", "refused"}, {}},
      {{"the job has ended"}, {}}};
  for (const Row& row : table) {
    DepartureMachine machine;
    test::go(machine, all_events(), row.way);
    const auto due = machine.departure.next_deadline(machine.around);
    EXPECT_EQ(due, row.due ? std::optional(kStart + *row.due) : std::nullopt)
        << machine.state() << ", " << row.way.size();
  }
}

}  // namespace
}  // namespace drun::rendezvous
