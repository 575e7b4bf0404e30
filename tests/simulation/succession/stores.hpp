// Stores that succeed one another, and each agent's way from one to the next: what the launcher and
// the control client do with real sockets, on virtual time. Every agent has a machine; messages
// between two machines keep their order, take their time, and are held where the way is blocked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/key_value.hpp"
#include "simulation/random.hpp"
#include "simulation/scheduler.hpp"
#include "store/table/electorate.hpp"
#include "support/fake_store.hpp"

namespace drun::simulation {

struct StoreTimes {
  Milliseconds max_delay{2};
  Milliseconds keep_alive{6'000};
  Milliseconds ttl{8'000};      // a session outlives its last message this long, old leases too
  Milliseconds noticed{3'000};  // a client sees that nothing answers
  Milliseconds pulse{500};
  Milliseconds turn{2'000};  // for the first attempt at one successor
  bool eager = false;        // a link is up before a majority is known to be there
};

class Stores {
 public:
  using Receiver = std::function<void(const rendezvous::KeyValueEvent&)>;

  Stores(Scheduler& scheduler, Random& random, const StoreTimes& times)
      : scheduler_(scheduler), random_(random), times_(times) {}

  // An agent on a machine of its own; the first one hosts the first store, from now on. It begins
  // to connect after that time.
  int add(std::string address, Milliseconds wait, Receiver receive);
  static std::uint16_t port_of(int agent) { return static_cast<std::uint16_t>(20'000 + agent); }

  void watch(int agent, rendezvous::WatchId watch, std::string key, bool prefix);
  void unwatch(int agent, rendezvous::WatchId watch);
  void commit(int agent, rendezvous::RequestId request, rendezvous::Transaction transaction);
  void vote(int agent, const rendezvous::Vote& vote,
            const std::vector<rendezvous::Successor>& successors);
  void close(int agent);  // says goodbye; its process ends, and the store in it

  // ---- faults ----
  void kill(int agent);         // its process, and the stores in it
  void power_off(int agent);    // its machine
  void prove_death(int agent);  // its guardian says that nothing is left
  void pause(int agent, bool paused);
  void block(int from, int to, bool blocked);

  // ---- for the checks ----
  [[nodiscard]] bool up(int agent) const { return clients_[index(agent)]->up; }
  [[nodiscard]] int generation(int agent) const {
    return static_cast<int>(clients_[index(agent)]->generation);
  }
  [[nodiscard]] int stores() const { return static_cast<int>(servers_.size()); }
  std::function<void(int agent, const rendezvous::Transaction&)> on_applied;
  std::function<void(int agent, const std::string& what)> on_note;

 private:
  using SessionId = test::SessionId;
  struct Session {
    int agent = 0;
    store::VoterId voter = 0;
    Time heard{};
    int connection = 0;  // 0: none
  };
  struct Waiting {
    int agent = 0;
    store::VoterId voter = 0;
    std::int64_t generation = 0;
  };
  struct Server {
    explicit Server(test::FakeStore::Sink sink) : store(std::move(sink)) {}
    int number = 0;
    int host = 0;
    std::int64_t generation = 0;
    bool serving = false;
    bool closed = false;
    test::FakeStore store;
    store::Electorate electorate;
    std::map<SessionId, Session> sessions;
    std::map<int, Waiting> waiting;  // by connection
  };
  struct Client {
    Receiver receive;
    std::string address;
    bool running = true;
    bool powered = true;
    bool paused = false;
    std::deque<std::function<void()>> inbox;
    // The connection.
    int server = -1;  // to which there is one, or will be
    int connection = 0;
    bool welcomed = false;
    bool up = false;      // as the agent was told
    bool was_up = false;  // ever
    bool told_new = false;
    SessionId session = 0;
    int home = -1;  // the store of that session
    std::int64_t generation = 0;
    std::int64_t told_generation = 0;
    Time contact{};  // a majority was known to be there
    Time began{};    // this connection
    Time pulsed{};
    bool searching = false;
    std::size_t turn = 0;
    Milliseconds patience{2'000};  // with the present attempt
    int own = -1;                  // the store that it has begun as a successor
    store::Voter voter;
    std::string job;
    std::vector<rendezvous::Successor> successors;
    std::map<rendezvous::WatchId, std::pair<std::string, bool>> watches;
    std::set<rendezvous::RequestId> outstanding;
  };

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  Client& client(int agent) { return *clients_[index(agent)]; }
  Server& server(int number) { return *servers_[index(number)]; }
  void note(int agent, const std::string& what) {
    if (on_note) on_note(agent, what);
  }

  void post(int from, int to, std::function<void()> what);
  void arrive(int from, int to, std::function<void()> what);
  void send_up(int agent, std::function<void(Server&, SessionId)> what);
  void send_down(int number, int connection, int agent, std::function<void()> what);

  int begin_server(int host, bool first);
  void close_server(int number);
  void open(int number, int agent, int connection);
  void serve(Server& s);
  void start_session(Server& s, int agent, int connection, store::VoterId voter);
  void welcome(Server& s, SessionId session, bool resumed);
  void on_pulse(Server& s, SessionId session, const store::Vote& vote, Time sent);
  void watch_session(int number, SessionId session);
  void end_session(Server& s, SessionId session, bool proven, const store::Vote* vote);
  void note_gone(Server& s, const std::string& job, const store::Vote& vote);
  void server_break(Server& s, int connection);

  void tick(int agent);
  void pulse(int agent);
  void connect(int agent, int number);
  void drop(int agent, const std::string& why, bool refused);
  void next_attempt(int agent);
  void on_welcome(int agent, int number, int connection, SessionId session, bool resumed);
  void on_pulsed(int agent, int number, std::optional<Time> quorum, Time sent, Time stamp,
                 const store::Place& settled, Time answered);
  void tell_up(int agent);
  void deliver(int agent, const rendezvous::KeyValueEvent& event);
  void reset_from(int agent, int connection, const std::string& why);

  Scheduler& scheduler_;
  Random& random_;
  const StoreTimes times_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::map<std::pair<int, int>, Time> clear_;
  std::map<std::pair<int, int>, std::deque<std::function<void()>>> held_;
  std::set<std::pair<int, int>> blocked_;
  std::map<int, std::vector<std::pair<int, int>>> backlog_;  // of a machine: agent, connection
  std::map<int, std::vector<std::function<void(Server&)>>> words_;  // the same: proofs of death
  int connections_ = 0;
  store::VoterId voters_ = 0;
  SessionId sessions_ = 0;
};

}  // namespace drun::simulation
