// The snapshot on disk: one store's at a time, replaced as a whole or not at all.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "drun/base/result.hpp"
#include "store/server/snapshot.hpp"

namespace drun::store {

// The whole file. The error names it.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

// A file that belongs to this store for as long as this lives. The lock is flock() on the file
// itself: nothing of it remains when the process ends, however it ends. A new file that takes the
// name is locked before it does.
class SnapshotFile {
 public:
  // What is written beside the file, to `path`.tmp, and becomes it.
  using Replacement = FileDescriptor;

  // Locks the file; one that is missing is created with `content`, readable by its owner alone: it
  // holds the sessions' secrets. Errors name the file: it cannot be opened or created, or another
  // store has it.
  [[nodiscard]] static Result<SnapshotFile> open(const std::string& path, std::string_view content);

  [[nodiscard]] const std::string& path() const { return path_; }

  // Creates and locks `path`.tmp. The error names it. Until finish() the file is as it was.
  [[nodiscard]] Result<Replacement> begin() const;
  // Removes it again.
  void abandon(const Replacement& replacement) const;
  // Writes it, syncs, and renames it; if that fails, removes it. In any thread.
  [[nodiscard]] Status write(const Replacement& replacement, std::string_view content) const;
  // What write() said: keeps the lock of what is the file now.
  [[nodiscard]] Status finish(Replacement replacement, Status written);

 private:
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Identity&) const = default;
  };

  explicit SnapshotFile(const std::string& path);
  [[nodiscard]] static Identity identity_of(int fd);
  [[nodiscard]] static bool is_at(int fd, const std::string& path);
  [[nodiscard]] bool is_taken() const;
  void hold(FileDescriptor fd);

  std::string path_;
  std::string temporary_;
  std::string directory_;
  FileDescriptor lock_;
  Identity identity_;
};

}  // namespace drun::store
