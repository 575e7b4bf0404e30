// --fold: a line that several ranks print within a short time is shown once, with the ranks. Each
// rank's own lines stay in order. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace drun::launcher {

// A queue in one piece of memory. Its items keep their numbers, which count from the first ever.
template <typename Item>
class NumberedQueue {
 public:
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t end() const { return first_ + size(); }
  [[nodiscard]] std::size_t size() const { return items_.size() - gone_; }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] Item* at(std::uint64_t number) { return items_.data() + gone_ + (number - first_); }
  [[nodiscard]] const Item* at(std::uint64_t number) const {
    return items_.data() + gone_ + (number - first_);
  }
  template <typename Iterator>
  void append(Iterator begin, Iterator end) {
    compact();
    items_.insert(items_.end(), begin, end);
  }
  void append(const Item& item) {
    compact();
    items_.push_back(item);
  }
  // What has gone stays readable until the next append().
  void pop(std::size_t count) {
    first_ += count;
    gone_ += count;
  }

 private:
  // Only when what is left is less than what has gone: so no item is moved often.
  void compact() {
    if (gone_ < items_.size() - gone_ || gone_ == 0) return;
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(gone_));
    gone_ = 0;
  }

  std::vector<Item> items_;
  std::size_t gone_ = 0;  // of `items_`, at its front
  std::uint64_t first_ = 0;
};

class LineFolder {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Limits {
    std::chrono::milliseconds window{300};  // how long a line waits for the other ranks
    std::size_t lines = 32 * 1024;          // that wait at most; beyond it the oldest goes
    std::size_t bytes = 1024 * 1024;
  };

  // Lines that follow each other, of the same ranks. Valid until the next call of another function.
  struct Folded {
    std::string_view prefix;
    std::string_view lines;
  };

  LineFolder() = default;
  explicit LineFolder(Limits limits) : limits_(limits) {}

  // A line waits for the ranks that take part and may still print it.
  void join(int rank);
  void leave(int rank);

  void add(int rank, std::string_view line, Time now);
  // All that was added is due, whatever the other ranks may still print.
  void hurry() { hurried_to_ = groups_.end(); }
  // What to show next; nullopt: nothing is due yet.
  [[nodiscard]] std::optional<Folded> next(Time now);
  [[nodiscard]] std::optional<Time> deadline() const;

 private:
  // A rank that prints here, or has.
  struct Member {
    int rank = 0;
    int streams = 0;           // 0: it has left
    std::uint64_t behind = 0;  // number after its last line's group
    std::string prefix;        // of a line that it alone has printed
  };

  // A line, and the members that have printed it.
  struct Group {
    std::uint64_t text = 0;  // position in `text_`
    std::uint32_t length = 0;
    std::uint32_t members = 0;  // how many
    Time since;
  };

  [[nodiscard]] std::uint32_t member_of(int rank);
  void widen();
  void forget_those_who_left();
  [[nodiscard]] std::string_view text_of(std::uint64_t group) const {
    return {text_.at(groups_.at(group)->text), groups_.at(group)->length};
  }
  // Of one group; the next one's are behind them.
  [[nodiscard]] std::uint64_t* set_of(std::uint64_t group) {
    return sets_.at(sets_.first() + (group - groups_.first()) * words_);
  }
  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view line, wchar_t hash,
                                                  std::uint64_t from) const;
  void append_group(std::string_view line, Time now);
  void take_part(std::uint32_t member, std::uint64_t group);
  void update_slowest() const;
  [[nodiscard]] bool is_due(std::uint64_t group, Time now) const;
  [[nodiscard]] bool is_over_the_limits(std::uint64_t group) const {
    return groups_.end() - group > limits_.lines ||
           text_.end() - groups_.at(group)->text > limits_.bytes;
  }
  [[nodiscard]] std::string_view prefix_of_front();

  Limits limits_;
  std::uint64_t hurried_to_ = 0;
  std::vector<Member> members_;
  std::unordered_map<int, std::uint32_t> numbers_;  // rank -> index in `members_`
  std::optional<std::uint32_t> last_member_;        // that printed
  // No member that has not left is further behind, as far as is known. What is before it is
  // complete: each of them has printed that line, or another that comes later.
  mutable std::uint64_t slowest_ = 0;

  NumberedQueue<Group> groups_;
  NumberedQueue<char> text_;           // of all groups, one behind the other
  NumberedQueue<std::uint64_t> sets_;  // of members, a bit for each: `words_` for each group
  std::size_t words_ = 1;
  // Hashes of the first groups' lines: made when a line comes that is not the next that its rank
  // may join. Where all ranks print the same, that never happens.
  NumberedQueue<wchar_t> hashes_;

  std::vector<std::uint64_t> prefix_set_;  // whose prefix is `prefix_`
  std::string prefix_;
};

// "[ranks 0-3,7] " or "[rank 3] ".
[[nodiscard]] std::string fold_prefix(const std::vector<int>& ranks);

}  // namespace drun::launcher
