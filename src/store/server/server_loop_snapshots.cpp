// The server's loop: its snapshots.
#include <chrono>
#include <string>

#include "base/log.hpp"
#include "store/server/server_loop.hpp"
#include "store/server/snapshot.hpp"

namespace drun::store {

using Clock = std::chrono::steady_clock;

Status ServerLoop::use_snapshot(const std::string& file, Milliseconds interval) {
  const auto named = [&](const Error& error) {
    return Error(error.code(), "snapshot " + file + ": " + error.what());
  };
  std::string first = encode_snapshot(job_table_, sessions_);
  append_checksum(first);
  Result<SnapshotFile> locked = SnapshotFile::open(file, first);
  if (!locked) return locked.error();
  const Result<std::string> bytes = read_file(file);
  if (!bytes) return bytes.error();
  const Budget::WithReserve reserve(budget_);  // the rendezvous may have needed it
  const Budget::BeyondShares beyond(budget_);  // they were larger, perhaps
  const Status loaded = decode_snapshot(bytes.value(), job_table_, sessions_, Clock::now());
  if (!loaded) return named(loaded.error());
  const Result<SnapshotFile::Replacement> replacement = locked->begin();
  if (!replacement) return named(replacement.error());
  locked->abandon(*replacement);
  snapshot_.emplace(std::move(*locked));
  snapshot_interval_ = interval;
  next_snapshot_ = Clock::now() + interval;
  saved_generation_ = job_table_.generation() + sessions_.generation();
  return Done{};
}

void ServerLoop::save_snapshot_if_due() {
  if (next_snapshot_ > now_) return;
  next_snapshot_ = now_ + snapshot_interval_;
  if (snapshot_->is_busy()) return;
  if (const std::optional<Status> result = snapshot_->take_result()) note_snapshot(*result);
  const std::uint64_t generation = job_table_.generation() + sessions_.generation();
  if (generation == saved_generation_) return;
  saved_generation_ = generation;
  snapshot_->start(job_table_, sessions_);
}

// Always: a write under way may lack the last changes.
void ServerLoop::save_last_snapshot() {
  if (snapshot_) note_snapshot(snapshot_->write_now(job_table_, sessions_));
}

void ServerLoop::note_snapshot(const Status& result) {
  if (!result) {
    saved_generation_ = ~std::uint64_t{0};  // try again at the next interval
    if (last_snapshot_) log::error("the snapshot is not up to date: {}", result.error().what());
  } else if (!last_snapshot_) {
    log::info("the snapshot is up to date again");
  }
  last_snapshot_ = result;
}

}  // namespace drun::store
