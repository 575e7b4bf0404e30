// With LD_LIBRARY_PATH at a stand-in for NVIDIA's library, which is loaded in a child.
#include "launcher/devices/gpu_release.hpp"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "launcher/devices/child_answer.hpp"
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
