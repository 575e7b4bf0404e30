// What /proc says about a process of a test. All of it is a moment's truth.
#pragma once

#include <sys/types.h>

#include <string>

#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {

inline std::string in_proc(pid_t pid, const std::string& name) {
  return read_file("/proc/" + std::to_string(pid) + "/" + name);
}

inline char state_of(pid_t pid) {
  const std::string stat = in_proc(pid, "stat");
  const auto end = stat.rfind(')');
  return end == std::string::npos ? '-' : stat[end + 2];
}

// D: between vfork and exec, while the child is stopped.
inline bool stopped(pid_t pid) {
  return state_of(pid) == 'T' || state_of(pid) == 'D';
}

// Whether `signal` is in that set of the process ("ShdPnd", "SigCgt").
inline bool in_set(pid_t pid, const std::string& set, int signal) {
  const std::string status = in_proc(pid, "status");
  const auto at = status.find(set + ":");
  if (at == std::string::npos) return false;
  const auto bits = std::stoull(status.substr(at + set.size() + 1), nullptr, 16);
  return ((bits >> (signal - 1)) & 1U) != 0;
}

// Until drun has it, so that the next one is not merged with it.
inline void signal_and_wait(const DrunProcess& process, int number) {
  process.signal(number);
  ASSERT_TRUE(eventually([&] { return !in_set(process.pid(), "ShdPnd", number); }));
}

// One of drun's own processes, by its name; -1 where there is none.
inline pid_t helper_of(const DrunProcess& process, const std::string& name) {
  for (const auto& survivor : process.survivors()) {
    const auto pid = static_cast<pid_t>(std::stol(survivor));
    if (in_proc(pid, "comm") == name + "\n") return pid;
  }
  return -1;
}

}  // namespace drun::test
