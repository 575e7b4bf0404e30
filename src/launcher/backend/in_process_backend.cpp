#include "launcher/backend/in_process_backend.hpp"

#include <algorithm>
#include <utility>

#include <asio/post.hpp>

namespace drun::launcher {

using rendezvous::Change;
using rendezvous::CommitOutcome;
using rendezvous::CommitResult;
using rendezvous::Guard;

InProcessBackend::InProcessBackend(asio::io_context& io, Sink sink)
    : io_(io), sink_(std::move(sink)), self_(std::make_shared<InProcessBackend*>(this)) {}

InProcessBackend::~InProcessBackend() {
  *self_ = nullptr;
}

void InProcessBackend::open() {
  send(rendezvous::LinkEvent{rendezvous::Link::Up, ""});
}

void InProcessBackend::watch(rendezvous::WatchId watch, std::string key, bool prefix) {
  const Watch& added = watches_[watch] = Watch{std::move(key), prefix};
  rendezvous::WatchSnapshot snapshot;
  snapshot.watch = watch;
  for (auto it = keys_.lower_bound(added.key); it != keys_.end() && added.covers(it->first); ++it)
    snapshot.entries.push_back({it->first, it->second});
  send(std::move(snapshot));
}

void InProcessBackend::unwatch(rendezvous::WatchId watch) {
  watches_.erase(watch);
}

void InProcessBackend::commit(rendezvous::RequestId request, rendezvous::Transaction transaction) {
  const bool holds =
      std::all_of(transaction.guards.begin(), transaction.guards.end(), [this](const Guard& guard) {
        const auto found = keys_.find(guard.key);
        return found == keys_.end() ? !guard.expected : guard.expected == found->second;
      });
  if (!holds) return send(CommitResult{request, CommitOutcome::Refused});
  // The last write to a key counts; watchers see each key once.
  std::vector<Change> changes;
  for (auto& write : transaction.writes) {
    const auto same = [&write](const Change& change) { return change.key == write.key; };
    std::erase_if(changes, same);
    if (write.value) {
      keys_[write.key] = *write.value;
    } else if (keys_.erase(write.key) == 0) {
      continue;
    }
    changes.push_back({std::move(write.key), std::move(write.value)});
  }
  publish(changes);
  send(CommitResult{request, CommitOutcome::Committed});
}

void InProcessBackend::close() {
  watches_.clear();
  keys_.clear();
  send(rendezvous::LinkEvent{rendezvous::Link::Closed, ""});
}

void InProcessBackend::publish(const std::vector<Change>& changes) {
  for (const auto& [id, watch] : watches_) {
    rendezvous::WatchChanges seen;
    seen.watch = id;
    for (const auto& change : changes)
      if (watch.covers(change.key)) seen.changes.push_back(change);
    if (!seen.changes.empty()) send(std::move(seen));
  }
}

void InProcessBackend::send(rendezvous::KeyValueEvent event) {
  events_.push_back(std::move(event));
  if (events_.size() > 1) return;  // the call is under way
  asio::post(io_, [self = self_] {
    if (*self != nullptr) (*self)->deliver();
  });
}

// What is sent meanwhile comes with the next call; the sink may end this object.
void InProcessBackend::deliver() {
  const auto self = self_;
  for (auto& event : std::exchange(events_, {})) {
    sink_(std::move(event));
    if (*self == nullptr) return;
  }
}

}  // namespace drun::launcher
