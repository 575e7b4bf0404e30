// Stores that succeed one another, and each agent's way from one to the next, on virtual time. The
// stores' peers and tables, the control clients and what decides where they go are the real ones;
// only sockets, processes and machines are played. Every agent has a machine. What goes from one
// machine to another keeps its order, takes its time, and is held where the way is blocked.
#pragma once

#include <array>
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

#include "launcher/backend/succession_fsm.hpp"
#include "rendezvous/key_value.hpp"
#include "simulation/random.hpp"
#include "simulation/scheduler.hpp"
#include "store/client/control_fsm.hpp"
#include "support/test_peer.hpp"

namespace drun::simulation {

// As the launcher derives them from the keep-alive limit.
struct StoreTimes {
  Milliseconds max_delay{2};    // of a message between two machines
  Milliseconds outage{6'000};   // the keep-alive limit
  Milliseconds ttl{10'000};     // of a session, and of leases of old
  Milliseconds silence{3'000};  // without an answer
  Milliseconds heartbeat{1'000};
  Milliseconds patience{120'000};  // of an agent that no store knows yet
};

class Stores {
 public:
  using Receiver = std::function<void(const rendezvous::KeyValueEvent&)>;

  Stores(Scheduler& scheduler, Random& random, const StoreTimes& times)
      : scheduler_(scheduler), random_(random), times_(times) {}
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;
  ~Stores();

  // An agent on a machine of its own, or on `machine`, where nothing else runs any more. The first
  // machine is the one that the endpoint names: its agent hosts a store from now on. The agent
  // begins to connect after that time.
  int add(Milliseconds wait, Receiver receive, std::optional<int> machine = {});
  [[nodiscard]] static std::string address_of(int machine) {
    return "10.0.0." + std::to_string(machine);
  }
  [[nodiscard]] static std::uint16_t port_of(int agent) {
    return static_cast<std::uint16_t>(20'000 + agent);
  }

  void watch(int agent, rendezvous::WatchId watch, std::string key, bool prefix);
  void unwatch(int agent, rendezvous::WatchId watch);
  void commit(int agent, rendezvous::RequestId request, rendezvous::Transaction transaction);
  void vote(int agent, const rendezvous::Vote& vote,
            const std::vector<rendezvous::Successor>& successors);
  void close(int agent);  // says goodbye; its process ends, and the stores in it

  // ---- faults ----
  void kill(int agent);         // its process, and the stores in it
  void power_off(int agent);    // its machine
  void prove_death(int agent);  // its guardian says that nothing is left
  void pause(int agent, bool paused);
  void block(int from, int to, bool blocked);  // machines

  // ---- for the checks ----
  [[nodiscard]] int machine(int agent) const { return clients_[index(agent)]->machine; }
  // That were sent so far between machines.
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // That have served, the first included.
  [[nodiscard]] int stores() const { return served_; }
  std::function<void(int agent, const std::string& what)> on_note;
  std::function<void(int agent, std::int64_t generation)> on_serving;  // a successor

 private:
  // A connection. Its ends close one after the other.
  struct Line {
    int agent = -1;         // -1: a guardian's, which nobody reads
    int from = 0;           // machine
    int to = 0;             // agent
    bool first = false;     // to the store at the endpoint's port, else to the successor's
    bool open = true;       // at the end of whoever connected
    bool accepted = false;  // in the kernel of `to`
    bool ended = false;     // the other end has heard that it is over
    std::string backlog;    // nobody has taken it from the kernel yet
    std::function<void(bool)> on_end;  // a guardian's: whether it was taken
  };
  struct Server {
    int host = 0;  // agent
    bool first = false;
    bool said = false;      // that it serves
    bool has_news = false;  // serve() comes
    test::PeerWorld world;
    std::map<int, std::unique_ptr<test::TestPeer>> peers;  // by line
    std::optional<Time> timer;
    explicit Server(store::Succession::Options options) : world({}, options) {}
  };
  // What the guardian says when the agent is dead.
  struct Farewell {
    std::string first;
    std::optional<Endpoint> to;
    std::string proof;
    std::vector<Endpoint> others;
  };
  struct Client {
    Client(store::ControlOptions options, std::uint32_t seed,
           const launcher::SuccessionFsm::Limits& limits, Endpoint endpoint)
        : fsm(std::move(options), seed), succession(limits, std::move(endpoint)) {}
    Receiver receive;
    int machine = 0;
    bool running = true;
    bool paused = false;
    std::deque<std::function<void()>> inbox;  // of a process that is stopped
    store::ControlFsm fsm;
    launcher::SuccessionFsm succession;
    std::optional<std::uint64_t> wanted;  // the machine's number of the present connection
    int line = 0;
    bool is_open = false;  // that one
    Endpoint peer;         // of the last one that was
    bool busy = false;
    bool has_moved = false;
    bool is_lost = false;
    std::int64_t generation = 0;
    std::optional<Time> timer;
    std::vector<Endpoint> other_successors;
    Farewell farewell;
    std::unique_ptr<Server> own, successor;
    rendezvous::Link last = rendezvous::Link::Down;
    store::ControlLink loss;  // the last
  };

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  Client& client(int agent) { return *clients_[index(agent)]; }
  void note(int agent, const std::string& what) {
    if (on_note) on_note(agent, what);
  }
  [[nodiscard]] bool powered(int machine) const { return !dark_.contains(machine); }
  [[nodiscard]] int agent_at(int machine) const;  // the last one

  void post(int from, int to, std::function<void()> what);
  void arrive(int from, int to, std::function<void()> what);
  void run(int agent, std::function<void()> what);

  // ---- the kernels ----
  int dial(int agent, int from, const Endpoint& endpoint);
  void send(int line, bool up, std::string bytes);
  void hang_up(int line, bool up);
  void take(int line, const std::string& bytes);
  void end(int line);
  void end_process(int agent);

  // ---- the stores ----
  [[nodiscard]] std::unique_ptr<Server>& server_of(const Line& line);
  void begin(int host, bool first);
  void end_server(std::unique_ptr<Server>& server);
  void serve(Server& server);
  void serve_soon(Server& server);

  // ---- the agents ----
  void round_of(int agent);
  void settle(int agent);
  void on_line(int agent, int line, bool refused, bool connected, const std::string& bytes);
  void on_event(int agent, store::ControlEvent event);
  void on_link(int agent, store::ControlLink event);
  void follow(int agent, const launcher::SuccessionStep& step);
  void move_to(int agent, const Endpoint& endpoint);
  void note_session(int agent);
  void on_time(int agent);
  void deliver(int agent, const rendezvous::KeyValueEvent& event);
  void say(int from, const Endpoint& to, const std::string& bytes, std::function<void(bool)> then);

  Scheduler& scheduler_;
  Random& random_;
  const StoreTimes times_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::map<int, Line> lines_;
  int last_line_ = 0;
  int served_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  std::set<int> dark_;  // machines without power
  std::map<std::pair<int, int>, Time> clear_;
  std::set<std::pair<int, int>> blocked_;
  std::map<std::pair<int, int>, std::vector<std::function<void()>>> held_;
};

}  // namespace drun::simulation
