// What an epoll event points to.
#pragma once

#include <cstdint>

namespace drun::store {

struct EventSource {
  enum class Kind : std::uint8_t { Connection, Listener, Stop, Signal, Mailbox };

  explicit EventSource(Kind source_kind) : kind(source_kind) {}
  Kind kind;
  std::uint32_t epoll_events = 0;  // asked for; 0: epoll does not know it
};

}  // namespace drun::store
