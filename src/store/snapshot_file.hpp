// The snapshot on disk: replaced as a whole, or not at all.
#pragma once

#include <future>
#include <optional>
#include <string>

#include "drun/base/result.hpp"

namespace drun::store {

// The whole file. The error names it.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

// Writes beside the file, to `path`.tmp, syncs, and renames. Readable by its owner alone: it holds
// the sessions' secrets. The error names the file.
[[nodiscard]] Status replace_file(const std::string& path, const std::string& bytes);

// Whether replace_file(path) has a chance: creates `path`.tmp and removes it. The error names it.
[[nodiscard]] Status check_replaceable(const std::string& path);

// Writes in a thread of its own, one write at a time: a slow disk must not hold up the server.
class SnapshotWriter {
 public:
  explicit SnapshotWriter(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool is_busy() const;
  // Precondition: not is_busy().
  void start(std::string bytes);
  // How the write ended that was started last, once it has; nullopt: nothing has ended.
  [[nodiscard]] std::optional<Status> take_result();
  // The same, but waits for it.
  [[nodiscard]] std::optional<Status> finish();

 private:
  std::string path_;
  std::future<Status> running_;
};

}  // namespace drun::store
