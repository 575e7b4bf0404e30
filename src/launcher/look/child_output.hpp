// Runs a program and hears what it says, within a limit.
#pragma once

#include <chrono>
#include <cstddef>
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

// All of its standard output, if it ends with 0 before the deadline; it is killed then. Its
// standard error goes nowhere. For any thread, if no other one waits for all children of this
// process.
[[nodiscard]] Result<std::string> output_of(const ChildProgram& program,
                                            std::chrono::steady_clock::time_point deadline);

}  // namespace drun::launcher
