// A job in the background of a real terminal: is it seen that one of its workers reads there?
#include "launcher/workers/terminal_input.hpp"

#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

#include "support/patience.hpp"

namespace drun::launcher {
namespace {

// The exit code of `work` in a process that leads the session of a new terminal, which is its
// standard input.
int at_terminal(const std::function<int()>& work) {
  int master = -1;
  const pid_t pid = ::forkpty(&master, nullptr, nullptr, nullptr);
  if (pid == 0) ::_exit(work());
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::close(master);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Reads the terminal in a session of its own, as a worker does, or with `reads` false only sleeps.
pid_t start_worker(bool reads) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::setsid();
  char byte = 0;
  if (!reads) ::pause();
  ::_exit(::read(STDIN_FILENO, &byte, 1) < 0 ? 1 : 0);
}

void end(pid_t worker) {
  ::kill(worker, SIGKILL);
  ::waitpid(worker, nullptr, 0);
}

TEST(BackgroundTest, IsAnotherGroupThanThatInTheForegroundOfTheTerminal) {
  EXPECT_EQ(at_terminal([] {
              if (in_background(::getpgrp())) return 1;
              return in_background(::getpgrp() + 1) ? 0 : 2;
            }),
            0);
}

TEST(ReadingTest, OnlyWhoWaitsForWhatIsTypedReads) {
  EXPECT_EQ(
      at_terminal([] {
        const pid_t reader = start_worker(true);
        const pid_t sleeper = start_worker(false);
        const bool seen = test::eventually([&] { return any_reads_terminal({sleeper, reader}); });
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
              const pid_t reader = start_worker(true);
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
