#include "store/table/ended_groups.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace drun::store {
namespace {

constexpr Milliseconds kOftenest{100};
constexpr Milliseconds kRarest{60'000};

}  // namespace

EndedGroups::EndedGroups(KeyTable& table, std::string root, std::string mark, Milliseconds after)
    : table_(table), root_(std::move(root) + '/'), mark_(std::move(mark)), after_(after) {}

// With the slash; empty: the key is in none.
std::string EndedGroups::group_of(std::string_view key) const {
  if (!key.starts_with(root_)) return {};
  const auto slash = key.find('/', root_.size());
  return slash == std::string_view::npos ? std::string() : std::string(key.substr(0, slash + 1));
}

void EndedGroups::check(Time now) {
  if (now < next_) return;
  next_ = now + std::clamp(after_ / 8, kOftenest, kRarest);
  std::map<std::string, bool> found;  // and whether they are marked
  std::set<std::string> alive;
  table_.for_each([&](std::string_view key, std::string_view, SessionId owner) {
    const std::string group = group_of(key);
    if (group.empty()) return;
    if (owner != kNoSession) alive.insert(group);
    found[group] |= key.substr(group.size()) == mark_;
  });
  std::erase_if(idle_, [&](const auto& known) {
    const auto same = found.find(known.first);
    return same == found.end() || same->second != known.second.marked ||
           alive.contains(known.first);
  });
  for (const auto& [group, marked] : found) {
    if (alive.contains(group)) continue;
    const Time since = idle_.try_emplace(group, Idle{marked, now}).first->second.since;
    if (now - since >= (marked ? after_ : kAbandoned * after_)) forget(group);
  }
}

void EndedGroups::forget(const std::string& group) {
  std::vector<std::string> keys;
  table_.list(group, [&](const Change& entry) {
    keys.emplace_back(entry.key);
    return true;
  });
  for (const std::string& key : keys)
    table_.erase(key);
  table_.publish();
  idle_.erase(group);
}

}  // namespace drun::store
