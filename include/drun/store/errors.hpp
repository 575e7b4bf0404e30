// What can go wrong with a store, as error codes to decide on. System causes (connection refused,
// address in use) keep their errno codes.
#pragma once

#include <system_error>

namespace drun::store {

enum class Errc {
  Timeout = 1,      // the deadline of the call passed
  Closed,           // the peer closed the connection, or the client was closed
  NotAStore,        // what answers there does not speak the protocol
  VersionRefused,   // no common version of the control protocol
  Malformed,        // bytes that break the protocol, or a damaged file
  LimitExceeded,    // a key, a value or a request beyond the server's limits
  NoSession,        // an ephemeral write without a session
  SessionExpired,   // the session ended, and its ephemeral keys with it
  SnapshotDamaged,  // a snapshot file that is not complete or not one
  Unsupported,      // the server cannot do this (a call newer than the server)
  WrongToken        // the server has another token than the client, or one of them has none
};

[[nodiscard]] const std::error_category& store_category();
[[nodiscard]] std::error_code make_error_code(Errc code);

}  // namespace drun::store

template <>
struct std::is_error_code_enum<drun::store::Errc> : std::true_type {};
