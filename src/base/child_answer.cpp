#include "base/child_answer.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/pipe.hpp"
#include "base/read_answer.hpp"
#include "base/write_all.hpp"

namespace drun {
namespace {

constexpr std::string_view kEnd = "end\n";
constexpr std::size_t kLongestAnswer = std::size_t{64} << 20;

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
  auto text =
      read_answer(pipe->read.get(), kLongestAnswer, std::chrono::steady_clock::now() + limit);
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!text || !text->ends_with(kEnd)) return {};
  text->resize(text->size() - kEnd.size());
  return std::move(*text);
}

}  // namespace drun
