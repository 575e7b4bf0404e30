// The messages of etcd's JSON gateway that drun uses: values to request bodies, answers to values.
// Pure. Answers are not trusted: what does not read as expected is an Error, and text that came
// from the network is made printable and short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"
#include "rendezvous/key_value.hpp"

namespace drun::etcd {

using LeaseId = std::int64_t;  // 0: none

// Of one transaction, as etcd is configured by default.
inline constexpr std::size_t kMostOperations = 128;

// ---- requests: bodies of a POST ----

[[nodiscard]] std::string authenticate_request(const std::string& user,
                                               const std::string& password);
// `lease` 0: etcd chooses one.
[[nodiscard]] std::string grant_request(LeaseId lease, std::int64_t seconds);
// Of a lease: to keep it alive, to end it.
[[nodiscard]] std::string lease_request(LeaseId lease);
[[nodiscard]] std::string range_request(std::string_view key, bool prefix);
// Only whether the key is there.
[[nodiscard]] std::string presence_request(std::string_view key);
[[nodiscard]] std::string watch_request(std::string_view key, bool prefix, std::int64_t from);

// What a transaction is guarded by besides its own guards: this key holds this value.
struct Fence {
  std::string key;
  std::string value;
};
// Applied only if the fence holds; if not all guards do, the answer shows the fence. Ephemeral keys
// go with `session`, others with `job`. Of several writes to one key the last one counts: etcd
// takes only one.
[[nodiscard]] std::string commit_request(const rendezvous::Transaction& transaction,
                                         const Fence& fence, LeaseId session, LeaseId job);
// Sets the fence if it is there with a lower value, or, with `create`, if it is not there.
[[nodiscard]] std::string fence_request(const Fence& fence, bool create, LeaseId session);

// ---- answers ----

// gRPC's codes that mean something here.
enum class GrpcCode {
  InvalidArgument = 3,
  NotFound = 5,
  PermissionDenied = 7,
  ResourceExhausted = 8,
  FailedPrecondition = 9,
  Unauthenticated = 16
};

struct Refusal {
  int code = 0;
  std::string text;

  [[nodiscard]] bool is(GrpcCode other) const { return code == static_cast<int>(other); }
};
// Of an answer whose HTTP status is not 200; nullopt: no etcd says such a thing.
[[nodiscard]] std::optional<Refusal> read_refusal(std::string_view body);

[[nodiscard]] Result<std::string> read_token(std::string_view body);

struct LeaseAnswer {
  LeaseId lease = 0;
  std::int64_t seconds = 0;  // 0, of a lease to be kept alive: there is none
  std::int64_t term = 0;     // of the cluster's leader
};
[[nodiscard]] Result<LeaseAnswer> read_grant(std::string_view body);
[[nodiscard]] Result<LeaseAnswer> read_keep_alive(std::string_view body);

struct RangeAnswer {
  std::int64_t revision = 0;
  std::int64_t term = 0;
  std::int64_t count = 0;
  std::vector<rendezvous::Change> entries;
};
[[nodiscard]] Result<RangeAnswer> read_range(std::string_view body);

struct TransactionAnswer {
  bool succeeded = false;
  std::int64_t term = 0;
  std::optional<std::string> fence;  // if it did not succeed: what the fence holds
};
[[nodiscard]] Result<TransactionAnswer> read_transaction(std::string_view body);

// One line of a watch's stream.
struct WatchAnswer {
  bool canceled = false;
  bool compacted = false;  // canceled, because what was to be watched is not kept any more
  std::string reason;      // canceled: why
  // What one transaction or the end of one lease has changed, each.
  std::vector<std::vector<rendezvous::Change>> changes;
};
[[nodiscard]] Result<WatchAnswer> read_watch(std::string_view line);

// Text from the network, for the user: one printable line that is not long.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace drun::etcd
