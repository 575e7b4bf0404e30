// A key-value store in memory, with sessions, ephemeral keys and watches as KeyValue promises them.
// No time and no network: what it says to a session goes to the sink at once, in order. The
// simulation puts delays, losses and lifetimes around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/key_value.hpp"

namespace drun::test {

using SessionId = std::uint64_t;

// How many keys the transaction sets: what it deletes takes no room.
[[nodiscard]] std::size_t values_set(const rendezvous::Transaction& transaction);

class FakeStore {
 public:
  using Sink = std::function<void(SessionId, rendezvous::KeyValueEvent)>;
  explicit FakeStore(Sink sink) : sink_(std::move(sink)) {}

  SessionId open() { return ++last_session_; }
  // Ends a session: its ephemeral keys go as one change, its watches with it.
  void expire(SessionId session);
  // The same, but its connection, and so its watches, goes on.
  void drop_keys(SessionId session);
  // Its watches only: the connection broke. The client watches again on the next one.
  void disconnect(SessionId session);

  void watch(SessionId session, rendezvous::WatchId watch, const std::string& key, bool prefix);
  void unwatch(SessionId session, rendezvous::WatchId watch);
  rendezvous::CommitOutcome commit(SessionId session, const rendezvous::Transaction& transaction);

  struct Value {
    std::string text;
    SessionId owner = 0;  // of an ephemeral key
  };
  [[nodiscard]] const std::map<std::string, Value>& keys() const { return keys_; }
  // What happened so far, for the cost of a round.
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // All sessions and ephemeral keys are gone, as after a restart from a snapshot file;
  // `everything`: the other keys, too. Nobody is told.
  void restart(bool everything);
  // What a snapshot file holds: all keys, and whose session each ephemeral one goes with.
  struct Saved {
    std::map<std::string, Value> keys;
    std::map<SessionId, std::set<std::string>> owned;
  };
  [[nodiscard]] Saved save() const { return {keys_, owned_}; }
  // Restarts from it. Nobody is told.
  void restart(Saved saved);

 private:
  using Watcher = std::pair<SessionId, rendezvous::WatchId>;

  void publish(const std::vector<rendezvous::Change>& changes);
  void send(SessionId session, rendezvous::KeyValueEvent event, std::size_t bytes);

  Sink sink_;
  SessionId last_session_ = 0;
  std::map<std::string, Value> keys_;
  std::map<SessionId, std::set<std::string>> owned_;
  std::map<std::string, std::set<Watcher>> exact_;
  std::map<std::string, std::set<Watcher>> prefixes_;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace drun::test
