// A job in the background of a real terminal: is it seen that one of its workers reads there?
#include "launcher/workers/terminal_input.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/process_files.hpp"
#include "base/small_file.hpp"
#include "support/at_terminal.hpp"
#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using drun::test::at_terminal;
using drun::test::end;
using drun::test::start_at_terminal;

TEST(BackgroundTest, IsAnotherGroupThanThatInTheForegroundOfTheTerminal) {
  EXPECT_EQ(at_terminal([] {
              if (in_background(::getpgrp())) return 1;
              return in_background(::getpgrp() + 1) ? 0 : 2;
            }),
            0);
}

TEST(ReadingTest, OnlyWhoWaitsForWhatIsTypedReads) {
  EXPECT_EQ(at_terminal([] {
              const pid_t reader = start_at_terminal(true);
              const pid_t sleeper = start_at_terminal(false);
              const bool seen = drun::test::eventually([&] {
                return any_reads_terminal({sleeper, reader});
              });
              const bool mistaken = any_reads_terminal({sleeper});
              end(reader);
              end(sleeper);
              if (any_reads_terminal({reader})) return 3;
              return seen ? (mistaken ? 2 : 0) : 1;
            }),
            0);
}

// It waits for a lock of its terminal, which this process has.
TEST(ReadingTest, WhoUsesTheTerminalOtherwiseDoesNotRead) {
  EXPECT_EQ(
      at_terminal([] {
        const std::string name = link_target("/proc/self/fd/0");
        const int terminal = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
        ::flock(terminal, LOCK_EX);
        const pid_t other = ::fork();
        if (other == 0) {
          ::close(terminal);
          const int own = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
          ::dup2(own, STDIN_FILENO);
          ::_exit(::flock(STDIN_FILENO, LOCK_EX));
        }
        const std::string call = "/proc/" + std::to_string(other) + "/syscall";
        const bool waits = drun::test::eventually([&] {
          return read_small_file(call).value_or("").starts_with(std::to_string(SYS_flock) + " ");
        });
        const bool mistaken = any_reads_terminal({other});
        end(other);
        return waits ? (mistaken ? 2 : 0) : 1;
      }),
      0);
}

// A job that the shell has in the background: another process group is in the foreground.
TEST(BackgroundInputTest, CallsWhenAProcessBelowReads) {
  EXPECT_EQ(at_terminal([] {
              const pid_t reader = start_at_terminal(true);
              asio::io_context io;
              BackgroundInput input(io, ::getpgrp() + 1);
              int calls = 0;
              input.watch([&] {
                ++calls;
                input.cancel();
              });
              io.run();
              end(reader);
              return calls == 1 ? 0 : 1;
            }),
            0);
}

TEST(BackgroundInputTest, LooksAtNothingInTheForeground) {
  EXPECT_EQ(at_terminal([] {
              asio::io_context io;
              BackgroundInput input(io, ::getpgrp());
              input.watch([] { ::_exit(1); });
              io.run();  // nothing to wait for
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace drun::launcher
