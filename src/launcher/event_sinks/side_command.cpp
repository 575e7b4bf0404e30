#include "launcher/event_sinks/side_command.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include "base/pidfd.hpp"
#include "base/poll_until.hpp"
#include "launcher/process/exit_status.hpp"

namespace drun::launcher {
namespace {

constexpr std::chrono::seconds kAfterTerm{1};

std::string_view name_of_variable(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

// `first` wins over what this process has.
std::vector<char*> merged_environment(const std::vector<std::string>& first) {
  std::vector<char*> result;
  for (const std::string& entry : first)
    result.push_back(const_cast<char*>(entry.c_str()));
  for (char** own = ::environ; own != nullptr && *own != nullptr; ++own) {
    bool hidden = false;
    for (const std::string& entry : first)
      hidden = hidden || name_of_variable(entry) == name_of_variable(*own);
    if (!hidden) result.push_back(*own);
  }
  result.push_back(nullptr);
  return result;
}

int spawn(const std::string& command, char* const* environment, int in, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  if (in >= 0) {
    ::posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const char* const arguments[] = {"sh", "-c", command.c_str(), nullptr};
  const int failure = ::posix_spawn(&pid, "/bin/sh", &actions, &attributes,
                                    const_cast<char* const*>(arguments), environment);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return failure;
}

}  // namespace

Result<SideCommand> start_side_command(const std::string& command,
                                       const std::vector<std::string>& environment,
                                       int standard_input) {
  SideCommand result;
  if (const int failure =
          spawn(command, merged_environment(environment).data(), standard_input, result.pid);
      failure != 0)
    return Error::from_errno(failure, "run /bin/sh");
  result.pidfd = open_pidfd(result.pid);
  if (result.pidfd) return result;
  const int failure = errno;
  signal_group(result, SIGKILL);
  ::waitpid(result.pid, nullptr, 0);
  return Error::from_errno(failure, "watch a command");
}

std::string collect(const SideCommand& command) {
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(command.pid, &status, WNOHANG)) < 0 && errno == EINTR) {
  }
  if (ended != command.pid) return "";
  const auto how = process::from_wait_status(status);
  return how.success() ? "" : process::describe(how);
}

bool reap_group(pid_t group) {
  pid_t ended = 0;
  do {
    ended = ::waitpid(-group, nullptr, WNOHANG);
  } while (ended > 0 || (ended < 0 && errno == EINTR));
  return ended < 0;
}

void signal_group(const SideCommand& command, int signal) {
  ::kill(-command.pid, signal);
}

std::string end_side_command(const SideCommand& command,
                             std::chrono::steady_clock::time_point deadline) {
  if (!await_ready(command.pidfd.get(), POLLIN, deadline)) {
    signal_group(command, SIGTERM);
    (void)await_ready(command.pidfd.get(), POLLIN, std::chrono::steady_clock::now() + kAfterTerm);
    signal_group(command, SIGKILL);  // what it has started, too
    (void)await_ready(command.pidfd.get(), POLLIN, std::chrono::steady_clock::now() + kAfterTerm);
  }
  return collect(command);
}

}  // namespace drun::launcher
