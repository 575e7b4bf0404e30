// Where a worker's streams come from and go to: stdin, log files, readers that are slow.
#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/full_pipe.hpp"
#include "support/gate.hpp"

namespace drun::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// A shell command with drun in it; "drun" is the one under test.
Finished run_shell(const std::string& command, const Launch& launch = {}) {
  Launch shell = launch;
  shell.argv = {"/bin/sh", "-c", "drun() { '" + drun_path() + "' \"$@\"; }; " + command};
  return DrunProcess(shell).finish();
}

std::vector<std::string> sorted_lines(const std::string& text) {
  auto lines = split_lines(text);
  std::sort(lines.begin(), lines.end());
  return lines;
}

// All files under a folder, relative to it; links are not followed.
std::vector<std::string> files_under(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_symlink() || !entry.is_directory())
      names.push_back(entry.path().lexically_relative(folder).string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(StdinTest, GoesToRankZeroTheOthersReadItsEnd) {
  const Finished finished =
      run_shell("echo input | drun --local-nodes 2 --nproc-per-node 2 sh -c 'echo $RANK:$(cat)'");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(sorted_lines(finished.out), ElementsAre("0:input", "1:", "2:", "3:"));
}

TEST(StdinTest, GoesToTheRankThatIsAskedForOrToNobody) {
  const std::string worker = " sh -c 'echo $RANK:$(cat)'";
  Finished finished = run_shell("echo input | drun --nproc-per-node 2 --stdin 1" + worker);
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(sorted_lines(finished.out), ElementsAre("0:", "1:input"));
  finished = run_shell("echo input | drun --nproc-per-node 2 --stdin none" + worker);
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(sorted_lines(finished.out), ElementsAre("0:", "1:"));
}

TEST(StdinTest, ARankThatThereIsNotIsRefusedOrSaid) {
  const Finished refused = run_drun({"--nproc-per-node", "2", "--stdin", "5", "/bin/true"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--stdin '5': the job has ranks 0 to 1 only"));
  const ReservedPort port;
  const Arguments arguments = {"--nnodes", "2", "--rdzv-endpoint", port.endpoint(),
                               "--stdin",  "2", "/bin/true"};
  DrunProcess first(arguments);
  DrunProcess second(arguments);
  const Finished one = first.finish();
  const Finished two = second.finish();
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(two.code, 0) << two.err;
  const std::string line =
      "drun: warning: --stdin 2: this round has 2 ranks, counted from 0: nobody reads standard "
      "input\n";
  const bool first_says = one.err.find(line) != std::string::npos;
  const bool second_says = two.err.find(line) != std::string::npos;
  EXPECT_NE(first_says, second_says) << one.err << two.err;
}

TEST(LogsTest, ARedirectedStreamIsTheFileItselfAndNoAttemptWritesOverAnother) {
  const TempDir directory;
  Launch launch;
  launch.directory = directory.path();
  const Finished finished = run_drun(
      {"--redirects", "3", "--log-dir", "logs", "--max-restarts", "1", "sh", "-c",
       "readlink /proc/self/fd/1; echo error >&2; exit $((1 - TORCHELASTIC_RESTART_COUNT))"},
      launch);
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, IsEmpty());
  const fs::path run = directory.path() / "logs" / "latest";
  for (const std::string attempt : {"attempt_0", "attempt_1"}) {
    EXPECT_THAT(read_file(run / attempt / "0" / "stdout.log"),
                EndsWith("/" + attempt + "/0/stdout.log\n"));
    EXPECT_EQ(read_file(run / attempt / "0" / "stderr.log"), "error\n");
  }
  EXPECT_THAT(files_under(directory.path()), SizeIs(5)) << "four logs and `latest`";
}

TEST(LogsTest, TeeShowsPrefixedLinesAndKeepsTheBytes) {
  const TempDir directory;
  Launch launch;
  launch.directory = directory.path();
  const Finished finished =
      run_drun({"--local-nodes", "2", "--role", "role", "--tee", "3", "--log-dir", "logs", "sh",
                "-c", R"(printf 'a\0\377\rb\nno end'; [ $RANK = 0 ] || exit 0; echo error >&2)"},
               launch);
  EXPECT_EQ(finished.code, 0) << finished.err;
  using namespace std::string_literals;
  EXPECT_THAT(finished.out, HasSubstr("[role0]:a\0\xff\r[role0]:b\n[role0]:no end"s));
  EXPECT_THAT(finished.err, HasSubstr("[role0]:error\n"));
  int logs = 0;
  for (const auto& name : files_under(directory.path())) {
    if (!name.ends_with("/attempt_0/0/stdout.log")) continue;
    ++logs;
    EXPECT_EQ(read_file(directory.path() / name), "a\0\xff\rb\nno end"s);
  }
  EXPECT_EQ(logs, 2) << "each agent has a folder of its own";
}

TEST(LogsTest, WithoutAFolderNothingIsLeft) {
  const TempDir directory;
  Launch launch;
  launch.directory = directory.path();
  launch.environment = {"TMPDIR=" + directory.path().string()};
  const Finished finished =
      run_drun({"--nproc-per-node", "2", "--tee", "3", "sh", "-c",
                R"(echo out; echo '{"message": "x"}' >"$TORCHELASTIC_ERROR_FILE")"},
               launch);
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(sorted_lines(finished.out), ElementsAre("[default0]:out", "[default1]:out"));
  EXPECT_THAT(files_under(directory.path()), IsEmpty());
}

class ReaderTest : public testing::TestWithParam<std::string> {
 protected:
  ReaderTest()
      : start_(directory_.path() / "start"),
        reader_(directory_.path() / "reader"),
        worker_(directory_.path() / "worker") {}
  // drun, which waits for `start_`, and whose stdout nobody reads until `reader_` opens.
  Launch behind_a_gate(const std::string& arguments) const {
    const std::string drun = "exec '" + drun_path() + "' " + GetParam() + " " + arguments;
    // In a subshell: the shell's own stdout is never the file.
    directory_.write("drun.sh", "(echo $$ >pid)\nread line <start\n" + drun + "\n");
    Launch launch;
    launch.directory = directory_.path();
    launch.argv = {"/bin/sh", "-c",
                   "{ sh drun.sh; echo drun gave $? >&2; } | { read line <reader; cat; }"};
    return launch;
  }
  pid_t drun_pid() const { return std::stoi(read_file(directory_.path() / "pid")); }
  // Starts drun with a stdout that takes nothing more, however large drun makes the pipe.
  [[nodiscard]] bool start_stalled() const {
    if (!eventually([&] { return read_file(directory_.path() / "pid").ends_with('\n'); }))
      return false;
    const std::string path = "/proc/" + std::to_string(drun_pid()) + "/fd/1";
    const FileDescriptor pipe(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    ::fcntl(pipe.get(), F_SETPIPE_SZ, 1 << 20);
    return fill_pipe(pipe.get(), std::string(4095, kFiller) + '\n') > 0 && start_.open();
  }
  // The workers' lines.
  static std::vector<std::string> lines_of(const Finished& finished) {
    auto lines = split_lines(finished.out);
    std::erase_if(lines, [](const std::string& line) { return line.starts_with(kFiller); });
    return lines;
  }

  static constexpr char kFiller = '.';
  TempDir directory_;
  Gate start_;
  Gate reader_;
  Gate worker_;
};

// Fit into the pipe of the worker, which so is rid of them whatever drun does.
constexpr int kLines = 10'000;

TEST_P(ReaderTest, ThatStallsKeepsNoDeathFromBeingNoticed) {
  const std::string stalling = "seq " + std::to_string(kLines) + " && echo stalled >&2";
  DrunProcess drun(
      behind_a_gate("sh -c '[ $RANK = 0 ] && " + stalling +
                    " && exec seq 10000000; read line <worker; echo words >&2; exit 3'"));
  ASSERT_TRUE(start_stalled());
  ASSERT_TRUE(drun.wait_for_err("stalled")) << drun.err();
  ASSERT_TRUE(worker_.open());
  EXPECT_TRUE(drun.wait_for_err("words")) << drun.err();
  EXPECT_TRUE(drun.wait_for_err("drun gave 3")) << drun.err();
  ASSERT_TRUE(reader_.open());
  const Finished finished = drun.finish();
  EXPECT_THAT(finished.err, HasSubstr("exit code 3"));
  EXPECT_THAT(finished.err,
              HasSubstr("rest of standard output is lost: nothing was read for 10 s"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_P(ReaderTest, ThatStallsForAWhileGetsEveryLine) {
  // More than all the pipes between can hold.
  DrunProcess drun(behind_a_gate("sh -c 'echo started >&2; exec seq 1000000'"));
  ASSERT_TRUE(start_.open());
  ASSERT_TRUE(drun.wait_for_err("started")) << drun.err();
  ASSERT_TRUE(reader_.open());
  const Finished finished = drun.finish(4 * kPatience);
  EXPECT_THAT(finished.err, HasSubstr("drun gave 0"));
  std::vector<int> seen(1'000'001);
  const auto lines = split_lines(finished.out);
  ASSERT_THAT(lines.size(), 2'000'000);
  int out_of_order = 0;
  for (const auto& line : lines) {
    const auto number = static_cast<std::size_t>(std::stoi(line));
    const int before = seen[number]++;
    if (before > 1 || (number > 1 && seen[number - 1] <= before)) ++out_of_order;
  }
  EXPECT_EQ(out_of_order, 0);
}

TEST_P(ReaderTest, IsWaitedForWhenTheJobHasSucceeded) {
  DrunProcess drun(behind_a_gate("sh -c '[ $RANK = 1 ] || seq " + std::to_string(kLines) + "'"));
  ASSERT_TRUE(start_stalled());
  ASSERT_TRUE(drun.wait_for_err("waiting for the reader of standard output")) << drun.err();
  EXPECT_THAT(drun.err(), Not(HasSubstr("drun gave")));
  ASSERT_TRUE(reader_.open());
  const Finished finished = drun.finish();
  EXPECT_THAT(finished.err, HasSubstr("drun gave 0"));
  EXPECT_THAT(finished.err, Not(HasSubstr("lost")));
  const auto lines = lines_of(finished);
  ASSERT_THAT(lines, SizeIs(kLines));
  EXPECT_EQ(lines.back(), std::to_string(kLines));
}

TEST_P(ReaderTest, IsGivenUpByASignal) {
  DrunProcess drun(behind_a_gate("sh -c '[ $RANK = 1 ] || seq " + std::to_string(kLines) + "'"));
  ASSERT_TRUE(start_stalled());
  ASSERT_TRUE(drun.wait_for_err("waiting for the reader of standard output")) << drun.err();
  ASSERT_EQ(::kill(drun_pid(), SIGTERM), 0);
  ASSERT_TRUE(drun.wait_for_err("drun gave 143")) << drun.err();
  EXPECT_THAT(drun.err(), HasSubstr("the rest of standard output is lost: received SIGTERM"));
  ASSERT_TRUE(reader_.open());
  EXPECT_THAT(drun.finish().survivors, IsEmpty());
}

// The job has succeeded, and what it left behind is being stopped.
TEST_P(ReaderTest, IsGivenUpForASignalThatCameBefore) {
  const std::string leftover = "trap '' TERM; echo left >&2; : >ready; read line <worker";
  directory_.write("leftover.sh", leftover + "\n");
  DrunProcess drun(
      behind_a_gate("sh -c '[ $RANK = 1 ] && exit; sh leftover.sh & while [ ! -e ready ]; do sleep "
                    "0.02; done; seq " +
                    std::to_string(kLines) + "'"));
  ASSERT_TRUE(start_stalled());
  ASSERT_TRUE(drun.wait_for_err("SIGKILL in")) << drun.err();
  ASSERT_EQ(::kill(drun_pid(), SIGTERM), 0);
  ASSERT_TRUE(worker_.open());
  ASSERT_TRUE(drun.wait_for_err("drun gave 143")) << drun.err();
  EXPECT_THAT(drun.err(), HasSubstr("the rest of standard output is lost: "));
  ASSERT_TRUE(reader_.open());
  EXPECT_THAT(drun.finish().survivors, IsEmpty());
}

class StoreReaderTest : public ReaderTest {};

TEST_P(StoreReaderTest, ThatStallsKeepsNoOtherJobFromTheEndpoint) {
  const ReservedPort port;
  DrunProcess drun(
      behind_a_gate("--rdzv-endpoint " + port.endpoint() + " seq " + std::to_string(kLines)));
  ASSERT_TRUE(start_stalled());
  ASSERT_TRUE(drun.wait_for_err("waiting for the reader of standard output")) << drun.err();
  const Finished next = run_drun(
      {"--rdzv-backend", "c10d", "--rdzv-endpoint", port.endpoint(), "--quiet", "echo", "words"});
  EXPECT_EQ(next.code, 0) << next.err;
  EXPECT_EQ(next.out, "words\n");
  ASSERT_TRUE(reader_.open());
  EXPECT_THAT(drun.finish().err, HasSubstr("drun gave 0"));
}

INSTANTIATE_TEST_SUITE_P(Jobs, StoreReaderTest, testing::Values("--rdzv-backend c10d"),
                         [](const auto&) { return "OneNode"; });

INSTANTIATE_TEST_SUITE_P(Jobs, ReaderTest, testing::Values("--nproc-per-node 2", "--local-nodes 2"),
                         [](const auto& chosen) {
                           return chosen.param == "--local-nodes 2" ? "TwoNodes" : "OneNode";
                         });

}  // namespace
}  // namespace drun::test
