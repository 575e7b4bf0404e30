// How much the server does before it looks at everybody again.
#pragma once

#include <algorithm>
#include <cstddef>

namespace drun::store {

// A turn is one round of the loop over those who have something for it. Most requests take about a
// microsecond, and are served in the turn in which they come. Some take milliseconds, for a few
// bytes sent: a list of all keys, a snapshot, a long value. Of these there is room in a turn for
// one, or for several that are not so long; the others wait for theirs in the order in which they
// came, so that whoever asks for little waits for one of them at most, however many there are.
class Turn {
 public:
  // Work is counted in bytes, that a request has or its reply, and so many for each key.
  static constexpr std::size_t kBytesOfAKey = 64;
  // More than this is much for one request.
  static constexpr std::size_t kMuch = 64 * 1024;
  // Requests of one peer: cheap ones add up, too.
  static constexpr int kRequestsOfAPeer = 1024;

  void begin() { left_ = kRoom; }
  [[nodiscard]] bool has_room() const { return left_ > 0; }
  // A request was served.
  void note(std::size_t work) {
    if (work > kMuch) left_ -= std::min(left_, work);
  }

 private:
  static constexpr std::size_t kRoom = 1024 * 1024;

  std::size_t left_ = kRoom;
};

}  // namespace drun::store
