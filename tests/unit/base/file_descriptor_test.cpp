#include "base/file_descriptor.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <string>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(FileDescriptorTest, ADuplicateIsTheSameFileAndIsClosedAtExec) {
  const FileDescriptor event(::eventfd(0, EFD_CLOEXEC));
  const FileDescriptor copy = duplicate(event.get(), "copy it");
  EXPECT_NE(copy.get(), event.get());
  EXPECT_GT(copy.get(), STDERR_FILENO);
  EXPECT_EQ(::fcntl(copy.get(), F_GETFD), FD_CLOEXEC);
  ASSERT_EQ(::eventfd_write(copy.get(), 7), 0);
  eventfd_t value = 0;
  ASSERT_EQ(::eventfd_read(event.get(), &value), 0);
  EXPECT_EQ(value, 7U);
}

TEST(FileDescriptorTest, ADuplicateThatCannotBeMadeSaysWhatItWasFor) {
  try {
    (void)duplicate(-1, "listen to a thread");
    FAIL() << "there is no such descriptor";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::bad_file_descriptor);
    EXPECT_THAT(std::string(error.what()), testing::StartsWith("listen to a thread: "));
  }
}

}  // namespace
}  // namespace drun
