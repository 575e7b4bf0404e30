#include "base/pipe.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <system_error>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(PipeTest, CarriesWhatIsWrittenAndIsClosedAtExec) {
  const Pipe pipe = make_pipe("make a pipe for a test");
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  char got = 0;
  ASSERT_EQ(::read(pipe.read.get(), &got, 1), 1);
  EXPECT_EQ(got, 'x');
  for (const int end : {pipe.read.get(), pipe.write.get()}) {
    EXPECT_EQ(::fcntl(end, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(::fcntl(end, F_GETFL) & O_NONBLOCK, 0);
  }
}

TEST(PipeTest, BothEndsMayBeSuchThatNobodyWaits) {
  const auto pipe = try_pipe(O_NONBLOCK);
  ASSERT_TRUE(pipe) << pipe.error().what();
  for (const int end : {pipe->read.get(), pipe->write.get()}) {
    EXPECT_EQ(::fcntl(end, F_GETFD), FD_CLOEXEC);
    EXPECT_NE(::fcntl(end, F_GETFL) & O_NONBLOCK, 0);
  }
}

// In a process of its own: whatever else runs here needs descriptors.
TEST(PipeTest, SaysWhyThereIsNone) {
  const auto without_descriptors = [] {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const auto pipe = try_pipe();
    std::string thrown;
    try {
      (void)make_pipe("make a pipe for a test");
    } catch (const std::system_error& error) {
      thrown = error.what();
    }
    const bool right = !pipe && pipe.error().what() == "make a pipe: Too many open files" &&
                       thrown == "make a pipe for a test: Too many open files";
    ::_exit(right ? 0 : 1);
  };
  const pid_t child = ::fork();
  if (child == 0) without_descriptors();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace drun
