#include "launcher/devices/child_answer.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include "base/pipe.hpp"
#include "base/poll_until.hpp"
#include "base/write_all.hpp"

namespace drun::launcher {
namespace {

constexpr std::string_view kEnd = "end\n";

// All that arrives until the other end closes; nothing when the time is over before that.
std::string read_all(int fd, std::chrono::steady_clock::time_point deadline) {
  std::string result;
  std::array<char, 4096> buffer{};
  while (await_ready(fd, POLLIN, deadline)) {
    const auto n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return result;
    result.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

std::optional<std::string> answer_of_child(const std::function<std::optional<std::string>()>& ask,
                                           std::chrono::milliseconds limit) {
  auto pipe = try_pipe();
  if (!pipe) return {};
  const pid_t child = ::fork();
  if (child < 0) return {};
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (const auto text = ask()) {
      const std::string answer = *text + std::string(kEnd);
      std::string_view rest = answer;
      (void)write_all(pipe->write.get(), rest);
    }
    ::_exit(0);
  }
  pipe->write.reset();
  std::string text = read_all(pipe->read.get(), std::chrono::steady_clock::now() + limit);
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!text.ends_with(kEnd)) return {};
  text.resize(text.size() - kEnd.size());
  return text;
}

}  // namespace drun::launcher
