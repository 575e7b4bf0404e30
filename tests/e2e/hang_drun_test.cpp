// drun can always be ended, and tells why it ends, whatever hangs: a program, a folder.
#include <signal.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/expect_end.hpp"
#include "support/hung_folder.hpp"

namespace drun::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class HangTest : public testing::Test {
 protected:
  HangTest() : path_(make_folder()), hung_(path_) {}
  void SetUp() override {
    if (!hung_.hangs()) GTEST_SKIP() << "may not mount a file system of its own";
  }
  // A script that is there, but not what runs it.
  [[nodiscard]] std::string script() const {
    return directory_.write("script", "#!" + path_ + "/python3\n", true);
  }

  // What a sanitized drun does at its end, to look for leaks, waits for the thread that hangs.
  [[nodiscard]] static Launch without_leak_check(std::vector<std::string> environment = {}) {
    environment.push_back("LSAN_OPTIONS=detect_leaks=0");
    Launch launch;
    launch.environment = std::move(environment);
    return launch;
  }

  [[nodiscard]] static std::ptrdiff_t threads_of(pid_t pid) {
    std::error_code gone;
    const std::filesystem::directory_iterator tasks("/proc/" + std::to_string(pid) + "/task", gone);
    return std::distance(begin(tasks), end(tasks));
  }

  const TempDir directory_;
  const std::string path_;

  [[nodiscard]] std::string make_folder(const std::string& name = "hung") const {
    const auto folder = directory_.path() / name;
    std::filesystem::create_directory(folder);
    return folder.string();
  }

 private:
  HungFolder hung_;

 protected:
  // Starts a job whose worker ends with this code when `folder` hangs.
  void run_until_it_hangs(Launch launch, Arguments flags, const std::string& folder, int code,
                          std::string& err) {
    const auto file = [&](const std::string& name) { return (directory_.path() / name).string(); };
    DrunProcess process(
        flags + Arguments{"--no-python", "sh", "-c",
                          ": >" + file("runs") + "; until [ -e " + file("go") +
                              " ]; do sleep 0.01; done; exit " + std::to_string(code)},
        std::move(launch));
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(file("runs")); }));
    ASSERT_TRUE(hung_.cover(folder));
    directory_.write("go", "");
    expect_end(process, code);
    err = process.err();
  }
};

TEST_F(HangTest, AProgramWithoutAnAnswerIsNotStartedAndNamed) {
  DrunProcess process({path_ + "/train"}, without_leak_check());
  expect_end(process, 126);
  EXPECT_EQ(process.err(), "drun: error: cannot exec " + path_ + "/train: no answer for 30 s\n");
}

TEST_F(HangTest, OneSignalEndsALookThatHangs) {
  DrunProcess process({"--local-nodes", "2", path_ + "/train"});
  ASSERT_TRUE(eventually([&] { return threads_of(process.pid()) >= 2; }));
  process.signal(SIGTERM);
  expect_end(process, 128 + SIGTERM);
}

TEST_F(HangTest, OneSignalEndsAJobWhoseProgramHangs) {
  DrunProcess process({"--shutdown-timeout", "600", "--nproc-per-node", "2", script()});
  // Two helpers, and what is to become the first worker.
  ASSERT_TRUE(eventually([&] { return process.survivors().size() >= 3; }));
  process.signal(SIGTERM);
  expect_end(process, 128 + SIGTERM);
  EXPECT_THAT(process.err(), EndsWith("drun: stopped: received SIGTERM\n"));
}

TEST_F(HangTest, LogsThatHangWhileTheJobRunsDoNotKeepItsEnd) {
  const std::string logs = make_folder("logs");
  std::string err;
  run_until_it_hangs(without_leak_check(), {"--redirects", "3", "--log-dir", logs}, logs, 7, err);
  EXPECT_THAT(err, HasSubstr("drun: job failed: rank 0"));
}

TEST_F(HangTest, ATemporaryFolderThatHangsWhileTheJobRunsStays) {
  const std::string temporary = make_folder("temporary");
  std::string err;
  run_until_it_hangs(without_leak_check({"TMPDIR=" + temporary}), {}, temporary, 0, err);
}

// A worker that fails, and says why in its error file, which drun is to pass on.
class HangingReportTest : public HangTest {
 protected:
  [[nodiscard]] DrunProcess start() const {
    return DrunProcess({"--report", report_, "--no-python", "sh", "-c",
                        "echo '{\"message\": \"no\"}' >$TORCHELASTIC_ERROR_FILE; exit 7"},
                       without_leak_check({"TORCHELASTIC_ERROR_FILE=" + error_file_}));
  }

  const std::string report_ = path_ + "/report.json";
  const std::string error_file_ = path_ + "/error.json";
};

TEST_F(HangingReportTest, WithoutAnAnswerItIsGivenUp) {
  DrunProcess process = start();
  expect_end(process, 7);
  EXPECT_THAT(process.err(), HasSubstr("drun: job failed: rank 0"));
  EXPECT_THAT(process.err(),
              HasSubstr("drun: error: --report: write " + report_ + ": no answer for 30 s\n"));
  EXPECT_THAT(process.err(), HasSubstr("drun: warning: TORCHELASTIC_ERROR_FILE: write " +
                                       error_file_ + ": no answer for 30 s\n"));
}

TEST_F(HangingReportTest, TheSecondSignalGivesItUp) {
  DrunProcess process = start();
  ASSERT_TRUE(process.wait_for_err("drun: job failed")) << process.err();
  process.signal(SIGINT);
  process.signal(SIGTERM);
  expect_end(process, 7);
  EXPECT_THAT(process.err(),
              HasSubstr("drun: error: --report: given up: received SIGTERM\n"
                        "drun: warning: TORCHELASTIC_ERROR_FILE: given up: received SIGTERM\n"));
}

TEST_F(HangTest, OneSignalEndsAgentsWhoseProgramsHang) {
  DrunProcess process({"--shutdown-timeout", "600", "--local-nodes", "2", script()});
  // Two agents with their helpers and what is to become a worker.
  ASSERT_TRUE(eventually([&] { return process.survivors().size() >= 7; }));
  process.signal(SIGTERM);
  expect_end(process, 128 + SIGTERM);
}

TEST_F(HangTest, OneSignalEndsAJobWhoseLogFolderHangs) {
  DrunProcess process({"--redirects", "3", "--log-dir", path_ + "/logs", "sleep", "1000"},
                      without_leak_check());
  ASSERT_TRUE(eventually([&] { return process.survivors().size() >= 2; }));
  process.signal(SIGTERM);
  expect_end(process, 128 + SIGTERM);
}

// Two nodes of a job; what the second one uses hangs.
class HangingNodeTest : public HangTest {
 protected:
  [[nodiscard]] Arguments node(const Arguments& more, const std::string& program) const {
    return Arguments{"--nnodes", "2", "--rdzv-endpoint", port_.endpoint()} + more +
           Arguments{"--no-python", "sh", "-c", program};
  }

  const ReservedPort port_;
};

TEST_F(HangingNodeTest, ALogFolderWithoutAnAnswerEndsTheJobAndSaysSo) {
  DrunProcess first(node({"--node-rank", "0"}, "sleep 1000"));
  DrunProcess second(
      node({"--node-rank", "1", "--redirects", "3", "--log-dir", path_ + "/logs"}, "sleep 1000"),
      without_leak_check());
  const std::string reason = "create folder " + path_ + "/logs: no answer for 30 s";
  for (DrunProcess* each : {&first, &second}) {
    expect_end(*each, 125);
    EXPECT_THAT(each->err(), HasSubstr(reason));
    EXPECT_THAT(each->err(), Not(HasSubstr("gone"))) << "it has kept its lease";
  }
}

TEST_F(HangingNodeTest, AProgramWithoutAnAnswerEndsTheJobAndSaysSo) {
  DrunProcess first(node({"--node-rank", "0"}, "sleep 1000"));
  DrunProcess second(
      {"--nnodes", "2", "--rdzv-endpoint", port_.endpoint(), "--node-rank", "1", path_ + "/train"},
      without_leak_check());
  for (DrunProcess* each : {&first, &second}) {
    expect_end(*each, 126);
    EXPECT_THAT(each->err(), HasSubstr("exec " + path_ + "/train: no answer for 30 s"));
  }
}

TEST_F(HangingNodeTest, ASignalEndsAJobWhoseLogFolderHangs) {
  DrunProcess first(node({"--node-rank", "0"}, "echo runs; sleep 1000"));
  DrunProcess second(
      node({"--node-rank", "1", "--redirects", "3", "--log-dir", path_ + "/logs"}, "sleep 1000"),
      without_leak_check());
  ASSERT_TRUE(first.wait_for_out("runs")) << first.err();
  second.signal(SIGTERM);
  expect_end(second, 128 + SIGTERM);
  expect_end(first, 128 + SIGTERM);
}

TEST_F(HangingNodeTest, ASignalEndsAJobWhoseTemporaryFolderHangs) {
  DrunProcess first(node({"--node-rank", "0"}, "echo runs; sleep 1000"));
  DrunProcess second(node({"--node-rank", "1"}, "sleep 1000"),
                     without_leak_check({"TMPDIR=" + path_}));
  ASSERT_TRUE(first.wait_for_out("runs")) << first.err();
  second.signal(SIGTERM);
  expect_end(second, 128 + SIGTERM);
  expect_end(first, 128 + SIGTERM);
}

}  // namespace
}  // namespace drun::test
