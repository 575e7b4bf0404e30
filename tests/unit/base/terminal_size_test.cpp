#include "base/terminal_size.hpp"

#include <fcntl.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"

namespace drun {
namespace {

TEST(TerminalSizeTest, IsWhatTheTerminalSays) {
  const FileDescriptor terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  const winsize size{40, 120, 0, 0};
  ASSERT_EQ(::ioctl(terminal.get(), TIOCSWINSZ, &size), 0);
  EXPECT_EQ(terminal_size(terminal.get()).rows, 40U);
  EXPECT_EQ(terminal_size(terminal.get()).columns, 120U);
}

TEST(TerminalSizeTest, AFileHasNone) {
  const FileDescriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(terminal_size(file.get()).rows, 0U);
  EXPECT_EQ(terminal_size(file.get()).columns, 0U);
}

}  // namespace
}  // namespace drun
