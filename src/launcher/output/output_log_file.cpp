#include "launcher/output/output_log_file.hpp"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/file_worker.hpp"
#include "base/put_aside.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kMostWaiting = 256 * 1024;  // bytes of a filter's file

}  // namespace

std::size_t fitting(std::string_view bytes, std::uint64_t room, bool mid_line, bool fresh) {
  if (bytes.size() <= room) return bytes.size();
  if (room > 0) {
    const void* newline = ::memrchr(bytes.data(), '\n', static_cast<std::size_t>(room));
    if (newline != nullptr)
      return static_cast<std::size_t>(static_cast<const char*>(newline) - bytes.data()) + 1;
  }
  if (!mid_line && !fresh) return 0;
  const auto newline = bytes.find('\n');  // a line is never torn apart
  return newline == std::string_view::npos ? bytes.size() : newline + 1;
}

FileDescriptor create_log(const std::string& path) {
  about_to("create " + path);
  FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666));
  if (!file) throw std::system_error(errno, std::generic_category(), "create " + path);
  return file;
}

LogFile::LogFile(std::string path, std::uint64_t max_size)
    : path_(std::move(path)), max_size_(max_size), file_(create_log(path_)) {}

void LogFile::write(std::string_view bytes) {
  while (!bytes.empty() && error_ == 0) {
    std::size_t count = bytes.size();
    if (max_size_ > 0) {
      count = fitting(bytes, max_size_ - std::min(size_, max_size_), mid_line_, size_ == 0);
      if (count == 0) {
        rotate();
        continue;
      }
    }
    write_here(bytes.substr(0, count));
    bytes.remove_prefix(count);
  }
}

void LogFile::write_here(std::string_view bytes) {
  size_ += bytes.size();
  mid_line_ = bytes.back() != '\n';
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      error_ = errno;
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void LogFile::rotate() {
  put_aside(path_, kOldLogs);
  file_.reset(
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666));
  if (!file_) error_ = errno;
  size_ = 0;
  mid_line_ = false;
}

int FilterFile::new_error() {
  if (file_.error() == 0 || std::exchange(error_told_, true)) return 0;
  return file_.error();
}

// Looks for each text in all lines at once: most have none.
void FilterFile::lines(std::string_view prefix, std::string_view lines) {
  constexpr std::size_t kNone = std::string_view::npos;
  const auto find = [&](const std::string& text, std::size_t from) {
    const void* found =
        ::memmem(lines.data() + from, lines.size() - from, text.data(), text.size());
    return found == nullptr
               ? kNone
               : static_cast<std::size_t>(static_cast<const char*>(found) - lines.data());
  };
  for (std::size_t i = 0; i < texts_.size(); ++i)
    next_[i] = find(texts_[i], 0);
  std::size_t at = 0;
  while (at < lines.size()) {
    const auto next = std::min_element(next_.begin(), next_.end());
    if (*next == kNone) break;
    const auto& text = texts_[static_cast<std::size_t>(next - next_.begin())];
    const std::size_t begin = lines.substr(at, *next - at).rfind('\n') + 1 + at;
    const std::size_t newline = lines.find('\n', *next);
    const std::size_t end = newline == kNone ? lines.size() : newline + 1;
    if (*next + text.size() > end) {  // begins in one line and ends in another
      *next = find(text, *next + 1);
      continue;
    }
    keep(prefix, lines.substr(begin, end - begin));
    at = end;
    for (std::size_t i = 0; i < texts_.size(); ++i)
      if (next_[i] < at) next_[i] = find(texts_[i], at);
  }
  flush();
}

void FilterFile::keep(std::string_view prefix, std::string_view line) {
  waiting_ += prefix;
  waiting_ += line;
  if (waiting_.back() != '\n') waiting_ += '\n';
  if (waiting_.size() >= kMostWaiting) flush();
}

void FilterFile::flush() {
  file_.write(waiting_);
  waiting_.clear();
}

}  // namespace drun::launcher
