// drunctl stacks beside real agents: where workers hang.
#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random_bytes.hpp"
#include "support/drun_process.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class StacksDrunTest : public testing::Test {
 protected:
  static Finished ctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), places::program("drunctl"));
    Launch launch;
    launch.argv = std::move(arguments);
    return DrunProcess(launch).finish();
  }
  Arguments job_of(int workers, const Arguments& modes) const {
    return Arguments{"--rdzv-id", job_, "--nproc-per-node", std::to_string(workers),
                     places::program("hang_worker")} +
           modes;
  }
  static bool wait_until_ready(DrunProcess& job, int workers) {
    std::string all;
    for (int i = 0; i < workers; ++i)
      all += "ready\n";
    return job.wait_for_out(all);
  }
  // A worker says that it is ready just before it hangs: until it does.
  Finished stacks_with(const std::string& text, const Arguments& flags = {}) const {
    Finished said;
    for (int tries = 0; tries < 100 && said.out.find(text) == std::string::npos; ++tries)
      said = ctl(Arguments{"stacks", job_} + flags);
    return said;
  }
  // Other tests run jobs on this machine, too.
  const std::string job_ = "stacks-" + random_name(12);
};

TEST_F(StacksDrunTest, NamesTheRankThatHangsElsewhere) {
  DrunProcess job(job_of(4, {"sleep", "sleep", "recv", "sleep"}));
  ASSERT_TRUE(wait_until_ready(job, 4));
  const Finished said = stacks_with("\nranks 0-1,3:\n");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, StartsWith("job " + job_ + ": stacks of ranks 0-3 on "));
  const auto one = said.out.find("\nrank 2:\n");
  const auto others = said.out.find("\nranks 0-1,3:\n");
  ASSERT_NE(one, std::string::npos) << said.out;
  ASSERT_NE(others, std::string::npos) << said.out;
  EXPECT_LT(one, others);
  EXPECT_THAT(said.out.substr(one, others - one),
              AllOf(HasSubstr("    hang_in_a_recv (hang_worker)\n"),
                    HasSubstr("    main (hang_worker)\n")));
  EXPECT_THAT(said.out.substr(others), HasSubstr("    hang_in_a_sleep (hang_worker)\n"));
}

TEST_F(StacksDrunTest, KnowsManyWaysToHang) {
  DrunProcess job(job_of(5, {"lock", "condition", "loop", "template", "recv"}));
  ASSERT_TRUE(wait_until_ready(job, 5));
  const Finished said = stacks_with("hang_in_a_recv");
  for (const char* function : {"hang_in_a_lock", "hang_in_a_condition", "hang_in_a_loop",
                               "void hang::in_a_template<int>(int)", "hang_in_a_recv"})
    EXPECT_THAT(said.out, HasSubstr("    " + std::string(function) + " (hang_worker)\n"));
}

TEST_F(StacksDrunTest, ShowsOtherThreadsAndChildren) {
  DrunProcess job(job_of(2, {"thread", "child"}));
  ASSERT_TRUE(wait_until_ready(job, 2));
  const Finished few = stacks_with("--all shows them");
  EXPECT_THAT(few.out, Not(HasSubstr("hang_in_a_recv")));
  const Finished all = stacks_with("child hang_worker", {"--all"});
  EXPECT_THAT(all.out, AllOf(HasSubstr("\nrank 0, thread hang_worker:\n"),
                             HasSubstr("\nrank 1, child hang_worker:\n"),
                             HasSubstr("    hang_in_a_recv (hang_worker)\n")));
}

TEST_F(StacksDrunTest, SaysWhatItLeavesOut) {
  DrunProcess job(job_of(3, {"threads", "recursion", "ended"}));
  ASSERT_TRUE(wait_until_ready(job, 3));
  const Finished said = stacks_with("hang_in_a_recv", {"--all"});
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("rank 0: of 451 threads of a process the first 400 were"),
                    HasSubstr("    ...\n"), HasSubstr("it has ended, and other threads go on")));
}

TEST_F(StacksDrunTest, OfARankWhoseMainThreadHasEndedAnotherThreadIsShown) {
  DrunProcess job(job_of(2, {"ended", "sleep"}));
  ASSERT_TRUE(wait_until_ready(job, 2));
  const Finished said = stacks_with("hang_in_a_recv");
  EXPECT_THAT(said.out, testing::ContainsRegex("\n  S .* recvfrom .* rank 0\n"));
  EXPECT_THAT(said.out, HasSubstr("\nrank 0:\n"));
  EXPECT_THAT(said.out, HasSubstr("    hang_in_a_recv (hang_worker)\n"));
  EXPECT_THAT(said.out, Not(HasSubstr("\n  Z ")));
}

// Else all ranks of such a job look the same, and the odd one is not seen.
TEST_F(StacksDrunTest, TheProgramOfAShellIsShownAndNotTheShell) {
  const std::string script = "'" + places::program("hang_worker") + "' sleep recv sleep; exit 1";
  DrunProcess job(Arguments{"--rdzv-id", job_, "--nproc-per-node", "3", "sh", "-c",
                            "sh -c \"" + script + "\"; exit 1"});
  ASSERT_TRUE(wait_until_ready(job, 3));
  const Finished said = stacks_with("\nranks 0,2:\n");
  EXPECT_EQ(said.code, 0) << said.err;
  const auto one = said.out.find("\nrank 1:\n");
  ASSERT_NE(one, std::string::npos) << said.out;
  EXPECT_THAT(said.out.substr(one, said.out.find("\nranks 0,2:\n") - one),
              HasSubstr("    hang_in_a_recv (hang_worker)\n"));
  EXPECT_THAT(said.out, HasSubstr("\n  ranks 0-2: shown is 'hang_worker', for which 'sh' waits\n"));
  EXPECT_THAT(stacks_with("child sh", {"--all"}).out, HasSubstr("ranks 0-2, child sh"));
}

// As those do who keep a log of each rank.
TEST_F(StacksDrunTest, TheFirstProgramOfAPipelineIsShown) {
  DrunProcess job(Arguments{"--rdzv-id", job_, "--nproc-per-node", "2", "sh", "-c",
                            "'" + places::program("hang_worker") + "' sleep recv | cat"});
  ASSERT_TRUE(wait_until_ready(job, 2));
  const Finished said = stacks_with("hang_in_a_recv");
  EXPECT_THAT(said.out, HasSubstr("\n  ranks 0-1: shown is 'hang_worker', for which 'sh' waits\n"));
  EXPECT_THAT(said.out, AllOf(HasSubstr("    hang_in_a_recv (hang_worker)\n"),
                              HasSubstr("    hang_in_a_sleep (hang_worker)\n")));
}

// Its output does not come by drun.
TEST_F(StacksDrunTest, OfARedirectedWorkerTheAgeOfItsFileIsTold) {
  const TempDir folder;
  DrunProcess job(Arguments{"--redirects", "3", "--log-dir", folder.path().string()} +
                  job_of(1, {"sleep"}));
  const Finished said = stacks_with("hang_in_a_sleep");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, testing::ContainsRegex("\n  S  .*  [0-9.]+ m?s  +rank 0\n"));
}

TEST_F(StacksDrunTest, WritesJsonAndWhatFlameGraphsAreMadeOf) {
  DrunProcess job(job_of(2, {"sleep"}));
  ASSERT_TRUE(wait_until_ready(job, 2));
  EXPECT_THAT(
      stacks_with("hang_in_a_sleep", {"--json"}).out,
      AllOf(StartsWith("{\"id\":\"" + job_ + "\",\"nodes\":["), HasSubstr("\"kind\":\"worker\""),
            HasSubstr("\"hang_in_a_sleep (hang_worker)\"")));
  EXPECT_THAT(
      stacks_with("hang_in_a_sleep", {"--collapsed"}).out,
      AllOf(StartsWith("worker;"), HasSubstr("main (hang_worker);hang_in_a_sleep (hang_worker);")));
}

// It shows states alone, and no worker is stopped for it.
TEST_F(StacksDrunTest, ALookFromProcAloneIsQuick) {
  DrunProcess job(job_of(2, {"sleep"}));
  ASSERT_TRUE(wait_until_ready(job, 2));
  const Finished said = stacks_with("clock_nanosleep", {"--quick"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("clock_nanosleep"), Not(HasSubstr("hang_in_a_sleep"))));
}

// They go on as they were, and get the signals that came meanwhile.
TEST_F(StacksDrunTest, TheWorkersGoOn) {
  DrunProcess job({"--rdzv-id", job_, "sh", "-c",
                   "trap 'echo heard; exit 7' TERM; echo ready; while :; do sleep 0.01; done"});
  ASSERT_TRUE(job.wait_for_out("ready"));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(ctl({"stacks", job_}).code, 0);
  ASSERT_EQ(::kill(job.wait_for_pid_with("RANK=0"), SIGTERM), 0);
  const Finished end = job.finish();
  EXPECT_EQ(end.code, 7);
  EXPECT_EQ(end.out, "ready\nheard\n");
}

TEST_F(StacksDrunTest, EachAgentOfAHostIsLookedAtAtOnce) {
  DrunProcess job(
      {"--rdzv-id", job_, "--local-nodes", "2", places::program("hang_worker"), "sleep"});
  ASSERT_TRUE(wait_until_ready(job, 2));
  const Finished said = stacks_with("\nranks 0-1 on ");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, StartsWith("job " + job_ + ": stacks of ranks 0-1 on "));
}

// ---- several nodes ----

// The first has the store, and waits long for the second one, which a test stops.
struct TwoNodes {
  explicit TwoNodes(const Arguments& job)
      : flags(Arguments{"--nnodes", "2", "--rdzv-endpoint", port.endpoint(), "--rdzv-conf",
                        "keep_alive_max_attempt=100"} +
              job),
        first(flags) {
    if (!first.wait_for_err("1 of 2 nodes")) return;
    second.emplace(flags);
    ready = first.wait_for_out("ready") && second->wait_for_out("ready");
  }

  const ReservedPort port;
  const Arguments flags;
  DrunProcess first;
  std::optional<DrunProcess> second;
  bool ready = false;  // both have workers that hang
};

TEST_F(StacksDrunTest, OneAgentAsksThoseOfAllNodes) {
  const ReservedPort port;
  const Arguments flags =
      Arguments{"--nnodes", "2", "--rdzv-endpoint", port.endpoint()} + job_of(1, {"recv", "sleep"});
  DrunProcess first(flags);
  DrunProcess second(flags);
  ASSERT_TRUE(first.wait_for_out("ready"));
  ASSERT_TRUE(second.wait_for_out("ready"));
  for (const Arguments& where : {Arguments{}, Arguments{"--endpoint", port.endpoint()}}) {
    const Finished said = stacks_with("hang_in_a_sleep", where);
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_THAT(said.out, AllOf(StartsWith("job " + job_ + ": stacks of ranks 0-1 on "),
                                HasSubstr("\nrank 0 on "), HasSubstr("\nrank 1 on "),
                                HasSubstr("hang_in_a_recv"), Not(HasSubstr("no answer"))));
  }
  // Nothing stays in the store.
  const Finished keys = ctl({"--endpoint", port.endpoint(), "--raw", "keys", "drun-stacks/"});
  EXPECT_EQ(keys.out, "") << keys.err;
}

TEST_F(StacksDrunTest, ANodeThatDoesNotAnswerIsCounted) {
  TwoNodes job(job_of(1, {"sleep"}));
  ASSERT_TRUE(job.ready);
  job.second->signal(SIGSTOP);
  const Finished said = stacks_with("no answer in time");
  job.second->signal(SIGCONT);
  EXPECT_THAT(said.out, testing::ContainsRegex(
                            "\n  rank [01]: 1 of 2 nodes gave no answer in time: [^ ]+\n"));
}

// Agents that come later would obey it.
TEST_F(StacksDrunTest, WhoIsKilledWhileAskingLeavesNoRequest) {
  TwoNodes job(job_of(1, {"sleep"}));
  ASSERT_TRUE(job.ready);
  const auto wait_for_request = [&](bool there) {
    const std::string key = "drun/" + job_ + "/look";
    bool found = !there;
    for (int tries = 0; tries < 1'000 && found != there; ++tries)
      found = ctl({"--endpoint", job.port.endpoint(), "--raw", "keys", key}).out.find(key) !=
              std::string::npos;
    return found == there;
  };
  job.second->signal(SIGSTOP);
  Launch launch;
  launch.argv = {places::program("drunctl"), "--endpoint", job.port.endpoint(), "stacks", job_};
  DrunProcess asking(launch);
  EXPECT_TRUE(wait_for_request(true));
  asking.signal(SIGKILL);
  EXPECT_TRUE(wait_for_request(false));
  job.second->signal(SIGCONT);
}

// ---- by a signal, and before workers are stopped ----

TEST_F(StacksDrunTest, SigquitShowsThemAndTheJobGoesOn) {
  for (const char* nodes : {"1", "2"}) {
    DrunProcess job(Arguments{"--local-nodes", nodes} + job_of(1, {"sleep"}));
    ASSERT_TRUE(wait_until_ready(job, *nodes - '0'));
    const char* wanted = *nodes == '1' ? ": stacks of rank 0 on " : ": stacks of ranks 0-1 on ";
    // On a busy machine a look may take longer than drun waits for it, and drun may not have heard
    // yet that its workers run. Who asks during a look gets the same answer.
    for (int tries = 0; tries < 90 && job.running(); ++tries) {
      job.signal(SIGQUIT);
      if (job.wait_for_err("hang_in_a_sleep", std::chrono::seconds(1)) &&
          job.err().find(wanted) != std::string::npos)
        break;
    }
    EXPECT_THAT(job.err(), HasSubstr(wanted));
    EXPECT_THAT(job.err(), HasSubstr("hang_in_a_sleep"));
    EXPECT_TRUE(job.running());
    job.signal(SIGTERM);
    EXPECT_EQ(job.finish().code, 128 + SIGTERM);
  }
}

// A shell script starts what runs beside it with SIGQUIT ignored.
TEST_F(StacksDrunTest, SigquitShowsThemOfAJobInTheBackgroundOfAScript) {
  Launch launch;
  launch.argv =
      Arguments{"/bin/sh", "-c", "trap '' QUIT; exec \"$@\"", "sh", places::program("drun")} +
      job_of(1, {"sleep"});
  DrunProcess job(launch);
  ASSERT_TRUE(wait_until_ready(job, 1));
  for (int tries = 0; tries < 6 && job.running(); ++tries) {
    job.signal(SIGQUIT);
    if (job.wait_for_err(": stacks of rank 0 on ", std::chrono::seconds(15))) break;
  }
  EXPECT_THAT(job.err(), HasSubstr(": stacks of rank 0 on "));
  job.signal(SIGTERM);
  EXPECT_EQ(job.finish().code, 128 + SIGTERM);
}

TEST_F(StacksDrunTest, ATimeLimitShowsThemFirst) {
  DrunProcess job(Arguments{"--timeout", "5s"} + job_of(2, {"recv", "sleep"}));
  const Finished end = job.finish();
  EXPECT_EQ(end.code, 124);
  EXPECT_THAT(end.err, AllOf(HasSubstr("drun: stacks of ranks 0-1 on "),
                             HasSubstr("hang_in_a_recv"), HasSubstr("hang_in_a_sleep")));
}

TEST_F(StacksDrunTest, WithALogFolderAllOfThemAreInFiles) {
  const TempDir folder;
  DrunProcess job(Arguments{"--timeout", "5s", "--log-dir", folder.path().string()} +
                  job_of(1, {"thread"}));
  const Finished end = job.finish();
  EXPECT_EQ(end.code, 124);
  const std::string text = read_file(folder.path() / "latest" / "stacks_1.txt");
  EXPECT_THAT(text, HasSubstr("\nrank 0, thread hang_worker:\n"));
  EXPECT_THAT(end.err, HasSubstr("\nall stacks: " + folder.path().string() + "/"));
  EXPECT_THAT(read_file(folder.path() / "latest" / "stacks_1.json"), StartsWith("{\"nodes\":["));
}

TEST_F(StacksDrunTest, ATimeLimitOfSeveralNodesShowsThemOnce) {
  DrunProcess job(Arguments{"--local-nodes", "2", "--timeout", "6s"} + job_of(1, {"sleep"}));
  const Finished end = job.finish();
  EXPECT_EQ(end.code, 124);
  const auto first = end.err.find(": stacks of ranks 0-1 on ");
  ASSERT_NE(first, std::string::npos) << end.err;
  EXPECT_EQ(end.err.find(": stacks of ", first + 1), std::string::npos) << end.err;
}

TEST_F(StacksDrunTest, ATimeLimitShowsThoseOfTheNodesThatAnswer) {
  const ReservedPort port;
  const Arguments flags = Arguments{"--nnodes",      "2",           "--rdzv-endpoint",
                                    port.endpoint(), "--rdzv-conf", "keep_alive_max_attempt=100",
                                    "--timeout",     "12s"} +
                          job_of(1, {"recv"});
  DrunProcess first(flags);
  ASSERT_TRUE(first.wait_for_err("1 of 2 nodes"));
  DrunProcess second(flags);
  ASSERT_TRUE(first.wait_for_out("ready"));
  ASSERT_TRUE(second.wait_for_out("ready"));
  second.signal(SIGSTOP);
  EXPECT_TRUE(first.wait_for_err("1 of 2 nodes gave no answer in time"));
  second.signal(SIGCONT);
  EXPECT_THAT(first.err(),
              AllOf(HasSubstr("drun: stacks of rank 0 on "), HasSubstr("hang_in_a_recv")));
  EXPECT_EQ(first.finish().code, 124);
  EXPECT_EQ(second.finish().code, 124);
}

// It would not answer.
TEST_F(StacksDrunTest, ALostNodeIsNotWaitedFor) {
  const ReservedPort port;
  const Arguments flags =
      Arguments{"--nnodes", "1:2", "--rdzv-endpoint", port.endpoint(), "--stacks-on-failure",
                "300s"} +
      job_of(1, {"sleep"});
  DrunProcess first(flags);
  DrunProcess second(flags);
  ASSERT_TRUE(first.wait_for_out("ready"));
  ASSERT_TRUE(second.wait_for_out("ready"));
  std::string started;
  for (std::size_t at = 0; (at = first.out().find("ready\n", at)) != std::string::npos; ++at)
    started += "ready\n";
  second.signal(SIGKILL);
  EXPECT_TRUE(first.wait_for_out(started + "ready\n")) << first.err();
  EXPECT_THAT(first.err(), Not(HasSubstr("stacks of")));
  first.signal(SIGTERM);
  EXPECT_EQ(first.finish().code, 128 + SIGTERM);
}

TEST_F(StacksDrunTest, WhoSwitchesThemOffSeesNone) {
  DrunProcess job(Arguments{"--timeout", "5s", "--stacks-on-failure", "off"} +
                  job_of(1, {"sleep"}));
  const Finished end = job.finish();
  EXPECT_EQ(end.code, 124);
  EXPECT_THAT(end.err, Not(HasSubstr("stacks of")));
}

TEST_F(StacksDrunTest, AFailureShowsTheSurvivorsIfThatWasAskedFor) {
  for (const bool asked : {true, false}) {
    const TempDir folder;
    const std::string file = (folder.path() / "out").string();
    const std::string script = "if [ $RANK = 0 ]; then exec " + places::program("hang_worker") +
                               " recv >" + file + "; fi; until grep -q ready " + file +
                               " 2>/dev/null; do sleep 0.02; done; exit 7";
    Arguments flags{"--rdzv-id", job_, "--nproc-per-node", "2"};
    if (asked) flags = flags + Arguments{"--stacks-on-failure", "20"};
    DrunProcess job(flags + Arguments{"sh", "-c", script});
    const Finished end = job.finish();
    EXPECT_EQ(end.code, 7);
    if (asked)
      EXPECT_THAT(end.err,
                  AllOf(HasSubstr("drun: stacks of ranks 0-1 on "), HasSubstr("hang_in_a_recv"),
                        HasSubstr("rank 1: its worker does not run")));
    else
      EXPECT_THAT(end.err, Not(HasSubstr("stacks of")));
  }
}

// Of the node with the failure, too, which stops its own workers before the others hear of it; and
// those of each round, however soon it fails.
TEST_F(StacksDrunTest, AFailureOnAnotherNodeShowsThoseBesideIt) {
  const TempDir folder;
  const ReservedPort port;
  const std::string script =
      "f=" + folder.path().string() +
      "; at=$RANK.$TORCHELASTIC_RESTART_COUNT; "
      "if [ $RANK != 3 ]; then echo $$ >$f/pid.$at; mode=lock; "
      "if [ $at = 2.0 ]; then mode=recv; elif [ $at = 2.1 ]; then mode=sleep; fi; exec " +
      places::program("hang_worker") +
      " $mode >$f/out.$at; fi; "
      "for rank in 0 1 2; do at=$rank.$TORCHELASTIC_RESTART_COUNT; "
      "until grep -q ready $f/out.$at 2>/dev/null && "
      "grep -q 'State:.S' /proc/$(cat $f/pid.$at)/status; do sleep 0.02; done; done; exit 7";
  const Arguments flags{"--nnodes",
                        "2",
                        "--nproc-per-node",
                        "2",
                        "--rdzv-endpoint",
                        port.endpoint(),
                        "--rdzv-id",
                        job_,
                        "--max-restarts",
                        "1",
                        "--stacks-on-failure",
                        "60",
                        "sh",
                        "-c",
                        script};
  DrunProcess first(flags);
  ASSERT_TRUE(first.wait_for_err("1 of 2 nodes"));
  DrunProcess second(flags);
  const Finished end = first.finish();
  EXPECT_EQ(end.code, 7);
  EXPECT_EQ(second.finish().code, 7);
  EXPECT_THAT(end.err,
              AllOf(HasSubstr("drun: stacks of ranks 0-3 on "), HasSubstr("hang_in_a_lock"),
                    HasSubstr("rank 3: its worker does not run"), Not(HasSubstr("no answer"))));
  const auto one = end.err.find("hang_in_a_recv");
  ASSERT_NE(one, std::string::npos) << end.err;
  EXPECT_NE(end.err.find("hang_in_a_sleep", one), std::string::npos) << end.err;
  EXPECT_EQ(end.err.find("hang_in_a_recv", end.err.find("hang_in_a_sleep")), std::string::npos)
      << end.err;
}

TEST_F(StacksDrunTest, WithoutAJobThereIsNothingToSee) {
  const Finished nobody = ctl({"stacks", job_});
  EXPECT_EQ(nobody.code, 1);
  EXPECT_EQ(nobody.err, "drunctl: error: no worker of a drun of this user runs here with job " +
                            job_ + ": name the store with --endpoint\n");
}

}  // namespace
}  // namespace drun::test
