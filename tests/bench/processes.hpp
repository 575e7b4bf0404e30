// For the benchmarks that start processes: one run with what it cost, the bare loop that launchers
// are compared with, and the statistics of many runs.
#pragma once

#include <string>
#include <vector>

namespace drun::bench {

// What one run of a command cost, everything included that it started and waited for.
struct Cost {
  double wall_ms = 0;
  double cpu_ms = 0;   // user and system
  double rss_mib = 0;  // of the largest of its processes
};

// Runs a command to its end, with /dev/null as stdin. Throws std::runtime_error where it cannot be
// started or does not exit with 0.
[[nodiscard]] Cost run(const std::vector<std::string>& command);

// Forks and executes `program` `count` times, then waits for all of them.
void fork_exec_loop(int count, const char* program);

// Whether `program` is found in PATH.
[[nodiscard]] bool installed(const std::string& program);

// Neither is empty.
[[nodiscard]] double median(std::vector<double> values);
[[nodiscard]] double minimum(const std::vector<double>& values);

}  // namespace drun::bench
