#include "launcher/output/output_fold.hpp"

#include <algorithm>
#include <utility>

#include "base/number_ranges.hpp"

namespace drun::launcher {

const std::uint64_t* LineFolder::SameText::from(std::uint64_t behind) const {
  const auto* const end = numbers.data() + numbers.size();
  const auto* const found = std::lower_bound(numbers.data() + gone, end, behind);
  return found == end ? nullptr : found;
}

void LineFolder::SameText::pop_front() {
  ++gone;
  if (gone < numbers.size() - gone) return;
  numbers.erase(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(gone));
  gone = 0;
}

void LineFolder::leave(int rank) {
  const auto found = members_.find(rank);
  if (found == members_.end() || --found->second > 0) return;
  members_.erase(found);
  const auto behind = behind_.find(rank);
  if (behind == behind_.end()) return;
  for (std::uint64_t number = first_; number < behind->second; ++number) {
    Group& group = groups_[number - first_];
    const auto& ranks = group.folded.ranks;
    if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) ++group.gone;
  }
}

void LineFolder::add(int rank, std::string_view line, Time now) {
  std::uint64_t& behind = behind_[rank];
  const auto same = by_line_.find(line);
  if (same != by_line_.end()) {
    // The oldest line of this text that comes after all that this rank has printed.
    if (const std::uint64_t* match = same->second.from(behind)) {
      groups_[*match - first_].folded.ranks.push_back(rank);
      behind = *match + 1;
      return;
    }
  }
  const std::uint64_t number = first_ + groups_.size();
  bytes_ += line.size();
  Group& group = groups_.emplace_back(Group{{{rank}, std::string(line)}, now});
  if (same == by_line_.end()) {
    by_line_[group.folded.line].numbers = {number};
  } else {
    same->second.numbers.push_back(number);
  }
  behind = number + 1;
}

// The first group leaves; the text belongs to the next of the same text then.
void LineFolder::forget_front() {
  auto entry = by_line_.extract(std::string_view(groups_.front().folded.line));
  entry.mapped().pop_front();
  const std::uint64_t* next = entry.mapped().from(0);
  if (next == nullptr) return;
  entry.key() = groups_[*next - first_].folded.line;
  by_line_.insert(std::move(entry));
}

std::optional<LineFolder::Folded> LineFolder::next(Time now) {
  if (groups_.empty()) return std::nullopt;
  Group& front = groups_.front();
  if (!complete(front) && !full() && now - front.since < limits_.window) return std::nullopt;
  forget_front();
  Folded folded = std::move(front.folded);
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
