// drun as a background job of a shell, with the terminal as the workers' standard input. They are
// in a session of their own, so the terminal itself would let them read what is typed for the
// shell.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

namespace drun::launcher {

// Standard input is a terminal, and `job`, a process group of its session, is not in the foreground
// there.
[[nodiscard]] bool in_background(pid_t job);

// Whether one of these processes waits in read(2) for what is typed at the terminal that is
// standard input here. One that waits in another way (poll, select) is not seen, and none is seen
// if the system does not tell (/proc/PID/syscall).
[[nodiscard]] bool any_reads_terminal(const std::vector<pid_t>& processes);

// Looks a few times a second, while drun is in the background, whether a worker reads the terminal:
// nothing announces it. One thread.
class BackgroundInput {
 public:
  // `job`: the process group that the shell knows.
  BackgroundInput(asio::io_context& io, pid_t job) : timer_(io), job_(job) {}

  // `call` is called when a process below this one reads, until drun is in the foreground or
  // cancel() is called; if drun is in the foreground already, that is the end at once. It may call
  // cancel().
  void watch(std::function<void()> call);
  void cancel();

 private:
  void wait();

  asio::steady_timer timer_;
  const pid_t job_;
  std::function<void()> call_;
  bool watching_ = false;
};

}  // namespace drun::launcher
