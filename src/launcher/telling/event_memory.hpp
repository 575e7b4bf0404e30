// The last events of this agent, for the status page: as many as fit a few megabytes.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "drun/events/event.hpp"

namespace drun::launcher {

// One thread; a copy of it may go to another.
class EventMemory {
 public:
  // More push out the oldest.
  static constexpr std::size_t kMost = 2'048;

  // Shared with the copies, which cost next to nothing.
  using List = std::deque<std::shared_ptr<const events::Event>>;

  void add(const events::Event& event);
  // The oldest first.
  [[nodiscard]] const List& list() const { return list_; }
  // So many were pushed out.
  [[nodiscard]] std::size_t forgotten() const { return forgotten_; }

 private:
  List list_;
  std::size_t forgotten_ = 0;
};

// The documents of the page: /events.json and /trace.json. Any thread.

// {"events":[...]}: the last ones, the oldest first, each as a line of --events. Without the starts
// of workers and the ends of those that did not fail, which would leave no room for others.
[[nodiscard]] std::string events_json(const EventMemory& memory);
// What drunctl timeline would make of these events, until `monotonic_ns`.
[[nodiscard]] std::string events_trace(const EventMemory& memory, std::int64_t monotonic_ns);

}  // namespace drun::launcher
