#include "support/fake_store.hpp"

#include <algorithm>
#include <optional>

namespace drun::test {

using rendezvous::Change;
using rendezvous::CommitOutcome;
using rendezvous::WatchChanges;
using rendezvous::WatchId;
using rendezvous::WatchSnapshot;

std::size_t values_set(const rendezvous::Transaction& transaction) {
  return static_cast<std::size_t>(
      std::count_if(transaction.writes.begin(), transaction.writes.end(),
                    [](const rendezvous::Write& write) { return write.value.has_value(); }));
}

void FakeStore::send(SessionId session, rendezvous::KeyValueEvent event, std::size_t bytes) {
  ++messages_;
  bytes_ += bytes;
  sink_(session, std::move(event));
}

void FakeStore::publish(const std::vector<Change>& changes) {
  std::map<Watcher, WatchChanges> out;
  const auto add = [&](const std::set<Watcher>& watchers, const Change& change) {
    for (const auto& watcher : watchers) {
      auto& event = out[watcher];
      event.watch = watcher.second;
      event.changes.push_back(change);
    }
  };
  for (const auto& change : changes) {
    if (const auto at = exact_.find(change.key); at != exact_.end()) add(at->second, change);
    for (const auto& [prefix, watchers] : prefixes_) {
      if (change.key.compare(0, prefix.size(), prefix) == 0) add(watchers, change);
    }
  }
  for (auto& [watcher, event] : out) {
    std::size_t bytes = 0;
    for (const auto& change : event.changes)
      bytes += change.key.size() + change.value.value_or("").size();
    send(watcher.first, std::move(event), bytes);
  }
}

void FakeStore::watch(SessionId session, WatchId watch, const std::string& key, bool prefix) {
  (prefix ? prefixes_ : exact_)[key].insert({session, watch});
  WatchSnapshot snapshot;
  snapshot.watch = watch;
  std::size_t bytes = 0;
  for (auto at = keys_.lower_bound(key); at != keys_.end(); ++at) {
    if (prefix ? at->first.compare(0, key.size(), key) != 0 : at->first != key) break;
    snapshot.entries.push_back({at->first, at->second.text});
    bytes += at->first.size() + at->second.text.size();
  }
  send(session, std::move(snapshot), bytes);
}

void FakeStore::unwatch(SessionId session, WatchId watch) {
  for (auto* table : {&exact_, &prefixes_}) {
    for (auto at = table->begin(); at != table->end();) {
      at->second.erase({session, watch});
      at = at->second.empty() ? table->erase(at) : std::next(at);
    }
  }
}

CommitOutcome FakeStore::commit(SessionId session, const rendezvous::Transaction& transaction) {
  for (const auto& guard : transaction.guards) {
    const auto at = keys_.find(guard.key);
    const bool holds = guard.expected ? at != keys_.end() && at->second.text == *guard.expected
                                      : at == keys_.end();
    if (!holds) return CommitOutcome::Refused;
  }
  std::vector<Change> changes;
  for (const auto& write : transaction.writes) {
    const auto at = keys_.find(write.key);
    if (at != keys_.end()) {
      if (at->second.owner != 0) owned_[at->second.owner].erase(write.key);
      if (!write.value) keys_.erase(at);
    } else if (!write.value) {
      continue;
    }
    if (write.value) {
      keys_[write.key] = {*write.value, write.ephemeral ? session : 0};
      if (write.ephemeral) owned_[session].insert(write.key);
    }
    changes.push_back({write.key, write.value});
  }
  publish(changes);
  return CommitOutcome::Committed;
}

void FakeStore::disconnect(SessionId session) {
  for (auto* table : {&exact_, &prefixes_}) {
    for (auto at = table->begin(); at != table->end();) {
      auto& watchers = at->second;
      watchers.erase(watchers.lower_bound({session, 0}), watchers.lower_bound({session + 1, 0}));
      at = watchers.empty() ? table->erase(at) : std::next(at);
    }
  }
}

void FakeStore::expire(SessionId session) {
  disconnect(session);
  drop_keys(session);
}

void FakeStore::drop_keys(SessionId session) {
  const auto owned = owned_.find(session);
  if (owned == owned_.end()) return;
  std::vector<Change> changes;
  for (const auto& key : owned->second) {
    keys_.erase(key);
    changes.push_back({key, std::nullopt});
  }
  owned_.erase(owned);
  publish(changes);
}

void FakeStore::restart(bool everything) {
  exact_.clear();
  prefixes_.clear();
  owned_.clear();
  for (auto at = keys_.begin(); at != keys_.end();)
    at = everything || at->second.owner != 0 ? keys_.erase(at) : std::next(at);
}

void FakeStore::restart(Saved saved) {
  exact_.clear();
  prefixes_.clear();
  keys_ = std::move(saved.keys);
  owned_ = std::move(saved.owned);
}

}  // namespace drun::test
