// Runs a program and hears what it says, within a limit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
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

// Ends a program that another thread waits for in output_of().
class ChildStop {
 public:
  // Kills it, with its group if it has one of its own, and waits until it is gone, unless the
  // kernel keeps it for longer than kKilled. None is started afterwards.
  void stop();

  // For output_of(), of one program at a time. `start` gives its process, and may take long, as
  // where its file hangs; it is not called after stop().
  [[nodiscard]] Result<pid_t> begin(const ChildProgram& program,
                                    const std::function<Result<pid_t>()>& start);
  void kill();
  // Collects it; its status as waitpid() has it.
  [[nodiscard]] int collect(pid_t child);

 private:
  static constexpr std::chrono::milliseconds kKilled{500};
  enum class State { Idle, Starting, Running };

  std::mutex mutex_;
  std::condition_variable gone_;
  State state_ = State::Idle;
  pid_t target_ = 0;  // as kill() takes it, while it runs
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
