#include "store/server/snapshot_writer.hpp"

#include <chrono>
#include <exception>
#include <string>
#include <system_error>

#include "store/server/snapshot.hpp"

namespace drun::store {

void SnapshotWriter::start(const KeyTable& table, const Sessions& sessions) {
  try {
    auto write = [this, bytes = encode_snapshot(table, sessions)]() mutable -> Status {
      append_checksum(bytes);
      Result<SnapshotFile::Replacement> begun = file_.begin();
      if (!begun) return begun.error();
      replacement_ = std::move(*begun);
      return file_.write(replacement_, bytes);
    };
    writing_ = std::async(std::launch::async, std::move(write));
  } catch (const std::exception& error) {  // no thread or no memory now: the server goes on
    failed_start_ = Error(std::make_error_code(std::errc::resource_unavailable_try_again),
                          file_.path() + ": " + error.what());
  }
}

bool SnapshotWriter::is_busy() const {
  return writing_.valid() &&
         writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

std::optional<Status> SnapshotWriter::take_result() {
  if (failed_start_) return std::exchange(failed_start_, std::nullopt);
  if (!writing_.valid() || is_busy()) return std::nullopt;
  Status written = writing_.get();  // until then the thread uses the replacement
  return file_.finish(std::move(replacement_), std::move(written));
}

Status SnapshotWriter::write_now(const KeyTable& table, const Sessions& sessions) {
  if (writing_.valid()) {
    Status written = writing_.get();  // until then the thread uses the replacement
    (void)file_.finish(std::move(replacement_), std::move(written));
  }
  failed_start_.reset();
  Result<SnapshotFile::Replacement> begun = file_.begin();
  if (!begun) return begun.error();
  std::string bytes = encode_snapshot(table, sessions);
  append_checksum(bytes);
  Status written = file_.write(*begun, bytes);
  return file_.finish(std::move(*begun), std::move(written));
}

}  // namespace drun::store
