#include "launcher/workers/terminal_input.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/process_files.hpp"
#include "base/small_file.hpp"
#include "base/system_call.hpp"
#include "launcher/process/descendants.hpp"

namespace drun::launcher {
namespace {

constexpr std::chrono::milliseconds kInterval{200};

// The descriptor that a thread reads from right now, by what the kernel shows of its system call.
// -1: it does something else.
int read_by(const std::string& text) {
  const auto call = system_call_in(text);
  if (!call || (call->number != SYS_read && call->number != SYS_readv)) return -1;
  return call->file.value_or(-1);
}

// Looks at the threads only if the process has the terminal as its standard input: there may be
// hundreds of them.
bool reads(pid_t process, const std::string& terminal) {
  const std::string directory = "/proc/" + std::to_string(process);
  if (link_target(directory + "/fd/0") != terminal) return false;
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator(directory + "/task", gone)) {
    const auto call = read_small_file(thread.path().string() + "/syscall");
    const int fd = call ? read_by(*call) : -1;
    if (fd >= 0 && link_target(directory + "/fd/" + std::to_string(fd)) == terminal) return true;
  }
  return false;
}

}  // namespace

bool in_background(pid_t job) {
  const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);
  return foreground > 0 && foreground != job;
}

bool any_reads_terminal(const std::vector<pid_t>& processes) {
  if (::isatty(STDIN_FILENO) != 1) return false;
  const std::string terminal = link_target("/proc/self/fd/0");
  return !terminal.empty() && std::any_of(processes.begin(), processes.end(),
                                          [&](pid_t process) { return reads(process, terminal); });
}

void BackgroundInput::watch(std::function<void()> call) {
  call_ = std::move(call);
  watching_ = true;
  wait();
}

void BackgroundInput::cancel() {
  watching_ = false;
  timer_.cancel();
}

void BackgroundInput::wait() {
  if (!watching_ || !in_background(job_)) return cancel();
  timer_.expires_after(kInterval);
  timer_.async_wait([this](asio::error_code cancelled) {
    if (cancelled || !watching_) return;
    if (in_background(job_) && any_reads_terminal(process::descendants())) call_();
    wait();
  });
}

}  // namespace drun::launcher
