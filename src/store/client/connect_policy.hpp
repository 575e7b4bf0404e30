// What all clients hold to while they connect: limits, pauses, and what the user is told.
#pragma once

#include <chrono>
#include <optional>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"

namespace drun::store {

inline constexpr std::chrono::milliseconds kFirstPause{5};
inline constexpr std::chrono::milliseconds kLongestPause{2000};
// An address that swallows packets must not use up the time of the others.
inline constexpr std::chrono::milliseconds kConnectLimit{5000};
// A server that thousands of clients have just reached may need long for its answer.
inline constexpr std::chrono::milliseconds kHandshakeLimit{30'000};

// With a token, who is sent away before it was shown tries again for so long: strangers may crowd
// the server for a moment, and it lets go of them.
inline constexpr std::chrono::milliseconds kCrowdedLimit{10'000};

struct ConnectLimits {
  using Time = std::chrono::steady_clock::time_point;

  const Endpoint& endpoint;
  bool retry = true;
  Time start;
  Time deadline;
};

// How long the handshake may take now.
[[nodiscard]] std::chrono::milliseconds handshake_limit(ConnectLimits::Time deadline,
                                                        ConnectLimits::Time now);

// What the end of the handshake means: a bare cause.
[[nodiscard]] Error handshake_failure(const Error& cause);

// Whether to try again although nobody has asked for it. `tls`: there is a token.
[[nodiscard]] bool is_crowded(bool tls, const Error& cause, ConnectLimits::Time start,
                              ConnectLimits::Time now);

// Trying again would not help.
[[nodiscard]] bool is_final(const Error& cause);

// Whether a server that failed the handshake of torch 2.2 so may be one of torch 1.13, which closes
// the connection. One that is going away does so, too.
[[nodiscard]] bool may_be_older(const Error& handshake_failure);

// After an attempt that failed with this bare cause: the error for the user, or nullopt to go on.
[[nodiscard]] std::optional<Error> connect_failure(const ConnectLimits& limits, const Error& cause,
                                                   ConnectLimits::Time now);

}  // namespace drun::store
