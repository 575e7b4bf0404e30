// Runs a program and hears what it says, within a limit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::launcher {

struct ChildProgram {
  std::string path;
  std::vector<std::string> arguments;  // with the program's name
  std::string name;                    // for errors; empty: the path
  std::string input;                   // what it reads; its input stays open until it ends
  bool own_group = false;              // keys pressed at the terminal are not for it
  std::size_t most_output = 8U << 20;  // bytes
};

// Ends a program that another thread waits for in output_of(). Both own it.
class ChildStop {
 public:
  // Kills it, with its group if it has one of its own, and waits until it is gone, unless the
  // kernel keeps it for longer than kKilled. None is started afterwards.
  void stop();

  // For output_of(). `start` gives the program's process; it is not called after stop().
  template <typename Start>
  auto begin(const ChildProgram& program, Start start) -> decltype(start()) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return Error(std::make_error_code(std::errc::operation_canceled), "stopped");
    auto child = start();
    if (child) child_ = program.own_group ? -*child : *child;
    return child;
  }
  void kill();
  // Collects it; its status as waitpid() has it.
  [[nodiscard]] int collect();

 private:
  static constexpr std::chrono::milliseconds kKilled{500};

  std::mutex mutex_;
  std::condition_variable gone_;
  pid_t child_ = 0;  // as kill() takes it; 0: there is none
  bool stopped_ = false;
};

// All of its standard output, if it ends with 0 before the deadline; it is killed then. Its
// standard error goes nowhere. For any thread, if no other one waits for all children of this
// process.
[[nodiscard]] Result<std::string> output_of(const ChildProgram& program,
                                            std::chrono::steady_clock::time_point deadline,
                                            ChildStop& stop);
[[nodiscard]] Result<std::string> output_of(const ChildProgram& program,
                                            std::chrono::steady_clock::time_point deadline);

}  // namespace drun::launcher
