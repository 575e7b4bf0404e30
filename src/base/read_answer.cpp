#include "base/read_answer.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/poll_until.hpp"

namespace drun {

Result<std::string> read_answer(int fd, std::size_t most,
                                std::chrono::steady_clock::time_point deadline) {
  std::string text;
  std::array<char, 65'536> piece;
  while (await_ready(fd, POLLIN, deadline)) {
    const auto got = ::read(fd, piece.data(), piece.size());
    if (got == 0) return text;
    if (got < 0 && errno != EINTR && errno != EAGAIN) return Error::from_errno(errno, "read");
    if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > most)
      return Error(std::make_error_code(std::errc::message_size), "its answer is too long");
  }
  return Error(std::make_error_code(std::errc::timed_out), "it gives no answer");
}

}  // namespace drun
