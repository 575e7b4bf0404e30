// --events and --on-event of real jobs.
#include <signal.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/events/event.hpp"
#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using events::Event;
using events::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class EventsDrunTest : public testing::Test {
 protected:
  [[nodiscard]] std::string file() const { return folder_.path() / "events.jsonl"; }
  // Of a file, every line of which is an event.
  [[nodiscard]] std::vector<Event> read() const {
    std::vector<Event> result;
    for (const std::string& line : split_lines(read_file(file()))) {
      const auto event = events::parse_event(line);
      EXPECT_TRUE(event) << line;
      if (event) result.push_back(*event);
    }
    return result;
  }
  static std::vector<Event> of(const std::vector<Event>& events, Kind kind) {
    std::vector<Event> result;
    std::copy_if(events.begin(), events.end(), std::back_inserter(result),
                 [kind](const Event& event) { return event.kind == kind; });
    return result;
  }
  static std::vector<std::string> names(const std::vector<Event>& events) {
    std::vector<std::string> result;
    for (const Event& event : events)
      result.emplace_back(info_of(event.kind).name);
    return result;
  }
  TempDir folder_;
};

TEST_F(EventsDrunTest, AJobOfOneNodeTellsItsWholeStory) {
  const auto job = run_drun({"--events", file(), "--rdzv-id", "train", "true"});
  EXPECT_EQ(job.code, 0) << job.err;
  EXPECT_EQ(job.err, "");
  const auto events = read();
  EXPECT_THAT(names(events),
              ElementsAre("agent_started", "store_hosted", "leader_elected", "node_joined",
                          "round_begun", "worker_started", "workers_running", "worker_exited",
                          "round_ended", "outcome", "agent_ended"));
  for (const Event& event : events) {
    EXPECT_EQ(event.run_id, "train");
    EXPECT_EQ(event.agent_pid, events.front().agent_pid);
    EXPECT_GE(event.monotonic_ns, events.front().monotonic_ns);
  }
  EXPECT_EQ(events.back().exit_code, 0);
  EXPECT_EQ(of(events, Kind::WorkerExited).front().name, "torchelastic.worker.status.SUCCEEDED");
}

TEST_F(EventsDrunTest, NodesThatShareAFileTellWhoFailedAndThatItWasRestarted) {
  const auto job = run_drun({"--local-nodes", "2", "--nproc-per-node", "2", "--max-restarts", "1",
                             "--events", file(), "sh", "-c",
                             // Workers that are not started yet when another fails never are.
                             "echo >\"$0.$RANK\"; test $RANK = 3 && "
                             "until test -e \"$0.0\" -a -e \"$0.1\" -a -e \"$0.2\"; do :; done && "
                             "exit $((7 - 7 * TORCHELASTIC_RESTART_COUNT)); "
                             "test $TORCHELASTIC_RESTART_COUNT = 1 || exec sleep 1000",
                             file()});
  EXPECT_EQ(job.code, 0) << job.err;
  const auto events = read();
  const auto failures = of(events, Kind::Failure);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures.front().global_rank, 3);
  EXPECT_EQ(failures.front().exit_code, 7);
  EXPECT_EQ(failures.front().round, 1);
  EXPECT_EQ(failures.front().peer_host, failures.front().hostname);
  const auto restarts = of(events, Kind::Restart);
  ASSERT_EQ(restarts.size(), 1U);
  EXPECT_EQ(restarts.front().agent_restarts, 1);
  EXPECT_EQ(restarts.front().max_restarts, 1);
  EXPECT_THAT(restarts.front().reason, HasSubstr("rank 3"));
  EXPECT_EQ(of(events, Kind::WorkerStarted).size(), 8U);
  std::map<std::string, int> states;
  for (const Event& event : of(events, Kind::WorkerExited))
    ++states[event.state];
  EXPECT_EQ(states,
            (std::map<std::string, int>{{"FAILED", 1}, {"SUCCEEDED", 4}, {"TERMINATED", 3}}));
  std::set<std::string> nodes;
  for (const Event& event : of(events, Kind::RoundBegun))
    nodes.insert(event.node);
  EXPECT_EQ(nodes.size(), 2U);
  EXPECT_EQ(of(events, Kind::Outcome).size(), 2U);
  EXPECT_EQ(of(events, Kind::AgentEnded).size(), 2U);
}

TEST_F(EventsDrunTest, AKilledWorkerHasASignalAndAnAgentSaysWhichStoppedIt) {
  DrunProcess job({"--events", file(), "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(job.wait_for_out("ready"));
  job.signal(SIGTERM);
  EXPECT_EQ(job.finish().code, 143);
  const auto events = read();
  ASSERT_EQ(of(events, Kind::Signal).size(), 1U);
  EXPECT_EQ(of(events, Kind::Signal).front().signal, SIGTERM);
  ASSERT_EQ(of(events, Kind::WorkerExited).size(), 1U);
  const Event worker = of(events, Kind::WorkerExited).front();
  EXPECT_EQ(worker.state, "TERMINATED");
  EXPECT_EQ(worker.signal, SIGTERM);
  EXPECT_EQ(worker.exit_code, 0);
  EXPECT_GT(worker.peak_kib, 0);
  EXPECT_EQ(of(events, Kind::Outcome).front().exit_code, 143);
}

TEST_F(EventsDrunTest, ACommandGetsThemAndIsWaitedFor) {
  const auto job = run_drun({"--events", "exec:cat >" + file(), "true"});
  EXPECT_EQ(job.code, 0) << job.err;
  EXPECT_EQ(read().back().kind, Kind::AgentEnded);
  EXPECT_THAT(job.survivors, IsEmpty());
}

TEST_F(EventsDrunTest, ACommandThatNeverEndsIsEnded) {
  const auto job = run_drun({"--events", "exec:cat >" + file() + "; exec sleep 1000", "true"});
  EXPECT_EQ(job.code, 0) << job.err;
  EXPECT_EQ(read().back().kind, Kind::AgentEnded);
  EXPECT_THAT(job.err, HasSubstr("killed by SIGTERM"));
  EXPECT_THAT(job.survivors, IsEmpty());
}

TEST_F(EventsDrunTest, AReaderThatTakesNothingAndAFullDiskCostTheJobNothing) {
  const auto stuck =
      run_drun({"--events", "exec:exec sleep 1000", "--nproc-per-node", "2", "sh", "-c", "exit 0"});
  EXPECT_EQ(stuck.code, 0) << stuck.err;
  EXPECT_THAT(stuck.survivors, IsEmpty());
  const auto full = run_drun({"--events", "/dev/full", "true"});
  EXPECT_EQ(full.code, 0);
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
  EXPECT_THAT(full.err, HasSubstr("events were lost"));
}

TEST_F(EventsDrunTest, HooksRunAtTheirEventsAndOneThatFailsHarmsNothing) {
  const std::string told = folder_.path() / "told";
  const auto job = run_drun(
      {"--max-restarts", "1", "--rdzv-id", "train", "--on-event",
       "restart,end:echo \"$DRUN_EVENT_RUN_ID $DRUN_EVENT $DRUN_EVENT_EXIT_CODE\" >>" + told,
       "--on-event", "failure:exit 9", "sh", "-c", "exit 5"});
  EXPECT_EQ(job.code, 5);
  auto lines = split_lines(read_file(told));
  std::sort(lines.begin(), lines.end());
  EXPECT_THAT(lines, ElementsAre("train outcome 5", "train restart "));
  EXPECT_THAT(job.err, HasSubstr("--on-event exit 9: exit code 9"));
}

TEST_F(EventsDrunTest, AProgramThatCannotBeStartedIsAnEnd) {
  const std::string told = folder_.path() / "told";
  const auto job =
      run_drun({"--local-nodes", "2", "--events", file(), "--on-event",
                "end:echo \"$DRUN_EVENT_EXIT_CODE $DRUN_EVENT_RAW_ERROR\" >>" + told, "./nowhere"});
  EXPECT_EQ(job.code, 127);
  EXPECT_EQ(read_file(told), "127 cannot exec ./nowhere: No such file or directory\n");
  const auto events = read();
  EXPECT_THAT(names(events), ElementsAre("agent_started", "outcome", "agent_ended"));
  EXPECT_EQ(events.back().exit_code, 127);
}

TEST_F(EventsDrunTest, EachAgentOfAMachineWritesToTheDescriptorThatDrunWasGiven) {
  for (const std::string several : {"--local-nodes", "--replica-groups"}) {
    SCOPED_TRACE(several);
    DrunProcess job({{"/bin/sh", "-c", "exec \"$@\" 6>\"$0\"", file(), drun_path(), several, "2",
                      "--events", "fd:6", "true"},
                     {},
                     {},
                     false});
    const auto end = job.finish();
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(end.out, Not(HasSubstr("\"event\"")));
    EXPECT_THAT(end.err, Not(HasSubstr("\"event\"")));
    const auto events = read();
    EXPECT_EQ(of(events, Kind::WorkerExited).size(), 2U);
    EXPECT_EQ(of(events, Kind::AgentEnded).size(), 2U);
  }
}

TEST_F(EventsDrunTest, AMistakeInAFlagIsToldAtOnce) {
  for (const auto& [arguments, said] : std::vector<std::pair<Arguments, std::string>>{
           {{"--events", "fd:987"}, "no such descriptor"},
           {{"--events", "exec:"}, "expected a command"},
           {{"--on-event", "true"}, "expected NAMES:COMMAND"},
           {{"--on-event", "restat:true"}, "did you mean restart?"}}) {
    const auto job = run_drun(arguments + Arguments{"true"});
    EXPECT_EQ(job.code, 2);
    EXPECT_THAT(job.err, HasSubstr(said));
  }
}

}  // namespace
}  // namespace drun::test
