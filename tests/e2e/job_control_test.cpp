// Ctrl-Z, and sessions and shells without job control.
#include <signal.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/expect_end.hpp"
#include "support/process_state.hpp"

namespace drun::test {
namespace {

TEST(JobControlTest, ASuspendedNodeGoesOnWhereItWas) {
  const ReservedPort port;
  const TempDir directory;
  const auto file = directory.path() / "go-on";
  const Arguments arguments = Arguments{"--nnodes",      "2",           "--rdzv-endpoint",
                                        port.endpoint(), "--rdzv-conf", "keep_alive_interval=60"} +
                              Arguments{"sh", "-c",
                                        "echo ready; while [ ! -e " + file.string() +
                                            " ]; do sleep 0.02; done; "
                                            "echo restarts $TORCHELASTIC_RESTART_COUNT"};
  Launch job;
  job.own_group = true;
  DrunProcess first(arguments, job);
  DrunProcess second(arguments);
  ASSERT_TRUE(first.wait_for_out("ready")) << first.err();
  ASSERT_TRUE(second.wait_for_out("ready")) << second.err();
  const auto workers = first.pids_with("LOCAL_RANK=0");
  ASSERT_FALSE(workers.empty());
  first.signal(SIGTSTP);
  EXPECT_TRUE(eventually([&] { return stopped(first.pid()) && stopped(workers.front()); }));
  first.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return !stopped(workers.front()); }));
  directory.write("go-on", "");
  expect_end(first, 0);
  expect_end(second, 0);
  EXPECT_EQ(first.out(), "ready\nrestarts 0\n");
  EXPECT_EQ(second.out(), "ready\nrestarts 0\n");
}

// A session without a shell, and a shell that had it ignored.
TEST(JobControlTest, WithoutJobControlCtrlZDoesNotFreezeTheJob) {
  for (const Arguments& start :
       {Arguments{"/usr/bin/setsid"}, Arguments{"/usr/bin/env", "--ignore-signal=TSTP"}}) {
    SCOPED_TRACE(start.back());
    Launch launch;
    launch.argv = start + Arguments{drun_path(),
                                    "--forward-signals",
                                    "USR1",
                                    "sh",
                                    "-c",
                                    "trap 'echo told; exit 0' USR1; echo ready; "
                                    "while :; do sleep 0.02; done"};
    launch.own_group = start.size() > 1;  // a leader of a group cannot start a session
    DrunProcess process(launch);
    ASSERT_TRUE(process.wait_for_out("ready")) << process.err();
    signal_and_wait(process, SIGTSTP);
    process.signal(SIGUSR1);  // what comes after it
    ASSERT_TRUE(process.wait_for_out("told")) << process.err();
    expect_end(process, 0);
  }
}

TEST(JobControlTest, TheEndOfTheTerminalDoesNotEndAJobUnderNohup) {
  for (const char* nodes : {"", "--local-nodes=2"}) {
    const TempDir directory;
    const auto file = directory.path() / "go-on";
    Launch launch;
    launch.argv = {"/usr/bin/env", "--ignore-signal=HUP", drun_path()};
    if (*nodes != '\0') launch.argv.emplace_back(nodes);
    launch.argv = launch.argv + Arguments{"sh", "-c",
                                          "echo ready; while [ ! -e " + file.string() +
                                              " ]; do sleep 0.02; done; echo done"};
    DrunProcess process(launch);
    ASSERT_TRUE(process.wait_for_out("ready")) << process.err();
    process.signal(SIGHUP);
    directory.write("go-on", "");
    expect_end(process, 0);
  }
}

}  // namespace
}  // namespace drun::test
