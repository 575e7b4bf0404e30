#include "bench/processes.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

extern char** environ;

namespace drun::bench {
namespace {

double milliseconds(const timeval& time) {
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
}

}  // namespace

Cost run(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const auto& argument : command)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const auto before = std::chrono::steady_clock::now();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0) ::dup2(null, STDIN_FILENO);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  if (pid < 0) throw std::runtime_error("fork failed");
  int status = 0;
  rusage usage{};
  if (::wait4(pid, &status, 0, &usage) != pid) throw std::runtime_error("wait4 failed");
  const auto after = std::chrono::steady_clock::now();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error(command.front() + " failed");
  Cost cost;
  cost.wall_ms = std::chrono::duration<double, std::milli>(after - before).count();
  cost.cpu_ms = milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
  cost.rss_mib = static_cast<double>(usage.ru_maxrss) / 1024;
  return cost;
}

void fork_exec_loop(int count, const char* program) {
  for (int i = 0; i < count; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      char* const argv[] = {const_cast<char*>(program), nullptr};
      ::execve(program, argv, environ);
      ::_exit(127);
    }
    if (pid < 0) std::exit(1);
  }
  while (::wait(nullptr) > 0) {
  }
}

bool installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double minimum(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

}  // namespace drun::bench
