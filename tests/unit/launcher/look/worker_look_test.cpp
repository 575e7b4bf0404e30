#include "launcher/look/worker_look.hpp"

#include <sys/wait.h>

#include <cerrno>
#include <chrono>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

TEST(WorkerLookTest, IsOverWithItsProcess) {
  const LookTools tools;
  {
    const WorkerLook look({.rank = 0, .pid = ::getpid(), .silence = {}}, tools, LookDepth::Stacks,
                          std::chrono::seconds(30), WorkerLook::Time::max());
    ASSERT_GE(look.fd(), 0);
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace drun::launcher
