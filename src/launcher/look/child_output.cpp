#include "launcher/look/child_output.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/pipe.hpp"
#include "base/read_answer.hpp"
#include "launcher/look/feed_child.hpp"
#include "launcher/process/clean_spawn.hpp"

namespace drun::launcher {
void ChildStop::stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  if (state_ == State::Running) ::kill(target_, SIGKILL);
  gone_.wait_until(lock, std::chrono::steady_clock::now() + kKilled,
                   [this] { return state_ == State::Idle; });
}

Result<pid_t> ChildStop::begin(const ChildProgram& program,
                               const std::function<Result<pid_t>()>& start) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return Error(std::make_error_code(std::errc::operation_canceled), "stopped");
    state_ = State::Starting;
  }
  auto child = start();
  const std::lock_guard lock(mutex_);
  state_ = child ? State::Running : State::Idle;
  if (child) target_ = program.own_group ? -*child : *child;
  if (child && stopped_) ::kill(target_, SIGKILL);
  gone_.notify_all();
  return child;
}

void ChildStop::kill() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::Running) ::kill(target_, SIGKILL);
}

int ChildStop::collect(pid_t child) {
  siginfo_t end{};
  // Its number is not given to another process before it is collected, under the lock.
  while (::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  const std::lock_guard lock(mutex_);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  state_ = State::Idle;
  gone_.notify_all();
  return status;
}

Result<std::string> output_of(const ChildProgram& program,
                              std::chrono::steady_clock::time_point deadline) {
  ChildStop never;
  return output_of(program, deadline, never);
}

Result<std::string> output_of(const ChildProgram& program,
                              std::chrono::steady_clock::time_point deadline, ChildStop& stop) {
  const std::string& name = program.name.empty() ? program.path : program.name;
  auto input = try_pipe();
  if (!input) return input.error();
  auto output = try_pipe();
  if (!output) return output.error();
  process::CleanSpawn how;
  how.file = program.path;
  how.arguments = program.arguments;
  how.input = input->read.get();
  how.output = output->write.get();
  how.own_group = program.own_group;
  const auto started =
      stop.begin(program, [&] { return process::spawn_clean(how, "start " + name); });
  if (!started) return started.error();
  input->read.reset();
  output->write.reset();
  Result<std::string> text;
  if (feed(input->write.get(), program.input, deadline))
    text = read_answer(output->read.get(), program.most_output, deadline);
  if (!text) stop.kill();
  input->write.reset();
  const int status = stop.collect(*started);
  if (!text) return Error(std::make_error_code(std::errc::timed_out), name + ": no answer in time");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error(std::make_error_code(std::errc::io_error), name + " failed");
  return text;
}

}  // namespace drun::launcher
