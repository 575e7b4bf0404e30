// What each request of the TCPStore protocol does to a table, and what it is answered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "drun/store/limits.hpp"
#include "store/protocol/tcpstore_codec.hpp"
#include "store/server/job_scope.hpp"
#include "store/table/table.hpp"

namespace drun::store::tcpstore {

// Applies one request of `client` and appends its reply, if it has one yet, to `out`, which is what
// client.send_now() sends first; a wait that
// is not over is registered as `wait`, which is free, and answered through
// TableClient::on_wait_done(). The request is within the limits as it was decoded; those that
// depend on what the table holds are checked here. What asks for all keys is answered of
// those in `scope`, if there is one. Returns null, or why the connection must be closed: the
// protocol has no error replies.
[[nodiscard]] const char* apply(KeyTable& table, TableClient& client, std::uint64_t wait,
                                const Request& request, const Limits& limits, std::string& out,
                                const JobScope* scope = nullptr);

// How many keys it looks at, if that may be many. `request` has keys of another one if it has none
// of its own. Those in a `scope` are counted one by one.
[[nodiscard]] inline std::size_t keys_of(const KeyTable& table, const Request& request,
                                         const JobScope* scope = nullptr) {
  if (request.op == Op::ListKeys) return table.size();
  if (request.op == Op::GetNumKeys) return scope == nullptr ? 0 : table.size();
  const bool has_keys = request.op == Op::Check || request.op == Op::Wait ||
                        request.op == Op::MultiGet || request.op == Op::MultiSet;
  return has_keys ? request.keys.size() : 0;
}
// Whether its reply would be longer than `most`. Looks at no more than it takes to tell.
[[nodiscard]] bool replies_more_than(std::size_t most, const KeyTable& table,
                                     const Request& request);
// Whether serving it takes much of a turn.
[[nodiscard]] bool takes_much(const KeyTable& table, const Request& request,
                              const JobScope* scope = nullptr);

}  // namespace drun::store::tcpstore
