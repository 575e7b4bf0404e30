// Which ranks are somewhere else than the others: of many that wait for one another, the few that
// are not where the others wait may be those that are waited for. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/number_ranges.hpp"
#include "stacks/stack_report.hpp"

namespace drun::stacks {

// Whether a frame is of a library by which ranks wait for one another: a collective, a message of
// MPI, a key of torch's store.
[[nodiscard]] bool waits_for_ranks(std::string_view frame);

struct TellingFrame {
  std::string text;
  bool waits_for_ranks = false;
  bool waits_for_gpu = false;  // whatever that does
};
// The frame of a stack (innermost first) that says most of where it is: where it waits for other
// ranks, else for a GPU, else the innermost of the program itself. Empty: none says anything.
[[nodiscard]] TellingFrame telling_frame(const std::vector<std::string>& frames);
// Those of the workers, by rank; of none that says nothing.
[[nodiscard]] std::map<int, TellingFrame> telling_frames(const StackReport& report);

struct Elsewhere {
  struct Place {
    std::vector<NumberRange> ranks;
    // The innermost of those in which it differs from the others, at most two.
    std::vector<std::string> frames;
    std::string problem{};  // if it has no frames: its state
    bool operator==(const Place&) const = default;
  };
  std::vector<Place> places;  // the fewest ranks first
  std::size_t ranks = 0;      // in all of them
  std::size_t others = 0;     // that are together
  std::size_t all = 0;
};

// It is a suspicion, no more: a rank that is ahead stands out as well as one that is behind. Ranks
// that wait for others are not named if others are not where they wait. Nullopt: nobody stands out,
// of two ranks nobody ever does, and of groups that are about equal none.
[[nodiscard]] std::optional<Elsewhere> find_elsewhere(const StackReport& report);

// "rank 2 is somewhere else than the other 3: in lock (train.py:7), called from step (train.py:9)"
[[nodiscard]] std::string text_of(const Elsewhere& found);

}  // namespace drun::stacks
