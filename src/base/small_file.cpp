#include "base/small_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "base/file_descriptor.hpp"

namespace drun {

std::optional<std::string> read_small_file(const std::string& path) {
  auto text = read_small_file(path, std::numeric_limits<std::size_t>::max());
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

Result<std::string> read_small_file(const std::string& path, std::size_t most) {
  const auto failed = [](int error) {
    const std::error_code code(error, std::generic_category());
    return Error(code, code.message());
  };
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return failed(errno);
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(errno);
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > most)
      return Error(std::make_error_code(std::errc::file_too_large),
                   "it has more than " + std::to_string(most) + " bytes");
  }
}

bool write_small_file(const std::string& path, std::string_view text) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace drun
