#include "base/pidfd.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include <gtest/gtest.h>

#include "base/pipe.hpp"
#include "base/poll_until.hpp"

namespace drun {
namespace {

TEST(PidfdTest, IsReadableOnceTheProcessHasEnded) {
  Pipe gate = make_pipe("make a pipe for a test");
  const pid_t child = ::fork();
  if (child == 0) {
    gate.write.reset();
    char none = 0;
    ::_exit(::read(gate.read.get(), &none, 1) == 0 ? 0 : 1);
  }
  const FileDescriptor process = open_pidfd(child);
  ASSERT_TRUE(process);
  EXPECT_EQ(::fcntl(process.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_FALSE(await_ready(process.get(), POLLIN, std::chrono::steady_clock::time_point()));
  gate.write.reset();
  EXPECT_TRUE(await_ready(process.get(), POLLIN, kNoDeadline));
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(PidfdTest, OfNoProcessThereIsNone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(open_pidfd(child));
  EXPECT_EQ(errno, ESRCH);
}

}  // namespace
}  // namespace drun
