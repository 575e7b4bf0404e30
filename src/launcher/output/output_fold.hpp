// --fold: a line that several ranks print within a short time is shown once, with the ranks. Each
// rank's own lines stay in order. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace drun::launcher {

class LineFolder {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Limits {
    std::chrono::milliseconds window{300};  // how long a line waits for the other ranks
    std::size_t lines = 4096;               // that wait at most; beyond it the oldest goes
    std::size_t bytes = 1024 * 1024;
  };

  struct Folded {
    std::vector<int> ranks;  // in order of arrival
    std::string line;
  };

  LineFolder() = default;
  explicit LineFolder(Limits limits) : limits_(limits) {}

  // A line is complete when all ranks that take part have printed it.
  void join(int rank) { ++members_[rank]; }
  void leave(int rank);

  void add(int rank, std::string_view line, Time now);
  // The next line to show; nullopt: none is due yet.
  [[nodiscard]] std::optional<Folded> next(Time now);
  [[nodiscard]] std::optional<Time> deadline() const;

 private:
  struct Group {
    Folded folded;
    Time since;
    std::size_t gone = 0;  // ranks of it that have left
  };

  // The numbers of the groups with one text, ascending. Thousands of them come and go at the front.
  struct SameText {
    std::vector<std::uint64_t> numbers;
    std::size_t gone = 0;  // of `numbers`, at its front

    // The first that is not below `behind`; nullptr: there is none.
    [[nodiscard]] const std::uint64_t* from(std::uint64_t behind) const;
    void pop_front();
  };

  // A rank that printed the line and has left does not stand in for one that is still there.
  [[nodiscard]] bool complete(const Group& group) const {
    return group.folded.ranks.size() - group.gone >= members_.size();
  }
  void forget_front();
  [[nodiscard]] bool full() const {
    return groups_.size() > limits_.lines || bytes_ > limits_.bytes;
  }

  Limits limits_;
  std::map<int, int> members_;  // rank -> streams
  std::deque<Group> groups_;
  std::uint64_t first_ = 0;  // number of groups_.front(); groups are numbered from the first on
  std::size_t bytes_ = 0;
  // The key is the line of the first of them.
  std::unordered_map<std::string_view, SameText> by_line_;
  std::unordered_map<int, std::uint64_t> behind_;  // rank -> number after its last line's group
};

// "[ranks 0-3,7] " or "[rank 3] ".
[[nodiscard]] std::string fold_prefix(const std::vector<int>& ranks);

}  // namespace drun::launcher
