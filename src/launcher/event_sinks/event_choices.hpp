// --events and --on-event, understood.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "drun/events/event.hpp"

namespace drun::launcher {

// Where the lines go.
struct EventTarget {
  enum class Kind { File, Descriptor, Command };
  Kind kind = Kind::File;
  std::string text;     // of the flag, behind "exec:"; a file's path with its names not filled in
  int descriptor = -1;  // for Descriptor

  bool operator==(const EventTarget&) const = default;
};

// A command of a shell, for some kinds of events.
struct EventHook {
  std::bitset<64> kinds;  // by events::Kind
  bool at_end = false;    // for the outcome, on the node that leads
  std::string command;

  [[nodiscard]] bool wants(events::Kind kind) const {
    return kinds.test(static_cast<std::size_t>(kind));
  }
  bool operator==(const EventHook&) const = default;
};

struct EventChoices {
  std::optional<EventTarget> target;
  std::vector<EventHook> hooks;

  bool operator==(const EventChoices&) const = default;
};

}  // namespace drun::launcher
