// A session at etcd, which is a lease: the key that guards its transactions, and its last word.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "drun/base/endpoint.hpp"
#include "etcd/etcd_messages.hpp"

namespace drun::etcd {

inline constexpr const char* kRevokePath = "/v3/lease/revoke";

// Each reconnection of a session has a higher generation. No job's key is one of a fence.
[[nodiscard]] Fence fence_of(LeaseId session, std::uint64_t generation);
// What holds the fence instead; nullopt: nothing that drun has written.
[[nodiscard]] std::optional<std::uint64_t> generation_in(const std::string& value);

// What ends the session when it is sent to this member over a new connection without TLS. `token`:
// of a user; empty: of none.
[[nodiscard]] std::string farewell_bytes(LeaseId session, const Endpoint& member,
                                         const std::string& token);

}  // namespace drun::etcd
