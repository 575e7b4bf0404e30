// How a job fails: exit codes, the restart policy, time limits, and what is said about it.
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

Arguments shell(const std::string& script) {
  return {"sh", "-c", script};
}

std::vector<Finished> two_agents(const Arguments& arguments) {
  const ReservedPort port;
  const auto all = Arguments{"--nnodes",      "2",           "--rdzv-endpoint",
                             port.endpoint(), "--rdzv-conf", "keep_alive_interval=20"} +
                   arguments;
  DrunProcess first(all);
  DrunProcess second(all);
  std::vector<Finished> result;
  result.push_back(first.finish());
  result.push_back(second.finish());
  return result;
}

// Signals that end a process.
std::vector<int> deadly_signals() {
  std::vector<int> result;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    const bool harmless = number == SIGCHLD || number == SIGCONT || number == SIGURG ||
                          number == SIGWINCH || number == SIGSTOP || number == SIGTSTP ||
                          number == SIGTTIN || number == SIGTTOU;
    const bool hidden = number > SIGSYS && number < SIGRTMIN;  // the C library's own
    if (!harmless && !hidden) result.push_back(number);
  }
  return result;
}

std::string die_of(int signal) {
  return "ulimit -c 0; kill -" + std::to_string(signal) + " $$; sleep 1000";
}

// Hundreds of jobs: in parts, each of which is quick enough on a slow machine.
constexpr int kParts = 16;
class EveryExitCodeTest : public testing::TestWithParam<int> {
 protected:
  static std::vector<int> every_code() {
    std::vector<int> result(256);
    std::iota(result.begin(), result.end(), 0);
    return result;
  }
  static std::vector<int> of_this_part(std::vector<int> numbers) {
    std::erase_if(numbers, [](int number) { return number % kParts != GetParam(); });
    return numbers;
  }
};

TEST_P(EveryExitCodeTest, OfASingleNode) {
  for (const int code : of_this_part(every_code()))
    EXPECT_EQ(run_drun(shell("exit " + std::to_string(code))).code, code);
  for (const int number : of_this_part(deadly_signals()))
    EXPECT_EQ(run_drun(shell(die_of(number))).code, 128 + number);
}

TEST_P(EveryExitCodeTest, OfEachOfTwoNodes) {
  const auto both = [](const std::string& fail, int rank, int code) {
    for (const auto& agent : two_agents(shell("if [ $RANK = " + std::to_string(rank) + " ]; then " +
                                              fail + "; else exec sleep 1000; fi")))
      EXPECT_EQ(agent.code, code) << agent.err;
  };
  for (const int code : of_this_part(every_code()))
    if (code != 0) both("exit " + std::to_string(code), code / kParts % 2, code);
  for (const int number : of_this_part(deadly_signals()))
    both(die_of(number), number / kParts % 2, 128 + number);
}

INSTANTIATE_TEST_SUITE_P(Parts, EveryExitCodeTest, testing::Range(0, kParts));

TEST(ExitCodeRuleTest, TheFirstFailureTheLowestRankOrTheHighestCode) {
  const TempDir directory;
  for (const auto& [rule, code] :
       {std::pair{"first-failure", 7}, std::pair{"lowest-rank", 128 + SIGABRT},
        std::pair{"highest", 128 + SIGSEGV}}) {
    const std::string ready = (directory.path() / rule).string();
    // Crashing while it is being stopped is a failure of its own.
    const Finished finished =
        run_drun(Arguments{"--exit-code-from", rule, "--nproc-per-node", "3"} +
                 shell("ulimit -c 0; case $RANK in 0) s=ABRT;; 1) s=SEGV;; esac; "
                       "[ $RANK = 2 ] || { trap \"trap - $s; kill -$s $$\" TERM; : > " +
                       ready + "$RANK; while :; do sleep 0.02; done; }; while [ ! -e " + ready +
                       "0 ] || [ ! -e " + ready + "1 ]; do sleep 0.02; done; exit 7"));
    EXPECT_EQ(finished.code, code) << rule << finished.err;
    EXPECT_THAT(finished.err,
                AllOf(HasSubstr("job failed: rank 2"), HasSubstr("rank 0: killed by SIGABRT"),
                      HasSubstr("rank 1: killed by SIGSEGV")));
  }
}

TEST(RestartPolicyTest, RestartsOnlyAfterWhatIsListed) {
  struct Case {
    Arguments flags;
    std::string script;
    int code;
    std::size_t starts;
  };
  const std::string count = "echo start; ";
  const std::string fail = "exit $((5 + TORCHELASTIC_RESTART_COUNT))";
  for (const auto& [flags, script, code, starts] : std::vector<Case>{
           {{}, fail, 8, 4},
           {{"--restart-on", "5-6,SIGSEGV"}, fail, 7, 3},
           {{"--restart-on", "SIGKILL"}, "kill -9 $$", 137, 4},
           {{"--restart-on", "137"}, "exit 137", 137, 4},
           {{"--restart-on", "1"}, "kill -9 $$", 137, 1},
           {{"--no-restart-on", "6"}, fail, 6, 2},
           {{"--no-requeue-on", "6"}, fail, 93, 2},
           {{"--no-requeue-on", "SIGKILL"}, "kill -9 $$", 93, 1},
           {{"--no-restart-on", "KILL"}, "kill -9 $$", 137, 1},
           {{"--restart-on", "1-255", "--no-restart-on", "7"}, fail, 7, 3},
       }) {
    const Finished finished =
        run_drun(Arguments{"--max-restarts", "3"} + flags + shell(count + script));
    EXPECT_EQ(finished.code, code) << finished.err;
    EXPECT_THAT(split_lines(finished.out), SizeIs(starts)) << testing::PrintToString(flags);
  }
}

TEST(RestartPolicyTest, ACrashLoopIsNamedOnce) {
  const std::string loop =
      "crash loop: rank 0 ended in the same way 3 times in a row within seconds of its start";
  const Finished same = run_drun(Arguments{"--max-restarts", "2"} + shell("exit 3"));
  EXPECT_THAT(same.err, AllOf(HasSubstr("\n  " + loop + "\n"), HasSubstr("restart 2/2")));
  EXPECT_THAT(same.err.substr(same.err.find(loop) + loop.size()), Not(HasSubstr("crash loop")));
  const Finished different = run_drun(Arguments{"--max-restarts", "2"} +
                                      shell("exit $((5 + TORCHELASTIC_RESTART_COUNT))"));
  EXPECT_THAT(different.err,
              AllOf(Not(HasSubstr("crash loop")), HasSubstr("no restart of 2 is left")));
  for (const auto& agent : two_agents(Arguments{"--max-restarts", "2"} +
                                      shell("[ $RANK = 0 ] && exit 3; exec sleep 1000")))
    EXPECT_THAT(agent.err, HasSubstr(loop));
}

// Also where it is told long before the others are gone. The countdown until then is rewritten
// every second, and has to fit into a line of a terminal.
TEST(RestartPolicyTest, ARestartSaysWhichWorkerFailedHowAndWhen) {
  const TempDir directory;
  const auto file = directory.path() / "go-on";
  DrunProcess process(
      Arguments{"-v", "--nproc-per-node", "2", "--max-restarts", "1", "--shutdown-timeout", "600"} +
      shell("[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; [ $RANK = 0 ] || { while [ ! -e " +
            file.string() + ".ready ]; do sleep 0.02; done; exit 3; }; trap 'while [ ! -e " +
            file.string() + " ]; do sleep 0.02; done; exit 0' TERM; : > " + file.string() +
            ".ready; while :; do sleep 0.02; done"));
  ASSERT_TRUE(process.wait_for_err(": exit code 3; SIGKILL in ")) << process.err();
  EXPECT_THAT(process.err(), HasSubstr("stopping the workers: rank 1 on "));
  (void)directory.write("go-on", "");
  const Finished finished = process.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("restart 1/1 after rank 1 (local rank 1 on "));
  EXPECT_THAT(finished.err, HasSubstr("): exit code 3 after "));
}

TEST(RestartPolicyTest, ARestartIsSaidOnceHoweverMuchIsSaid) {
  for (const Arguments& flags :
       {Arguments{}, Arguments{"-v"}, Arguments{"-v", "--local-nodes", "2"}}) {
    const Finished finished = run_drun(Arguments{"--max-restarts", "1"} + flags +
                                       shell("exit $((1 - TORCHELASTIC_RESTART_COUNT))"));
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(count(finished.err, "restart 1/1 after rank "), 1) << finished.err;
  }
}

TEST(TimeLimitTest, TheJobsTimeLimitSaysWhatEveryRankDoes) {
  const TempDir directory;
  const std::string report = (directory.path() / "report.json").string();
  const Finished finished =
      run_drun(Arguments{"--nproc-per-node", "2", "--timeout", "12", "--report", report} +
               shell("[ $RANK = 1 ] && exit 0; exec sleep 1000"));
  const std::string json = read_file(report);
  EXPECT_THAT(json, AllOf(HasSubstr("\"result\": \"timeout\""), HasSubstr("s, no output\"")));
  EXPECT_EQ(finished.code, 124);
  EXPECT_THAT(finished.survivors, IsEmpty());
  EXPECT_THAT(finished.err,
              AllOf(HasSubstr("rank 0 (pid "), HasSubstr("): running for "),
                    HasSubstr("rank 1: exit code 0"), HasSubstr("--timeout is over")));
}

TEST(TimeLimitTest, ManyRanksAreAFewLines) {
  const Finished finished =
      run_drun({"--nproc-per-node", "40", "--timeout", "20", "--stacks-on-failure", "off", "sh",
                "-c", "[ $RANK = 7 ] && exit 0; exec sleep 1000"});
  EXPECT_EQ(finished.code, 124);
  EXPECT_THAT(finished.survivors, IsEmpty());
  EXPECT_THAT(finished.err, AllOf(HasSubstr("ranks 0-6,8-39: running for at least "),
                                  HasSubstr("rank 7: exit code 0")));
  EXPECT_THAT(split_lines(finished.err), SizeIs(testing::Le(4U))) << finished.err;
}

TEST(TimeLimitTest, EveryNodeSaysItAndGives124) {
  for (const auto& agent :
       two_agents({"--timeout", "12", "--nproc-per-node", "2", "sleep", "1000"})) {
    EXPECT_EQ(agent.code, 124);
    EXPECT_THAT(agent.survivors, IsEmpty());
    EXPECT_THAT(agent.err, AllOf(HasSubstr("): running for "), HasSubstr("--timeout is over")));
  }
}

TEST(TimeLimitTest, TheStartTimeLimitSaysWhatIsMissing) {
  const ReservedPort port;
  const Finished finished = run_drun({"--nnodes", "2", "--rdzv-endpoint", port.endpoint(),
                                      "--start-timeout", "12", "sleep", "1000"});
  EXPECT_EQ(finished.code, 124);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("1 of 2 nodes"), HasSubstr("--start-timeout")));
  const Finished in_time = run_drun({"--start-timeout", "60", "sh", "-c", "exit 0"});
  EXPECT_EQ(in_time.code, 0);
}

TEST(FailureReportTest, EveryNodePrintsTheFirstFailureOfTheJob) {
  for (const auto& agent :
       two_agents(Arguments{"--nproc-per-node", "2", "--tail-lines", "2"} +
                  shell("[ $RANK = 2 ] && { seq 5 >&2; exit 6; }; exec sleep 1000"))) {
    EXPECT_THAT(agent.err, AllOf(HasSubstr("drun: job failed: rank 2 (local rank 0 on "),
                                 HasSubstr("): exit code 6 after "),
                                 HasSubstr("  last lines of stderr:\n  | 4\n  | 5\n"),
                                 Not(HasSubstr("also failed")), Not(HasSubstr("| 3\n"))));
  }
}

TEST(FailureReportTest, WordsThatNameTheirOwnRankAreShownOnce) {
  const TempDir directory;
  const std::string ready = (directory.path() / "ready").string();
  const Finished finished =
      run_drun(Arguments{"--nproc-per-node", "3"} +
               shell("trap '' TERM; : > " + ready + "$RANK; while [ ! -e " + ready +
                     "0 ] || [ ! -e " + ready + "1 ] || [ ! -e " + ready +
                     "2 ]; do sleep 0.02; done; echo \"[rank$RANK]: no route\" >&2; exit 5"));
  EXPECT_EQ(finished.code, 5);
  EXPECT_THAT(finished.err, HasSubstr(": exit code 5, same error\n"));
  // As each printed it, and in the report that of the first.
  EXPECT_EQ(count(finished.err, "]: no route"), 3 + 1) << finished.err;
}

TEST(FailureReportTest, WithoutALostNodeItIsNamedAndNoRankRanAnyMore) {
  const TempDir directory;
  const ReservedPort port;
  const std::string report = (directory.path() / "report.json").string();
  const auto agent = [&](const std::string& is_host) {
    return Arguments{"--nnodes",      "2",           "--rdzv-endpoint",
                     port.endpoint(), "--rdzv-conf", "join_timeout=20,is_host=" + is_host};
  };
  const auto worker =
      shell(": >" + (directory.path() / "ready").string() + "$RANK; exec sleep 1000");
  DrunProcess host(agent("1") + Arguments{"--report", report} + worker);
  DrunProcess other(agent("0") + worker);
  ASSERT_TRUE(eventually([&] {
    return std::filesystem::exists(directory.path() / "ready0") &&
           std::filesystem::exists(directory.path() / "ready1");
  }));
  other.signal(SIGKILL);
  (void)other.finish();
  const Finished finished = host.finish();
  EXPECT_EQ(finished.code, 124) << finished.err;
  // What is left of them when the agent has reached its store.
  EXPECT_THAT(
      finished.err,
      AllOf(
          testing::ContainsRegex("not enough nodes within (20|1[89][.][0-9]) s: 1 of 2 nodes \\("),
          HasSubstr(" (group rank 1) was lost in round 1; "), Not(HasSubstr("still running"))));
  EXPECT_THAT(read_file(report), HasSubstr("\"ranks_still_running\": []"));
}

// ---- --report ----

class ReportTest : public testing::Test {
 protected:
  ReportTest() { directory_.write("report.json", "{\"result\": \"success\"}"); }
  [[nodiscard]] std::string report() const { return read_file(file_); }
  [[nodiscard]] Finished run(const Arguments& arguments) const {
    return run_drun(Arguments{"--report", file_} + arguments);
  }

  const TempDir directory_;
  const std::string file_ = (directory_.path() / "report.json").string();
};

TEST_F(ReportTest, AnEarlierJobsIsReplacedWhenAJobCannotBegin) {
  EXPECT_EQ(run({"./nothere"}).code, 127);
  EXPECT_THAT(report(), AllOf(HasSubstr("\"result\": \"failure\""), HasSubstr("\"exit_code\": 127"),
                              HasSubstr("./nothere")));
  EXPECT_EQ(run({"--nproc-per-node", "no", "true"}).code, 2);
  EXPECT_THAT(report(), AllOf(HasSubstr("\"result\": \"failure\""), HasSubstr("\"exit_code\": 2"),
                              HasSubstr("\"text\": \"--nproc-per-node")));
  EXPECT_EQ(run({"--dry-run", "./nothere"}).code, 0);
  EXPECT_THAT(report(), HasSubstr("\"exit_code\": 2")) << "nothing was run";
}

TEST_F(ReportTest, WhileAJobRunsItSaysSoAndAfterItWasKilled) {
  const std::string runs = (directory_.path() / "runs").string();
  DrunProcess process(Arguments{"--report", file_} + shell(": >" + runs + "; exec sleep 1000"));
  ASSERT_TRUE(eventually([&] {
    return std::filesystem::exists(runs) &&
           report().find("\"result\": \"running\"") != std::string::npos;
  }));
  process.signal(SIGKILL);
  EXPECT_EQ(process.finish().code, 128 + SIGKILL);
  EXPECT_THAT(report(), HasSubstr("\"result\": \"running\""));
}

TEST_F(ReportTest, WithoutItsFolderTheJobIsNotRun) {
  const std::string gone = (directory_.path() / "gone" / "report.json").string();
  for (const auto& flags : {Arguments{}, Arguments{"--local-nodes", "2"}}) {
    const Finished finished =
        run_drun(Arguments{"--report", gone} + flags + Arguments{"sleep", "1000"});
    EXPECT_EQ(finished.code, 125);
    EXPECT_THAT(finished.survivors, IsEmpty());
    EXPECT_THAT(finished.err,
                HasSubstr("drun: error: --report: write " + gone + ": No such file or directory"));
  }
}

TEST_F(ReportTest, AgentsShareOne) {
  EXPECT_EQ(run(Arguments{"--local-nodes", "3", "--nnodes", "2", "--nproc-per-node", "2"} +
                shell("exit 0"))
                .code,
            0);
  EXPECT_THAT(report(), HasSubstr("\"result\": \"success\""));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1)
      << "nothing else is left";
}

// All ranks are there before one of them ends, or drun is told to.
std::string deaf_rank_2(const TempDir& directory, const std::string& then) {
  const std::string ready = (directory.path() / "ready").string();
  return "[ $RANK = 2 ] && trap '' TERM INT; : > " + ready + "$RANK; while [ ! -e " + ready +
         "0 ] || [ ! -e " + ready + "1 ] || [ ! -e " + ready + "2 ]; do sleep 0.02; done; " + then +
         "; while :; do sleep 0.02; done";
}

TEST(FailureReportTest, NamesWhoStillRanAndWhoNeededSigkill) {
  const TempDir directory;
  const std::string report = (directory.path() / "report.json").string();
  const Finished finished =
      run_drun(Arguments{"--nproc-per-node", "4", "--shutdown-timeout", "4", "--report", report} +
               shell(deaf_rank_2(directory, "[ $RANK = 3 ] && exit 9")));
  EXPECT_EQ(finished.code, 9);
  EXPECT_THAT(finished.err, HasSubstr("\ndrun: ranks 0-2 were still running"));
  EXPECT_THAT(finished.err, HasSubstr("; rank 2 needed SIGKILL\n"));
  EXPECT_THAT(read_file(report),
              AllOf(HasSubstr("\"ranks_still_running\": [\n    0,\n    1,\n    2\n  ]"),
                    HasSubstr("\"ranks_killed\": [\n    2\n  ]")));
}

// The others would have waited for it for ever.
TEST(FailureReportTest, NamesWhoHadEndedWithZero) {
  const TempDir directory;
  const std::string over = (directory.path() / "over").string();
  const std::string report = (directory.path() / "report.json").string();
  const Finished finished = run_drun(
      Arguments{"--nproc-per-node", "3", "--report", report} +
      shell("[ $RANK = 1 ] && echo $$ > " + over + ".new && mv " + over + ".new " + over +
            " && exit 0; while [ ! -e " + over + " ] || [ -e /proc/$(cat " + over +
            ") ]; do sleep 0.02; done; [ $RANK = 2 ] && exit 9; while :; do sleep 0.02; done"));
  EXPECT_EQ(finished.code, 9);
  EXPECT_THAT(finished.err,
              ContainsRegex("drun: rank 0 was still running.*\ndrun: rank 1 had ended with 0\n"));
  EXPECT_THAT(read_file(report), HasSubstr("\"ranks_succeeded_before\": [\n    1\n  ]"));
}

TEST(FailureReportTest, BeginsWithARankThatSeemsToHang) {
  const TempDir directory;
  const std::string ready = (directory.path() / "ready").string();
  const std::string report = (directory.path() / "report.json").string();
  const Finished finished =
      run_drun(Arguments{"--nproc-per-node", "2", "--shutdown-timeout", "1", "--report", report} +
               shell("[ $RANK = 1 ] && trap '' TERM && : > " + ready + "; while [ ! -e " + ready +
                     " ]; do sleep 0.02; done; [ $RANK = 0 ] && echo 'barrier timed out' >&2 && "
                     "exit 9; while :; do sleep 0.02; done"));
  EXPECT_EQ(finished.code, 9);
  EXPECT_THAT(finished.err,
              HasSubstr("drun: rank 1 seems to hang: when rank 0's wait timed out, it "
                        "was still running"));
  EXPECT_THAT(finished.err, HasSubstr("; it needed SIGKILL\ndrun: job failed: rank 0 ("));
  EXPECT_EQ(count(finished.err, "SIGKILL"), 1) << finished.err;
  EXPECT_THAT(read_file(report), HasSubstr("\"ranks_that_seem_to_hang\": [\n    1\n  ]"));
}

// It is the only one of its node that could tell of it; the node that leaves last tells of all.
TEST(FailureReportTest, BeginsWithARankThatSeemsToHangOnAnotherNode) {
  const TempDir directory;
  const std::string ready = (directory.path() / "ready").string();
  const std::string report = (directory.path() / "report.json").string();
  int named = 0;
  for (const auto& agent : two_agents(
           Arguments{"--shutdown-timeout", "1", "--report", report} +
           shell("[ $RANK = 1 ] && trap '' TERM && : > " + ready + "; while [ ! -e " + ready +
                 " ]; do sleep 0.02; done; [ $RANK = 0 ] && echo 'barrier timed out' >&2 && "
                 "exit 9; while :; do sleep 0.02; done"))) {
    EXPECT_EQ(agent.code, 9);
    named += count(agent.err,
                   ", rank 1 seems to hang: when rank 0's wait timed out, it was still running");
  }
  EXPECT_EQ(named, 2) << "by the node where it runs, and by the one with the store";
  const std::string json = read_file(report);
  EXPECT_THAT(json, HasSubstr("\"ranks_still_running\": [\n    1\n  ],"));
  EXPECT_THAT(json, ContainsRegex("\"silence_seconds\": \\[\n    [0-9.]+\n  \\]"));
  EXPECT_THAT(json, HasSubstr("\"ranks_killed\": [\n    1\n  ]"));
  EXPECT_THAT(json, HasSubstr("\"ranks_that_seem_to_hang\": [\n    1\n  ]"));
}

TEST(FailureReportTest, OfLocalNodesTheFileHasTheRanksOfAll) {
  const TempDir directory;
  const std::string up = (directory.path() / "up").string();
  const std::string report = (directory.path() / "report.json").string();
  const Finished finished = run_drun(
      Arguments{"--local-nodes", "3", "--shutdown-timeout", "1", "--report", report} +
      shell("[ $RANK = 2 ] && trap '' TERM; : > " + up + "$RANK; while [ ! -e " + up +
            "0 ] || [ ! -e " + up + "1 ] || [ ! -e " + up +
            "2 ]; do sleep 0.02; done; [ $RANK = 1 ] && exit 9; while :; do sleep 0.02; done"));
  EXPECT_EQ(finished.code, 9);
  const std::string json = read_file(report);
  EXPECT_THAT(json, HasSubstr("\"ranks_still_running\": [\n    0,\n    2\n  ],"));
  EXPECT_THAT(json, HasSubstr("\"ranks_killed\": [\n    2\n  ]"));
}

// The hosts that have failed have their report long before the one with that rank, which is given
// its grace.
TEST(FailureReportTest, OfSeveralHostsBeginsWithTheRankThatSeemsToHang) {
  const TempDir directory;
  const ReservedPort port;
  const std::string ready = (directory.path() / "ready").string();
  const std::string report = (directory.path() / "report.json").string();
  const Finished finished = run_drun(
      Arguments{"-H", "127.0.0.1,127.0.0.2,127.0.0.3", "--launcher", "env H={host}",
                "--rdzv-endpoint", port.endpoint(), "--shutdown-timeout", "1", "--report", report} +
      shell("[ $RANK = 0 ] && trap '' TERM && : > " + ready + "; while [ ! -e " + ready +
            " ]; do sleep 0.02; done; [ $RANK = 0 ] || { echo 'barrier timed out' >&2; exit 9; }; "
            "while :; do sleep 0.02; done"));
  EXPECT_EQ(finished.code, 9);
  const auto hangs = finished.err.find(", rank 0 seems to hang: when rank ");
  const auto block = finished.err.find("drun: job failed: rank ");
  EXPECT_LT(hangs, block) << finished.err;
  EXPECT_NE(block, std::string::npos) << finished.err;
  EXPECT_EQ(count(finished.err, "seems to hang"), 1) << finished.err;
  EXPECT_EQ(count(finished.err, "drun: job failed:"), 1) << finished.err;
  EXPECT_THAT(read_file(report), HasSubstr("\"ranks_that_seem_to_hang\": [\n    0\n  ]"));
}

TEST(FailureReportTest, SaysForHowLongAllWereSilent) {
  const TempDir directory;
  const std::string ready = (directory.path() / "ready").string();
  const Finished finished =
      run_drun(Arguments{"--nproc-per-node", "3"} +
               shell("[ $RANK = 1 ] || { : > " + ready +
                     "$RANK; exec sleep 1000; }; while [ ! -e " + ready + "0 ] || [ ! -e " + ready +
                     "2 ]; do sleep 0.02; done; sleep 1.1; "
                     "exit 9"));
  EXPECT_EQ(finished.code, 9);
  EXPECT_THAT(finished.err,
              ContainsRegex("\ndrun: ranks 0,2 were still running \\(silent for at least .*\\)\n"));
}

TEST(FailureReportTest, NamesThemAtASignalToo) {
  for (const std::string grace : {"4", "600"}) {
    const TempDir directory;
    DrunProcess process(Arguments{"--nproc-per-node", "3", "--shutdown-timeout", grace} +
                        shell(deaf_rank_2(directory, "echo ready")));
    ASSERT_TRUE(process.wait_for_out("ready\nready\nready")) << process.err();
    process.signal(SIGINT);
    if (grace == "600") {
      ASSERT_TRUE(process.wait_for_err("SIGKILL in")) << process.err();
      process.signal(SIGINT);
    }
    const Finished finished = process.finish();
    EXPECT_EQ(finished.code, 130);
    EXPECT_THAT(finished.err, HasSubstr("drun: stopped: received SIGINT\ndrun: ranks 0-2 were "));
    EXPECT_THAT(finished.err, HasSubstr(grace == "4" ? "; rank 2 needed SIGKILL\n" : "killed\n"));
  }
}

TEST(FailureReportTest, CtrlCWhileDrunEndsTheWorkersHidesNoFailure) {
  const TempDir directory;
  const std::string report = directory.path() / "report.json";
  DrunProcess process(
      Arguments{"--nproc-per-node", "3", "--shutdown-timeout", "6", "--report", report} +
      shell(deaf_rank_2(directory, "[ $RANK = 1 ] && { echo the reason >&2; exit 9; }")));
  ASSERT_TRUE(process.wait_for_err(": exit code 9; SIGKILL in ")) << process.err();
  process.signal(SIGINT);
  const Finished finished = process.finish();
  EXPECT_EQ(finished.code, 130);
  EXPECT_THAT(finished.err, HasSubstr("drun: stopped: received SIGINT\ndrun: failed before: rank 1 "
                                      "(local rank 1 on "));
  EXPECT_THAT(finished.err, HasSubstr("  | the reason\n"));
  EXPECT_THAT(read_file(report), HasSubstr("\"exit_code\": 9"));
}

// It took the whole grace: that is not to be a riddle.
TEST(FailureReportTest, NamesThemBeforeARestart) {
  const TempDir directory;
  const Finished finished = run_drun(
      Arguments{"--nproc-per-node", "4", "--shutdown-timeout", "2", "--max-restarts", "1"} +
      shell("[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; " +
            deaf_rank_2(directory, "[ $RANK = 3 ] && exit 9")));
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.err, HasSubstr("drun: rank 2 needed SIGKILL\n"));
}

TEST(FailureReportTest, EachNodeNamesItsOwnRanks) {
  const TempDir directory;
  for (const auto& agent :
       two_agents(Arguments{"--nproc-per-node", "2", "--shutdown-timeout", "2"} +
                  shell(deaf_rank_2(directory, "[ $RANK = 3 ] && exit 9")))) {
    EXPECT_EQ(agent.code, 9);
    const bool first = agent.err.find("ranks 0-1 were still running") != std::string::npos;
    EXPECT_THAT(agent.err, HasSubstr("drun: on "));
    EXPECT_TRUE(first || agent.err.find("rank 2 was still running") != std::string::npos);
    EXPECT_EQ(agent.err.find("needed SIGKILL") == std::string::npos, first) << agent.err;
  }
}

TEST(FailureReportTest, ShowsTheErrorFileAndTheLogs) {
  const TempDir directory;
  const std::string logs = (directory.path() / "logs").string();
  const Finished finished =
      run_drun(Arguments{"--redirects", "3", "--log-dir", logs, "--report",
                         (directory.path() / "report.json").string()} +
               shell("echo '{\"message\": {\"message\": \"ValueError: bad\", \"extraInfo\": "
                     "{\"py_callstack\": \"Traceback:\\\\n  here\\\\nValueError: bad\"}}}' > "
                     "$TORCHELASTIC_ERROR_FILE; echo last words >&2; exit 1"));
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err,
              AllOf(HasSubstr("  error:\n  | Traceback:\n  |   here\n  | ValueError: bad\n"),
                    HasSubstr("  | last words\n"), HasSubstr("  log: " + logs),
                    HasSubstr("/attempt_0/0/stderr.log on ")));
  const std::string report = read_file(directory.path() / "report.json");
  EXPECT_THAT(report, AllOf(HasSubstr("\"result\": \"failure\""), HasSubstr("\"exit_code\": 1"),
                            HasSubstr("ValueError: bad"), HasSubstr("last words")));
}

TEST(FailureReportTest, QuotesAMalformedErrorFile) {
  for (const std::string content : {"{\"message\": 7", "not json", "{}"}) {
    const Finished finished =
        run_drun(shell("printf '%s' '" + content + "' > $TORCHELASTIC_ERROR_FILE; exit 4"));
    EXPECT_EQ(finished.code, 4);
    EXPECT_THAT(finished.err, AllOf(HasSubstr("error file "), HasSubstr(content)));
  }
}

TEST(FailureReportTest, PassesTheErrorFileOnToALauncherAbove) {
  const TempDir directory;
  const std::string own = (directory.path() / "own.json").string();
  Launch launch;
  launch.environment = {"TORCHELASTIC_ERROR_FILE=" + own};
  const Finished finished = run_drun(
      Arguments{"--nproc-per-node", "2"} +
          shell("[ $RANK = 0 ] && exec sleep 1000; echo '{\"message\": {\"message\": \"bad\"}}' > "
                "$TORCHELASTIC_ERROR_FILE; exit 9"),
      launch);
  EXPECT_EQ(finished.code, 9);
  EXPECT_EQ(read_file(own), "{\"message\":{\"errorCode\":9,\"message\":\"bad\"}}");
  // A signal has its negative number, as in Python.
  const Finished killed = run_drun(shell("echo '{\"message\": {\"message\": \"lost\"}}' > "
                                         "$TORCHELASTIC_ERROR_FILE; kill -KILL $$"),
                                   launch);
  EXPECT_EQ(killed.code, 128 + SIGKILL);
  EXPECT_EQ(read_file(own), "{\"message\":{\"errorCode\":-9,\"message\":\"lost\"}}");
  // No failure, or none that wrote a file: nothing is touched.
  const std::string before = read_file(own);
  EXPECT_EQ(run_drun(shell("exit 0"), launch).code, 0);
  EXPECT_EQ(run_drun(shell("exit 3"), launch).code, 3);
  EXPECT_EQ(read_file(own), before);
  launch.environment = {"TORCHELASTIC_ERROR_FILE=/no/such/folder/x"};
  const Finished nowhere =
      run_drun(shell("echo '{\"message\": \"bad\"}' > $TORCHELASTIC_ERROR_FILE; exit 9"), launch);
  EXPECT_EQ(nowhere.code, 9);
  EXPECT_THAT(nowhere.err, HasSubstr("/no/such/folder/x"));
}

TEST(FailureReportTest, NamesTheCoreFile) {
  const std::string pattern = read_file("/proc/sys/kernel/core_pattern");
  if (pattern.find('/') != std::string::npos || pattern.find('|') != std::string::npos)
    GTEST_SKIP() << "cores go to " << pattern;
  const TempDir directory;
  Launch launch;
  launch.directory = directory.path();
  const Finished finished = run_drun(
      shell("ulimit -c unlimited 2> /dev/null || ulimit -c $(ulimit -H -c); kill -SEGV $$"),
      launch);
  EXPECT_EQ(finished.code, 128 + SIGSEGV);
  if (std::filesystem::is_empty(directory.path())) GTEST_SKIP() << "no core is written here";
  EXPECT_THAT(finished.err, AllOf(HasSubstr("killed by SIGSEGV (core dumped)"),
                                  HasSubstr("  core: " + directory.path().string())));
}

TEST(FailureReportTest, SaysHowToGetACore) {
  if (read_file("/proc/sys/kernel/core_pattern").starts_with('|')) GTEST_SKIP() << "a program does";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_CORE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_CORE, &none), 0);
  EXPECT_THAT(run_drun(shell("kill -ABRT $$")).err, HasSubstr("  core: none: the limit is "));
  EXPECT_THAT(run_drun(shell("kill -KILL $$")).err, Not(HasSubstr("core:")));
  ASSERT_EQ(::setrlimit(RLIMIT_CORE, &before), 0);
}

TEST(LocalNodesTest, SayTheSameThingOnce) {
  const Finished failed = run_drun(Arguments{"--local-nodes", "3", "--max-restarts", "1"} +
                                   shell("[ $RANK = 1 ] && exit 4; exec sleep 1000"));
  EXPECT_EQ(failed.code, 4);
  EXPECT_EQ(count(failed.err, "stopping the workers: rank 1 on "), 2) << failed.err;
  EXPECT_EQ(count(failed.err, "restart 1/1"), 1) << failed.err;
  EXPECT_EQ(count(failed.err, "job failed: rank 1"), 1) << failed.err;
  const Finished timed_out = run_drun({"--local-nodes", "3", "--timeout", "15", "sleep", "1000"});
  EXPECT_EQ(timed_out.code, 124);
  EXPECT_EQ(count(timed_out.err, "error: --timeout is over"), 1) << timed_out.err;
  EXPECT_EQ(count(timed_out.err, "): running for "), 3) << timed_out.err;
}

TEST(FullDiskTest, LostOutputIsSaidAndIsNoSuccess) {
  const auto run = [](const std::string& redirect, Arguments arguments) {
    Launch launch;
    launch.argv = {"/bin/sh", "-c", "exec \"$@\" " + redirect, "sh", drun_path()};
    launch.argv.insert(launch.argv.end(), arguments.begin(), arguments.end());
    DrunProcess process(launch);
    return process.finish();
  };
  const std::string full = "standard output: No space left on device";
  for (const Arguments& flags : {Arguments{}, Arguments{"--local-nodes", "2"}}) {
    const Finished lost = run("> /dev/full", flags + shell("echo result; exit 0"));
    EXPECT_EQ(lost.code, 125);
    EXPECT_THAT(lost.err, HasSubstr(full));
    EXPECT_EQ(run("> /dev/full", flags + shell("echo result; exit 3")).code, 3);
    EXPECT_EQ(run("2> /dev/full", flags + shell("echo result >&2; exit 0")).code, 125);
    EXPECT_EQ(run("> /dev/full", flags + shell("exit 0")).code, 0);
  }
  for (const char* flag : {"--help", "--version", "--dry-run"}) {
    const Finished asked = run("> /dev/full", {flag, "/bin/true"});
    EXPECT_EQ(asked.code, 125) << flag;
    EXPECT_THAT(asked.err, HasSubstr(full));
  }
}

// The work is done: that its logs were lost is said as it happens and at the end, once each.
TEST(FullDiskTest, LostLogsAreSaidAndDoNotFailAJobThatRanWell) {
  const TempDir directory;
  Launch launch;
  // No file may grow beyond 4 blocks.
  launch.argv = {"/bin/sh",
                 "-c",
                 "ulimit -f 4; exec \"$@\"",
                 "sh",
                 drun_path(),
                 "--nproc-per-node",
                 "3",
                 "--tee",
                 "3",
                 "--log-dir",
                 directory.path().string(),
                 "sh",
                 "-c",
                 "i=0; while [ $i -lt 999 ]; do i=$((i+1)); echo line $i; done"};
  DrunProcess process(launch);
  const Finished finished = process.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(count(finished.out, "]:line 999\n"), 3);
  EXPECT_EQ(count(finished.err, "drun: cannot write "), 1) << finished.err;
  EXPECT_EQ(count(finished.err, "/stdout.log: File too large"), 2) << finished.err;
  EXPECT_THAT(finished.err,
              HasSubstr("drun: warning: 3 log files are not complete: cannot write "));
}

TEST(FullDiskTest, ADiskThatIsFullUnderTheWorkersOwnLogsIsSaid) {
  const TempDir directory;
  Launch launch;
  launch.argv = {"/usr/bin/unshare",
                 "--mount",
                 "/bin/sh",
                 "-c",
                 "mount -t tmpfs -o size=64k none \"$1\" || exit 99; shift; exec \"$@\"",
                 "sh",
                 directory.path().string(),
                 drun_path(),
                 "--redirects",
                 "3",
                 "--log-dir",
                 directory.path().string(),
                 "sh",
                 "-c",
                 "head -c 100000 /dev/zero; exit 0"};
  DrunProcess process(launch);
  const Finished finished = process.finish();
  if (finished.code == 99 || finished.err.starts_with("unshare"))
    GTEST_SKIP() << "no right to mount here: " << finished.err;
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("drun: warning: the disk of --log-dir is full: "));
}

TEST(FullDiskTest, AReaderThatHasSeenEnoughIsNoError) {
  for (const char* nodes : {"1", "2"}) {
    Launch launch;
    launch.argv = {"/bin/sh",
                   "-c",
                   "{ \"$@\"; echo code=$? >&2; } | true",
                   "sh",
                   drun_path(),
                   "--local-nodes",
                   nodes,
                   "sh",
                   "-c",
                   "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.05; done"};
    DrunProcess process(launch);
    const Finished finished = process.finish();
    EXPECT_THAT(finished.err, HasSubstr("code=0"));
    EXPECT_THAT(finished.err, Not(HasSubstr("lost")));
  }
}

// Moves itself into a cgroup with little memory, then runs drun.
TEST(FailureReportTest, TellsOutOfMemoryFromAnotherKill) {
#ifdef DRUN_ASAN
  GTEST_SKIP() << "AddressSanitizer makes drun itself the largest process of the group";
#endif
  std::string parent;
  for (const auto& line : split_lines(read_file("/proc/self/cgroup"))) {
    const auto at = line.find(":memory:");
    if (at != std::string::npos) parent = "/sys/fs/cgroup/memory" + line.substr(at + 8);
  }
  const std::string group = parent + "/drun-test-" + std::to_string(::getpid());
  std::error_code error;
  if (parent.empty() || !std::filesystem::create_directory(group, error))
    GTEST_SKIP() << "no memory cgroup can be made here";
  Launch launch;
  launch.argv = {"/bin/sh",
                 "-c",
                 "echo 150M > " + group + "/memory.limit_in_bytes && echo $$ > " + group +
                     "/cgroup.procs && exec \"$@\"",
                 "sh",
                 drun_path(),
                 "sh",
                 "-c",
                 "x=$(head -c 400M /dev/zero | tr '\\0' x)"};
  DrunProcess eater(launch);
  const Finished finished = eater.finish(milliseconds(60'000));
  launch.argv.back() = "kill -9 $$";
  DrunProcess killed(launch);
  const Finished other = killed.finish();
  std::filesystem::remove(group, error);
  EXPECT_EQ(finished.code, 137) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("killed: out of memory"));
  EXPECT_EQ(other.code, 137);
  EXPECT_THAT(other.err, HasSubstr("killed by SIGKILL"));
}

TEST(LogFolderTest, OneThatANodeCannotMakeEndsTheJobOnAllNodesWithTheReason) {
  const TempDir directory;
  const std::string file = directory.write("file", "");
  const ReservedPort port;
  const Arguments flags = {"--nnodes", "2", "--rdzv-endpoint", port.endpoint()};
  const Arguments command = {"sleep", "1000"};
  DrunProcess well(flags + command);
  DrunProcess ill(flags + Arguments{"--log-dir", file + "/logs", "--tee", "3"} + command);
  for (DrunProcess* process : {&well, &ill}) {
    const Finished finished = process->finish();
    EXPECT_EQ(finished.code, 125) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("create folder " + file + "/logs: Not a directory"));
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST(LogFolderTest, OneThatCannotBeMadeEndsTheJobOfLocalNodes) {
  const TempDir directory;
  const std::string file = directory.write("file", "");
  const Finished finished = run_drun({"--local-nodes", "2", "--nproc-per-node", "2", "--log-dir",
                                      file + "/logs", "--tee", "3", "sleep", "1000"});
  EXPECT_EQ(finished.code, 125) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("create folder " + file + "/logs: Not a directory"));
}

}  // namespace
}  // namespace drun::test
