// A log file that drun writes, cut into pieces of a given size on request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"

namespace drun::launcher {

// Older pieces that are kept beside a log file: "stderr.log.1" (the youngest) to "stderr.log.4".
constexpr int kOldLogs = 4;

// How many of `bytes` still go to a file that has room for `room` more; the rest belongs to the
// next one. Whole lines only, unless a line is bigger than a file: `mid_line` says that the file
// ends in the middle of a line, `fresh` that it is empty. Pure.
[[nodiscard]] std::size_t fitting(std::string_view bytes, std::uint64_t room, bool mid_line,
                                  bool fresh);

class LogFile {
 public:
  // Creates it. `max_size` 0: grows without limit. Throws std::system_error that names the path.
  LogFile(std::string path, std::uint64_t max_size);

  // Blocks on a slow disk. After an error (disk full) everything is dropped.
  void write(std::string_view bytes);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int error() const { return error_; }  // errno; 0: all is well

 private:
  void write_here(std::string_view bytes);
  void rotate();

  std::string path_;
  std::uint64_t max_size_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
  bool mid_line_ = false;
  int error_ = 0;
};

// --duplicate-stdout-filters: lines that contain one of the texts, with the prefix of their rank.
class FilterFile {
 public:
  FilterFile(std::string path, std::vector<std::string> texts)
      : file_(std::move(path), 0), texts_(std::move(texts)), next_(texts_.size()) {}

  // Some lines; the last may have no end, and gets one in the file.
  void lines(std::string_view prefix, std::string_view lines);
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  // errno of the failure that ended it, once: 0 from the second call on, and while all is well.
  [[nodiscard]] int new_error();

 private:
  void keep(std::string_view prefix, std::string_view line);
  void flush();

  LogFile file_;
  bool error_told_ = false;
  std::vector<std::string> texts_;
  std::vector<std::size_t> next_;  // where each text is next, within lines()
  std::string waiting_;
};

// Opens a file for a worker to write by itself. Throws std::system_error that names the path.
[[nodiscard]] FileDescriptor create_log(const std::string& path);

}  // namespace drun::launcher
