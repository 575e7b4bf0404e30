// The watches of the key table: who is told of which change.
#include <algorithm>
#include <cassert>
#include <iterator>
#include <numeric>
#include <unordered_set>
#include <utility>
#include <vector>

#include "store/table/table.hpp"

namespace drun::store {

template <typename Map>
std::pair<const std::string, WatchList>& KeyTable::list_of(Map& watches, std::string_view key) {
  const auto it = watches.find(key);
  return it != watches.end() ? *it : *watches.try_emplace(std::string(key)).first;
}

bool KeyTable::watch(TableClient& client, std::uint64_t watch, std::string_view key, bool prefix) {
  if (!budget_.try_take_for(job_of(key), key.size() + kOverheadBytes)) return false;
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
  budget_.give_back_of(job_of(key), key.size() + kOverheadBytes);
  --watch_count_;
  list.erase(watch.position);
  if (!list.empty()) return;
  if (!watch.prefix) return erase_list(exact_watches_, key);
  erase_list(prefix_watches_, key);
}

// From the shortest to the longest. Of the prefixes up to a text in the order of bytes the last is
// either its beginning, or shares with it all that any of the others can.
std::vector<const KeyTable::WatchedPrefix*> KeyTable::watched_prefixes(std::string_view key) const {
  std::vector<const WatchedPrefix*> found;
  for (std::string_view rest = key;;) {
    auto it = prefix_watches_.upper_bound(rest);
    if (it == prefix_watches_.begin()) break;
    --it;
    const std::string_view prefix = it->first;
    if (rest.starts_with(prefix)) {
      found.push_back(&*it);
      if (prefix.empty()) break;
      rest = rest.substr(0, prefix.size() - 1);
    } else {
      const auto differs = std::ranges::mismatch(rest, prefix).in1;
      rest = rest.substr(0, static_cast<std::size_t>(differs - rest.begin()));
    }
  }
  std::ranges::reverse(found);
  return found;
}

std::size_t KeyTable::bytes_to_tell(std::string_view key, std::size_t value_bytes) const {
  if (watch_count_ == 0) return 0;
  std::size_t watches = 0;
  if (const auto it = exact_watches_.find(key); it != exact_watches_.end())
    watches += it->second.size();
  if (!prefix_watches_.empty())
    for (const WatchedPrefix* watched : watched_prefixes(key))
      watches += watched->second.size();
  return watches * (kTellingBytes + key.size() + value_bytes);
}

void KeyTable::tell(const WatchList& watches, std::span<const Change> changes) {
  Publication publication{revision_, changes};
  for (const Change& change : changes)
    publication.bytes += change.key.size() + (change.value ? change.value->size() : 0);
  told_ += watches.size() * (kTellingBytes + publication.bytes);
  for (const WatchRecord* watch : watches)
    watch->client->on_changes(watch->id, publication);
}

void KeyTable::tell_watches() {
  if (changed_.size() == 1) {
    tell_of_one(current(changed_.front()));
  } else {
    tell_of_many();
  }
  changed_.clear();
}

void KeyTable::tell_of_one(const Change& change) {
  if (const auto it = exact_watches_.find(change.key); it != exact_watches_.end())
    tell(it->second, {&change, 1});
  for (const WatchedPrefix* watched : watched_prefixes(change.key))
    tell(watched->second, {&change, 1});
}

// One prefix after the other: what is gathered is never more than the changes, however many
// prefixes cover them.
void KeyTable::tell_of_many() {
  std::vector<Change> changes;
  KeySet seen;
  for (const std::string& key : changed_)
    if (seen.insert(key).second) changes.push_back(current(key));
  std::vector<std::size_t> sorted(changes.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  const auto key_of = [&](std::size_t index) { return changes[index].key; };
  std::ranges::sort(sorted, {}, key_of);

  std::unordered_set<const WatchedPrefix*> told;
  std::vector<std::size_t> covered;
  std::vector<Change> gathered;
  for (const Change& change : changes) {
    if (const auto it = exact_watches_.find(change.key); it != exact_watches_.end())
      tell(it->second, {&change, 1});
    for (const WatchedPrefix* watched : watched_prefixes(change.key)) {
      if (!told.insert(watched).second) continue;
      auto place = std::ranges::lower_bound(sorted, watched->first, {}, key_of);
      covered.clear();
      for (; place != sorted.end() && key_of(*place).starts_with(watched->first); ++place)
        covered.push_back(*place);
      std::ranges::sort(covered);
      gathered.clear();
      for (const std::size_t index : covered)
        gathered.push_back(changes[index]);
      tell(watched->second, gathered);
    }
  }
}

}  // namespace drun::store
