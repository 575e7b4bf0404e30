#include "launcher/output/output_fold.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <cwchar>
#include <utility>

#include "base/number_ranges.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kBits = 64;

std::uint64_t word_at(const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Two words at a time, because a multiplication takes a while. Lines with equal hashes are
// compared, so this need not be the best one.
wchar_t hash_of(std::string_view line) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  std::uint64_t first = line.size();
  std::uint64_t second = 0;
  const auto take = [&](const char* words) {
    first = std::rotl(first ^ word_at(words), 29) * kFactor;
    second = std::rotl(second ^ word_at(words + kWord), 29) * kFactor;
  };
  if (line.size() >= 2 * kWord) {
    for (std::size_t at = 0; at + 2 * kWord < line.size(); at += 2 * kWord)
      take(line.data() + at);
    take(line.data() + line.size() - 2 * kWord);  // some of it twice
  } else {
    std::array<char, 2 * kWord> padded{};
    std::copy(line.begin(), line.end(), padded.begin());
    take(padded.data());
  }
  const std::uint64_t all = (first ^ (first >> 32U) ^ std::rotl(second, 17)) * kFactor;
  return static_cast<wchar_t>(all >> 32U);
}

std::uint64_t bit_of(std::uint32_t member) {
  return std::uint64_t{1} << (member % kBits);
}

}  // namespace

// ---- who takes part ----

std::uint32_t LineFolder::member_of(int rank) {
  if (last_member_ && members_[*last_member_].rank == rank) return *last_member_;
  const auto [found, fresh] = numbers_.emplace(rank, static_cast<std::uint32_t>(members_.size()));
  if (fresh) {
    members_.push_back({rank, 0, groups_.first(), fold_prefix({rank})});
    if (members_.size() > words_ * kBits) widen();
  }
  last_member_ = found->second;
  return found->second;
}

void LineFolder::widen() {
  NumberedQueue<std::uint64_t> wider;
  for (std::uint64_t group = groups_.first(); group < groups_.end(); ++group) {
    wider.append(set_of(group), set_of(group) + words_);
    wider.append(0);
  }
  sets_ = std::move(wider);
  ++words_;
  prefix_set_.clear();
}

void LineFolder::join(int rank) {
  if (groups_.empty()) forget_those_who_left();
  Member& member = members_[member_of(rank)];
  ++member.streams;
  slowest_ = std::min(slowest_, member.behind);
}

void LineFolder::leave(int rank) {
  const auto found = numbers_.find(rank);
  if (found != numbers_.end() && members_[found->second].streams > 0)
    --members_[found->second].streams;
}

// A job's ranks change with its nodes; they do not become more and more.
void LineFolder::forget_those_who_left() {
  if (std::erase_if(members_, [](const auto& member) { return member.streams == 0; }) == 0) return;
  numbers_.clear();
  for (std::uint32_t number = 0; number < members_.size(); ++number)
    numbers_.emplace(members_[number].rank, number);
  last_member_.reset();
  prefix_set_.clear();
}

// ---- lines come ----

void LineFolder::add(int rank, std::string_view line, Time now) {
  const std::uint32_t member = member_of(rank);
  const std::uint64_t next = std::max(members_[member].behind, groups_.first());
  const std::uint64_t end = groups_.end();
  if (next < end) {
    if (text_of(next) == line) return take_part(member, next);
    while (hashes_.size() < groups_.size())
      hashes_.append(hash_of(text_of(groups_.first() + hashes_.size())));
    const wchar_t hash = hash_of(line);
    if (const auto group = find(line, hash, next + 1)) return take_part(member, *group);
    hashes_.append(hash);
  }
  append_group(line, now);
  take_part(member, end);
}

// The oldest line of this text that comes after all that the rank has printed. What is passed here,
// the rank never looks at again: on average that is one line for each that comes.
std::optional<std::uint64_t> LineFolder::find(std::string_view line, wchar_t hash,
                                              std::uint64_t from) const {
  const wchar_t* const begin = hashes_.at(hashes_.first());
  const wchar_t* const end = begin + hashes_.size();
  const wchar_t* at = begin + (from - groups_.first());
  while (at != end) {
    at = std::wmemchr(at, hash, static_cast<std::size_t>(end - at));
    if (at == nullptr) break;
    const std::uint64_t group = groups_.first() + static_cast<std::uint64_t>(at - begin);
    if (text_of(group) == line) return group;
    ++at;
  }
  return std::nullopt;
}

void LineFolder::append_group(std::string_view line, Time now) {
  groups_.append({text_.end(), static_cast<std::uint32_t>(line.size()), 0, now});
  text_.append(line.begin(), line.end());
  for (std::size_t word = 0; word < words_; ++word)
    sets_.append(0);
}

void LineFolder::take_part(std::uint32_t member, std::uint64_t group) {
  ++groups_.at(group)->members;
  set_of(group)[member / kBits] |= bit_of(member);
  members_[member].behind = group + 1;
}

// ---- lines go ----

void LineFolder::update_slowest() const {
  if (groups_.first() < slowest_) return;
  slowest_ = groups_.end();
  for (const Member& member : members_)
    if (member.streams > 0) slowest_ = std::min(slowest_, member.behind);
}

bool LineFolder::is_due(std::uint64_t group, Time now) const {
  return group < slowest_ || group < hurried_to_ || is_over_the_limits(group) ||
         now - groups_.at(group)->since >= limits_.window;
}

std::string_view LineFolder::prefix_of_front() {
  const std::uint64_t* const set = set_of(groups_.first());
  std::size_t first = 0;
  while (set[first] == 0)
    ++first;
  if (groups_.at(groups_.first())->members == 1)
    return members_[first * kBits + static_cast<std::size_t>(std::countr_zero(set[first]))].prefix;
  if (!std::equal(set, set + words_, prefix_set_.begin(), prefix_set_.end())) {
    std::vector<int> ranks;
    for (std::size_t word = first; word < words_; ++word)
      for (std::uint64_t left = set[word]; left != 0; left &= left - 1)
        ranks.push_back(
            members_[word * kBits + static_cast<std::size_t>(std::countr_zero(left))].rank);
    prefix_ = fold_prefix(ranks);
    prefix_set_.assign(set, set + words_);
  }
  return prefix_;
}

std::optional<LineFolder::Folded> LineFolder::next(Time now) {
  if (groups_.empty()) return std::nullopt;
  update_slowest();
  const std::uint64_t first = groups_.first();
  if (!is_due(first, now)) return std::nullopt;
  const std::uint64_t* const set = set_of(first);
  std::uint64_t end = first + 1;
  while (end < groups_.end() && std::equal(set, set + words_, set_of(end)) && is_due(end, now))
    ++end;
  const std::uint64_t text = groups_.at(first)->text;
  const std::uint64_t text_end = end < groups_.end() ? groups_.at(end)->text : text_.end();
  const auto length = static_cast<std::size_t>(text_end - text);
  const Folded folded{prefix_of_front(), {text_.at(text), length}};
  const auto count = static_cast<std::size_t>(end - first);
  text_.pop(length);
  sets_.pop(count * words_);
  hashes_.pop(std::min(count, hashes_.size()));
  groups_.pop(count);
  return folded;
}

std::optional<LineFolder::Time> LineFolder::deadline() const {
  if (groups_.empty()) return std::nullopt;
  update_slowest();
  const std::uint64_t first = groups_.first();
  if (first < slowest_ || is_over_the_limits(first)) return Time{};
  return groups_.at(first)->since + limits_.window;
}

std::string fold_prefix(const std::vector<int>& ranks) {
  return "[" + ranks_text(ranks) + "] ";
}

}  // namespace drun::launcher
