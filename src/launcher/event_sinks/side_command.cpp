#include "launcher/event_sinks/side_command.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include "base/argv.hpp"
#include "base/pidfd.hpp"
#include "base/poll_until.hpp"
#include "launcher/process/clean_spawn.hpp"
#include "launcher/process/exit_status.hpp"

namespace drun::launcher {
namespace {

constexpr std::chrono::seconds kAfterTerm{1};

std::string_view name_of_variable(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

// `first` wins over what this process has.
std::vector<char*> merged_environment(const std::vector<std::string>& first) {
  std::vector<char*> result = argv_of(first);
  result.pop_back();  // the null goes behind the others
  for (char** own = ::environ; own != nullptr && *own != nullptr; ++own) {
    bool hidden = false;
    for (const std::string& entry : first)
      hidden = hidden || name_of_variable(entry) == name_of_variable(*own);
    if (!hidden) result.push_back(*own);
  }
  result.push_back(nullptr);
  return result;
}

}  // namespace

Result<SideCommand> start_side_command(const std::string& command,
                                       const std::vector<std::string>& environment,
                                       int standard_input) {
  const std::vector<char*> variables = merged_environment(environment);
  process::CleanSpawn shell;
  shell.file = "/bin/sh";
  shell.arguments = {"sh", "-c", command};
  shell.input = standard_input;
  shell.output = shell.error = STDERR_FILENO;
  shell.only_streams = true;
  shell.environment = variables.data();
  const auto started = process::spawn_clean(shell, "run /bin/sh");
  if (!started) return started.error();
  SideCommand result;
  result.pid = *started;
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
