#include "launcher/agent/hang_desk.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "support/agent_parts.hpp"
#include "support/group_rig.hpp"
#include "support/patience.hpp"
#include "support/recorded_key_value.hpp"
#include "support/stacks_parts.hpp"
#include "support/temporary_directory.hpp"
#include "support/waiting_process.hpp"

namespace drun::launcher {
namespace {

using drun::test::WaitingProcess;
using events::Kind;
using test::place_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kHost = "node7";
// Numbers that no process has: above the highest that the kernel gives.
constexpr pid_t kFirst = 1 << 30;
constexpr pid_t kSecond = kFirst + 1;

Options watched(OnHang on_hang) {
  Options options = test::lone_job();
  options.nproc_per_node = 2;
  options.max_restarts = 3;
  options.hang_timeout = std::chrono::seconds(100);
  options.on_hang = on_hang;
  options.stacks_limit = std::chrono::milliseconds(0);
  options.status_socket = "/run/page";  // then events are kept
  return options;
}

rendezvous::StopAction stop_for_a_hang() {
  rendezvous::StopAction stop;
  stop.reason = "rank 7 on node3: hangs";
  stop.failure = stop.hang = true;
  return stop;
}

class Desk {
 public:
  explicit Desk(OnHang on_hang = OnHang::Restart) : Desk(watched(on_hang)) {}
  explicit Desk(Options options) : parts(std::move(options)) {
    parts.on_news = [this](const WorkerNews& told, auto) {
      if (told.group.failure) failures.push_back(*told.group.failure);
    };
    parts.workers.listen();
  }
  ~Desk() {
    desk.cancel();
    stacks.cancel();
  }
  void run(const rendezvous::Assignment& place, const std::vector<pid_t>& pids) {
    parts.runner.requests.clear();
    parts.workers.start(place);
    parts.workers.on_time();
    for (std::size_t i = 0; i < pids.size(); ++i)
      parts.runner.report(process::Spawned{parts.runner.requests.at(i).id, pids[i]});
    parts.turn();
    ASSERT_TRUE(parts.workers.group().all_started());
  }
  // Others may fail in the same moment.
  [[nodiscard]] bool until_failed() {
    return drun::test::eventually([this] {
      parts.turn();
      parts.workers.on_time();
      return !failures.empty();
    });
  }
  // How many lines that the user reads have it.
  [[nodiscard]] std::ptrdiff_t lines_with(const std::string& text) const {
    return std::count_if(parts.lines.begin(), parts.lines.end(),
                         [&](const std::string& line) { return line.find(text) != line.npos; });
  }
  // What hangs, as --events tells it: "rank 2: why".
  [[nodiscard]] std::vector<std::string> hangs() const {
    std::vector<std::string> result;
    for (const auto& event : parts.events.memory().list())
      if (event->kind == Kind::Hang)
        result.push_back("rank " + std::to_string(event->global_rank) + ": " + event->reason);
    return result;
  }

  drun::test::OutputRig screen;
  test::AgentParts parts;
  std::vector<rendezvous::FailureSummary> failures;
  int news = 0;
  std::atomic<int> looks = 0;  // for stacks
  ParticipantDriver driver{
      {parts.options, kHost, parts.status, parts.workers, parts.backend, parts.events},
      [](const rendezvous::Outcome&) {}};
  AgentStacks stacks{test::stacks_parts(parts, kHost, screen.start(),
                                        [this](const LookRequest& /*request*/) { ++looks; })};
  HangDesk desk{
      {parts.io, parts.options, parts.workers, driver, parts.events, parts.status, stacks, [this] {
         ++news;
         parts.workers.on_time();
       }}};
};

// ---- heartbeats ----

TEST(HangDeskTest, ARankThatGivesNoHeartbeatIsToldAndFails) {
  Options options = watched(OnHang::Restart);
  options.heartbeats.first = std::chrono::milliseconds(1);
  Desk rig(options);
  rig.run(place_of(1, 2), {kFirst, kSecond});
  rig.desk.start();
  ASSERT_TRUE(rig.until_failed());
  EXPECT_THAT(rig.hangs(), ElementsAre(HasSubstr("rank 2: gave no heartbeat"),
                                       HasSubstr("rank 3: gave no heartbeat")));
  EXPECT_THAT(rig.failures[0].cause, HasSubstr("gave no heartbeat"));
}

// ---- torch's timers ----

const std::string kWhy = "its timer 'epoch' is over (TORCHELASTIC_ENABLE_FILE_TIMER)";

TEST(HangDeskTest, ATimerThatKillsItsWorkerFailsIt) {
  Desk rig;
  const WaitingProcess worker;
  rig.run(place_of(1, 2), {kFirst, worker.pid()});
  rig.desk.on_timer({worker.pid(), "epoch", SIGKILL});
  EXPECT_EQ(rig.news, 1);
  EXPECT_THAT(rig.hangs(), ElementsAre("rank 3: " + kWhy));
  ASSERT_TRUE(rig.until_failed());
  ASSERT_THAT(rig.failures, SizeIs(1));
  EXPECT_EQ(rig.failures[0].rank, 3);
  EXPECT_EQ(rig.failures[0].exit_code, 128 + SIGKILL);
  EXPECT_EQ(rig.failures[0].cause, kWhy);
  EXPECT_TRUE(rig.failures[0].hung);
  EXPECT_EQ(::kill(worker.pid(), 0), 0) << "its stacks are to be seen first";
  EXPECT_THAT(rig.parts.lines, ElementsAre("drun: warning: rank 3: " + kWhy + "\n"))
      << "the job may end by something else before the round is stopped for it";
}

TEST(HangDeskTest, AnotherSignalGoesToTheProcess) {
  Desk rig;
  const WaitingProcess worker;
  rig.run(place_of(1, 2), {kFirst, worker.pid()});
  rig.desk.on_timer({worker.pid(), "epoch", SIGUSR1});
  EXPECT_EQ(worker.signal_at_end(), SIGUSR1);
  EXPECT_THAT(rig.hangs(), ElementsAre("rank 3: " + kWhy));
  EXPECT_THAT(rig.parts.lines, ElementsAre("drun: warning: rank 3: " + kWhy + ": process " +
                                           std::to_string(worker.pid()) + " gets signal 10\n"));
  EXPECT_THAT(rig.failures, IsEmpty()) << "it may have a handler that mends things";
}

TEST(HangDeskTest, AProcessThatAWorkerHasStartedIsKilledAndTheWorkerIsNot) {
  Desk rig;
  const WaitingProcess worker;
  const WaitingProcess child;
  ::setpgid(child.pid(), worker.pid());
  rig.run(place_of(0, 1), {worker.pid(), kSecond});
  rig.desk.on_timer({child.pid(), "epoch", SIGKILL});
  EXPECT_EQ(child.signal_at_end(), SIGKILL);
  EXPECT_THAT(rig.hangs(), ElementsAre("rank 0: " + kWhy));
  EXPECT_THAT(rig.failures, IsEmpty());
  EXPECT_EQ(::kill(worker.pid(), 0), 0);
}

TEST(HangDeskTest, AProcessThatIsNoWorkersGetsNothing) {
  Desk rig;
  const WaitingProcess stranger;
  const WaitingProcess ended;
  rig.run(place_of(0, 1), {ended.pid(), kSecond});
  rig.parts.runner.report(
      process::Exited{rig.parts.runner.requests.at(0).id, ended.pid(), {0, 0, false}, false});
  rig.parts.turn();
  for (const pid_t pid : {stranger.pid(), ended.pid()}) {
    rig.desk.on_timer({pid, "epoch", SIGKILL});
    rig.desk.on_timer({pid, "epoch", SIGUSR1});
    EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0) << "it lives";
  }
  EXPECT_THAT(rig.hangs(), IsEmpty());
  EXPECT_THAT(rig.parts.lines, IsEmpty());
  EXPECT_EQ(rig.news, 0);
}

// ---- --on-hang ----

TEST(HangDeskTest, AJobThatHangsHasFailedOnceOrForGood) {
  for (const auto what : {OnHang::Restart, OnHang::Stop}) {
    Desk rig(what);
    rig.run(place_of(0, 1), {kFirst, kSecond});
    rig.desk.on_hang();
    ASSERT_TRUE(rig.until_failed());
    EXPECT_EQ(rig.failures[0].restartable, what == OnHang::Restart);
    EXPECT_TRUE(rig.failures[0].hung);
    ASSERT_FALSE(rig.parts.lines.empty());
    EXPECT_THAT(rig.parts.lines[0], HasSubstr("no rank of 2 has made progress for 100.0 s"));
  }
}

// So that the one whose stack is another is the root cause; and there is no second look.
TEST(HangDeskTest, RanksThatHangAreLookedAtBeforeTheyHaveFailed) {
  auto options = watched(OnHang::Restart);
  options.stacks_limit = std::chrono::seconds(20);
  Desk rig(std::move(options));
  rig.run(place_of(0, 1), {kFirst, kSecond});
  rig.desk.on_hang();
  ASSERT_TRUE(rig.until_failed());
  EXPECT_EQ(rig.looks, 1);
  EXPECT_EQ(rig.failures[0].clue.others_within, std::chrono::seconds(3 + 10 + 5 + 1))
      << "other nodes look, too";
  EXPECT_FALSE(rig.stacks.hold(stop_for_a_hang(), [] {})) << "nothing waits for a second one";
  EXPECT_EQ(rig.looks, 1);
}

// Seconds lie between the hang and the failure: a slow file system may answer meanwhile.
TEST(HangDeskTest, RanksThatGoOnWhileTheyAreLookedAtHaveNotFailed) {
  auto options = watched(OnHang::Restart);
  options.stacks_limit = std::chrono::seconds(20);
  Desk rig(std::move(options));
  rig.run(place_of(0, 1), {kFirst, kSecond});
  rig.desk.on_stalled(true);
  rig.desk.on_hang();
  rig.desk.on_stalled(false);
  ASSERT_TRUE(rig.parts.until([&] { return rig.lines_with("make progress again") > 0; }));
  rig.parts.turn();
  rig.parts.workers.on_time();
  EXPECT_THAT(rig.failures, IsEmpty());
  EXPECT_TRUE(rig.parts.workers.group().running());
  rig.desk.on_stalled(true);
  rig.desk.on_hang();
  EXPECT_TRUE(rig.until_failed()) << "it hangs anew";
}

TEST(HangDeskTest, AJobThatHangsIsOnlyReported) {
  Desk rig(OnHang::Report);
  rig.run(place_of(0, 1), {kFirst, kSecond});
  rig.desk.on_hang();
  ASSERT_TRUE(rig.parts.until([&] { return !rig.parts.lines.empty(); }));
  rig.parts.turn();
  EXPECT_THAT(rig.failures, IsEmpty());
  EXPECT_EQ(rig.news, 0);
  EXPECT_TRUE(rig.parts.workers.group().running());
}

TEST(HangDeskTest, TheUserReadsOfAHangOnOneNode) {
  Desk rig;
  rig.run(place_of(1, 2), {kFirst, kSecond});
  rig.desk.on_hang();
  ASSERT_TRUE(rig.until_failed());
  for (const auto& line : rig.parts.lines)
    EXPECT_THAT(line, testing::Not(HasSubstr("has made progress")));
}

TEST(HangDeskTest, WhatWasFoundOfARoundThatIsStoppedIsForNobody) {
  Desk rig;
  rig.run(place_of(0, 1), {kFirst, kSecond});
  rig.desk.on_hang();
  rendezvous::StopAction stop;
  stop.reason = "a node left";
  rig.parts.workers.stop(stop);
  rig.parts.runner.report(process::Stopped{});
  rig.parts.turn();
  rig.run(place_of(0, 1, 2), {kFirst, kSecond});
  rig.desk.on_hang();
  ASSERT_TRUE(rig.until_failed());
  EXPECT_EQ(rig.news, 1) << "only the second time";
}

// Others may have found the same, and show theirs.
TEST(HangDeskTest, ANodeThatOnlyReportsShowsItsOwnStacks) {
  auto options = watched(OnHang::Report);
  options.stacks_limit = std::chrono::seconds(60);
  Desk rig(std::move(options));
  const WaitingProcess worker;
  drun::test::RecordedKeyValue store;
  rig.stacks.use_store(store);
  rig.stacks.listen();
  rig.run(place_of(1, 2), {kFirst, worker.pid()});
  (void)store.take();
  rig.desk.on_timer({worker.pid(), "epoch", SIGKILL});
  ASSERT_TRUE(rig.parts.until([&] { return rig.lines_with("stacks") > 0; }));
  EXPECT_THAT(store.take(), IsEmpty()) << "no other node is asked";
  rig.stacks.forget_store();
}

// ---- dumps of the flight recorder ----

// A rank that reads its pipe; the test writes its dump.
class Recorder {
 public:
  Recorder() {
    const std::string pipe = folder_.file("pipe_0.pipe");
    if (::mkfifo(pipe.c_str(), 0600) == 0)
      reader_.reset(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  }
  [[nodiscard]] Options watched_by(std::chrono::milliseconds stacks_limit) const {
    auto options = watched(OnHang::Restart);
    options.stacks_limit = stacks_limit;
    options.inherited = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE=" + folder_.file("pipe_"),
                         "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=" + folder_.file("trace_")};
    return options;
  }
  // Whether it has been asked since the last call.
  [[nodiscard]] bool asked() {
    char byte = 0;
    return ::read(reader_.get(), &byte, 1) == 1;
  }
  void write() const { std::ofstream(folder_.file("trace_0")) << "trace"; }

 private:
  const drun::test::TemporaryDirectory folder_;
  FileDescriptor reader_;
};

// What is written before counts for none.
bool until_asked(Desk& rig, Recorder& recorder) {
  return drun::test::eventually([&] {
    rig.parts.turn();
    return recorder.asked();
  });
}

const std::string kWritten = "the flight recorder has written";

TEST(HangDeskTest, AStopWaitsForDumpsAndStacksSideBySide) {
  Recorder recorder;
  Desk rig(recorder.watched_by(std::chrono::seconds(60)));
  rig.run(place_of(0, 1), {kFirst, kSecond});
  bool stopped = false;
  ASSERT_TRUE(rig.desk.hold(stop_for_a_hang(), [&] { stopped = true; }));
  ASSERT_TRUE(rig.parts.until([&] { return rig.lines_with("stacks") > 0; }));
  EXPECT_EQ(rig.lines_with("flight recorder"), 0) << "the dumps are not there yet";
  EXPECT_FALSE(stopped);
  ASSERT_TRUE(until_asked(rig, recorder));
  recorder.write();
  ASSERT_TRUE(rig.parts.until([&] { return stopped; }));
  EXPECT_EQ(rig.lines_with(kWritten), 1);
}

TEST(HangDeskTest, AStopThatIsOvertakenStopsNothingOnceTheDumpsAreThere) {
  Recorder recorder;
  Desk rig(recorder.watched_by(std::chrono::milliseconds(0)));
  rig.run(place_of(0, 1), {kFirst, kSecond});
  ASSERT_TRUE(rig.desk.hold(stop_for_a_hang(), [] { FAIL(); }));
  rendezvous::StopAction now;
  now.immediately = true;
  EXPECT_FALSE(rig.desk.hold(now, [] { FAIL(); }));
  ASSERT_TRUE(until_asked(rig, recorder));
  recorder.write();
  ASSERT_TRUE(rig.parts.until([&] { return rig.lines_with(kWritten) > 0; }));
}

TEST(HangDeskTest, WhileDumpsAreWrittenTheRanksAreNotAskedAgain) {
  Recorder recorder;
  Desk rig(recorder.watched_by(std::chrono::milliseconds(0)));
  const WaitingProcess first;
  const WaitingProcess second;
  rig.run(place_of(0, 2), {first.pid(), second.pid()});
  bool stopped = false;
  for (const auto* each : {&first, &second})
    rig.desk.on_timer({each->pid(), "epoch", SIGKILL});
  EXPECT_TRUE(rig.desk.hold(stop_for_a_hang(), [&] { stopped = true; }));
  ASSERT_TRUE(until_asked(rig, recorder));
  EXPECT_EQ(rig.news, 0);
  EXPECT_FALSE(stopped);
  recorder.write();
  ASSERT_TRUE(rig.parts.until([&] { return stopped; }));
  EXPECT_EQ(rig.news, 2);
  EXPECT_EQ(rig.lines_with(kWritten), 1);
  EXPECT_FALSE(recorder.asked());
  EXPECT_FALSE(rig.desk.hold(stop_for_a_hang(), [] { FAIL(); })) << "they are there";
}

TEST(HangDeskTest, ADumpIsNoProgress) {
  Recorder recorder;
  Desk rig(recorder.watched_by(std::chrono::milliseconds(0)));
  rig.run(place_of(0, 1), {kFirst, kSecond});
  rig.desk.on_stalled(true);
  rig.desk.on_hang();
  ASSERT_TRUE(until_asked(rig, recorder));
  recorder.write();
  rig.desk.on_stalled(false);
  EXPECT_TRUE(rig.until_failed());
}

// Only of the round in which they were asked for.
TEST(HangDeskTest, DumpsOfAnEndedRoundKeepNobodyWaiting) {
  Recorder recorder;
  Desk rig(recorder.watched_by(std::chrono::milliseconds(0)));
  const WaitingProcess worker;
  rig.run(place_of(0, 1), {worker.pid(), kSecond});
  rig.desk.on_timer({worker.pid(), "epoch", SIGKILL});
  ASSERT_TRUE(until_asked(rig, recorder));
  rig.parts.workers.stop(rendezvous::StopAction{});
  rig.parts.runner.report(process::Stopped{});
  rig.parts.turn();
  rig.run(place_of(0, 1, 2), {worker.pid(), kSecond});
  bool stopped = false;
  EXPECT_TRUE(rig.desk.hold(stop_for_a_hang(), [&] { stopped = true; }));
  recorder.write();
  ASSERT_TRUE(until_asked(rig, recorder)) << "the new ranks are asked";
  EXPECT_FALSE(stopped);
  recorder.write();
  ASSERT_TRUE(rig.parts.until([&] { return stopped; }));
  EXPECT_EQ(rig.news, 0) << "of the ended round";
}

TEST(HangDeskTest, WithoutALimitNothingIsKnown) {
  Desk rig;
  EXPECT_FALSE(rig.desk.behind());
  EXPECT_EQ(rig.desk.collective(), "");
}

}  // namespace
}  // namespace drun::launcher
