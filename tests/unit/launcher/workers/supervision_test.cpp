#include "launcher/workers/supervision.hpp"

#include <cerrno>
#include <csignal>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_workers.hpp"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

const Supervision::Time kStart{std::chrono::hours(1)};

Options one_worker() {
  Options options;
  options.command = {"/bin/sh", "-c", "true"};
  options.shutdown_timeout = seconds(5);
  return options;
}

rendezvous::StopAction stop_for(std::string reason, bool immediately = false) {
  rendezvous::StopAction action;
  action.reason = std::move(reason);
  action.immediately = immediately;
  return action;
}

process::GuardianEvent exited(int code) {
  return process::Exited{1, 101, {code, 0, false}, false};
}
process::GuardianEvent left_one() {
  return process::Stopped{1, 1, 4711};
}

struct Rig {
  explicit Rig(Options chosen = one_worker()) : options(std::move(chosen)) {}

  void run(process::WorkerId worker = 1) {
    supervision.start({}, now);
    (void)supervision.on_event(process::Spawned{worker, 101}, now);
    (void)runner.take_calls();
  }
  void stop_all(const process::GuardianEvent& stopped) {
    run();
    (void)supervision.on_event(exited(0), now);
    (void)supervision.stop(stop_for("a reason"), now);
    (void)supervision.on_event(stopped, now);
  }

  Options options;
  test::FakeRunner runner;
  test::FakeOutput output;
  test::FakeFiles files;
  Supervision::Time now = kStart;
  Supervision supervision{options, "node0", runner, output, files, now};
};

std::string told(const WorkerNews& news, Rig& rig) {
  std::string text;
  const auto add = [&text](bool held, const std::string& what) {
    if (held) text += (text.empty() ? "" : ", ") + what;
  };
  add(news.group.started, "started");
  add(news.group.succeeded, "succeeded");
  add(news.group.failure.has_value(), "failed");
  add(news.group.stopped, "stopped");
  add(news.grace_begins, "grace");
  add(news.grace_over, "grace over");
  add(news.swept, "swept");
  add(!news.left_behind.empty(), "left behind");
  add(news.lease_over, "lease over");
  add(!news.guardian_ended.empty(), "guardian ended");
  const std::string calls = rig.runner.take_calls();
  add(!calls.empty(), calls);
  return text;
}

// ---- every state, every event ----

using Reach = std::function<void(Rig&)>;
using Happen = std::function<WorkerNews(Rig&)>;
using Reactions = std::map<std::string, std::string>;

const std::vector<std::pair<std::string, Reach>>& states() {
  static const std::vector<std::pair<std::string, Reach>> all = {
      {"idle", [](Rig&) {}},
      {"running", [](Rig& rig) { rig.run(); }},
      {"in grace",
       [](Rig& rig) {
         rig.run();
         (void)rig.supervision.stop(stop_for("a reason"), rig.now);
       }},
      {"all stopped", [](Rig& rig) { rig.stop_all(process::Stopped{}); }},
      {"stopped, one left", [](Rig& rig) { rig.stop_all(left_one()); }},
      {"running after a stop",
       [](Rig& rig) {
         rig.stop_all(process::Stopped{});
         rig.run(2);
       }},
      {"sweeping idle", [](Rig& rig) { (void)rig.supervision.sweep(); }},
      {"sweeping workers",
       [](Rig& rig) {
         rig.run();
         (void)rig.supervision.sweep();
       }},
      {"swept",
       [](Rig& rig) {
         (void)rig.supervision.sweep();
         (void)rig.supervision.on_event(process::Stopped{}, rig.now);
       }},
      {"lost",
       [](Rig& rig) {
         rig.run();
         (void)rig.supervision.on_event(process::GuardianLost{}, rig.now);
       }},
  };
  return all;
}

const std::vector<std::pair<std::string, Happen>>& events() {
  const auto feed = [](process::GuardianEvent event) {
    return [event](Rig& rig) { return rig.supervision.on_event(event, rig.now); };
  };
  static const std::vector<std::pair<std::string, Happen>> all = {
      {"spawned", feed(process::Spawned{1, 101})},
      {"spawn failed", feed(process::SpawnFailed{1, ENOENT, "exec ./gone"})},
      {"exit 0", feed(exited(0))},
      {"exit 7", feed(exited(7))},
      {"stopped", feed(process::Stopped{})},
      {"stopped, one left", feed(left_one())},
      {"lease over", feed(process::LeaseOver{})},
      {"guardian lost", feed(process::GuardianLost{})},
      {"time", [](Rig& rig) { return rig.supervision.on_time(rig.now + seconds(1)); }},
      {"stop", [](Rig& rig) { return rig.supervision.stop(stop_for("another"), rig.now); }},
      {"stop immediately",
       [](Rig& rig) { return rig.supervision.stop(stop_for("another", true), rig.now); }},
      {"sweep", [](Rig& rig) { return rig.supervision.sweep(); }},
      {"kill",
       [](Rig& rig) {
         rig.supervision.kill();
         return WorkerNews{};
       }},
  };
  return all;
}

// A pair that is not here changes nothing that anybody hears of.
const std::map<std::string, Reactions>& reactions() {
  static const std::map<std::string, Reactions> all = {
      {"idle",
       {{"stopped, one left", "left behind"},
        {"lease over", "lease over"},
        {"guardian lost", "guardian ended"},
        {"stop", "stopped"},
        {"stop immediately", "stopped"},
        {"sweep", "stop SIGTERM 5000"},
        {"kill", "stop SIGKILL 0"}}},
      {"running",
       {{"exit 0", "succeeded"},
        {"exit 7", "failed"},
        {"spawn failed", "failed"},
        {"stopped, one left", "left behind"},
        {"lease over", "lease over"},
        {"guardian lost", "guardian ended"},
        {"stop", "grace, stop SIGTERM 5000"},
        {"stop immediately", "stop SIGKILL 0"},
        {"sweep", "stop SIGTERM 5000"},
        {"kill", "stop SIGKILL 0"}}},
      {"in grace",
       {{"stopped", "stopped, grace over"},
        {"stopped, one left", "stopped, grace over, left behind"},
        {"lease over", "lease over"},
        {"guardian lost", "stopped, grace over, guardian ended"},
        {"stop immediately", "stop SIGKILL 0"},
        {"sweep", "stop signal 0 5000"},  // they have had the signal
        {"kill", "stop SIGKILL 0"}}},
      {"all stopped",
       {{"stopped, one left", "left behind"},
        {"lease over", "lease over"},
        {"guardian lost", "guardian ended"},
        {"stop", "stopped"},
        {"stop immediately", "stopped"},
        {"sweep", "swept"},  // the guardian is not asked again
        {"kill", "stop SIGKILL 0"}}},
      {"stopped, one left",
       {{"stopped, one left", "left behind"},
        {"lease over", "lease over"},
        {"guardian lost", "guardian ended"},
        {"stop", "stopped"},
        {"stop immediately", "stopped"},
        {"sweep", "stop SIGTERM 5000"},
        {"kill", "stop SIGKILL 0"}}},
      {"running after a stop",  // a worker of another number
       {{"stopped, one left", "left behind"},
        {"lease over", "lease over"},
        {"guardian lost", "guardian ended"},
        {"stop", "grace, stop SIGTERM 5000"},
        {"stop immediately", "stop SIGKILL 0"},
        {"sweep", "stop SIGTERM 5000"},
        {"kill", "stop SIGKILL 0"}}},
      {"sweeping idle",
       {{"stopped", "swept"},
        {"stopped, one left", "swept, left behind"},
        {"lease over", "lease over"},
        {"guardian lost", "guardian ended"},
        {"sweep", "stop SIGTERM 5000"},
        {"kill", "stop SIGKILL 0"}}},
      {"sweeping workers",
       {{"stopped", "swept"},
        {"stopped, one left", "swept, left behind"},
        {"lease over", "lease over"},
        {"guardian lost", "guardian ended"},
        {"sweep", "stop SIGTERM 5000"},
        {"kill", "stop SIGKILL 0"}}},
      {"swept",
       {{"stopped, one left", "left behind"},
        {"lease over", "lease over"},
        {"guardian lost", "guardian ended"},
        {"kill", "stop SIGKILL 0"}}},
      {"lost",
       {{"stopped, one left", "left behind"},
        {"lease over", "lease over"},
        {"guardian lost", "guardian ended"},
        {"stop", "stopped"},  // which the rendezvous waits for
        {"stop immediately", "stopped"}}},
  };
  return all;
}

TEST(SupervisionTest, EveryEventInEveryState) {
  for (const auto& [state, reach] : states()) {
    for (const auto& [event, happen] : events()) {
      Rig rig;
      reach(rig);
      (void)rig.runner.take_calls();
      const std::string happened = told(happen(rig), rig);
      const Reactions& expected = reactions().at(state);
      const auto found = expected.find(event);
      EXPECT_EQ(happened, found == expected.end() ? "" : found->second) << state << ": " << event;
    }
  }
}

TEST(SupervisionTest, ItIsOverWhenEverythingIsSweptOrTheGuardianIsGone) {
  for (const auto& [state, reach] : states()) {
    Rig rig;
    reach(rig);
    EXPECT_EQ(rig.supervision.over(), state == "swept" || state == "lost") << state;
    EXPECT_EQ(rig.supervision.ending(), state.find("sweeping") != std::string::npos ||
                                            state == "in grace" || state == "swept" ||
                                            state == "lost")
        << state;
  }
}

// ---- the grace and its countdown ----

TEST(SupervisionTest, TheCountdownSaysWhyTheWorkersStopUnlessTheUserKnows) {
  Rig rig;
  EXPECT_FALSE(rig.supervision.countdown(kStart, false));
  rig.run();
  (void)rig.supervision.stop(stop_for("rank 1 failed"), rig.now);
  EXPECT_EQ(rig.supervision.countdown(kStart, false),
            "stopping the workers: rank 1 failed; SIGKILL in 5 s");
  EXPECT_EQ(rig.supervision.countdown(kStart + seconds(2), true),
            "stopping the workers; SIGKILL in 3 s (Ctrl-C again: now): rank 1 failed");
  (void)rig.supervision.on_event(process::Stopped{}, rig.now);
  EXPECT_FALSE(rig.supervision.countdown(kStart, false));
  Rig told;
  told.run();
  auto stop = stop_for("received SIGINT");
  stop.signal = SIGINT;
  (void)told.supervision.stop(stop, told.now);
  EXPECT_EQ(told.supervision.countdown(kStart + seconds(2), true),
            "stopping the workers; SIGKILL in 3 s (Ctrl-C again: now)");
}

TEST(SupervisionTest, WithSeveralNodesTheReasonHasALineOfItsOwn) {
  Options options = one_worker();
  options.max_nodes = 2;
  Rig rig(options);
  rig.run();
  (void)rig.supervision.stop(stop_for("rank 1 failed"), rig.now);
  EXPECT_EQ(rig.supervision.countdown(kStart, false), "stopping the workers; SIGKILL in 5 s");
}

TEST(SupervisionTest, ASecondStopDoesNotLengthenTheGrace) {
  Rig rig;
  rig.run();
  (void)rig.supervision.stop(stop_for("first"), kStart);
  EXPECT_FALSE(rig.supervision.stop(stop_for("second"), kStart + seconds(3)).grace_begins);
  EXPECT_THAT(rig.supervision.countdown(kStart + seconds(3), false).value_or(""),
              HasSubstr("second; SIGKILL in 2 s"));
}

TEST(SupervisionTest, TheSignalThatSomebodySentReachesTheWorkers) {
  Rig rig;
  rig.run();
  auto action = stop_for("received SIGHUP");
  action.signal = SIGHUP;
  EXPECT_EQ(told(rig.supervision.stop(action, rig.now), rig), "grace, stop SIGHUP 5000");
}

// What failed in an earlier round has nothing to do with it.
TEST(SupervisionTest, ALostGuardianIsToldWithTheFailureOfItsRound) {
  for (const bool same_round : {true, false}) {
    Rig rig;
    rig.run();
    (void)rig.supervision.on_event(exited(7), rig.now);
    (void)rig.supervision.on_time(rig.now + RoundFailures::kSettle);
    if (!same_round) {
      (void)rig.supervision.stop(stop_for("a reason"), rig.now);
      (void)rig.supervision.on_event(process::Stopped{}, rig.now);
      rig.run(2);
    }
    const auto news = rig.supervision.on_event(process::GuardianLost{}, rig.now);
    EXPECT_EQ(news.guardian_ended.find(", after rank 0 ") != std::string::npos, same_round)
        << news.guardian_ended;
  }
}

// ---- the limits ----

TEST(SupervisionTest, TheStartTimeoutEndsWhenAllWorkersRun) {
  Options options = one_worker();
  options.start_timeout = seconds(10);
  Rig late(options);
  EXPECT_EQ(late.supervision.next_deadline(kStart), kStart + seconds(10));
  EXPECT_THAT(late.supervision.expired(kStart + seconds(10)).value_or(""),
              HasSubstr("--start-timeout"));

  Rig in_time(options);
  in_time.run();
  EXPECT_FALSE(in_time.supervision.next_deadline(kStart));
  EXPECT_FALSE(in_time.supervision.expired(kStart + seconds(10)));
}

TEST(SupervisionTest, TheNextDeadlineIsTheEarliest) {
  Options options = one_worker();
  options.timeout = milliseconds(100);
  options.nproc_per_node = 2;
  Rig rig(options);
  rig.supervision.start({}, kStart);
  (void)rig.supervision.on_event(exited(7), kStart);
  EXPECT_EQ(rig.supervision.next_deadline(kStart), kStart + milliseconds(100));
  EXPECT_TRUE(rig.supervision.expired(kStart + milliseconds(100)));
  EXPECT_EQ(rig.supervision.next_deadline(kStart), kStart + RoundFailures::kSettle);
}

// ---- the warning of the job's end ----

struct Warned {
  explicit Warned(std::int64_t ends_in_ms) : rig(options()) {
    rendezvous::Assignment assignment;
    const auto end = (wall.time_since_epoch() + milliseconds(ends_in_ms)) / milliseconds(1);
    assignment.ends_ms = end;
    rig.supervision.start(assignment, rig.now);
    (void)rig.supervision.on_event(process::Spawned{1, 101}, rig.now);
    (void)rig.runner.take_calls();
  }
  static Options options() {
    Options options = one_worker();
    options.warn_before = EndNotice{SIGUSR1, seconds(20)};
    return options;
  }
  // What it did so long after the start.
  std::string at(milliseconds time) {
    rig.supervision.warn_of_end(rig.now + time, wall + time);
    return rig.runner.take_calls();
  }
  EndNotices::WallTime wall{std::chrono::hours(480'000)};
  Rig rig;
};

// Somebody has stopped both helpers: neither ends the workers, or says so.
TEST(SupervisionTest, WhereNobodyTellsOfTheLeasesEndTheHelpersAreWoken) {
  Rig rig;
  rig.run();
  rig.supervision.renew_lease(rig.now, seconds(8));
  EXPECT_EQ(rig.supervision.next_deadline(rig.now), rig.now + milliseconds(8'300));
  rig.now += seconds(4);
  rig.supervision.renew_lease(rig.now, seconds(8));
  rig.now += milliseconds(8'299);
  (void)rig.supervision.on_time(rig.now);
  EXPECT_EQ(rig.runner.take_calls(), "lease 8000, lease 8000");
  rig.now += milliseconds(1);
  (void)rig.supervision.on_time(rig.now);
  (void)rig.supervision.on_time(rig.now);
  EXPECT_EQ(rig.runner.take_calls(), "wake");
  rig.supervision.renew_lease(rig.now, seconds(8));
  (void)rig.supervision.on_event(process::LeaseOver{}, rig.now);
  (void)rig.supervision.on_time(rig.now + seconds(9));
  EXPECT_EQ(rig.runner.take_calls(), "lease 8000");
  EXPECT_EQ(rig.supervision.next_deadline(rig.now), std::nullopt);
}

TEST(SupervisionTest, WorkersAreToldOnceThatTheJobEnds) {
  Warned warned(50'000);
  EXPECT_EQ(warned.at(seconds(0)), "");
  EXPECT_EQ(warned.rig.supervision.next_deadline(kStart), kStart + seconds(30));
  EXPECT_EQ(warned.at(seconds(30)), "signal SIGUSR1 to 1");
  EXPECT_FALSE(warned.rig.supervision.next_deadline(kStart));
  EXPECT_EQ(warned.at(seconds(31)), "");
}

TEST(SupervisionTest, AWorkerThatWouldDieOfTheWarningGetsItWhenItHasPrepared) {
  Warned warned(10'000);
  warned.rig.runner.unprepared = {101};
  EXPECT_EQ(warned.at(seconds(0)), "");
  EXPECT_EQ(warned.rig.supervision.next_deadline(kStart), kStart + seconds(1));
  warned.rig.runner.unprepared.clear();
  EXPECT_EQ(warned.at(seconds(1)), "signal SIGUSR1 to 1");
}

TEST(SupervisionTest, WorkersThatAreBeingStoppedAreWarnedOfNothing) {
  Warned warned(50'000);
  EXPECT_EQ(warned.at(seconds(0)), "");
  (void)warned.rig.supervision.stop(stop_for("a reason"), kStart);
  (void)warned.rig.runner.take_calls();
  EXPECT_EQ(warned.at(seconds(30)), "");
}

// ---- standard input ----

TEST(SupervisionTest, NobodyReadsTheTerminalWhenTheJobIsOver) {
  Rig rig;
  EXPECT_FALSE(rig.supervision.has_input());
  rig.run();
  EXPECT_TRUE(rig.supervision.has_input());
  (void)rig.supervision.sweep();
  EXPECT_FALSE(rig.supervision.has_input());
}

TEST(SupervisionTest, NothingIsStartedOnceTheJobIsOver) {
  Rig rig;
  rig.files.hangs = true;
  rig.supervision.start({}, rig.now);
  (void)rig.supervision.sweep();
  (void)rig.runner.take_calls();
  rig.files.answer();
  EXPECT_EQ(told(rig.supervision.on_time(rig.now), rig), "");
}

}  // namespace
}  // namespace drun::launcher
