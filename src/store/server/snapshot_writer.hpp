// Writes the snapshot while the server goes on serving.
#pragma once

#include <future>
#include <optional>
#include <utility>

#include "drun/base/result.hpp"
#include "store/server/snapshot_file.hpp"
#include "store/table/sessions.hpp"
#include "store/table/table.hpp"

namespace drun::store {

// One write at a time. The snapshot is encoded at once, which holds up the server for as long as
// copying all it holds takes; its checksum and the disk, which may hang, are a thread's.
class SnapshotWriter {
 public:
  explicit SnapshotWriter(SnapshotFile file) : file_(std::move(file)) {}

  [[nodiscard]] bool is_busy() const;
  // Precondition: not is_busy(), take_result() was called.
  void start(const KeyTable& table, const Sessions& sessions);
  // How the write ended that was started last, once it has; nullopt: nothing has ended.
  [[nodiscard]] std::optional<Status> take_result();
  // Writes it in this thread, and returns when it is on disk. What was started is over then.
  [[nodiscard]] Status write_now(const KeyTable& table, const Sessions& sessions);

 private:
  SnapshotFile file_;
  SnapshotFile::Replacement replacement_;  // of the write under way
  std::optional<Status> failed_start_;     // the result, if nothing could be started
  std::future<Status> writing_;            // ends before the others go
};

}  // namespace drun::store
