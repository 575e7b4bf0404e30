// What the survivor tests share. A test that is a child subreaper inherits all that outlives a job,
// so "no child is left" is exact.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/small_file.hpp"
#include "launcher/process/cgroup.hpp"
#include "launcher/process/descendants.hpp"
#include "support/guardian_driver.hpp"
#include "support/places.hpp"

namespace drun::process::test {

struct Helpers {
  pid_t guardian = 0;
  pid_t watchdog = 0;
};

// The kinds of process that tests/support/survivor.cpp can leave behind.
inline std::vector<std::string> survivor_kinds() {
  std::vector<std::string> result;
  FILE* list = ::popen((places::test_program("survivor") + " --kinds").c_str(), "r");
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

// A cgroup v2 that is delegated to whoever enters it, where this process may make one: that takes
// root, or a directory that is delegated already.
class DelegatedGroup {
 public:
  DelegatedGroup() {
    const auto place = find_cgroups();
    if (place.unified.empty()) return;
    const std::string path = place.unified + "/drun-test-" + std::to_string(::getpid());
    if (::mkdir(path.c_str(), 0755) != 0) return;
    (void)::setxattr(path.c_str(), "trusted.delegate", "1", 1, 0);
    CgroupPaths inside;
    inside.unified = path;
    if (find_delegated(inside)) path_ = path;
    if (path_.empty()) ::rmdir(path.c_str());
  }
  DelegatedGroup(const DelegatedGroup&) = delete;
  DelegatedGroup& operator=(const DelegatedGroup&) = delete;
  ~DelegatedGroup() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }

  [[nodiscard]] const std::string& path() const { return path_; }  // empty: none
  // Moves this process there. For a child, before it becomes what it is to be.
  [[nodiscard]] bool enter() const { return write_small_file(path_ + "/cgroup.procs", "0"); }
  // The groups that drun has left in it.
  [[nodiscard]] std::vector<std::string> leftovers() const {
    std::vector<std::string> result;
    if (path_.empty()) return result;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      if (entry.is_directory()) result.push_back(entry.path());
    return result;
  }

 private:
  std::string path_;
};

// A process that is nobody's of this test, with the same name as drun: it must live on.
class Bystander {
 public:
  // The test must not be a child subreaper yet.
  Bystander() {
    Pipe id;
    const pid_t middle = ::fork();
    if (middle == 0) {
      const pid_t self = ::fork();
      if (self == 0) {
        ::prctl(PR_SET_NAME, "drun");
        ::close_range(0, ~0U, 0);
        for (;;)
          ::pause();
      }
      (void)!::write(id.write.get(), &self, sizeof self);
      ::_exit(0);
    }
    (void)!::read(id.read.get(), &pid_, sizeof pid_);
    ::waitpid(middle, nullptr, 0);
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;
  ~Bystander() { ::kill(pid_, SIGKILL); }
  [[nodiscard]] bool lives() const { return alive(pid_); }

 private:
  pid_t pid_ = 0;
};

}  // namespace drun::process::test
