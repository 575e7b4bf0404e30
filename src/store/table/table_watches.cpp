// The watches of the key table: who is told of which change.
#include <cassert>
#include <iterator>
#include <utility>

#include "store/table/table.hpp"

namespace drun::store {

template <typename Map>
std::pair<const std::string, WatchList>& KeyTable::list_of(Map& watches, std::string_view key) {
  const auto it = watches.find(key);
  return it != watches.end() ? *it : *watches.try_emplace(std::string(key)).first;
}

bool KeyTable::watch(TableClient& client, std::uint64_t watch, std::string_view key, bool prefix) {
  if (!budget_.try_take(key.size() + kOverheadBytes)) return false;
  auto& list = prefix ? list_of(prefix_watches_, key) : list_of(exact_watches_, key);
  WatchRecord& record = client.watches_[watch];
  assert(record.client == nullptr);
  record.client = &client;
  record.id = watch;
  record.prefix = prefix;
  list.second.push_back(&record);
  record.list = &list;
  record.position = std::prev(list.second.end());
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
  if (!watch.prefix) return erase_list(exact_watches_, key);
  erase_list(prefix_watches_, key);
}

// Prefixes are few, one for each leader: each is looked at. None of those behind the key in the
// order of bytes can be its beginning.
template <typename Visit>
void KeyTable::for_each_watch(std::string_view key, Visit visit) {
  if (!exact_watches_.empty()) {
    if (const auto it = exact_watches_.find(key); it != exact_watches_.end())
      for (WatchRecord* watch : it->second)
        visit(*watch);
  }
  const auto end = prefix_watches_.upper_bound(key);
  for (auto it = prefix_watches_.begin(); it != end; ++it) {
    if (!key.starts_with(it->first)) continue;
    for (WatchRecord* watch : it->second)
      visit(*watch);
  }
}

void KeyTable::tell_watches() {
  if (changed_.size() == 1) {
    const Change change = current(changed_.front());
    for_each_watch(change.key, [&](WatchRecord& watch) {
      watch.client->on_changes(watch.id, revision_, {&change, 1});
    });
    changed_.clear();
    return;
  }
  KeySet seen;
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
