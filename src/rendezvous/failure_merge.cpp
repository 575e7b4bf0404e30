#include "rendezvous/failure_merge.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/lower_case.hpp"

namespace drun::rendezvous {
namespace {

bool starts_first(const RankRange& a, const RankRange& b) {
  return a.first < b.first;
}

bool has_lower_rank(const FailedRanks& a, const FailedRanks& b) {
  return starts_first(a.ranks.front(), b.ranks.front());
}

// In order, and those that touch as one.
void join(std::vector<RankRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(), starts_first);
  std::vector<RankRange> joined;
  for (const auto& range : ranges) {
    if (!joined.empty() && range.first <= joined.back().last + 1)
      joined.back().last = std::max(joined.back().last, range.last);
    else
      joined.push_back(range);
  }
  ranges = std::move(joined);
}

int lowest(const FailedRanks& group) {
  return group.ranks.front().first;
}

std::string kind_of(const std::string& cause, std::string_view last_words, int rank) {
  return cause + '\0' + without_rank(last_words, rank);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Whether "rank" stands at `at`, and it is not a local one.
bool is_rank_word(std::string_view text, std::size_t at) {
  constexpr std::string_view kWord = "rank";
  constexpr std::string_view kLocal = "local";
  const auto is = [&](std::size_t begin, std::string_view word) {
    return std::equal(word.begin(), word.end(), text.begin() + static_cast<std::ptrdiff_t>(begin),
                      [](char a, char b) { return a == lower_case(b); });
  };
  if (text.size() - at < kWord.size() || !is(at, kWord)) return false;
  // "local_rank", "local rank", "LocalRank"
  for (const std::size_t gap : {0U, 1U})
    if (at >= kLocal.size() + gap && is(at - gap - kLocal.size(), kLocal)) return false;
  return true;
}

// Where the number begins that follows the word "rank" at `at`: "rank 3", "rank: 3", "[rank3]".
std::size_t number_after(std::string_view text, std::size_t at) {
  constexpr std::size_t kMostBetween = 3;
  constexpr std::string_view kBetween = " :=_#[(";
  std::size_t begin = at + 4;
  while (begin < text.size() && begin - at - 4 < kMostBetween &&
         kBetween.find(text[begin]) != std::string_view::npos)
    ++begin;
  return begin;
}

// Groups by cause and last words, in any order until they are taken.
class Groups {
 public:
  void add(const std::vector<RankRange>& ranks, const std::string& cause,
           const std::string& last_words) {
    const int rank = ranks.front().first;
    const auto [at, is_new] = places_.try_emplace(kind_of(cause, last_words, rank), groups_.size());
    if (is_new) groups_.push_back({{}, cause, last_words, 0, {}});
    FailedRanks& group = groups_[at->second];
    auto& all = group.ranks;
    all.insert(all.end(), ranks.begin(), ranks.end());
    if (rank >= lowest(group)) return;
    group.last_words = last_words;
    std::swap(all.front(), *(all.end() - static_cast<std::ptrdiff_t>(ranks.size())));
  }

  // The groups of the lowest ranks; adds to `unlisted` how many ranks are in the rest.
  std::vector<FailedRanks> take(int& unlisted) {
    for (auto& group : groups_)
      join(group.ranks);
    std::sort(groups_.begin(), groups_.end(), has_lower_rank);
    for (std::size_t i = kMaxFailureGroups; i < groups_.size(); ++i)
      unlisted = add_ranks(unlisted, groups_[i]);
    if (groups_.size() > kMaxFailureGroups) groups_.resize(kMaxFailureGroups);
    return std::move(groups_);
  }

 private:
  std::vector<FailedRanks> groups_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace

std::string without_rank(std::string_view words, int rank) {
  const std::string own = std::to_string(rank);
  std::string text;
  std::size_t taken = 0;  // so much of `words` is in `text`
  for (auto at = words.find_first_of("rR"); at != words.npos;
       at = words.find_first_of("rR", at + 1)) {
    if (!is_rank_word(words, at)) continue;
    const std::size_t number = number_after(words, at);
    const std::size_t end = number + own.size();
    if (words.substr(number, own.size()) != own || (end < words.size() && is_digit(words[end])))
      continue;
    text.append(words.substr(taken, number - taken)) += '#';
    taken = end;
  }
  return text.append(words.substr(taken));
}

int add_ranks(int counted, const FailedRanks& group) {
  std::int64_t sum = counted;
  for (const auto& range : group.ranks)
    sum += std::int64_t{range.last} - range.first + 1;
  return static_cast<int>(std::min<std::int64_t>(sum, kMaxRanks));
}

int count_ranks(const FailureSummary& failure) {
  int count = std::min(failure.unlisted, kMaxRanks - 1) + 1;
  for (const auto& group : failure.others)
    count = add_ranks(count, group);
  return count;
}

void add_failed(std::vector<FailedRanks>& groups, RankRange ranks, const std::string& cause,
                const std::string& last_words, std::int64_t pid, const HangPlace& place) {
  const std::string kind = kind_of(cause, last_words, ranks.first);
  auto group = std::find_if(groups.begin(), groups.end(), [&](const FailedRanks& each) {
    return each.cause == cause && kind_of(each.cause, each.last_words, lowest(each)) == kind;
  });
  if (group == groups.end())
    group = groups.insert(groups.end(), {{}, cause, last_words, pid, place});
  if (!group->ranks.empty() && ranks.first < lowest(*group)) {
    group->last_words = last_words;
    group->pid = pid;
    group->place = place;
  }
  group->ranks.push_back(ranks);
  join(group->ranks);
  std::sort(groups.begin(), groups.end(), has_lower_rank);
}

FailureSummary merge_failures(std::span<const FailureSummary* const> failures) {
  FailureSummary root = *failures.front();
  Groups groups;
  for (const auto& group : root.others)
    groups.add(group.ranks, group.cause, group.last_words);
  for (const FailureSummary* other : failures.subspan(1)) {
    groups.add({{other->rank, other->rank}}, other->cause, other->last_words);
    for (const auto& group : other->others)
      groups.add(group.ranks, group.cause, group.last_words);
    root.unlisted = std::min(kMaxRanks, root.unlisted + other->unlisted);
    root.highest_code = std::max({root.highest_code, other->highest_code, other->shell_code()});
    if (other->lowest_rank >= 0 &&
        (root.lowest_rank < 0 || other->lowest_rank < root.lowest_rank)) {
      root.lowest_rank = other->lowest_rank;
      root.lowest_code = other->lowest_code;
    }
  }
  root.others = groups.take(root.unlisted);
  return root;
}

FailureSummary without_details(FailureSummary failure) {
  failure.traceback.clear();
  failure.tail.clear();
  for (const auto& group : failure.others)
    failure.unlisted = add_ranks(failure.unlisted, group);
  failure.others.clear();
  return failure;
}

}  // namespace drun::rendezvous
