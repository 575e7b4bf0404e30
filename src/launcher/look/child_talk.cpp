#include "launcher/look/child_talk.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "base/pidfd.hpp"
#include "base/pipe.hpp"
#include "base/poll_until.hpp"
#include "launcher/look/feed_child.hpp"
#include "launcher/process/clean_spawn.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// Where the kernel has no descriptors of processes.
constexpr std::chrono::milliseconds kBetweenLooks{10};

}  // namespace

Result<std::string> ChildTalk::ask(std::string_view line, Clock::time_point deadline) {
  if (auto failed = begin()) return std::move(*failed);
  if (feed(input_.get(), line, deadline)) {
    std::string answer;
    std::array<char, 16'384> bytes;
    while (answer.size() <= program_.most_output && await_ready(output_.get(), POLLIN, deadline)) {
      const auto got = ::read(output_.get(), bytes.data(), bytes.size());
      if (got == 0 || (got < 0 && errno != EINTR)) break;
      if (got > 0) answer.append(bytes.data(), static_cast<std::size_t>(got));
      if (answer.ends_with('\n')) return answer;
    }
  }
  stop();
  return Error(std::make_error_code(std::errc::timed_out), program_.path + " gives no answer");
}

std::optional<Error> ChildTalk::begin() {
  const auto stopped = [this] {
    return Error(std::make_error_code(std::errc::operation_canceled),
                 program_.path + " is stopped");
  };
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return stopped();
    if (child_ != 0) return std::nullopt;
  }
  auto input = try_pipe();
  if (!input) return input.error();
  auto output = try_pipe();
  if (!output) return output.error();
  process::CleanSpawn how;
  how.file = program_.path;
  how.arguments = program_.arguments;
  how.input = input->read.get();
  how.output = output->write.get();
  how.own_group = program_.own_group;
  // Not under the lock: its file may hang.
  const auto started = process::spawn_clean(how, "start " + program_.path);
  if (!started) return started.error();
  input_ = std::move(input->write);
  output_ = std::move(output->read);
  {
    const std::lock_guard lock(mutex_);
    child_ = *started;
    if (!stopped_) return std::nullopt;
  }
  stop();
  return stopped();
}

// Waits without the lock: whoever begins to stop it must not wait for that.
void ChildTalk::stop() {
  begin_to_stop();
  pid_t child = 0;
  {
    const std::lock_guard lock(mutex_);
    std::swap(child, child_);
  }
  if (child != 0) collect(child);
}

void ChildTalk::begin_to_stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  // Its number is nobody else's before it is collected.
  if (child_ != 0) ::kill(program_.own_group ? -child_ : child_, SIGKILL);
}

void ChildTalk::collect(pid_t child) {
  const auto deadline = Clock::now() + kKilled;
  const FileDescriptor gone = open_pidfd(child);
  while (::waitpid(child, nullptr, WNOHANG) == 0 && Clock::now() < deadline)
    await_ready(gone.get(), POLLIN, gone ? deadline : Clock::now() + kBetweenLooks);
}

}  // namespace drun::launcher
