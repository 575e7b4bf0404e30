// Watches over connections that break at any byte: what a client is told is a snapshot and then
// every change behind it, in order, none left out and none twice; and again after each
// reconnection.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "store/client/control_fsm.hpp"
#include "support/seeds.hpp"
#include "support/test_peer.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using test::PeerWorld;
using test::TestPeer;

using State = std::map<std::string, std::optional<std::string>>;

// What one watch should be told of: all changes that concern it, and the states between them.
class Log {
 public:
  Log(std::string key, bool prefix) : key_(std::move(key)), prefix_(prefix) {}

  void add(const State& changes) {
    State mine;
    for (const auto& [key, value] : changes)
      if (prefix_ ? key.starts_with(key_) : key == key_) mine.emplace(key, value);
    if (mine.empty()) return;
    State next = states_.back();
    for (const auto& [key, value] : mine) {
      if (value) {
        next[key] = value;
      } else {
        next.erase(key);
      }
    }
    changes_.push_back(std::move(mine));
    states_.push_back(std::move(next));
  }
  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] bool prefix() const { return prefix_; }
  [[nodiscard]] std::size_t end() const { return changes_.size(); }
  [[nodiscard]] bool is_state(std::size_t at, const State& state) const {
    return states_[at] == state;
  }
  [[nodiscard]] bool is_change(std::size_t at, const State& changes) const {
    return at < changes_.size() && changes_[at] == changes;
  }

 private:
  std::string key_;
  bool prefix_;
  std::vector<State> changes_;
  std::vector<State> states_{State{}};
};

State to_state(const std::vector<ControlChange>& changes) {
  State state;
  for (const auto& change : changes)
    EXPECT_TRUE(state.emplace(change.key, change.value).second) << "twice in one: " << change.key;
  return state;
}

// Where in its log a watch may be, by what it was told; a state may come again.
class Follower {
 public:
  explicit Follower(const Log& log) : log_(log) {}

  void on_snapshot(const State& state) {
    const std::size_t from = at_.empty() ? 0 : *at_.begin();
    at_.clear();
    for (std::size_t i = from; i <= log_.end(); ++i)
      if (log_.is_state(i, state)) at_.insert(i);
    ASSERT_FALSE(at_.empty()) << "a snapshot of no state since the last word: " << log_.key();
  }
  void on_changes(const State& changes) {
    std::set<std::size_t> next;
    for (const std::size_t i : at_)
      if (log_.is_change(i, changes)) next.insert(i + 1);
    at_ = std::move(next);
    ASSERT_FALSE(at_.empty()) << "lost or told twice: " << log_.key();
  }
  [[nodiscard]] bool is_at_end() const { return at_.contains(log_.end()); }

 private:
  const Log& log_;
  std::set<std::size_t> at_;
};

class WatchedStore {
 public:
  explicit WatchedStore(std::uint64_t seed) : random_(seed) {
    world_.now = Time(1h);
    for (auto& client : clients_)
      client = std::make_unique<Client>(logs_, static_cast<std::uint32_t>(random_()), world_.now);
  }

  void run() {
    for (int step = 0; step < 600; ++step) {
      if (below(3) == 0) write();
      Client& client = *clients_[below(kClients)];
      if (below(30) == 0) cut(client);
      pass(milliseconds(below(20)));
      keep(client);
      move(client, below(2) == 0);
      if (testing::Test::HasFatalFailure()) return;
    }
    for (int round = 0; round < 200; ++round) {
      pass(100ms);
      for (auto& client : clients_) {
        keep(*client);
        move(*client, true);
      }
      if (testing::Test::HasFatalFailure()) return;
    }
    for (auto& client : clients_) {
      for (const auto& follower : client->followers)
        EXPECT_TRUE(follower.is_at_end());
      EXPECT_GT(client->connection, 0U);
      reconnections_ += client->connection - 1;
    }
  }
  [[nodiscard]] std::uint64_t reconnections() const { return reconnections_; }

 private:
  using Time = ControlFsm::Time;
  using milliseconds = std::chrono::milliseconds;
  static constexpr std::size_t kClients = 3;

  struct Client {
    Client(const std::vector<Log>& logs, std::uint32_t seed, Time now) : fsm(options(), seed) {
      fsm.open(now);
      std::uint32_t watch = 1;
      for (const auto& log : logs) {
        fsm.watch(watch++, log.key(), log.prefix());
        followers.emplace_back(log);
      }
    }
    static ControlOptions options() {
      ControlOptions result;
      result.keep_alive = result.connect_timeout = 1h;
      return result;
    }

    ControlFsm fsm;
    std::vector<Follower> followers;  // of the watches 1, 2, ...
    std::unique_ptr<TestPeer> peer;
    std::uint64_t connection = 0;
    std::string to_store;
    std::string to_client;
  };

  std::size_t below(std::size_t bound) { return random_() % bound; }

  void pass(milliseconds time) {
    world_.now += time;
    world_.sessions.expire(world_.now);
  }

  // One to three keys at once; a value is never written twice.
  void write() {
    State changes;
    for (std::size_t n = 1 + below(3); n > 0; --n) {
      const std::string key = (below(4) == 0 ? "q/" : "p/") + std::to_string(below(4));
      if (changes.contains(key)) continue;
      if (below(3) == 0) {
        if (!world_.job.erase(key)) continue;
        changes.emplace(key, std::nullopt);
      } else {
        const std::string value = std::to_string(++written_) + std::string(below(40), '.');
        ASSERT_TRUE(world_.job.put(key, value));
        changes.emplace(key, value);
      }
    }
    world_.job.publish();
    for (auto& log : logs_)
      log.add(changes);
  }

  static void drop(Client& client) {
    client.peer.reset();
    client.to_store.clear();
    client.to_client.clear();
  }
  void cut(Client& client) {
    if (client.peer == nullptr) return;
    drop(client);
    client.fsm.on_disconnected("Connection reset by peer", world_.now);
    hear(client);
  }

  // Does what the machine wants: time, connections.
  void keep(Client& client) {
    const auto deadline = client.fsm.next_deadline();
    if (deadline && *deadline <= world_.now) client.fsm.on_time(world_.now);
    const auto wanted = client.fsm.wanted_connection();
    if (wanted.value_or(0) != client.connection || !wanted) drop(client);
    if (wanted && *wanted != client.connection) {
      client.connection = *wanted;
      client.peer = std::make_unique<TestPeer>(world_);
      client.fsm.on_connected(world_.now);
    }
    hear(client);
  }

  // Bytes that are under way arrive: all, or a few.
  void move(Client& client, bool all) {
    if (client.peer == nullptr) return;
    client.to_store += client.fsm.take_output(world_.now);
    const std::string sent = take(client.to_store, all);
    const bool open = client.peer->send(sent);
    client.to_client += client.peer->take();
    if (client.peer->is_paused()) (void)client.peer->resume();
    client.fsm.on_received(take(client.to_client, all), world_.now);
    hear(client);
    ASSERT_TRUE(open) << "the store closed the connection";
  }
  std::string take(std::string& pipe, bool all) {
    const std::size_t size = all ? pipe.size() : below(pipe.size() + 1);
    const std::string piece = pipe.substr(0, size);
    pipe.erase(0, size);
    return piece;
  }

  static void hear(Client& client) {
    for (const auto& event : client.fsm.take_events()) {
      if (const auto* snapshot = std::get_if<ControlSnapshot>(&event)) {
        client.followers.at(snapshot->watch - 1).on_snapshot(to_state(snapshot->entries));
      } else if (const auto* changes = std::get_if<ControlChanges>(&event)) {
        client.followers.at(changes->watch - 1).on_changes(to_state(changes->changes));
      } else if (const auto* link = std::get_if<ControlLink>(&event)) {
        ASSERT_NE(link->state, ControlState::Failed) << link->detail;
      }
    }
  }

  std::mt19937_64 random_;
  PeerWorld world_;
  std::vector<Log> logs_{{"p/", true}, {"p/1", false}, {"", true}, {"q/2", false}};
  std::unique_ptr<Client> clients_[kClients];
  std::uint64_t written_ = 0;
  std::uint64_t reconnections_ = 0;
};

TEST(ControlWatchTest, NothingIsLostOrToldTwiceOverBrokenConnections) {
  const auto [first, count] = test::seeds_to_run(100);
  std::uint64_t reconnections = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("DRUN_SEED=" + std::to_string(seed));
    WatchedStore store(seed);
    store.run();
    if (HasFailure()) return;
    reconnections += store.reconnections();
  }
  EXPECT_GT(reconnections, 10 * count);
}

}  // namespace
}  // namespace drun::store
