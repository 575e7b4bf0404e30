#include "launcher/leaving/shutdown_fsm.hpp"

#include <csignal>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using enum ShutdownFsm::Phase;
using enum ShutdownFsm::Step;
using Fsm = ShutdownFsm;
using Phase = Fsm::Phase;
using Steps = Fsm::Steps;

enum class Event {
  Outcome,
  Swept,
  GuardianLost,
  Reported,
  LinkFailed,
  LinkClosed,
  StoreUnneeded,
  Ask,
  Kill,
  Abandon,
  Force,
  Flushed,
  ReaderLost,
  OutputLost
};
constexpr std::size_t kPhases = static_cast<std::size_t>(Phase::Gone) + 1;
constexpr std::size_t kEvents = static_cast<std::size_t>(Event::OutputLost) + 1;

constexpr int kKilled = 128 + SIGTERM;
constexpr int kWriteFailed = 125;

Steps send(Fsm& fsm, Event event) {
  switch (event) {
    case Event::Outcome:
      return fsm.on_outcome(0, Owed::ServeOthers);
    case Event::Swept:
      return fsm.on_swept();
    case Event::GuardianLost:
      return fsm.on_guardian_lost();
    case Event::Reported:
      return fsm.on_reported();
    case Event::LinkFailed:
      return fsm.on_link_failed();
    case Event::LinkClosed:
      return fsm.on_link_closed();
    case Event::StoreUnneeded:
      return fsm.on_store_unneeded();
    case Event::Ask:
      return fsm.on_stop(StopLevel::Ask, SIGTERM);
    case Event::Kill:
      return fsm.on_stop(StopLevel::Kill, SIGTERM);
    case Event::Abandon:
      return fsm.on_stop(StopLevel::Abandon, SIGTERM);
    case Event::Force:
      return fsm.on_stop(StopLevel::Force, SIGTERM);
    case Event::Flushed:
      return fsm.on_flushed(false);
    case Event::ReaderLost:
      return fsm.on_flushed(true);
    case Event::OutputLost:
      fsm.on_output_lost();
  }
  return {};
}

Fsm machine_in(Phase phase) {
  Fsm fsm;
  if (phase == Running) return fsm;
  if (phase == Abandoned) {
    (void)send(fsm, Event::Abandon);
    return fsm;
  }
  if (phase == Unguarded) {
    (void)fsm.on_guardian_lost();
    return fsm;
  }
  (void)fsm.on_outcome(0, phase == Goodbye ? Owed::Goodbye : Owed::ServeOthers);
  if (phase == Sweeping) return fsm;
  (void)fsm.on_swept();
  if (phase == Reporting) return fsm;
  (void)fsm.on_reported();
  if (phase <= Goodbye) return fsm;
  (void)fsm.on_store_unneeded();
  if (phase == Phase::Gone) (void)fsm.on_flushed(false);
  return fsm;
}

struct Row {
  Event event;
  Phase next;
  Steps steps;
  int exit_code = 0;  // of a job that has succeeded so far
};

const std::vector<std::pair<Phase, std::vector<Row>>> kTable = {
    {Running,
     {
         {Event::Outcome, Sweeping, {Sweep}},
         {Event::Swept, Running, {}},
         {Event::GuardianLost, Unguarded, {}},
         {Event::Reported, Running, {}},
         {Event::LinkFailed, Running, {}},
         {Event::LinkClosed, Running, {}},
         {Event::StoreUnneeded, Running, {}},
         {Event::Ask, Running, {StopJob}},
         {Event::Kill, Running, {KillWorkers}},
         {Event::Abandon, Abandoned, {KillWorkers, GiveUpWorkers}},
         {Event::Force, Abandoned, {KillWorkers, GiveUpWorkers}},
         {Event::Flushed, Running, {}},
         {Event::ReaderLost, Running, {}},
         {Event::OutputLost, Running, {}, kWriteFailed},
     }},
    {Abandoned,
     {
         {Event::Outcome, Sweeping, {Sweep}},
         {Event::Swept, Abandoned, {}},
         {Event::GuardianLost, Flushing, {Leave}, kKilled},
         {Event::Reported, Abandoned, {}},
         {Event::LinkFailed, Abandoned, {}},
         {Event::LinkClosed, Abandoned, {}},
         {Event::StoreUnneeded, Abandoned, {}},
         {Event::Ask, Abandoned, {StopJob}},
         {Event::Kill, Abandoned, {KillWorkers}},
         {Event::Abandon, Abandoned, {KillWorkers, GiveUpWorkers}},
         {Event::Force, Abandoned, {KillWorkers, GiveUpWorkers}},
         {Event::Flushed, Abandoned, {}},
         {Event::ReaderLost, Abandoned, {}},
         {Event::OutputLost, Abandoned, {}, kWriteFailed},
     }},
    {Unguarded,
     {
         {Event::Outcome, Reporting, {Report}},
         {Event::Swept, Unguarded, {}},
         {Event::GuardianLost, Unguarded, {}},
         {Event::Reported, Unguarded, {}},
         {Event::LinkFailed, Unguarded, {}},
         {Event::LinkClosed, Unguarded, {}},
         {Event::StoreUnneeded, Unguarded, {}},
         {Event::Ask, Unguarded, {StopJob}},
         {Event::Kill, Unguarded, {KillWorkers}},
         {Event::Abandon, Flushing, {KillWorkers, Leave}, kKilled},
         {Event::Force, Flushing, {KillWorkers, Leave}, kKilled},
         {Event::Flushed, Unguarded, {}},
         {Event::ReaderLost, Unguarded, {}},
         {Event::OutputLost, Unguarded, {}, kWriteFailed},
     }},
    {Sweeping,
     {
         {Event::Outcome, Sweeping, {}},
         {Event::Swept, Reporting, {Report}},
         {Event::GuardianLost, Reporting, {Report}},
         {Event::Reported, Sweeping, {}},
         {Event::LinkFailed, Sweeping, {}},
         {Event::LinkClosed, Sweeping, {}},
         {Event::StoreUnneeded, Sweeping, {}},
         {Event::Ask, Sweeping, {}},
         {Event::Kill, Sweeping, {KillWorkers}, kKilled},
         {Event::Abandon, Sweeping, {KillWorkers, GiveUpWorkers}, kKilled},
         {Event::Force, Sweeping, {KillWorkers, GiveUpWorkers}, kKilled},
         {Event::Flushed, Sweeping, {}},
         {Event::ReaderLost, Sweeping, {}},
         {Event::OutputLost, Sweeping, {}, kWriteFailed},
     }},
    {Reporting,
     {
         {Event::Outcome, Reporting, {}},
         {Event::Swept, Reporting, {}},
         {Event::GuardianLost, Reporting, {}},
         {Event::Reported, ServingOthers, {ServeOthers}},
         {Event::LinkFailed, Reporting, {}},
         {Event::LinkClosed, Reporting, {}},
         {Event::StoreUnneeded, Reporting, {}},
         {Event::Ask, Reporting, {}},
         {Event::Kill, Flushing, {GiveUpReport, Leave}, kKilled},
         {Event::Abandon, Flushing, {GiveUpReport, Leave}, kKilled},
         {Event::Force, Flushing, {GiveUpReport, Leave}, kKilled},
         {Event::Flushed, Reporting, {}},
         {Event::ReaderLost, Reporting, {}},
         {Event::OutputLost, Reporting, {}, kWriteFailed},
     }},
    {ServingOthers,
     {
         {Event::Outcome, ServingOthers, {}},
         {Event::Swept, ServingOthers, {}},
         {Event::GuardianLost, ServingOthers, {}},
         {Event::Reported, ServingOthers, {}},
         {Event::LinkFailed, Flushing, {Leave}},
         {Event::LinkClosed, Flushing, {Leave}},
         {Event::StoreUnneeded, Flushing, {Leave}},
         {Event::Ask, Goodbye, {SayGoodbye}},
         {Event::Kill, Flushing, {KillWorkers, Leave}, kKilled},
         {Event::Abandon, Flushing, {KillWorkers, Leave}, kKilled},
         {Event::Force, Flushing, {KillWorkers, Leave}, kKilled},
         {Event::Flushed, ServingOthers, {}},
         {Event::ReaderLost, ServingOthers, {}},
         {Event::OutputLost, ServingOthers, {}, kWriteFailed},
     }},
    {Goodbye,
     {
         {Event::Outcome, Goodbye, {}},
         {Event::Swept, Goodbye, {}},
         {Event::GuardianLost, Goodbye, {}},
         {Event::Reported, Goodbye, {}},
         {Event::LinkFailed, Flushing, {Leave}},
         {Event::LinkClosed, Flushing, {Leave}},
         {Event::StoreUnneeded, Goodbye, {}},
         {Event::Ask, Goodbye, {}},
         {Event::Kill, Flushing, {KillWorkers, Leave}, kKilled},
         {Event::Abandon, Flushing, {KillWorkers, Leave}, kKilled},
         {Event::Force, Flushing, {KillWorkers, Leave}, kKilled},
         {Event::Flushed, Goodbye, {}},
         {Event::ReaderLost, Goodbye, {}},
         {Event::OutputLost, Goodbye, {}, kWriteFailed},
     }},
    {Flushing,
     {
         {Event::Outcome, Flushing, {}},
         {Event::Swept, Flushing, {}},
         {Event::GuardianLost, Flushing, {}},
         {Event::Reported, Flushing, {}},
         {Event::LinkFailed, Flushing, {}},
         {Event::LinkClosed, Flushing, {}},
         {Event::StoreUnneeded, Flushing, {}},
         {Event::Ask, Flushing, {GiveUpReader}},
         {Event::Kill, Flushing, {GiveUpReader}},
         {Event::Abandon, Flushing, {GiveUpReader}},
         {Event::Force, Flushing, {GiveUpReader}},
         {Event::Flushed, Gone, {End}},
         {Event::ReaderLost, Gone, {End}},
         {Event::OutputLost, Flushing, {}, kWriteFailed},
     }},
    {Phase::Gone,
     {
         {Event::Outcome, Gone, {}},
         {Event::Swept, Gone, {}},
         {Event::GuardianLost, Gone, {}},
         {Event::Reported, Gone, {}},
         {Event::LinkFailed, Gone, {}},
         {Event::LinkClosed, Gone, {}},
         {Event::StoreUnneeded, Gone, {}},
         {Event::Ask, Gone, {}},
         {Event::Kill, Gone, {}},
         {Event::Abandon, Gone, {}},
         {Event::Force, Gone, {}},
         {Event::Flushed, Gone, {}},
         {Event::ReaderLost, Gone, {}},
         {Event::OutputLost, Gone, {}, kWriteFailed},
     }},
};

TEST(ShutdownFsmTest, WhoeverWasToldThreeTimesWaitsForNothingThatHangs) {
  Fsm fsm;
  (void)send(fsm, Event::Ask);
  (void)send(fsm, Event::Kill);
  EXPECT_THAT(send(fsm, Event::Abandon), ElementsAre(KillWorkers, GiveUpWorkers));
  EXPECT_THAT(send(fsm, Event::GuardianLost), ElementsAre(Leave));
  EXPECT_EQ(fsm.exit_code(), kKilled);
}

TEST(ShutdownFsmTest, EveryEventInEveryPhase) {
  std::set<std::pair<Phase, Event>> seen;
  for (const auto& [phase, rows] : kTable) {
    for (const auto& [event, next, steps, exit_code] : rows) {
      SCOPED_TRACE("phase " + std::to_string(static_cast<int>(phase)) + ", event " +
                   std::to_string(static_cast<int>(event)));
      Fsm fsm = machine_in(phase);
      EXPECT_EQ(send(fsm, event), steps);
      EXPECT_EQ(fsm.phase(), next);
      EXPECT_EQ(fsm.leaving(), next != Running && next != Abandoned && next != Unguarded);
      EXPECT_EQ(fsm.exit_code(), exit_code);
      EXPECT_TRUE(seen.emplace(phase, event).second) << "twice in the table";
    }
  }
  EXPECT_EQ(seen.size(), kPhases * kEvents);
}

// What came before the workers were gone decides what the others are still owed then.
TEST(ShutdownFsmTest, WhatIsOwedToTheOthers) {
  struct Case {
    Owed most;
    std::vector<Event> while_running;
    std::vector<Event> while_sweeping;
    std::vector<Event> while_reporting;
    Phase next;
  };
  for (const auto& [most, running, sweeping, reporting, next] : std::vector<Case>{
           {Owed::ServeOthers, {}, {}, {}, ServingOthers},
           {Owed::Goodbye, {}, {}, {}, Goodbye},
           {Owed::None, {}, {}, {}, Flushing},
           {Owed::ServeOthers, {Event::Ask}, {}, {}, Goodbye},
           {Owed::ServeOthers, {}, {Event::Ask}, {}, Goodbye},
           {Owed::None, {Event::Ask}, {}, {}, Flushing},
           {Owed::ServeOthers, {Event::LinkFailed}, {}, {}, Flushing},
           {Owed::Goodbye, {}, {Event::LinkFailed}, {}, Flushing},
           {Owed::ServeOthers, {Event::Ask, Event::Kill}, {}, {}, Goodbye},
           {Owed::ServeOthers, {Event::Ask, Event::Kill, Event::Abandon}, {}, {}, Flushing},
           {Owed::ServeOthers, {Event::Ask}, {Event::Kill}, {}, Flushing},
           {Owed::ServeOthers, {}, {}, {Event::Ask}, Goodbye},
           {Owed::ServeOthers, {}, {}, {Event::LinkFailed}, Flushing},
       }) {
    Fsm fsm;
    for (const Event event : running)
      (void)send(fsm, event);
    EXPECT_THAT(fsm.on_outcome(0, most), ElementsAre(Sweep));
    for (const Event event : sweeping)
      (void)send(fsm, event);
    EXPECT_THAT(fsm.on_swept(), ElementsAre(Report));
    for (const Event event : reporting)
      (void)send(fsm, event);
    EXPECT_THAT(fsm.on_reported(), SizeIs(1));
    EXPECT_EQ(fsm.phase(), next);
  }
}

TEST(ShutdownFsmTest, OnlyTheFirstOutcomeCounts) {
  Fsm fsm;
  EXPECT_THAT(fsm.on_outcome(7, Owed::Goodbye), ElementsAre(Sweep));
  EXPECT_THAT(fsm.on_outcome(0, Owed::None), IsEmpty());
  (void)fsm.on_swept();
  EXPECT_THAT(fsm.on_reported(), ElementsAre(SayGoodbye));
  EXPECT_EQ(fsm.exit_code(), 7);
}

TEST(ShutdownFsmTest, AFailureKeepsItsExitCodeHoweverItIsLeft) {
  for (const Event event : {Event::Kill, Event::Abandon, Event::OutputLost}) {
    Fsm fsm;
    (void)fsm.on_outcome(7, Owed::Goodbye);
    (void)send(fsm, event);
    (void)fsm.on_swept();
    (void)fsm.on_reported();
    EXPECT_EQ(fsm.phase(), event == Event::OutputLost ? Goodbye : Flushing);
    (void)fsm.on_link_closed();
    (void)fsm.on_flushed(true);
    EXPECT_EQ(fsm.exit_code(), 7);
  }
}

TEST(ShutdownFsmTest, OutputThatNobodyTookMakesARequestToStopTheExitCode) {
  Fsm fsm = machine_in(Sweeping);
  (void)fsm.on_stop(StopLevel::Ask, SIGINT);
  (void)fsm.on_swept();
  (void)fsm.on_reported();
  (void)fsm.on_link_closed();
  EXPECT_EQ(fsm.exit_code(), 0) << "the job had succeeded before";
  EXPECT_THAT(fsm.on_stop(StopLevel::Kill, SIGTERM), ElementsAre(GiveUpReader));
  EXPECT_EQ(fsm.signal(), SIGTERM);
  EXPECT_THAT(fsm.on_flushed(true), ElementsAre(End));
  EXPECT_EQ(fsm.exit_code(), kKilled);
  fsm.on_output_lost();
  EXPECT_EQ(fsm.exit_code(), kKilled);
}

// The outcome is that of the job, even if it was to end faster than it could say goodbye.
TEST(ShutdownFsmTest, ARequestWhileTheJobRunsLeavesTheExitCodeToTheOutcome) {
  Fsm fsm;
  (void)fsm.on_stop(StopLevel::Ask, SIGTERM);
  (void)fsm.on_stop(StopLevel::Kill, SIGINT);
  EXPECT_THAT(fsm.on_stop(StopLevel::Abandon, SIGINT), ElementsAre(KillWorkers, GiveUpWorkers));
  (void)fsm.on_outcome(143, Owed::Goodbye);
  (void)fsm.on_swept();
  EXPECT_THAT(fsm.on_reported(), ElementsAre(Leave));
  EXPECT_EQ(fsm.exit_code(), 143);
}

}  // namespace
}  // namespace drun::launcher
