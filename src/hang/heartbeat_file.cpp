#include "hang/heartbeat_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/atomic_file.hpp"
#include "base/file_descriptor.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"

namespace drun::hang {
namespace {

constexpr std::int64_t kMostRead = 64;  // the last line is short

}  // namespace

void parse_heartbeat(std::string_view text, Heartbeat& heartbeat) {
  text = trimmed(text);
  const auto line_end = text.rfind('\n');
  if (line_end != std::string_view::npos) text = trimmed(text.substr(line_end + 1));
  heartbeat.last = text == kLastHeartbeat;
  heartbeat.step = whole_number<std::int64_t>(text);
}

std::optional<Heartbeat> read_heartbeat(const std::string& file) {
  // A pipe that somebody has put there is not waited for.
  const FileDescriptor open(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!open || ::fstat(open.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  Heartbeat heartbeat;
  heartbeat.stamp.file = status.st_ino;
  heartbeat.stamp.size = status.st_size;
  heartbeat.stamp.nanoseconds =
      std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  std::array<char, kMostRead> end{};
  const auto from = std::max<std::int64_t>(status.st_size - kMostRead, 0);
  const ssize_t size = ::pread(open.get(), end.data(), end.size(), from);
  if (size > 0) parse_heartbeat({end.data(), static_cast<std::size_t>(size)}, heartbeat);
  return heartbeat;
}

Status write_heartbeat(const std::string& file, std::string_view text) {
  return write_whole_file(file, std::string(text) + "\n");
}

}  // namespace drun::hang
