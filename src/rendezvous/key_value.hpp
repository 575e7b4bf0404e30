// What rendezvous needs of a key-value store, as messages: requests go out, events come back. Owned
// by rendezvous; the launcher implements it over drun's store and over etcd (src/etcd) or within
// its own process, the simulation in memory. Nothing here assumes that the store is near, that a
// write is free, or that two watches are ordered against each other.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace drun::rendezvous {

using WatchId = std::uint32_t;
using RequestId = std::uint64_t;

struct Write {
  std::string key;
  std::optional<std::string> value;  // nullopt deletes the key
  bool ephemeral = false;            // the key goes with the writer's session
};

// The transaction is applied only if the key holds exactly this; nullopt: only if it does not
// exist.
struct Guard {
  std::string key;
  std::optional<std::string> expected;
};

// All or nothing, and seen by watchers as one event. Without guards it always applies.
struct Transaction {
  std::vector<Guard> guards;
  std::vector<Write> writes;
};

struct Change {
  std::string key;
  std::optional<std::string> value;  // nullopt: deleted
};

// All keys under a watch at one moment. Sent first, and again after every reconnection, behind its
// LinkEvent: it replaces what was known.
struct WatchSnapshot {
  WatchId watch = 0;
  std::vector<Change> entries;
};

// What one transaction (or one session's end) changed under a watch. In order, none lost, none
// twice.
struct WatchChanges {
  WatchId watch = 0;
  std::vector<Change> changes;
};

// The store does not show what was to be watched: one of its limits. Nothing more comes for this
// watch.
struct WatchRejected {
  WatchId watch = 0;
  std::string detail;
};

enum class CommitOutcome {
  Committed,
  Refused,   // a guard did not hold
  Rejected,  // the store does not take it, whoever asks: one of its limits
  // The connection broke before the answer. The transaction took effect before the snapshots of the
  // reconnection were taken, or never will: look there.
  Unknown
};

struct CommitResult {
  RequestId request = 0;
  CommitOutcome outcome = CommitOutcome::Unknown;
  std::string detail{};  // Rejected: which limit
};

// The first event is Up or Failed; Down comes before the Up or NewSession of every reconnection.
enum class Link {
  Up,    // a session is open (the first time, or resumed: ephemeral keys still stand)
  Down,  // the connection broke; the adapter is reconnecting, and the session may still be alive
  NewSession,  // reconnected, but the old session had expired: its ephemeral keys are gone
  Failed,      // the adapter gave up; nothing more will come
  Closed       // after close(); nothing more will come
};

struct LinkEvent {
  Link link = Link::Down;
  std::string detail;                   // endpoint and cause, for the user
  std::chrono::milliseconds silent{0};  // Down, no answer came: since the store was last heard
  std::size_t most_writes = 0;          // Up, NewSession: of one transaction; 0: not said
  // Up, NewSession: which store of the job this is, 1 for the first, higher for each successor. 0:
  // this store has no successors.
  std::int64_t generation = 0;
  // At a later generation than before: for how long from now on workers may run that an
  // earlier store let run; less what Keys::silence says.
  std::chrono::milliseconds old_leases{0};
  bool hosting = false;    // generation > 0: the store is in this process
  std::string store = {};  // generation > 0: its endpoint
};

// A node's place in the nodes of one round, whose majority says which store is the right one.
// Places are in the order of era and round.
inline constexpr std::int64_t kOrigins = std::int64_t{1} << 32;
struct Place {
  // The generation of the store at which the round was begun, times kOrigins, and what is the same
  // in all eras of the job: its origin, which its first leader drew. 0: no place.
  std::int64_t era = 0;
  int round = 0;
  int rank = -1;  // of this node; -1: it knows of the round, and is not in it
  int nodes = 0;
  // The rank whose vote counts more when half of the nodes are there; -1: rank 0.
  int casting = -1;

  [[nodiscard]] bool exists() const { return era > 0; }
  [[nodiscard]] std::int64_t generation() const { return era / kOrigins; }
  // Of rounds that go back to the same first one.
  [[nodiscard]] bool same_origin(const Place& other) const {
    const auto origin = [](const Place& place) {
      return place.era < kOrigins ? 0 : place.era % kOrigins;
    };
    return origin(*this) == origin(other);
  }
  [[nodiscard]] bool same_round(const Place& other) const {
    return era == other.era && round == other.round;
  }
  [[nodiscard]] bool before(const Place& other) const {
    return era != other.era ? era < other.era : round < other.round;
  }
  auto operator<=>(const Place&) const = default;
};

// For which nodes an agent speaks by being at a store.
struct Vote {
  std::string job;  // the prefix of its keys: each job of a store has its own majority
  Place latest;     // of the last round that it knows of; none before the first
  bool operator==(const Vote&) const = default;
};

// Where a store begins when the present one is lost.
struct Successor {
  std::string address;
  std::uint16_t port = 0;
  bool self = false;  // in this process
  bool operator==(const Successor&) const = default;
};

// The store has answered what was sent at this moment, so this agent's session was alive then; it
// lives on for longer than the keep-alive limit from there. An implementation whose sessions do not
// age never says it; others do it after each Up and NewSession, and often enough later.
struct Renewed {
  std::chrono::steady_clock::time_point sent;
  // If the store has successors: its last settled round. A majority of the nodes of the round that
  // was settled before knows of this one.
  std::int64_t settled_era = 0;
  int settled_round = 0;
};

using KeyValueEvent =
    std::variant<WatchSnapshot, WatchChanges, WatchRejected, CommitResult, Renewed, LinkEvent>;

// One agent's connection to the store. All calls return at once; events arrive through the sink
// that the implementation was given, never from inside a call. Requests take effect in the order of
// the calls; each commit is answered once. What is asked for while the link is down is done after
// the reconnection, or a commit is answered with Unknown.
class KeyValue {
 public:
  KeyValue() = default;
  KeyValue(const KeyValue&) = delete;
  KeyValue& operator=(const KeyValue&) = delete;
  virtual ~KeyValue() = default;

  // Watches one key, or with `prefix` every key that begins so. Survives reconnections until
  // unwatch().
  virtual void watch(WatchId watch, std::string key, bool prefix) = 0;
  virtual void unwatch(WatchId watch) = 0;
  virtual void commit(RequestId request, Transaction transaction) = 0;

  // Says from now on, and at once, whom this agent speaks for, and where it goes if the store is
  // lost, in this order. An implementation without successors has no use for it.
  virtual void vote(const Vote& /*vote*/, const std::vector<Successor>& /*successors*/) {}

  // Says goodbye: the session and its ephemeral keys end now, after all that was committed before.
  // Link::Closed follows, within about a second if the store does not answer.
  virtual void close() = 0;
};

}  // namespace drun::rendezvous
