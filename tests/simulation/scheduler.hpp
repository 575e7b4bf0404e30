// Virtual time: things to do, in the order of their moments and, within one, of being planned.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "rendezvous/types.hpp"

namespace drun::simulation {

using rendezvous::Milliseconds;
using rendezvous::Time;

class Scheduler {
 public:
  [[nodiscard]] Time now() const { return now_; }
  void at(Time time, std::function<void()> what) {
    events_.push({time < now_ ? now_ : time, ++planned_, std::move(what)});
  }
  void after(Milliseconds delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

  // Does the next thing; false when there is none until `end`.
  bool step(Time end) {
    if (events_.empty() || events_.top().time > end) return false;
    auto event = std::move(const_cast<Event&>(events_.top()));  // popped at once
    events_.pop();
    now_ = event.time;
    event.what();
    return true;
  }

 private:
  struct Event {
    Time time;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  std::priority_queue<Event> events_;
  std::uint64_t planned_ = 0;
  Time now_{std::chrono::hours(1)};
};

}  // namespace drun::simulation
