#include "store/client/connect_policy.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/deadline.hpp"
#include "drun/store/errors.hpp"
#include "store/client/client_calls.hpp"

namespace drun::store {

std::chrono::milliseconds handshake_limit(ConnectLimits::Time deadline, ConnectLimits::Time now) {
  return std::min(kHandshakeLimit, time_left(deadline, now));
}

Error handshake_failure(const Error& cause) {
  if (cause.code() == Errc::Timeout) {
    return Error(cause.code(), "it accepts the connection but does not answer");
  }
  if (cause.code() == Errc::Closed) {
    return Error(cause.code(), "it closes the connection in the handshake");
  }
  return cause;
}

bool is_crowded(bool tls, const Error& cause, ConnectLimits::Time start, ConnectLimits::Time now) {
  return tls && cause.code() == Errc::Closed && now - start < kCrowdedLimit;
}

bool is_final(const Error& cause) {
  return cause.code() == Errc::NotAStore || cause.code() == Errc::WrongToken;
}

bool may_be_older(const Error& handshake_failure) {
  return handshake_failure.code() == Errc::Closed;
}

std::optional<Error> connect_failure(const ConnectLimits& limits, const Error& cause,
                                     ConnectLimits::Time now) {
  const bool late = now >= limits.deadline;
  if (!is_final(cause) && limits.retry && !late) return std::nullopt;
  std::string text = "connect to " + to_string(limits.endpoint) + ": " + cause.what();
  if (limits.retry && late) text += " (gave up after " + to_text(now - limits.start) + ")";
  return Error(cause.code(), std::move(text));
}

}  // namespace drun::store
