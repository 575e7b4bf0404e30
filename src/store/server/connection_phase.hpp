// What a connection of the server is doing, and how it may go on from there.
#pragma once

#include <cstdint>

namespace drun::store {

enum class ConnectionPhase : std::uint8_t {
  Reading,    // takes requests
  Paused,     // takes none until the peer has read its replies, or the others have had their turn
  Closing,    // takes none any more: closes once its replies are sent
  Lingering,  // all is sent, and the sending side shut: waits for the peer to close
  Dead        // to be removed
};

// Whether a connection may go from one phase to the next.
[[nodiscard]] constexpr bool may_follow(ConnectionPhase from, ConnectionPhase to) {
  using enum ConnectionPhase;
  switch (from) {
    case Reading:
      return to == Paused || to == Closing || to == Dead;
    case Paused:
      return to == Reading || to == Dead;
    case Closing:
      return to == Lingering || to == Dead;
    case Lingering:
      return to == Dead;
    case Dead:
      return false;
  }
  return false;
}

// Whether its input is waited for: for requests, or for its end.
[[nodiscard]] constexpr bool awaits_input(ConnectionPhase phase) {
  return phase == ConnectionPhase::Reading || phase == ConnectionPhase::Lingering;
}

}  // namespace drun::store
