#include "etcd/etcd_watches.hpp"

#include <algorithm>

#include "base/deadline.hpp"

namespace drun::etcd {

std::uint64_t EtcdWatches::add(WatchId name, std::string key, bool prefix) {
  Entry& entry = watches_[name];
  entry.key = std::move(key);
  entry.prefix = prefix;
  entry.serial = ++last_serial_;
  return entry.serial;
}

std::optional<std::uint64_t> EtcdWatches::remove(WatchId name) {
  const auto node = watches_.extract(name);
  return node && node.mapped().stream != 0 ? std::optional(node.mapped().stream) : std::nullopt;
}

const EtcdWatches::Watch* EtcdWatches::find(WatchId name, std::uint64_t serial) const {
  const auto entry = watches_.find(name);
  const bool same = entry != watches_.end() && entry->second.serial == serial;
  return same ? &entry->second : nullptr;
}

std::vector<std::pair<EtcdWatches::WatchId, std::uint64_t>> EtcdWatches::serials() const {
  std::vector<std::pair<WatchId, std::uint64_t>> result;
  for (const auto& [name, entry] : watches_)
    result.emplace_back(name, entry.serial);
  return result;
}

EtcdWatches::State EtcdWatches::state(WatchId name) const {
  const auto entry = watches_.find(name);
  if (entry == watches_.end()) return State::Absent;
  if (entry->second.stream == 0) return State::Listed;
  return entry->second.due ? State::Beginning : State::Streaming;
}

void EtcdWatches::begin(WatchId name, std::uint64_t stream, Time first_line_due) {
  Entry& entry = watches_.at(name);
  entry.stream = stream;
  entry.due = first_line_due;
}

EtcdWatches::Entries::const_iterator EtcdWatches::entry_of(std::uint64_t stream) const {
  return std::find_if(watches_.begin(), watches_.end(), [stream](const auto& each) {
    return each.second.stream == stream && stream != 0;
  });
}

std::optional<EtcdWatches::WatchId> EtcdWatches::of_stream(std::uint64_t stream) const {
  const auto entry = entry_of(stream);
  return entry == watches_.end() ? std::nullopt : std::optional(entry->first);
}

bool EtcdWatches::receive(std::uint64_t stream, std::string_view bytes) {
  const auto name = of_stream(stream);
  if (!name) return true;
  Entry& entry = watches_.at(*name);
  entry.text.append(bytes);
  return entry.text.size() <= kLongestLine;
}

std::optional<std::string> EtcdWatches::take_line(std::uint64_t stream) {
  const auto name = of_stream(stream);
  if (!name) return std::nullopt;
  Entry& entry = watches_.at(*name);
  const auto end = entry.text.find('\n', entry.looked_at);
  if (end == std::string::npos) {
    entry.text.erase(0, std::exchange(entry.taken, 0));
    entry.looked_at = entry.text.size();
    return std::nullopt;
  }
  std::string line = entry.text.substr(entry.taken, end - entry.taken);
  entry.taken = entry.looked_at = end + 1;
  return line;
}

void EtcdWatches::note_word(WatchId name) {
  const auto entry = watches_.find(name);
  if (entry != watches_.end()) entry->second.due.reset();
}

void EtcdWatches::drop_streams() {
  for (auto& [name, entry] : watches_) {
    entry.stream = 0;
    entry.text.clear();
    entry.taken = entry.looked_at = 0;
    entry.due.reset();
  }
}

bool EtcdWatches::all_stream() const {
  return std::all_of(watches_.begin(), watches_.end(),
                     [](const auto& each) { return each.second.stream != 0 && !each.second.due; });
}

std::optional<EtcdWatches::Time> EtcdWatches::next_due() const {
  EarliestDeadline next;
  for (const auto& [name, entry] : watches_)
    next.include(entry.due);
  return next.time();
}

}  // namespace drun::etcd
