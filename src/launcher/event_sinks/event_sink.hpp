// Where the lines of --events go. A sink belongs to one thread at a time, which it may hold up: not
// the agent's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "launcher/event_sinks/event_choices.hpp"

namespace drun::launcher {

// What became of some lines: the first `taken` of them are written or lost, the others still wait
// for a reader.
struct SinkResult {
  std::size_t taken = 0;
  std::size_t written = 0;
  std::string why;  // some were lost; empty: none was
};

class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;

  // Each line, which has its end, is written whole or not at all.
  [[nodiscard]] virtual SinkResult write(std::span<const std::string> lines) = 0;
  // No more come. Why they may not have arrived; empty: they have.
  [[nodiscard]] virtual std::string end() { return ""; }
};

// `path`: the target's, filled in; for a file. `max_size` 0: a file grows without limit. Nothing is
// opened before the first write.
[[nodiscard]] std::unique_ptr<EventSink> make_event_sink(const EventTarget& target,
                                                         std::string path, std::uint64_t max_size);

}  // namespace drun::launcher
