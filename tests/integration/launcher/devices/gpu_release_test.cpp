// With LD_LIBRARY_PATH at a stand-in for NVIDIA's library, which is loaded in a child.
#include "launcher/devices/gpu_release.hpp"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <gtest/gtest.h>

#include "base/child_answer.hpp"
#include "support/file_tree.hpp"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPatience{60};

// The number of a process that has ended, and been waited for.
pid_t gone() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return pid;
}

class GpuReleaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::error_code none;
    if (std::filesystem::read_symlink("/proc/self/ns/pid", none) != "pid:[4026531836]")
      GTEST_SKIP() << "in a container with process numbers of its own nobody is asked";
    ::setenv("FAKE_NVML", "GPU-aa@0:1b:0 lost@0:0:0 GPU-cc@0:1d:0", 1);
    lists({});
    ::setenv("FAKE_NVML_PROCESSES", (tree_.root() + "/processes").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("FAKE_NVML_PROCESSES"); }

  // What the driver says from now on: which GPU has which process.
  void lists(const std::vector<std::pair<int, pid_t>>& processes) {
    std::string text;
    for (const auto& [gpu, pid] : processes)
      text += std::to_string(gpu) + " " + std::to_string(pid) + "\n";
    tree_.write("/processes", text);
  }
  static GpuAnswer ask(const std::vector<pid_t>& gone, milliseconds limit) {
    const auto text = answer_of_child(
        [&]() -> std::optional<std::string> {
          return encode(await_release({gone, limit}));
        },
        kPatience);
    const auto answer = text ? decode_gpu_answer(*text) : std::nullopt;
    if (!answer) ADD_FAILURE() << "no answer";
    return answer.value_or(GpuAnswer{});
  }

  test::FileTree tree_;
};

TEST_F(GpuReleaseTest, SaysAtOnceThatNothingIsHeld) {
  const pid_t dead = gone();
  const GpuAnswer nobody = ask({dead}, kPatience);
  EXPECT_TRUE(nobody.can_tell);
  EXPECT_EQ(nobody.gpu, -1);
  lists({{0, ::getpid()}, {2, gone()}});
  EXPECT_EQ(ask({dead}, kPatience).gpu, -1) << "others' processes";
  EXPECT_EQ(ask({::getpid()}, kPatience).gpu, -1) << "one that lives is none of the dead";
}

TEST_F(GpuReleaseTest, NamesWhoIsStillListedAtTheEndOfTheLimit) {
  const pid_t dead = gone();
  lists({{0, ::getpid()}, {2, dead}});
  const GpuAnswer held = ask({1, dead}, milliseconds(50));
  EXPECT_TRUE(held.can_tell);
  EXPECT_EQ(held.gpu, 2);
  EXPECT_EQ(held.pid, dead);
}

TEST_F(GpuReleaseTest, WaitsUntilTheDeadAreListedNoMore) {
  const pid_t dead = gone();
  lists({{2, dead}});
  const auto begun = std::chrono::steady_clock::now();
  const pid_t driver = ::fork();
  if (driver == 0) {
    ::usleep(300'000);
    lists({});
    ::_exit(0);
  }
  const GpuAnswer answer = ask({dead}, kPatience);
  EXPECT_EQ(answer.gpu, -1);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(300));
  ::waitpid(driver, nullptr, 0);
}

// There they are other processes' numbers.
TEST_F(GpuReleaseTest, InAnotherPidNamespaceNobodyIsAsked) {
  const pid_t outside = ::fork();
  if (outside == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(77);
    const pid_t inside = ::fork();
    if (inside == 0) ::_exit(await_release({{gone()}, milliseconds(0)}).can_tell ? 1 : 0);
    int status = 0;
    ::waitpid(inside, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 70);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(outside, &status, 0), outside);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this user may not make a pid namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(GpuReleaseTest, WithoutADriverOrItsListNobodyCanTell) {
  ::unsetenv("FAKE_NVML_PROCESSES");
  EXPECT_FALSE(ask({gone()}, kPatience).can_tell);
  ::unsetenv("FAKE_NVML");
  EXPECT_FALSE(ask({gone()}, kPatience).can_tell);
}

TEST(GpuAnswerTest, WhatTheHelperSaysIsReadExactly) {
  for (const char* text : {"unknown\n", "free\n", "held 3 4711\n"})
    EXPECT_EQ(encode(decode_gpu_answer(text).value()), text);
  for (const char* text : {"", "free", "held\n", "held x 1\n", "held -1 4\n", "held 1\n",
                           "held 1 2", "held 1 2\nfree\n", "unknown"})
    EXPECT_FALSE(decode_gpu_answer(text)) << text;
}

}  // namespace
}  // namespace drun::launcher
