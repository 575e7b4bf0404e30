// An agent's vote: the places that it has had, as far as they still count.
#pragma once

#include <cstddef>
#include <vector>

#include "drun/store/place.hpp"

namespace drun::store {

// More places than these, none of them settled, are no vote any more.
inline constexpr std::size_t kMostPlaces = 64;

struct Vote {
  // The newest electorate that the agent knows to be settled, and its own place there, if it has
  // one. `nodes` is 0 while it knows none.
  Place settled;
  // Its places in newer ones, oldest first.
  std::vector<Place> later;

  // Of the newest round that it knows of.
  [[nodiscard]] const Place& latest() const { return later.empty() ? settled : later.back(); }
  bool operator==(const Vote&) const = default;
};

// Whether a peer may say so.
[[nodiscard]] bool is_sound(const Vote& vote);

// Keeps an agent's vote.
class Voter {
 public:
  // It may begin the job's first store, with others. Before anything else.
  void found(const Place& place) { vote_.settled = place; }
  // A round has begun, with or without it. Older ones than the latest change nothing; of the latest
  // a rank may follow.
  void give(const Place& place);
  // A store says that this electorate is settled (its rank does not matter).
  void settle(const Place& electorate);
  // Too many rounds have come and none was settled: it must have no lease until that changes.
  [[nodiscard]] bool is_lost() const { return vote_.later.size() > kMostPlaces; }
  // Precondition: !is_lost().
  [[nodiscard]] const Vote& vote() const { return vote_; }

 private:
  Vote vote_;
};

}  // namespace drun::store
