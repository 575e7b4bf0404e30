// How much the server does before it looks at everybody again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace drun::store {

// A turn is one round of the loop over those who have something for it. Most requests take about a
// microsecond, and are served in the turn in which they come. Some take milliseconds, for a few
// bytes sent: a list of all keys, a long value, a change that many are told of. Of these there is
// room in a turn for one, or for several that are not so long; the others wait for theirs in the
// order in which they came, so that a peer that asks for little waits for one of them at most,
// however many there are.
class Turn {
 public:
  // Work is counted in bytes, that a request has or its reply or others are told, and so many for
  // each key.
  static constexpr std::size_t kBytesOfAKey = 64;
  // More than this is much for one request, or for the cheap ones of a peer together.
  static constexpr std::size_t kMuch = 64 * 1024;
  static constexpr std::size_t kRoom = 1024 * 1024;

  // What one peer is served in a turn.
  class Share {
   public:
    [[nodiscard]] bool is_used_up() const { return used_ >= kMuch; }
    // A request was served, of which watches were told so many bytes.
    void note(std::uint64_t told) { used_ += kBytesOfAKey + told; }

   private:
    std::uint64_t used_ = 0;
  };

  void begin() { left_ = kRoom; }
  [[nodiscard]] bool has_room() const { return left_ > 0; }
  // A request was served, of which watches were told so many bytes. Those count however few they
  // are: a watch costs its owner nothing any more when others make it be told.
  void note(std::size_t work, std::uint64_t told = 0) {
    const std::size_t counted = (work > kMuch ? work : 0) + told;
    left_ -= std::min(left_, counted);
  }

 private:
  std::size_t left_ = kRoom;
};

}  // namespace drun::store
