// The least that a server can do on this machine: epoll, read, count bytes, write as many as the
// real reply would have. It parses nothing; the load generator tells it the sizes. As "limit" it
// stores nothing either, as "copy" it copies all that comes into memory of the connection and
// replies out of there: what a store has to do with its values at least.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string_view>

namespace drun::bench {

// In memory shared with the server. Set before the connections of a load are opened.
struct LimitSizes {
  std::atomic<std::size_t> hello_bytes;    // the first bytes of a connection ...
  std::atomic<std::size_t> hello_reply;    // ... and what they get
  std::atomic<std::size_t> request_bytes;  // then: each so many bytes ...
  std::atomic<std::size_t> reply_bytes;    // ... get so many
  // Above 0: replies are held until so many bytes have come on all connections together; then each
  // connection that has sent exactly one request gets its reply. The one that sends something of
  // another size, as the last, gets none.
  std::atomic<std::size_t> release_at;
  std::atomic<std::size_t> load;  // grows with each load
};

// A zeroed instance that child processes share.
[[nodiscard]] LimitSizes& shared_limit_sizes();

enum class LimitKind { Limit, Copy };

// The kind with this name; nullopt: it is the name of a store.
[[nodiscard]] std::optional<LimitKind> limit_kind(std::string_view server);

// Serves for ever on a free loopback port; writes "127.0.0.1:port\n" to `out` when it listens.
void serve_limit(const LimitSizes& sizes, LimitKind kind, int out);

}  // namespace drun::bench
