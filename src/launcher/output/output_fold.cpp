#include "launcher/output/output_fold.hpp"

#include <algorithm>
#include <utility>

#include "base/number_ranges.hpp"

namespace drun::launcher {

void LineFolder::leave(int rank) {
  const auto found = members_.find(rank);
  if (found != members_.end() && --found->second == 0) members_.erase(found);
}

// A rank that printed the line and has left does not stand in for one that is still there.
bool LineFolder::complete(const Group& group) const {
  const auto& ranks = group.folded.ranks;
  return ranks.size() >= members_.size() &&
         std::all_of(members_.begin(), members_.end(), [&](const auto& member) {
           return std::find(ranks.begin(), ranks.end(), member.first) != ranks.end();
         });
}

void LineFolder::add(int rank, std::string_view line, Time now) {
  std::string key(line);
  std::uint64_t& behind = behind_[rank];
  // The oldest line of this text that comes after all that this rank has printed.
  std::optional<std::uint64_t> match;
  const auto [begin, end] = by_line_.equal_range(key);
  for (auto it = begin; it != end; ++it)
    if (it->second >= behind && (!match || it->second < *match)) match = it->second;
  if (!match) {
    match = first_ + groups_.size();
    bytes_ += key.size();
    groups_.push_back({{{}, key}, now});
    by_line_.emplace(std::move(key), *match);
  }
  groups_[*match - first_].folded.ranks.push_back(rank);
  behind = *match + 1;
}

std::optional<LineFolder::Folded> LineFolder::next(Time now) {
  if (groups_.empty()) return std::nullopt;
  Group& front = groups_.front();
  if (!complete(front) && !full() && now - front.since < limits_.window) return std::nullopt;
  Folded folded = std::move(front.folded);
  const auto [begin, end] = by_line_.equal_range(folded.line);
  by_line_.erase(
      std::find_if(begin, end, [&](const auto& entry) { return entry.second == first_; }));
  bytes_ -= folded.line.size();
  groups_.pop_front();
  ++first_;
  return folded;
}

std::optional<LineFolder::Time> LineFolder::deadline() const {
  if (groups_.empty()) return std::nullopt;
  const Group& front = groups_.front();
  if (complete(front) || full()) return Time{};
  return front.since + limits_.window;
}

std::string fold_prefix(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "[rank " : "[ranks ") + to_string(ranges_of(ranks)) + "] ";
}

}  // namespace drun::launcher
