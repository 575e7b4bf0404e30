// A FakeStore behind a network: connections that break, stall and come back, sessions that live as
// long as their heartbeats, answers that get lost. Gives each agent what KeyValue promises, and
// nothing more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/key_value.hpp"
#include "simulation/random.hpp"
#include "simulation/scheduler.hpp"
#include "support/fake_store.hpp"

namespace drun::simulation {

using test::SessionId;

struct Timings {
  Milliseconds max_delay{2};
  bool reorder = false;         // watches overtake one another
  Milliseconds ttl{8'000};      // a session outlives its last heartbeat this long
  Milliseconds noticed{3'000};  // a client sees that nothing answers, at the latest
  // Like etcd's leases: a session may end while its connection lives on and writes.
  bool loose_sessions = false;
  std::size_t keys_per_request = 0;  // that the store takes, as it says; 0: any number
};

// What a restarted store still has. Older: keys and sessions of an earlier moment, as in a snapshot
// file that was written some time before the store died.
enum class Memory { Sessions, Keys, Nothing, Older };

class Network {
 public:
  using Receiver = std::function<void(const rendezvous::KeyValueEvent&)>;

  Network(Scheduler& scheduler, Random& random, Timings timings);

  // A client that begins to connect. `receive` gets its events.
  int add(Receiver receive);
  void watch(int client, rendezvous::WatchId watch, std::string key, bool prefix);
  void unwatch(int client, rendezvous::WatchId watch);
  void commit(int client, rendezvous::RequestId request, rendezvous::Transaction transaction);
  void close(int client);  // says goodbye; nothing more is received

  // ---- faults ----
  void kill(int client, bool silently);
  // Its helpers say that it is dead, and nothing of it is left.
  void prove_death(int client);
  void pause(int client, bool paused);  // the process: it neither hears nor says anything
  void partition(int client, bool cut);
  void reset(int client, Milliseconds outage);  // and cannot come back for that long
  void stop_store(Memory memory);
  void start_store();
  // It takes only transactions that set no more keys than this.
  void fill_store(std::size_t room) { room_ = room; }
  // Somebody who has no session does.
  void write(const std::string& key, const std::string& value);
  void save_store();  // what Memory::Older brings back

  // ---- for the checks ----
  [[nodiscard]] const test::FakeStore& store() const { return store_; }
  [[nodiscard]] SessionId session(int client) const { return peer(client).session; }
  [[nodiscard]] bool alive(SessionId session) const { return alive_.contains(session); }
  [[nodiscard]] bool connected(int client) const { return peer(client).connected; }
  // The server has word from there, or had until:
  [[nodiscard]] bool hears(int client) const { return peer(client).open && !peer(client).silent; }
  [[nodiscard]] Time heard(int client) const { return peer(client).heard; }
  [[nodiscard]] bool cut(int client) const { return peer(client).cut; }
  // What it asks the store now is answered.
  [[nodiscard]] bool in_touch(int client) const {
    const Peer& p = peer(client);
    return store_up_ && p.running && p.connected && p.open && !p.cut && !p.paused &&
           p.server_generation == p.generation && alive_.contains(p.session);
  }
  [[nodiscard]] bool store_up() const { return store_up_; }
  // Called after each transaction that was applied.
  std::function<void(int client, const rendezvous::Transaction&)> on_applied;
  std::function<void(int client)> on_expired;
  // A transaction was rejected; `known`: for a limit that the store had told.
  std::function<void(int client, bool known)> on_rejected;

 private:
  struct Peer {
    Receiver receive;
    bool running = true;  // the process exists and has not said goodbye
    bool paused = false;
    bool cut = false;
    bool connected = false;  // as the client sees it
    bool open = false;       // as the server sees it
    int generation = 0;      // of the connection, as the client counts
    int server_generation = 0;
    bool silent = false;  // open, but nothing comes
    Time heard{};         // until it was closed or silent
    int silence = 0;      // numbers the silences that a timer may be waiting for
    int cuts = 0;         // numbers the cuts
    Time cut_since{};     // while cut
    int attempts = 0;
    Time unreachable_until{};
    SessionId session = 0;
    SessionId told = 0;  // of this session, at last
    std::map<rendezvous::WatchId, std::pair<std::string, bool>> watches;
    std::map<rendezvous::RequestId, int> outstanding;
    std::vector<std::pair<rendezvous::RequestId, rendezvous::Transaction>> queued;
    Time up_clear{};
    Time link_clear{};
    std::map<std::uint32_t, Time> down_clear;
    std::deque<std::function<void()>> frozen;  // stuck in the cut link
    std::deque<std::function<void()>> inbox;   // for a stopped process
  };

  Peer& peer(int client) { return *peers_[static_cast<std::size_t>(client)]; }
  [[nodiscard]] const Peer& peer(int client) const {
    return *peers_[static_cast<std::size_t>(client)];
  }
  Milliseconds delay();
  void send_up(int client, std::function<void()> what);
  void arrive_up(int client, int generation, std::function<void()> what);
  void send_down(SessionId session, rendezvous::KeyValueEvent event);
  void arrive_down(int client, int generation, rendezvous::KeyValueEvent event);
  void deliver(int client, const rendezvous::KeyValueEvent& event);
  [[nodiscard]] bool takes(int client, const rendezvous::Transaction& transaction) const;
  void transmit(int client, rendezvous::RequestId request, rendezvous::Transaction transaction);
  void client_break(int client, const std::string& why);
  void server_close(int client);
  void expire(int client, SessionId session, bool connection_too = true);
  void note_silence(int client);
  void try_connect(int client, Milliseconds wait);
  void establish(int client);
  void welcome(int client, int generation, rendezvous::Link link);

  Scheduler& scheduler_;
  Random& random_;
  const Timings timings_;
  test::FakeStore store_;
  bool store_up_ = true;
  std::size_t room_ = SIZE_MAX;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::map<SessionId, int> owners_;
  std::set<SessionId> alive_;
  test::FakeStore::Saved saved_;
  std::set<SessionId> saved_sessions_;
};

}  // namespace drun::simulation
