// An asynchronous client of drun's control protocol: a session at the store with ephemeral keys,
// guarded transactions and watches, kept up across broken connections. docs/protocol.md, section 1,
// has the protocol.
//
// Runs on the caller's asio::io_context, one thread. Calls return at once; events come through the
// sink, from the io_context, never from inside a call, in the order in which they happened. The
// sink may call the client, and may destroy it.
//
// A name is looked up again at each attempt, in a thread of its own; a numeric address and
// "localhost" need neither.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "drun/store/place.hpp"

namespace drun::secure {
class TlsContext;
}

namespace asio {
class io_context;
}

namespace drun::store {

struct ControlOptions {
  Endpoint endpoint;
  // Until the first session: attempts go on, with growing pauses, for this long. Zero: one attempt.
  std::chrono::milliseconds connect_timeout{60'000};
  // The session ends when the store has not heard from it for this long. Heartbeats go out three
  // times as often at the least; a store that was not heard from for this long counts as gone.
  std::chrono::milliseconds time_to_live{6'000};
  std::chrono::milliseconds heartbeat_interval{2'000};
  // How long the session outlives a connection that broke without a goodbye, at the most. A broken
  // connection does not prove that its client is gone, so by default it changes nothing: the grace
  // is the time to live.
  std::optional<std::chrono::milliseconds> grace;
  // After a break: attempts for this long.
  std::chrono::milliseconds keep_alive{6'000};
  // A heartbeat that is not answered within the first, or any request within the second, breaks the
  // connection.
  std::chrono::milliseconds heartbeat_timeout{5'000};
  std::chrono::milliseconds read_timeout{60'000};
  // The prefix of the job's keys. With it the client votes (vote()): a renewal then counts from the
  // moment at which a majority of the job was known to be with the store. Empty: it does not.
  std::string job;
  // The job's first store is not there yet, or it is not known where: it begins where a majority of
  // its founders meets. To be opened with go_to(). `founder`: this client's place among them; nodes
  // 0: it is none.
  bool founding = false;
  Place founder{};
  // For so long the majority may be elsewhere before a client that votes leaves the store.
  std::chrono::milliseconds majority_timeout{6'000};
  // After a break: Down comes once more when nobody listens at the store's port any more.
  bool tell_refusal = false;
  // The job's token, of drun's own programs: TLS with it alone, and no store without it. Null:
  // none.
  std::shared_ptr<const secure::TlsContext> tls{};
};

struct ControlGuard {
  std::string key;
  std::optional<std::string> expected;  // nullopt: the key must not exist
};
struct ControlWrite {
  std::string key;
  std::optional<std::string> value;  // nullopt deletes
  bool ephemeral = false;            // the key goes with the session
};
// All or nothing.
struct ControlTransaction {
  std::vector<ControlGuard> guards;
  std::vector<ControlWrite> writes;
};

struct ControlChange {
  std::string key;
  std::optional<std::string> value;  // nullopt: deleted
};
// What is there now. Comes first, and again after each reconnection.
struct ControlSnapshot {
  std::uint32_t watch = 0;
  std::vector<ControlChange> entries;
};
// What one transaction, one request or one session's end has changed.
struct ControlChanges {
  std::uint32_t watch = 0;
  std::vector<ControlChange> changes;
};
// The store does not show it: one of its limits, which `detail` names. Nothing more comes for it.
struct ControlWatchRejected {
  std::uint32_t watch = 0;
  std::string detail;
};
enum class ControlOutcome {
  Committed,
  Refused,   // a guard did not hold
  Rejected,  // the store does not take it, whoever asks: one of its limits, which `detail` names
  Unknown    // the connection broke, or the client closed, before the answer
};
struct ControlCommit {
  std::uint64_t request = 0;
  ControlOutcome outcome = ControlOutcome::Unknown;
  std::string detail{};
};
enum class ControlState {
  Up,          // a session is open: the first, or the same again after a break
  Down,        // the connection broke; trying again, the session may live
  NewSession,  // up again, but the old session is gone, and its ephemeral keys with it
  Failed,      // gave up; the last event
  Closed       // after close(); the last event
};
struct ControlLink {
  ControlState state = ControlState::Down;
  std::string detail;                   // endpoint and cause, one line for the user
  std::chrono::milliseconds silent{0};  // Down because no answer came: since the last one
  std::size_t keys_per_request = 0;     // Up, NewSession: that the store takes
  bool refused = false;                 // Down: nobody listens at the store's port
  // Down: it answers, but its majority has been elsewhere for `silent`. Nothing more is tried until
  // go_to() or close().
  bool deserted = false;
  std::uint64_t generation = 1;  // Up, NewSession: of the store; 1 is the job's first
  // Down: the store says that the job's is there, a numeric address. As `deserted`.
  std::optional<Endpoint> moved{};
  // Down: whoever answers there is in touch with the store that this client has left. As
  // `deserted`.
  bool early = false;
};
// The store has answered what was sent at this moment: the session lives for its time to live from
// then on, at the least. At most twice in each heartbeat_interval, of a client that votes four
// times, and after each Up and NewSession; also when something is settled. Of such a client it is
// an earlier moment, if a majority was last known to be with the store before it.
struct ControlRenewal {
  std::chrono::steady_clock::time_point sent;
  // The newest electorate that a client that votes knows to be settled: its majority alone counts.
  ElectorateId settled{};
};
// A store of a later generation counts on this client from now on, and hears of it when the sink
// has returned. proof_of_death() has changed: whoever is to send it must have the new one by then.
// With the old one another store could take the client for dead that is alive for this one.
struct ControlCall {
  std::uint64_t generation = 0;
};
using ControlEvent = std::variant<ControlSnapshot, ControlChanges, ControlWatchRejected,
                                  ControlCommit, ControlRenewal, ControlCall, ControlLink>;

// What ends a session in its client's stead: any process of this machine may connect to `address`
// (a sockaddr, as bytes) and send `bytes`. Sent twice, or after the session's end, they do nothing.
// They hold the session's token.
struct ControlFarewell {
  std::string address;
  std::string bytes;
};

class ControlClient {
 public:
  using Sink = std::function<void(ControlEvent)>;

  // `io` must outlive this.
  ControlClient(asio::io_context& io, ControlOptions options, Sink sink);
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;
  ~ControlClient();  // drops the connection without a goodbye; no more events

  // Once; Up or Failed follows.
  void open();
  // `watch` is the caller's name for it; it comes back in the events. One key, or with `prefix` all
  // keys that begin with `key`.
  void watch(std::uint32_t watch, std::string key, bool prefix);
  void unwatch(std::uint32_t watch);
  // `request` is the caller's number for it, any one: exactly one ControlCommit with it follows.
  // Give each its own to tell them apart. While there is no connection a transaction waits for the
  // next one; those that were sent and not answered when it broke are Unknown.
  void commit(std::uint64_t request, ControlTransaction transaction);
  // A round has begun, with or without this agent (`place` then has no rank, which may follow), at
  // a store of the generation `place.electorate.era`. Older ones than the last change nothing. To
  // be called before anything is started that needs the lease.
  void vote(const Place& place);
  // Leaves the store without a goodbye and goes to the one at `endpoint`, where a majority of the
  // job is to come together, in a new session: there is one try, without a limit of time.
  // NewSession (Up, if it is the first) or Down follows; after Down nothing is tried any more until
  // the next call. Transactions that were not answered are Unknown, watches are asked anew. After
  // open(), or in its stead. `founds`: a founder's place counts there, since nobody knows of a
  // store that the job has.
  void go_to(const Endpoint& endpoint, bool founds = true);
  // Ends the session, after all that was committed before. Closed follows, within a second.
  void close();

  // This end of the connection; an empty host before the first Up.
  [[nodiscard]] const Endpoint& local_endpoint() const;
  // The other one, likewise: where the store is, as a numeric address.
  [[nodiscard]] Endpoint store_endpoint() const;
  // Of the present session, at the address that this connection goes to; nullopt: there is none.
  // With `sign` it first writes this key, which goes with the session: who watches it knows that
  // the client has not said goodbye by itself.
  [[nodiscard]] std::optional<ControlFarewell> farewell(std::string_view sign = {}) const;
  // What tells a successor that this agent and all its workers have gone: to be sent to its port by
  // any process, once that is so. Without a vote: empty. Changes with vote(), go_to(), each
  // ControlCall and each NewSession; give it to whoever is to send it at once.
  [[nodiscard]] std::string proof_of_death() const;
  // Why the last attempt failed; empty when connected.
  [[nodiscard]] const std::string& last_error() const;

 private:
  class Impl;
  std::shared_ptr<Impl>
      impl_;  // shared with its pending handlers, which do nothing once this has gone
};

}  // namespace drun::store
