// drunctl health beside real agents, as a probe of Kubernetes calls it.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random_bytes.hpp"
#include "store_process.hpp"
#include "support/drun_process.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class HealthDrunTest : public testing::Test {
 protected:
  static Finished ctl(std::vector<std::string> arguments, Arguments before = {}) {
    arguments.insert(arguments.begin(), places::program("drunctl"));
    arguments.insert(arguments.begin(), before.begin(), before.end());
    Launch launch;
    launch.argv = std::move(arguments);
    return DrunProcess(launch).finish();
  }
  // A worker may print before its agent knows that all have been started.
  static Finished ready_job(const std::string& job) {
    Finished said;
    for (int tries = 0; tries < 1'000 && said.code != 0; ++tries)
      said = ctl({"health", job, "--ready"});
    return said;
  }
  Arguments of_two_nodes(const ReservedPort& port) const {
    return {"--nnodes",
            "2",
            "--rdzv-endpoint",
            port.endpoint(),
            "--rdzv-id",
            job_,
            "sh",
            "-c",
            "echo ready; exec sleep 1000"};
  }
  // Other tests run jobs on this machine, too.
  const std::string job_ = "health-" + random_name(12);
};

TEST_F(HealthDrunTest, AnAgentWhoseWorkersRunIsHealthyAndReady) {
  DrunProcess job(
      {"--rdzv-id", job_, "--nproc-per-node", "2", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(job.wait_for_out("ready\nready\n"));
  const Finished ready = ready_job(job_);
  EXPECT_EQ(ready.code, 0) << ready.err;
  EXPECT_EQ(ready.out, "job " + job_ + ": running, round 1: ranks 0-1 of 2 (pid " +
                           std::to_string(job.pid()) + ")\n");
  const Finished json = ctl({"--json", "health", job_});
  EXPECT_EQ(json.code, 0);
  EXPECT_THAT(json.out, StartsWith("{\"job\":\"" + job_ + "\","));
  EXPECT_THAT(json.out, HasSubstr("\"phase\":\"running\""));
}

TEST_F(HealthDrunTest, AnAgentThatWaitsForOthersIsHealthyAndNotReady) {
  const ReservedPort port;
  DrunProcess agent(
      {"--nnodes", "2", "--rdzv-endpoint", port.endpoint(), "--rdzv-id", job_, "true"});
  ASSERT_TRUE(agent.wait_for_err("1 of 2 nodes"));
  const Finished alive = ctl({"health", job_});
  EXPECT_EQ(alive.code, 0) << alive.err;
  EXPECT_THAT(alive.out, StartsWith("job " + job_ + ": gathering: "));
  EXPECT_THAT(alive.out, HasSubstr("1 of 2 nodes"));
  EXPECT_EQ(ctl({"health", job_, "--ready"}).code, 1);
}

// Whatever its process looks like from outside.
TEST_F(HealthDrunTest, AnAgentThatStandsStillIsNotHealthy) {
  DrunProcess job({"--rdzv-id", job_, "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(job.wait_for_out("ready"));
  job.signal(SIGSTOP);
  const Finished stopped = ctl({"health", job_, "--timeout", "300ms"});
  job.signal(SIGCONT);
  EXPECT_EQ(stopped.code, 1);
  EXPECT_EQ(stopped.err, "drunctl: error: process " + std::to_string(job.pid()) + ": no answer\n");
  EXPECT_EQ(ctl({"health", job_}).code, 0);
}

TEST_F(HealthDrunTest, NoAgentIsNotHealthy) {
  const Finished nobody = ctl({"health", job_});
  EXPECT_EQ(nobody.code, 1);
  EXPECT_EQ(nobody.err, "drunctl: error: no drun of this user runs here with job " + job_ + "\n");
}

TEST_F(HealthDrunTest, EachAgentOfAHostIsAsked) {
  DrunProcess job(
      {"--rdzv-id", job_, "--local-nodes", "2", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(job.wait_for_out("ready\nready\n"));
  const Finished both = ready_job(job_);
  EXPECT_EQ(both.code, 0);
  EXPECT_THAT(both.out, testing::AllOf(HasSubstr("rank 0 of 2"), HasSubstr("rank 1 of 2")));
}

// An agent of this host knows where its job's store is.
TEST_F(HealthDrunTest, StatusTellsTheWholeJobWithoutAnEndpoint) {
  const ReservedPort port;
  const Arguments flags = of_two_nodes(port);
  EXPECT_EQ(ctl({"status", job_}).code, 4);
  DrunProcess first(flags);
  ASSERT_TRUE(first.wait_for_err("1 of 2 nodes"));
  const Finished gathering = ctl({"status", job_});
  EXPECT_EQ(gathering.code, 3) << gathering.err;
  EXPECT_THAT(gathering.out, StartsWith("job " + job_ + ": gathering, --nnodes 2\n"));
  DrunProcess second(flags);
  ASSERT_TRUE(first.wait_for_out("ready"));
  ASSERT_TRUE(second.wait_for_out("ready"));
  for (const Arguments& where : {Arguments{}, Arguments{"--endpoint", port.endpoint()}}) {
    const Finished running = ctl(where + Arguments{"status", job_});
    EXPECT_EQ(running.code, 0) << running.err;
    EXPECT_THAT(running.out, StartsWith("job " + job_ + ": running, round 1: 2 nodes, 2 ranks\n"));
    EXPECT_THAT(running.out, HasSubstr(" x2 (ranks 0-1)\n"));
    EXPECT_EQ(running.out.find("\n  usage of 2 ranks  ") != std::string::npos, where.empty());
  }
  EXPECT_THAT(ctl({"--json", "status", job_}).out,
              testing::AllOf(HasSubstr("\"usage\":[{\"rank\":0,\"cpu_ms\":"),
                             HasSubstr("{\"rank\":1,"), HasSubstr("\"word_age_ms\":")));
  const Finished other = ctl({"--endpoint", port.endpoint(), "status", "other"});
  EXPECT_EQ(other.code, 4);
  EXPECT_THAT(other.err, HasSubstr("there is no job 'other' at " + port.endpoint()));
}

// It has no store that drunctl could ask: its agent tells what it knows.
TEST_F(HealthDrunTest, AJobOfOneNodeHasAStatusAndAHistory) {
  DrunProcess job({"--rdzv-id", job_, "--nproc-per-node", "2", "--max-restarts", "2", "sh", "-c",
                   "[ $TORCHELASTIC_RESTART_COUNT$RANK = 01 ] && exit 7; "
                   "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && echo ready; exec sleep 1000"});
  ASSERT_TRUE(job.wait_for_out("ready\nready\n"));
  EXPECT_EQ(ready_job(job_).code, 0);
  const Finished status = ctl({"status", job_});
  EXPECT_EQ(status.code, 0);
  EXPECT_THAT(status.out, StartsWith("job " + job_ +
                                     ": running, round 2: 1 node, 2 ranks\n"
                                     "  restarts: 1 of 2\n  round 1: stopped at "));
  EXPECT_THAT(status.out, HasSubstr(", restart 1: rank 1 on "));
  EXPECT_THAT(status.out, HasSubstr(" (ranks 0-1)\n"));
  EXPECT_THAT(status.out, HasSubstr("\n  usage of 2 ranks  "));
  EXPECT_THAT(status.out, testing::Not(HasSubstr("leader")));
  const Finished history = ctl({"history", job_});
  EXPECT_EQ(history.code, 0);
  EXPECT_THAT(history.out, StartsWith("job " + job_ + ": running\n  round 1: 1 node, 2 ranks, "));
  EXPECT_THAT(history.out, HasSubstr("exit code 7; stopped in "));
  EXPECT_THAT(history.out, HasSubstr(", restart 1\n  round 2: 1 node, 2 ranks, "));
  for (const char* command : {"status", "history"})
    EXPECT_THAT(ctl({"--json", command, job_}).out,
                testing::AllOf(StartsWith("{\"id\":\"" + job_ + "\",\"state\":\"running\","),
                               HasSubstr("\"cause\":\"failure\"")));
  EXPECT_EQ(ctl({"status", job_, "--watch"}).code, 2);
}

TEST_F(HealthDrunTest, SeveralJobsOfOneNodeAreEachTold) {
  DrunProcess first({"--rdzv-id", job_, "sh", "-c", "echo ready; exec sleep 1000"});
  DrunProcess second({"--rdzv-id", job_, "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(first.wait_for_out("ready"));
  ASSERT_TRUE(second.wait_for_out("ready"));
  EXPECT_EQ(ready_job(job_).code, 0);
  const std::string line = "job " + job_ + ": running, round 1: 1 node, 1 rank\n";
  const std::string status = ctl({"status", job_}).out;
  EXPECT_THAT(status, StartsWith(line));
  EXPECT_THAT(status, HasSubstr("\n" + line));
}

// Their store is on this host, at a port that nobody was told.
TEST_F(HealthDrunTest, StatusOfLocalNodesIsThatOfTheWholeJob) {
  DrunProcess job(
      {"--rdzv-id", job_, "--local-nodes", "2", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(job.wait_for_out("ready\nready\n"));
  const Finished status = ctl({"status", job_});
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_THAT(status.out, StartsWith("job " + job_ + ": running, round 1: 2 nodes, 2 ranks\n"));
  EXPECT_THAT(status.out, HasSubstr("  since: "));
}

TEST_F(HealthDrunTest, TheLiveViewEndsWithTheJobAndItsCode) {
  const TempDir folder;
  const std::string file = folder.path() / "stop";
  DrunProcess job({"--rdzv-id", job_, "--local-nodes", "2", "sh", "-c",
                   "until [ -e " + file + " ]; do sleep 0.05; done; exit 7"});
  Launch launch;
  launch.argv = {places::program("drunctl"), "status", job_, "--watch"};
  ASSERT_TRUE(eventually([&] { return ctl({"status", job_}).code == 0; }));
  DrunProcess watch(launch);
  ASSERT_TRUE(watch.wait_for_out("running, round 1: 2 nodes, 2 ranks\n"));
  folder.write("stop", "");
  EXPECT_EQ(job.finish().code, 7);
  const Finished seen = watch.finish();
  EXPECT_EQ(seen.code, 1) << seen.err;
  EXPECT_THAT(seen.out, HasSubstr(": failed, exit code 7, round "));
}

TEST_F(HealthDrunTest, HistoryTellsWhatWasAndWhatItCost) {
  const ReservedPort port;
  Store store(std::to_string(port.number()));
  const Arguments flags{"--nnodes",  "2",  "--max-restarts",  "1",
                        "--rdzv-id", job_, "--rdzv-endpoint", port.endpoint(),
                        "sh",        "-c", "exit 7"};
  DrunProcess first(flags);
  DrunProcess second(flags);
  EXPECT_EQ(first.finish().code, 7);
  EXPECT_EQ(second.finish().code, 7);
  const Arguments at{"--endpoint", port.endpoint()};
  const Finished history = ctl(at + Arguments{"history", job_});
  EXPECT_EQ(history.code, 0) << history.err;
  EXPECT_THAT(history.out,
              StartsWith("job " + job_ + ": failed, exit code 7\n  round 1: 2 nodes, "));
  EXPECT_THAT(history.out, HasSubstr("exit code 7; stopped in "));
  EXPECT_THAT(history.out, HasSubstr(", restart 1\n  round 2: "));
  const Finished status = ctl(at + Arguments{"status", job_});
  EXPECT_EQ(status.code, 1);
  EXPECT_THAT(status.out, HasSubstr("  restarts: 1 of 1\n"));
  EXPECT_THAT(ctl(at + Arguments{"--json", "history", job_}).out, HasSubstr("\"restart\":1"));
}

TEST_F(HealthDrunTest, StatusIsShownAgainWhenItChanges) {
  const ReservedPort port;
  const Arguments flags = of_two_nodes(port);
  DrunProcess first(flags);
  ASSERT_TRUE(first.wait_for_err("1 of 2 nodes"));
  Launch launch;
  launch.argv = {places::program("drunctl"), "--endpoint", port.endpoint(), "status", "--watch"};
  DrunProcess watch(launch);
  ASSERT_TRUE(watch.wait_for_out("gathering"));
  DrunProcess second(flags);
  EXPECT_TRUE(watch.wait_for_out("running, round 1: 2 nodes, 2 ranks\n")) << watch.out();
}

TEST_F(HealthDrunTest, TheLiveViewOfAJobThatIsNotThereSaysThatItWaits) {
  const ReservedPort port;
  Store store(std::to_string(port.number()));
  Launch launch;
  launch.argv = {
      places::program("drunctl"), "--endpoint", port.endpoint(), "status", job_, "--watch"};
  DrunProcess watch(launch);
  ASSERT_TRUE(watch.wait_for_err("there is no job '" + job_ + "' at " + port.endpoint() +
                                 " yet; waiting for it\n"))
      << watch.err();
  const Arguments flags = of_two_nodes(port);
  DrunProcess first(flags);
  DrunProcess second(flags);
  EXPECT_TRUE(watch.wait_for_out("running, round 1: 2 nodes, 2 ranks\n")) << watch.out();
}

TEST_F(HealthDrunTest, AnotherUserIsToldNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  DrunProcess job({"--rdzv-id", job_, "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(job.wait_for_out("ready"));
  EXPECT_EQ(ctl({"health", job_}, {"/usr/bin/setpriv", "--reuid", "65534", "--clear-groups"}).code,
            1);
}

}  // namespace
}  // namespace drun::test
