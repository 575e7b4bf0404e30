// What the survivor tests share. A test that is a child subreaper inherits all that outlives a job,
// so "no child is left" is exact.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "launcher/process/cgroup.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/small_file.hpp"
#include "support/guardian_driver.hpp"

namespace drun::process::test {

struct Helpers {
  pid_t guardian = 0;
  pid_t keeper = 0;
};

// The kinds of process that tests/support/survivor.cpp can leave behind.
inline std::vector<std::string> survivor_kinds() {
  std::vector<std::string> result;
  FILE* list = ::popen(DRUN_SURVIVOR " --kinds", "r");
  char line[256];
  while (list != nullptr && std::fgets(line, sizeof line, list) != nullptr)
    result.emplace_back(line, std::strcspn(line, "\n"));
  if (list != nullptr) ::pclose(list);
  return result;
}

// How often a matrix is run: DRUN_SURVIVOR_ROUNDS, or once.
inline int survivor_rounds() {
  const char* text = std::getenv("DRUN_SURVIVOR_ROUNDS");
  return text != nullptr ? std::max(1, std::atoi(text)) : 1;
}

inline void kill_now(pid_t pid) {
  ::kill(pid, SIGKILL);
}

// Busy, so that it is as short as it should be.
inline void spin(std::chrono::microseconds time) {
  const auto until = Clock::now() + time;
  while (Clock::now() < until) {
  }
}

inline std::string describe_survivors() {
  std::string text;
  for (const pid_t pid : descendants()) {
    const std::string directory = "/proc/" + std::to_string(pid);
    std::string command = read_small_file(directory + "/cmdline").value_or("");
    std::replace(command.begin(), command.end(), '\0', ' ');
    text += "\n  " + std::to_string(pid) + " " + command +
            read_small_file(directory + "/stat").value_or("");
  }
  return text;
}

// Collects children until none is left; how `agent` ended, or nothing when some lived longer than
// `limit`.
inline std::optional<ExitStatus> await_nobody(pid_t agent, milliseconds limit) {
  ExitStatus status;
  const bool none_left = eventually(
      [&] {
        return !reap_children([&](const Reaped& reaped) {
          if (reaped.pid == agent) status = reaped.status;
        });
      },
      limit);
  if (!none_left) return std::nullopt;
  return status;
}

// The cgroup of that guardian, when it is still there.
inline std::string leftover_cgroup(pid_t guardian) {
  const auto parent = find_delegated(find_cgroups());
  if (!parent) return {};
  const std::string path = WorkerGroup(*parent, guardian).path();
  return ::access(path.c_str(), F_OK) == 0 ? path : std::string();
}

}  // namespace drun::process::test
