// Threads of another process, stopped for a moment, so that their stacks stand still. They go on
// when this is gone, and if this process is killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace drun::launcher {

// One thread: the one that made it is their tracer. SIGCHLD must be blocked in it.
class HeldThreads {
 public:
  HeldThreads() = default;
  HeldThreads(const HeldThreads&) = delete;
  HeldThreads& operator=(const HeldThreads&) = delete;
  ~HeldThreads() { release(); }

  // Stops all of them together, those that do before the deadline.
  void stop(pid_t process, const std::vector<pid_t>& threads,
            std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] bool holds(pid_t thread) const;
  // Why it is not held, for people; empty if it is.
  [[nodiscard]] std::string problem(pid_t thread) const;
  // With the signals that came for them meanwhile.
  void release();

 private:
  struct Held {
    bool seized = false;
    bool stopped = false;
    int signal = 0;  // which it was about to get
    std::string problem;
  };

  bool collect(pid_t thread, Held& held);

  std::map<pid_t, Held> threads_;
};

// Why this process may not look into that one, in words; `error`: of ptrace(2).
[[nodiscard]] std::string refusal_text(pid_t process, int error);

}  // namespace drun::launcher
