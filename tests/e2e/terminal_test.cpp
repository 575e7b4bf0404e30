// drun at a terminal: Ctrl-C, Ctrl-Z, and the size of the window.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/terminal_shell.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Processes that have `entry` in their environment.
std::vector<pid_t> processes_with(const std::string& entry) {
  std::vector<pid_t> result;
  std::error_code ignored;
  for (const auto& process : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = process.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string variables = '\0' + read_file(process.path() / "environ");
    if (variables.find('\0' + entry + '\0') != std::string::npos)
      result.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return result;
}

char state_in(const std::string& stat) {
  const auto end = stat.rfind(')');
  return end == std::string::npos ? '-' : stat[end + 2];
}

char state_of(pid_t pid) {
  return state_in(read_file("/proc/" + std::to_string(pid) + "/stat"));
}

// With all its threads. Before the last of them has stopped, the kernel takes the process for one
// that runs, and does not hang it up when its shell dies.
bool has_stopped(pid_t pid) {
  std::error_code gone;
  std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", gone);
  return std::all_of(begin(threads), end(threads), [](const auto& thread) {
    return state_in(read_file(thread.path() / "stat")) == 'T';
  });
}

// Whether the system tells what a process below this one waits for.
bool calls_are_told() {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;)
      ::pause();
  }
  const bool told = eventually(
      [child] {
        const std::string call = read_file("/proc/" + std::to_string(child) + "/syscall");
        return !call.empty() && call.front() >= '0' && call.front() <= '9';
      },
      milliseconds(2'000));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return told;
}

class TerminalTest : public testing::Test {
 protected:
  // `workers`: a mark of this test's workers, "RANK=0" and so on are in their environment.
  std::string command(const std::string& flags, const std::string& script) {
    const std::string file = directory_.write("worker.sh", script);
    return drun_path() + " " + flags + " sh " + file + "; echo code=$?\n";
  }
  [[nodiscard]] std::string entry() const { return "TERMINAL_TEST_MARK=" + mark_; }
  // Those of drun's workers, which all have a RANK.
  [[nodiscard]] std::vector<pid_t> workers() const {
    std::vector<pid_t> result;
    for (const pid_t pid : processes_with(entry()))
      if (read_file("/proc/" + std::to_string(pid) + "/environ").find(std::string("\0RANK=", 6)) !=
          std::string::npos)
        result.push_back(pid);
    return result;
  }
  // D: between vfork and exec, while the child is stopped.
  [[nodiscard]] bool all_workers_stopped() const {
    const auto all = workers();
    return !all.empty() && std::all_of(all.begin(), all.end(), [](pid_t pid) {
      return state_of(pid) == 'T' || state_of(pid) == 'D';
    });
  }
  // Each process of drun's that the shell or its parent would resume.
  [[nodiscard]] bool drun_stopped() const {
    const auto all = processes_with(entry());
    return std::all_of(all.begin(), all.end(), [](pid_t pid) {
      return read_file("/proc/" + std::to_string(pid) + "/comm") != "drun\n" || has_stopped(pid);
    });
  }
  void TearDown() override {
    EXPECT_TRUE(eventually([this] { return workers().empty(); }));
  }

  TempDir directory_;
  std::string mark_ = directory_.path().filename().string();
  TerminalShell shell_{mark_};
};

// A worker that goes on until the file is there.
std::string until(const std::filesystem::path& file) {
  return "echo started $RANK; while [ ! -e " + file.string() +
         " ]; do sleep 0.05; done; echo done $RANK $TORCHELASTIC_RESTART_COUNT\n";
}

TEST_F(TerminalTest, CtrlZStopsTheWorkersTooAndFgGoesOn) {
  for (const std::string nodes : {"--nproc-per-node 2", "--local-nodes 2"}) {
    SCOPED_TRACE(nodes);
    const auto file = directory_.path() / ("go-on" + nodes.substr(2, 5));
    shell_.type(command(nodes, until(file)));
    ASSERT_TRUE(shell_.wait_for("started ")) << shell_.shown();
    ASSERT_TRUE(shell_.wait_for("started ")) << shell_.shown();
    shell_.type("\x1a");
    ASSERT_TRUE(shell_.wait_for("Stopped")) << shell_.shown();
    EXPECT_TRUE(eventually([this] { return all_workers_stopped(); })) << shell_.shown();
    directory_.write(file.filename(), "");
    shell_.type("fg; echo after=$?\n");
    ASSERT_TRUE(shell_.wait_for("done ")) << shell_.shown();
    ASSERT_TRUE(shell_.wait_for("done ")) << shell_.shown();
    ASSERT_TRUE(shell_.wait_for("after=0")) << shell_.shown();
    EXPECT_THAT(shell_.shown(), Not(HasSubstr("done 0 1")));
  }
}

// The terminal of these tests is a dumb one, unless they say otherwise.
TEST_F(TerminalTest, TheCauseIsRedOnATerminalThatKnowsColour) {
  const std::string report = (directory_.path() / "report.json").string();
  struct Case {
    std::string before;
    std::string flags;
    bool red;
  };
  for (const auto& [before, flags, red] :
       std::vector<Case>{{"TERM=xterm ", "", true},
                         {"TERM=xterm ", "--local-nodes 2", true},
                         {"", "", false},
                         {"TERM=xterm NO_COLOR=1 ", "", false},
                         {"TERM=xterm NO_COLOR=1 ", "--color always", true},
                         {"TERM=xterm ", "--color never", false}}) {
    SCOPED_TRACE(before + flags);
    shell_.type(before + command(flags + " --report " + report, "exit 7\n"));
    ASSERT_TRUE(shell_.wait_for("job failed: rank ")) << shell_.shown();
    const std::string& shown = shell_.shown();
    const std::string before_it = shown.substr(0, shown.rfind("job failed: rank "));
    EXPECT_EQ(before_it.ends_with("drun: \033[31m"), red) << shown;
    EXPECT_EQ(before_it.ends_with("drun: "), !red) << shown;
    ASSERT_TRUE(shell_.wait_for("code=7")) << shell_.shown();
    EXPECT_THAT(read_file(report), Not(HasSubstr("u001b")));
  }
  // A file that stderr goes to is no terminal.
  shell_.type("TERM=xterm " + drun_path() + " sh -c 'exit 7' 2>" + report + "; echo code=$?\n");
  ASSERT_TRUE(shell_.wait_for("code=7")) << shell_.shown();
  EXPECT_THAT(read_file(report), testing::StartsWith("drun: job failed: "));
}

// What is typed is the shell's while drun is in its background.
TEST_F(TerminalTest, AJobInTheBackgroundThatReadsTheTerminalIsSuspendedUntilFg) {
  if (!calls_are_told()) GTEST_SKIP() << "/proc/PID/syscall cannot be read here";
  for (const std::string nodes : {"", "--local-nodes 2"}) {
    SCOPED_TRACE(nodes);
    const std::string file = directory_.write(
        "worker.sh", "echo started; [ $RANK != 0 ] || { read line; echo got $line; }\n");
    shell_.type(drun_path() + " " + nodes + " sh " + file + " &\n");
    ASSERT_TRUE(shell_.wait_for("started")) << shell_.shown();
    ASSERT_TRUE(eventually([this] { return all_workers_stopped() && drun_stopped(); }))
        << shell_.shown();
    shell_.type("jobs -l\n");
    ASSERT_TRUE(shell_.wait_for("Stopped (tty input)")) << shell_.shown();
    shell_.type("fg; echo after=$?\n");
    shell_.type("hello\n");
    ASSERT_TRUE(shell_.wait_for("got hello\r\n")) << shell_.shown();
    ASSERT_TRUE(shell_.wait_for("after=0\r\n")) << shell_.shown();
  }
}

// The kernel hangs it up and wakes it then.
TEST_F(TerminalTest, NothingIsLeftOfAJobThatWaitsForInputWhenItsShellIsGone) {
  if (!calls_are_told()) GTEST_SKIP() << "/proc/PID/syscall cannot be read here";
  const std::string file =
      directory_.write("worker.sh", "trap '' HUP TERM; echo started; read line; sleep 1000\n");
  shell_.type(drun_path() + " --shutdown-timeout 100ms sh " + file + " &\n");
  ASSERT_TRUE(shell_.wait_for("started")) << shell_.shown();
  ASSERT_TRUE(eventually([this] { return all_workers_stopped() && drun_stopped(); }))
      << shell_.shown();
  shell_.type("kill -9 $$\n");
  EXPECT_TRUE(eventually([this] { return processes_with(entry()).empty(); }));
}

TEST_F(TerminalTest, AJobInTheBackgroundThatDoesNotReadRunsOn) {
  shell_.type(drun_path() + " --nproc-per-node 2 sh -c 'sleep 0.5; echo done $RANK' &\n");
  ASSERT_TRUE(shell_.wait_for("done ")) << shell_.shown();
  ASSERT_TRUE(shell_.wait_for("done ")) << shell_.shown();
  shell_.type("wait; echo after=$?\n");
  ASSERT_TRUE(shell_.wait_for("after=0\r\n")) << shell_.shown();
  EXPECT_THAT(shell_.shown(), Not(HasSubstr("Stopped")));
}

TEST_F(TerminalTest, CtrlCCountsDownOnOneLineAndTheSecondKills) {
  for (const std::string nodes : {"", "--local-nodes 2"}) {
    SCOPED_TRACE(nodes);
    const auto saving = directory_.path() / ("saving" + std::to_string(nodes.size()));
    shell_.type(command(nodes + " --shutdown-timeout 500", "trap 'echo saving; : >" +
                                                               saving.string() +
                                                               "' INT; echo started; "
                                                               "while :; do sleep 0.1; done\n"));
    ASSERT_TRUE(shell_.wait_for("started\r\n")) << shell_.shown();
    if (!nodes.empty()) {
      ASSERT_TRUE(shell_.wait_for("started\r\n")) << shell_.shown();
    }
    shell_.type("\x03");
    ASSERT_TRUE(shell_.wait_for("SIGKILL in 500 s (Ctrl-C again: now)")) << shell_.shown();
    ASSERT_TRUE(shell_.wait_for("\r\x1b[K\x1b[?7ldrun: stopping the workers; SIGKILL in 4"))
        << shell_.shown();
    ASSERT_TRUE(eventually([&] { return exists(saving); })) << shell_.shown();
    shell_.type("\x03");
    ASSERT_TRUE(shell_.wait_for("received SIGINT again: killing the workers")) << shell_.shown();
    ASSERT_TRUE(shell_.wait_for("code=130")) << shell_.shown();
    EXPECT_THAT(shell_.shown(), HasSubstr("saving\r\n"));
    EXPECT_THAT(shell_.shown(), Not(HasSubstr("now)saving")));
  }
}

TEST_F(TerminalTest, TheWorkersSeeTheSizeOfTheWindowAndItsChanges) {
  for (const std::string nodes : {"", "--local-nodes 2"}) {
    SCOPED_TRACE(nodes);
    shell_.resize(24, 80);
    shell_.type(command(nodes,
                        "trap 'stty size <&1; exit 0' WINCH; stty size <&1; echo started\n"
                        "while :; do sleep 0.05; done\n"));
    const int workers = nodes.empty() ? 1 : 2;
    for (int worker = 0; worker < workers; ++worker) {
      ASSERT_TRUE(shell_.wait_for("started")) << shell_.shown();
    }
    EXPECT_THAT(shell_.shown(), HasSubstr("24 80\r\n"));
    shell_.resize(50, 132);
    EXPECT_TRUE(shell_.wait_for("50 132\r\n")) << shell_.shown();
    ASSERT_TRUE(shell_.wait_for("code=0")) << shell_.shown();
  }
}

}  // namespace
}  // namespace drun::test
