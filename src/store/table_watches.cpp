// The watches of the key table: who is told of which change.
#include <cassert>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "store/table.hpp"

namespace drun::store {

bool KeyTable::watch(TableClient& client, std::uint64_t watch, std::string_view key, bool prefix) {
  if (!budget_.try_take(key.size() + kOverheadBytes)) return false;
  KeyMap<WatchList>& watches = prefix ? prefix_watches_ : exact_watches_;
  auto it = watches.find(key);
  if (it == watches.end()) {
    it = watches.try_emplace(std::string(key)).first;
    if (prefix) ++prefix_lengths_[key.size()];
  }
  WatchRecord& record = client.watches_[watch];
  assert(record.client == nullptr);
  record.client = &client;
  record.id = watch;
  record.prefix = prefix;
  it->second.push_back(&record);
  record.list = &*it;
  record.position = std::prev(it->second.end());
  ++watch_count_;
  return true;
}

bool KeyTable::is_watching(const TableClient& client, std::uint64_t watch) {
  return client.watches_.contains(watch);
}

void KeyTable::unwatch(TableClient& client, std::uint64_t watch) {
  const auto it = client.watches_.find(watch);
  if (it == client.watches_.end()) return;
  unregister(it->second);
  client.watches_.erase(it);
}

void KeyTable::unregister(WatchRecord& watch) {
  auto& [key, list] = *watch.list;
  budget_.give_back(key.size() + kOverheadBytes);
  --watch_count_;
  list.erase(watch.position);
  if (!list.empty()) return;
  if (watch.prefix) {
    const auto length = prefix_lengths_.find(key.size());
    if (--length->second == 0) prefix_lengths_.erase(length);
  }
  KeyMap<WatchList>& watches = watch.prefix ? prefix_watches_ : exact_watches_;
  watches.erase(watches.find(key));
}

// A look-up for the key itself and one for each length that a watched prefix has.
template <typename Visit>
void KeyTable::for_each_watch(std::string_view key, Visit visit) {
  if (!exact_watches_.empty()) {
    if (const auto it = exact_watches_.find(key); it != exact_watches_.end())
      for (WatchRecord* watch : it->second)
        visit(*watch);
  }
  for (const auto& [length, count] : prefix_lengths_) {
    if (length > key.size()) break;
    if (const auto it = prefix_watches_.find(key.substr(0, length)); it != prefix_watches_.end())
      for (WatchRecord* watch : it->second)
        visit(*watch);
  }
}

void KeyTable::note_change(std::string_view key) {
  is_changed_ = true;
  ++generation_;
  if (watch_count_ > 0) changed_.emplace_back(key);
}

void KeyTable::publish() {
  if (!is_changed_) return;
  is_changed_ = false;
  ++revision_;
  if (changed_.empty()) return;
  if (changed_.size() == 1) {
    const Change change = current(changed_.front());
    for_each_watch(change.key, [&](WatchRecord& watch) {
      watch.client->on_changes(watch.id, revision_, {&change, 1});
    });
    changed_.clear();
    return;
  }
  std::unordered_set<std::string_view> seen;
  std::vector<WatchRecord*> touched;
  for (const std::string& key : changed_) {
    if (!seen.insert(key).second) continue;
    const Change change = current(key);
    for_each_watch(key, [&](WatchRecord& watch) {
      if (watch.pending.empty()) touched.push_back(&watch);
      watch.pending.push_back(change);
    });
  }
  for (WatchRecord* watch : touched) {
    watch->client->on_changes(watch->id, revision_, watch->pending);
    std::vector<Change>().swap(watch->pending);
  }
  changed_.clear();
}

}  // namespace drun::store
