// A job in the background of a real terminal: is it seen that one of its workers reads there?
#include "launcher/workers/terminal_input.hpp"

#include <unistd.h>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

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
