#include "launcher/telling/event_reporter.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/version.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using events::Event;
using events::Kind;
using rendezvous::Link;
using rendezvous::LinkEvent;
using rendezvous::News;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// "failure global_rank=3 pid=7": what the kind has of fields that say something, without the times.
std::string text(const Event& event) {
  static const std::set<std::string_view> kTimes{"timestamp", "duration_ms", "total_run_time",
                                                 "version"};
  const auto& info = info_of(event.kind);
  std::string result(info.name);
  for (const auto& field : info.fields) {
    const std::string value = events::text_of(event, field);
    if (!value.empty() && value != "0" && !kTimes.contains(field.name))
      result.append(" ").append(field.name).append("=").append(value);
  }
  return result;
}

Options remembering() {
  Options options;
  options.run_id = "train";
  options.nproc_per_node = 2;
  options.max_restarts = 3;
  options.status_socket = "/run/page";
  return options;
}

rendezvous::Assignment second_node() {
  rendezvous::Assignment place;
  place.round = 4;
  place.group_rank = 1;
  place.group_world_size = 2;
  place.first_rank = 2;
  place.world_size = 4;
  place.restart_count = 1;
  place.master_address = "10.0.0.1";
  place.master_port = 29'501;
  return place;
}

Worker ended_worker(int code, int signal) {
  Worker worker;
  worker.local_rank = 1;
  worker.pid = 4711;
  worker.stage = Worker::Stage::Ended;
  worker.ended = worker.started + milliseconds(1'500);
  worker.end.status.code = code;
  worker.end.status.signal = signal;
  worker.cause = "its cause";
  worker.usage = {70, 80, 90, 100, 110};
  return worker;
}

class EventReporterTest : public testing::Test {
 protected:
  // Those since the last call.
  std::vector<Event> take() {
    const auto& list = reporter_.memory().list();
    std::vector<Event> result;
    for (; taken_ < list.size(); ++taken_)
      result.push_back(*list[taken_]);
    return result;
  }
  std::vector<std::string> told() {
    std::vector<std::string> result;
    for (const Event& event : take())
      result.push_back(text(event));
    return result;
  }
  void round(const rendezvous::Assignment& place = second_node()) {
    reporter_.round_begins(place);
    (void)take();
  }
  static WorkerNews group(GroupNews news) {
    WorkerNews result;
    result.group = std::move(news);
    return result;
  }
  static WorkerNews of(bool GroupNews::*what) {
    GroupNews news;
    news.*what = true;
    return group(std::move(news));
  }

  asio::io_context io_{1};
  Options options_ = remembering();
  EventReporter reporter_{io_, options_, "node7"};
  std::size_t taken_ = 0;
};

TEST_F(EventReporterTest, NobodyWhoWantsToKnowIsToldNothing) {
  const Options quiet;
  EventReporter reporter(io_, quiet, "node7");
  EXPECT_EQ(reporter.worker_watch(), nullptr);
  EXPECT_EQ(reporter_.worker_watch(), &reporter_);
  reporter.begin();
  reporter.warned("of it");
  bool over = false;
  reporter.finish(0, [&over] { over = true; });
  EXPECT_TRUE(over);
  EXPECT_THAT(reporter.memory().list(), IsEmpty());
}

TEST_F(EventReporterTest, TheFirstSaysWhatTheJobIs) {
  options_.backend = Backend::C10d;
  options_.min_nodes = 2;
  options_.max_nodes = 4;
  options_.endpoint = {"node0", 29'400};
  options_.role = "trainer";
  EventReporter reporter(io_, options_, "node7");
  reporter.begin();
  EXPECT_EQ(reporter.memory().list().front()->version, DRUN_VERSION_STRING);
  EXPECT_EQ(text(*reporter.memory().list().front()),
            "agent_started rdzv_backend=c10d endpoint=node0:29400 nnodes=2:4 local_world_size=2 "
            "max_restarts=3 role=trainer");
}

TEST_F(EventReporterTest, APlaceThatNobodyElseNeedsIsNotTold) {
  options_.endpoint = {"node0", 29'400};
  reporter_.begin();
  options_.min_nodes = options_.max_nodes = 2;
  options_.local_node = 0;
  reporter_.begin();
  EXPECT_THAT(told(),
              ElementsAre("agent_started rdzv_backend=standalone nnodes=1 local_world_size=2 "
                          "max_restarts=3 role=default",
                          "agent_started rdzv_backend=standalone nnodes=2 local_world_size=2 "
                          "max_restarts=3 role=default"));
}

TEST_F(EventReporterTest, EveryEventSaysWhereItHappens) {
  reporter_.warned("before it has joined");
  NodeIdentity node;
  node.ticket = "a1b2";
  reporter_.joined(node);
  reporter_.round_begins(second_node());
  const auto events = take();
  ASSERT_THAT(events, SizeIs(3));
  for (const Event& event : events) {
    EXPECT_EQ(event.run_id, "train");
    EXPECT_EQ(event.hostname, "node7");
    EXPECT_EQ(event.agent_pid, ::getpid());
    EXPECT_GT(event.time_ns, 0);
    EXPECT_EQ(event.timestamp, event.time_ns / 1'000'000);
    EXPECT_GE(event.monotonic_ns, events.front().monotonic_ns);
  }
  EXPECT_EQ(events[0].node, "");
  EXPECT_EQ(events[0].group_rank, -1);
  EXPECT_EQ(events[1].node, "a1b2");
  EXPECT_EQ(events[1].round, 0);
  EXPECT_EQ(events[2].round, 4);
  EXPECT_EQ(events[2].group_rank, 1);
  EXPECT_EQ(events[2].agent_restarts, 1);
}

TEST_F(EventReporterTest, AStoreIsHostedOrFound) {
  NodeIdentity node;
  node.hosting = true;
  reporter_.joined(node);
  node.hosting = false;
  reporter_.joined(node);
  EXPECT_THAT(told(), ElementsAre("store_hosted", "store_found"));
}

TEST_F(EventReporterTest, ALostStoreIsToldOnceAndFoundAgain) {
  reporter_.joined({});
  (void)take();
  reporter_.on_link(LinkEvent{Link::Up, ""});
  EXPECT_THAT(told(), IsEmpty()) << "it was there";
  reporter_.on_link(LinkEvent{Link::Down, "no route"});
  reporter_.on_link(LinkEvent{Link::Failed, "given up"});
  reporter_.on_link(LinkEvent{Link::NewSession, ""});
  reporter_.on_link(LinkEvent{Link::Up, ""});
  EXPECT_THAT(told(), ElementsAre("store_lost reason=no route", "store_found"));
  reporter_.on_link(LinkEvent{Link::Closed, ""});
  reporter_.on_link(rendezvous::WatchSnapshot{1, {}});
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(EventReporterTest, ASuccessorIsToldWithItsPlace) {
  reporter_.joined({});
  (void)take();
  reporter_.on_link(LinkEvent{Link::Down, "gone"});
  LinkEvent there{Link::NewSession, ""};
  there.generation = 2;
  there.hosting = true;
  there.store = "10.0.0.2:29400";
  reporter_.on_link(there);
  EXPECT_THAT(told(),
              ElementsAre("store_lost reason=gone", "store_hosted endpoint=10.0.0.2:29400"));
  reporter_.on_link(LinkEvent{Link::Down, "gone"});
  reporter_.on_link(LinkEvent{Link::Up, ""});
  EXPECT_THAT(told(), ElementsAre("store_lost reason=gone", "store_hosted endpoint=10.0.0.2:29400"))
      << "a store without successors says neither";
}

TEST_F(EventReporterTest, TheLeaderTellsWhatBecomesOfTheNodes) {
  using What = News::What;
  reporter_.tell(News{What::Leads, "", "", ""});
  reporter_.tell(News{What::Joined, "c3", "node3", ""});
  reporter_.tell(News{What::Gone, "c3", "node3", "it is silent"});
  reporter_.tell(News{What::Refused, "d4", "node4", "another job"});
  reporter_.tell(News{What::Hung, "", "", "none has made progress"});
  EXPECT_THAT(told(),
              ElementsAre("leader_elected", "node_joined peer=c3 peer_host=node3",
                          "node_gone peer=c3 peer_host=node3 reason=it is silent",
                          "node_refused peer=d4 peer_host=node4 reason=another job",
                          "hang global_rank=-1 local_rank=-1 reason=none has made progress"));
}

TEST_F(EventReporterTest, TheLeaderTellsWhichRankFailedAndThatARestartIsSpent) {
  News failed{News::What::Failed, "c3", "node3", ""};
  failed.failure.emplace();
  failed.failure->rank = 5;
  failed.failure->local_rank = 1;
  failed.failure->pid = 77;
  failed.failure->exit_code = 9;
  failed.failure->cause = "exit code 9";
  reporter_.tell(failed);
  failed.failure->signal = SIGSEGV;
  reporter_.tell(failed);
  News restarted{News::What::Restarted, "", "", "rank 5 failed"};
  restarted.restarts = 2;
  reporter_.tell(restarted);
  EXPECT_EQ(reporter_.memory().list().back()->agent_restarts, 2);
  EXPECT_THAT(told(), ElementsAre("failure global_rank=5 local_rank=1 pid=77 exit_code=9 "
                                  "raw_error=exit code 9 peer=c3 peer_host=node3",
                                  "failure global_rank=5 local_rank=1 pid=77 signal=11 "
                                  "raw_error=exit code 9 peer=c3 peer_host=node3",
                                  "restart max_restarts=3 reason=rank 5 failed"));
}

TEST_F(EventReporterTest, ARoundHasABeginningAndAnEnd) {
  reporter_.round_begins(second_node());
  reporter_.on_workers(of(&GroupNews::started));
  reporter_.on_workers(of(&GroupNews::stopped));
  EXPECT_THAT(told(), ElementsAre("round_begun group_world_size=2 first_rank=2 local_world_size=2 "
                                  "world_size=4 master_endpoint=10.0.0.1:29501 role=default",
                                  "workers_running", "round_ended"));
  reporter_.on_workers(of(&GroupNews::stopped));
  EXPECT_THAT(told(), IsEmpty()) << "outside of a round";
}

TEST_F(EventReporterTest, WhatHappensInARoundIsToldWithTheTimeSinceItsBeginning) {
  const auto before = std::chrono::steady_clock::now();
  round();
  const auto begun = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < begun + milliseconds(2)) {
  }
  reporter_.on_workers(of(&GroupNews::started));
  reporter_.on_workers(of(&GroupNews::stopped));
  const milliseconds longest =
      std::chrono::ceil<milliseconds>(std::chrono::steady_clock::now() - before);
  for (const Event& event : take()) {
    EXPECT_GE(event.duration_ms, 2) << text(event);
    EXPECT_LE(event.duration_ms, longest.count()) << text(event);
  }
}

TEST_F(EventReporterTest, ARoundEndsHoweverItsWorkersDo) {
  WorkerNews swept;
  swept.swept = true;
  WorkerNews lost;
  lost.guardian_ended = "the guardian was killed";
  for (const auto& news : {swept, lost}) {
    round();
    reporter_.on_workers(of(&GroupNews::succeeded));
    EXPECT_THAT(told(), IsEmpty()) << "others may still run";
    reporter_.on_workers(news);
    EXPECT_THAT(told(), ElementsAre("round_ended"));
  }
}

TEST_F(EventReporterTest, WhyARoundIsStoppedIsToldOnce) {
  reporter_.round_stops("no round");
  EXPECT_THAT(told(), IsEmpty());
  for (int again = 0; again < 2; ++again) {
    round();
    reporter_.round_stops("");
    reporter_.round_stops("a node left");
    reporter_.round_stops("the job ends");
    EXPECT_THAT(told(), ElementsAre("round_stopping reason=a node left"));
    reporter_.on_workers(of(&GroupNews::stopped));
    EXPECT_THAT(told(), ElementsAre("round_ended"));
  }
}

TEST_F(EventReporterTest, AFailureStopsTheRoundBeforeTheOthersHearOfIt) {
  round();
  GroupNews failed;
  failed.failure.emplace();
  failed.failure->rank = 3;
  failed.failure->local_rank = 1;
  failed.failure->cause = "exit code 9";
  reporter_.on_workers(group(failed));
  reporter_.round_stops("rank 3 failed");
  EXPECT_THAT(
      told(),
      ElementsAre("round_stopping reason=rank 3 (local rank 1): exit code 9 cause=failure"));
}

TEST_F(EventReporterTest, AStopSaysItsCauseInAWord) {
  struct Row {
    bool rendezvous::StopAction::*flag;
    const char* told;
  };
  for (const auto& [flag, told_cause] :
       {Row{&rendezvous::StopAction::time_limit, " cause=time-limit"},
        Row{&rendezvous::StopAction::failure, " cause=failure"},
        Row{&rendezvous::StopAction::resize, " cause=resize"},
        Row{&rendezvous::StopAction::immediately, ""}}) {
    round();
    rendezvous::StopAction stop;
    stop.reason = "why";
    stop.*flag = true;
    reporter_.round_stops(stop);
    EXPECT_THAT(told(), ElementsAre(std::string("round_stopping reason=why") + told_cause));
  }
}

TEST_F(EventReporterTest, ProcessesThatAStopLeavesAreAWarning) {
  round();
  WorkerNews news = of(&GroupNews::stopped);
  news.left_behind = "process 7 hangs";
  reporter_.on_workers(news);
  EXPECT_THAT(told(), ElementsAre("warning reason=process 7 hangs", "round_ended"));
}

TEST_F(EventReporterTest, AWorkerIsNamedByItsRanks) {
  Worker worker = ended_worker(0, 0);
  reporter_.on_started(second_node(), worker);
  reporter_.on_ended(second_node(), worker, true);
  EXPECT_EQ(reporter_.memory().list().back()->duration_ms, 1'500);
  worker.end.status.code = 9;
  reporter_.on_ended(second_node(), worker, false);
  worker.end.status.signal = SIGTERM;
  reporter_.on_ended(second_node(), worker, true);
  const std::string used =
      " cpu_ms=70 peak_kib=80 read_kib=90 written_kib=100 switches=110 gpu_peak_kib=-1 "
      "gpu_percent=-1";
  EXPECT_THAT(
      told(),
      ElementsAre("worker_started global_rank=3 local_rank=1 pid=4711 role=default",
                  "worker_exited name=torchelastic.worker.status.SUCCEEDED source=WORKER "
                  "global_rank=3 local_rank=1 pid=4711 role=default state=SUCCEEDED" +
                      used,
                  "worker_exited name=torchelastic.worker.status.FAILED source=WORKER "
                  "global_rank=3 local_rank=1 pid=4711 role=default state=FAILED exit_code=9 "
                  "raw_error=its cause" +
                      used,
                  "worker_exited name=torchelastic.worker.status.TERMINATED source=WORKER "
                  "global_rank=3 local_rank=1 pid=4711 role=default state=TERMINATED signal=15 "
                  "raw_error=its cause" +
                      used));
}

TEST_F(EventReporterTest, OfAWorkerOnGpusItIsToldWhatItHad) {
  GpuLedger gpus;
  gpus.note(4, {true, {{4711, 4'096, 30}}});
  reporter_.tell_gpus(gpus);
  reporter_.on_ended(second_node(), ended_worker(0, 0), false);
  EXPECT_THAT(told(), ElementsAre(testing::HasSubstr(" gpu_peak_kib=4096 gpu_percent=30")));
  auto next = second_node();
  next.round = 5;
  reporter_.on_ended(next, ended_worker(0, 0), false);
  EXPECT_THAT(told(), ElementsAre(testing::HasSubstr(" gpu_peak_kib=-1 gpu_percent=-1")));
}

TEST_F(EventReporterTest, AWorkerThatNeverBeganHasNoDuration) {
  Worker worker = ended_worker(127, 0);
  worker.pid = 0;
  worker.end.spawn_error = ENOENT;
  reporter_.on_ended(second_node(), worker, false);
  const auto events = take();
  EXPECT_EQ(events.front().duration_ms, 0);
  EXPECT_EQ(events.front().state, "FAILED");
}

TEST_F(EventReporterTest, ASignalIsToldWithWhatDrunDoes) {
  for (const auto meaning : {SignalMeaning::Stop, SignalMeaning::Forward, SignalMeaning::Suspend,
                             SignalMeaning::Stacks, SignalMeaning::Resize})
    reporter_.on_signal(SIGUSR1, meaning);
  EXPECT_THAT(told(),
              ElementsAre("signal signal=10 reason=SIGUSR1: drun stops",
                          "signal signal=10 reason=SIGUSR1: drun forwards it to the workers",
                          "signal signal=10 reason=SIGUSR1: drun sleeps, and the workers with it",
                          "signal signal=10 reason=SIGUSR1: drun shows where the workers are"));
}

TEST_F(EventReporterTest, LimitsHangsAndWarningsHaveTheirReason) {
  reporter_.at_limit("--timeout");
  reporter_.warned("a slow disk");
  HungRank rank;
  rank.local_rank = 1;
  rank.pid = 4711;
  rank.fault.cause = "gave no heartbeat";
  reporter_.on_hang(second_node(), rank);
  EXPECT_THAT(told(), ElementsAre("limit reason=--timeout", "warning reason=a slow disk",
                                  "hang global_rank=3 local_rank=1 pid=4711 "
                                  "reason=gave no heartbeat"));
}

TEST_F(EventReporterTest, TheEndOfTheJobAndOfTheAgent) {
  reporter_.job_ends({rendezvous::End::Success, 0, ""}, true);
  reporter_.job_ends({rendezvous::End::Failure, 9, "rank 3 failed"}, true);
  bool over = false;
  reporter_.finish(9, [&over] { over = true; });
  EXPECT_TRUE(over) << "nobody has to be waited for";
  EXPECT_THAT(told(), ElementsAre("outcome name=torchelastic.worker.status.SUCCEEDED source=AGENT "
                                  "role=default rdzv_backend=standalone state=SUCCEEDED",
                                  "outcome name=torchelastic.worker.status.FAILED source=AGENT "
                                  "role=default rdzv_backend=standalone state=FAILED exit_code=9 "
                                  "raw_error=rank 3 failed",
                                  "agent_ended exit_code=9"));
}

TEST_F(EventReporterTest, TheEndSaysHowLongTheAgentHasRun) {
  EventReporter reporter(io_, options_, "node7",
                         std::chrono::steady_clock::now() - std::chrono::hours(1));
  reporter.job_ends({rendezvous::End::Success, 0, ""}, true);
  reporter.finish(0, [] {});
  const auto& told = reporter.memory().list();
  ASSERT_THAT(told, SizeIs(2));
  for (const auto& event : told)
    EXPECT_GE(event->total_run_time, 3'600) << text(*event);
}

TEST_F(EventReporterTest, TheEndIsOverWhenAllIsWritten) {
  const test::TemporaryDirectory folder;
  Options options = remembering();
  options.status_socket.clear();
  options.events.target =
      EventTarget{EventTarget::Kind::File, folder.file("${run_id}.${hostname}")};
  EventReporter reporter(io_, options, "node7");
  EXPECT_THAT(reporter.memory().list(), IsEmpty());
  reporter.warned("one");
  bool over = false;
  reporter.finish(0, [&over] { over = true; });
  EXPECT_FALSE(over);
  io_.run();
  EXPECT_TRUE(over);
  std::ifstream file(folder.file("train.node7"));
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);)
    names.push_back(text(events::parse_event(line).value()));
  EXPECT_THAT(names, ElementsAre("warning reason=one", "agent_ended"));
  EXPECT_THAT(reporter.memory().list(), IsEmpty()) << "for a page, which is not wanted";
}

TEST_F(EventReporterTest, WhoGivesUpDoesNotWaitForAHook) {
  Options options = remembering();
  EventHook hook;
  hook.at_end = true;
  hook.command = "exec sleep 1000";
  options.events.hooks.push_back(hook);
  EventReporter reporter(io_, options, "node7");
  reporter.job_ends({rendezvous::End::Success, 0, ""}, true);
  bool over = false;
  reporter.finish(0, [&over] { over = true; });
  EXPECT_FALSE(over) << "the end's hook is waited for";
  reporter.give_up();
  EXPECT_TRUE(over);
  io_.run();
}

TEST_F(EventReporterTest, OnlyWhoLeadsRunsTheHookOfTheEnd) {
  Options options = remembering();
  EventHook hook;
  hook.at_end = true;
  hook.command = "exec sleep 1000";
  options.events.hooks.push_back(hook);
  EventReporter reporter(io_, options, "node7");
  reporter.job_ends({rendezvous::End::Success, 0, ""}, false);
  bool over = false;
  reporter.finish(0, [&over] { over = true; });
  EXPECT_TRUE(over);
}

}  // namespace
}  // namespace drun::launcher
