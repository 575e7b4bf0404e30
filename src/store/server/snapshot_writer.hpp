// Writes the snapshot while the server goes on serving.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <future>
#include <optional>

#include "drun/base/file_descriptor.hpp"
#include "drun/base/result.hpp"
#include "store/server/snapshot_file.hpp"
#include "store/table/sessions.hpp"
#include "store/table/table.hpp"

namespace drun::store {

// One write at a time. A small snapshot is encoded at once and written in a thread; encoding a
// large one would hold up the server: a forked child has the state of that moment for as long as it
// needs to, and shares the memory that does not change meanwhile. Where the system allows no child,
// a large one is treated as a small one.
class SnapshotWriter {
 public:
  static constexpr std::size_t kLargeBytes = 2 * 1024 * 1024;

  explicit SnapshotWriter(SnapshotFile file) : file_(std::move(file)) {}
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;
  ~SnapshotWriter() { stop_child(); }

  [[nodiscard]] bool is_busy();
  // `bytes`: about how many the table holds. Precondition: not is_busy(), take_result() was called.
  void start(const KeyTable& table, const Sessions& sessions, std::size_t bytes);
  // How the write ended that was started last, once it has; nullopt: nothing has ended.
  [[nodiscard]] std::optional<Status> take_result();
  // Writes it in this thread, and returns when it is on disk. What was started is over then.
  [[nodiscard]] Status write_now(const KeyTable& table, const Sessions& sessions);

 private:
  [[nodiscard]] bool start_child(const KeyTable& table, const Sessions& sessions);
  void run_child(const KeyTable& table, const Sessions& sessions, int parent, int report) const;
  void stop_child();
  [[nodiscard]] Status child_result();

  SnapshotFile file_;
  SnapshotFile::Replacement replacement_;      // of the write under way
  std::future<SnapshotFile::Outcome> thread_;  // or:
  pid_t child_ = 0;                            // 0: none
  FileDescriptor report_;                      // the child's outcome comes here
  std::optional<Status> failed_start_;         // the result, if nothing could be started
};

}  // namespace drun::store
