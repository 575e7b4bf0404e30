// An interactive shell at a pseudo-terminal, as a user has it: what is typed, what is shown, job
// control and window size. One thread; every wait has a deadline.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "base/file_descriptor.hpp"
#include "support/drun_process.hpp"

namespace drun::test {

class TerminalShell {
 public:
  // The window has 80 columns and 24 rows. `mark` is in the environment of all that it starts.
  explicit TerminalShell(const std::string& mark) {
    winsize size{24, 80, 0, 0};
    int master = -1;
    pid_ = ::forkpty(&master, nullptr, nullptr, &size);
    if (pid_ == 0) {
      ::setenv("PS1", "$ ", 1);
      ::setenv("TERM", "dumb", 1);
      ::setenv("TERMINAL_TEST_MARK", mark.c_str(), 1);
      ::execl("/bin/bash", "bash", "--norc", "--noprofile", "--noediting", "-i", nullptr);
      ::_exit(127);
    }
    master_.reset(master);
    ::fcntl(master, F_SETFD, FD_CLOEXEC);
  }
  TerminalShell(const TerminalShell&) = delete;
  TerminalShell& operator=(const TerminalShell&) = delete;
  ~TerminalShell() {
    master_.reset();  // hangs up
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  void type(const std::string& text) { (void)!::write(master_.get(), text.data(), text.size()); }

  // Until the screen shows the text, from where the last wait ended.
  [[nodiscard]] bool wait_for(const std::string& text, milliseconds patience = kPatience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const auto found = shown_.find(text, seen_);
      if (found != std::string::npos) {
        seen_ = found + text.size();
        return true;
      }
      const auto left =
          std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
      pollfd ready{master_.get(), POLLIN, 0};
      if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return false;
      char buffer[4096];
      const auto count = ::read(master_.get(), buffer, sizeof buffer);
      if (count <= 0) return false;
      shown_.append(buffer, static_cast<std::size_t>(count));
    }
  }

  void resize(unsigned short rows, unsigned short columns) {
    winsize size{rows, columns, 0, 0};
    ::ioctl(master_.get(), TIOCSWINSZ, &size);
  }

  // All that the terminal has shown.
  [[nodiscard]] const std::string& shown() const { return shown_; }

 private:
  pid_t pid_ = -1;
  FileDescriptor master_;
  std::string shown_;
  std::size_t seen_ = 0;
};

}  // namespace drun::test
