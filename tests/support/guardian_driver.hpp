// A Guardian with the waiting that tests need: everything has a deadline.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/small_file.hpp"
#include "launcher/process/guardian.hpp"
#include "support/patience.hpp"
#include "support/pipe.hpp"

namespace drun::process::test {

using Clock = std::chrono::steady_clock;
using drun::test::eventually;
using drun::test::kPatience;
using drun::test::Pipe;
using std::chrono::milliseconds;

// Reads to the end of file, or until `limit` is over.
inline std::string read_all(int fd, milliseconds limit = kPatience) {
  const auto deadline = Clock::now() + limit;
  std::string text;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    pollfd entry{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&entry, 1, static_cast<int>(left)) <= 0) return text + "<no end>";
    char buffer[65536];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

// One line without its newline.
inline std::string read_line(int fd, milliseconds limit = kPatience) {
  const auto deadline = Clock::now() + limit;
  std::string text;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    pollfd entry{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&entry, 1, static_cast<int>(left)) <= 0) return text + "<no line>";
    char c = 0;
    if (::read(fd, &c, 1) <= 0) return text + "<end>";
    if (c == '\n') return text;
    text += c;
  }
}

class Driver {
 public:
  explicit Driver(const GuardianOptions& options = {}) : guardian(Guardian::start(options)) {}

  Guardian guardian;

  // The next event of type T that `wanted` accepts; others stay for later calls.
  template <typename T>
  std::optional<T> await(const std::function<bool(const T&)>& wanted = {},
                         milliseconds limit = kPatience) {
    const auto deadline = Clock::now() + limit;
    for (;;) {
      for (auto& event : guardian.receive())
        pending_.push_back(std::move(event));
      for (auto it = pending_.begin(); it != pending_.end(); ++it) {
        const T* found = std::get_if<T>(&*it);
        if (found == nullptr || (wanted && !wanted(*found))) continue;
        T result = *found;
        pending_.erase(it);
        return result;
      }
      const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return std::nullopt;
      pollfd entry{guardian.fd(), POLLIN, 0};
      ::poll(&entry, 1, static_cast<int>(left));
    }
  }
  template <typename T>
  std::optional<T> await(WorkerId id, milliseconds limit = kPatience) {
    return await<T>([id](const T& event) { return event.id == id; }, limit);
  }
  [[nodiscard]] const std::vector<GuardianEvent>& pending() const { return pending_; }

  // PATH and nothing else.
  static SpawnRequest request(WorkerId id, std::vector<std::string> argv) {
    SpawnRequest result;
    result.id = id;
    result.argv = std::move(argv);
    result.environment = {"PATH=/usr/bin:/bin"};
    return result;
  }
  static SpawnRequest shell(WorkerId id, const std::string& script) {
    return request(id, {"/bin/sh", "-c", script});
  }
  // Starts a shell whose standard output is `out`; its first line, for which it waits.
  std::string start(WorkerId id, const std::string& script, Pipe& out) {
    auto worker = shell(id, script);
    worker.standard_output = std::move(out.write);
    guardian.spawn(std::move(worker));
    return read_line(out.read.get());
  }

 private:
  std::vector<GuardianEvent> pending_;
};

// Neither alive nor a zombie.
inline bool gone(pid_t pid) {
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

// Not gone and not a zombie.
inline bool alive(pid_t pid) {
  const auto stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  return stat && stat->find(") Z ") == std::string::npos;
}

// As in /proc: 'S', 'T' ...; '-': it is gone.
inline char state_of(pid_t pid) {
  const auto stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  const auto at = stat ? stat->rfind(')') : std::string::npos;
  return at == std::string::npos ? '-' : stat->at(at + 2);
}

inline pid_t parent_of(pid_t pid) {
  const auto stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  const auto at = stat ? stat->rfind(')') : std::string::npos;
  return at == std::string::npos ? 0 : std::atoi(stat->c_str() + at + 4);
}

}  // namespace drun::process::test
