#include "launcher/look/child_output.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/pipe.hpp"
#include "base/poll_until.hpp"
#include "base/read_answer.hpp"

namespace drun::launcher {
namespace {

class SpawnSettings {
 public:
  explicit SpawnSettings(bool own_group) {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    sigset_t set;
    sigemptyset(&set);
    ::posix_spawnattr_setsigmask(&attributes, &set);
    sigfillset(&set);
    ::posix_spawnattr_setsigdefault(&attributes, &set);
    int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (own_group) flags |= POSIX_SPAWN_SETPGROUP;  // number 0: the child's own
    ::posix_spawnattr_setflags(&attributes, static_cast<short>(flags));
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

pid_t start_child(const ChildProgram& program, const Pipe& input, const Pipe& output) {
  SpawnSettings settings(program.own_group);
  ::posix_spawn_file_actions_adddup2(&settings.actions, input.read.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&settings.actions, output.write.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&settings.actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> words;
  for (const std::string& argument : program.arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, program.path.c_str(), &settings.actions,
                                  &settings.attributes, words.data(), environ);
  errno = error;
  return error == 0 ? child : -1;
}

// False: not all of it was taken before the deadline.
bool feed(int fd, std::string_view text, std::chrono::steady_clock::time_point deadline) {
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  while (!text.empty() && await_ready(fd, POLLOUT, deadline)) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return text.empty();
}

}  // namespace

Result<std::string> output_of(const ChildProgram& program,
                              std::chrono::steady_clock::time_point deadline) {
  const std::string& name = program.name.empty() ? program.path : program.name;
  auto input = try_pipe();
  if (!input) return input.error();
  auto output = try_pipe();
  if (!output) return output.error();
  const pid_t child = start_child(program, *input, *output);
  if (child < 0) return Error::from_errno(errno, "start " + name);
  input->read.reset();
  output->write.reset();
  Result<std::string> text;
  if (feed(input->write.get(), program.input, deadline))
    text = read_answer(output->read.get(), program.most_output, deadline);
  if (!text) ::kill(child, SIGKILL);
  input->write.reset();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!text) return Error(std::make_error_code(std::errc::timed_out), name + ": no answer in time");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error(std::make_error_code(std::errc::io_error), name + " failed");
  return text;
}

}  // namespace drun::launcher
