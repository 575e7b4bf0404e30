// Stores that succeed one another, and each agent's way from one to the next, on virtual time. The
// stores' peers and tables, the control clients, who asks where the store is and what decides where
// agents go are the real ones; only sockets, processes and machines are played. Every agent has a
// machine. What goes from one machine to another keeps its order, takes its time, and is held where
// the way is blocked.
//
// stores.cpp has the machines and the stores, links.cpp what the launcher's BackendLink does.
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

#include "drun/base/endpoint.hpp"
#include "drun/store/server.hpp"
#include "launcher/backend/backend_fsm.hpp"
#include "launcher/backend/founding_fsm.hpp"
#include "launcher/backend/node_identity.hpp"
#include "launcher/backend/store_standing.hpp"
#include "launcher/backend/succession_fsm.hpp"
#include "launcher/options/options.hpp"
#include "rendezvous/key_value.hpp"
#include "simulation/random.hpp"
#include "simulation/scheduler.hpp"
#include "store/client/control_fsm.hpp"
#include "store/client/inquiry_fsm.hpp"
#include "support/test_peer.hpp"

namespace drun::simulation {

class Stores {
 public:
  static constexpr std::uint16_t kEndpointPort = 19'400;

  // What an agent is told, as by BackendLink.
  struct Calls {
    std::function<void(const launcher::NodeIdentity&)> joined;
    std::function<bool(bool known)> dispensable;
    std::function<void()> dropped;
    std::function<void(rendezvous::Outcome)> gave_up;
    std::function<void(const rendezvous::KeyValueEvent&)> event;
  };

  // All agents are given these options; their endpoints are on machines: see endpoint_at(). A
  // message between two machines takes up to `max_delay`.
  Stores(Scheduler& scheduler, Random& random, launcher::Options options, Milliseconds max_delay)
      : scheduler_(scheduler),
        random_(random),
        options_(std::move(options)),
        max_delay_(max_delay) {}
  Stores(const Stores&) = delete;
  Stores& operator=(const Stores&) = delete;
  ~Stores();

  // An agent on a machine where nothing else runs any more. If it begins the store, it comes to it
  // so much later.
  int add(Milliseconds late, Calls calls, int machine);
  [[nodiscard]] static std::string address_of(int machine) {
    return "10.0." + std::to_string(machine / 256) + "." + std::to_string(machine % 256);
  }
  [[nodiscard]] static Endpoint endpoint_at(int machine) {
    return {address_of(machine), kEndpointPort};
  }

  void watch(int agent, rendezvous::WatchId watch, std::string key, bool prefix);
  void unwatch(int agent, rendezvous::WatchId watch);
  void commit(int agent, rendezvous::RequestId request, rendezvous::Transaction transaction);
  void vote(int agent, const rendezvous::Vote& vote,
            const std::vector<rendezvous::Successor>& successors);
  // Says goodbye, and if the job goes on without it, its guardian says so; its process ends, and
  // the stores in it.
  void close(int agent, bool job_goes_on);

  // ---- faults ----
  void kill(int agent);       // its process, and the stores in it
  void power_off(int agent);  // its machine
  // Whether it runs now. A machine takes its time to come back: longer than the others need to
  // notice that it has gone.
  [[nodiscard]] bool power_on(int machine);
  void prove_death(int agent);  // its guardian says that nothing is left
  void pause(int agent, bool paused);
  void block(int from, int to, bool blocked);  // machines

  // Where nobody will come to the endpoints any more, they are told less often: that saves time.
  void expect_newcomers(bool expected) { newcomers_ = expected; }

  // ---- for the checks ----
  [[nodiscard]] int machine(int agent) const { return clients_[index(agent)]->machine; }
  // The agent that runs there; -1: none.
  [[nodiscard]] int agent_on(int machine) const;
  [[nodiscard]] bool is_cut(int machine) const;  // from any other
  // That were sent so far between machines.
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // That have served, the first included.
  [[nodiscard]] int stores() const { return served_; }
  std::function<void(int agent, const std::string& what)> on_note;
  std::function<void(int agent, std::int64_t generation)> on_serving;  // a successor
  // Once: an agent has just said that it was called, and has done nothing after that.
  std::function<void(int agent)> on_confirmed;

 private:
  // A connection. Its ends close one after the other.
  struct Line {
    int agent = -1;         // -1: a guardian's, which nobody reads
    int inquiry = 0;        // that agent's; 0: its control client's
    int from = 0;           // machine
    int machine = 0;        // at the other end
    int to = -1;            // agent; -1: there is none
    bool first = false;     // to the endpoint's port, else to the one held for a successor
    bool open = true;       // at the end of whoever connected
    bool accepted = false;  // in the kernel of `to`
    bool asked = false;     // the machine there has heard of it
    bool ended = false;     // the other end has heard that it is over
    std::string backlog;    // nobody has taken it from the kernel yet
    Time came{};            // when something did last, for the other end
  };
  struct Server {
    int host = 0;           // agent
    bool at_first = false;  // the one that begins at a single endpoint
    bool said = false;      // that it serves
    bool has_news = false;  // serve() comes
    test::PeerWorld world;
    std::map<int, std::unique_ptr<test::TestPeer>> peers;  // by line
    std::optional<Time> timer;
    explicit Server(const store::StoreSuccession::Options& options) : world({}, options) {}
  };
  // What the guardian says when the agent is dead.
  struct Farewell {
    std::string first;
    std::optional<Endpoint> to;
    std::string proof;
    std::vector<Endpoint> others;
  };
  struct Inquiry {
    Inquiry(store::InquiryFsm::Options options, Endpoint where)
        : fsm(std::move(options)), endpoint(std::move(where)) {}
    store::InquiryFsm fsm;
    Endpoint endpoint;
    std::optional<std::uint64_t> wanted;  // the machine's number of the present connection
    int line = 0;
    bool is_open = false;
    store::Whereabouts said{};
  };
  struct Client {
    Client(const launcher::Options& options, Time now)
        : backend(options, now, [] { return std::string(); }), standing(options) {}
    Calls calls;
    int machine = 0;
    bool running = true;
    bool paused = false;
    std::deque<std::function<void()>> inbox;  // of a process that is stopped
    std::optional<Time> timer;
    bool busy = false;
    Milliseconds late{0};

    launcher::BackendFsm backend;
    launcher::StoreStanding standing;
    std::unique_ptr<store::ControlFsm> fsm;
    std::vector<std::unique_ptr<store::ControlFsm>> retired;  // which may be at work
    std::optional<launcher::FoundingFsm> founding;
    std::optional<launcher::SuccessionFsm> succession;
    std::map<int, std::unique_ptr<Inquiry>> lookout;
    launcher::LookoutTask lookout_task = launcher::LookoutTask::None;
    std::optional<std::size_t> listed;
    std::optional<store::StoreNews> pointed_to;

    std::optional<std::uint64_t> wanted;  // the machine's number of the present connection
    int line = 0;
    bool is_open = false;    // that one
    bool is_called = false;  // by a successor, which has not heard that yet
    Endpoint peer;           // of the last one that was
    Farewell farewell;
    std::unique_ptr<Server> own, successor;
    store::Deaths deaths;     // that its successors' servers have heard of
    store::ControlLink loss;  // the last
  };

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  Client& client(int agent) { return *clients_[index(agent)]; }
  void note(int agent, const std::string& what) {
    if (on_note) on_note(agent, what);
  }
  [[nodiscard]] bool powered(int machine) const { return !dark_.contains(machine); }

  void post(int from, int to, std::function<void()> what);
  void arrive(int from, int to, std::function<void()> what);
  void run(int agent, std::function<void()> what);

  // ---- the kernels ----
  int dial(int agent, int inquiry, int from, const Endpoint& endpoint);
  void knock(int line, Milliseconds pause);
  [[nodiscard]] bool listens(const Line& line, int machine);
  void send(int line, bool up, std::string bytes);
  void hang_up(int line, bool up);
  void take(int line, const std::string& bytes);
  void end(int line);
  void end_process(int agent);

  // ---- the stores ----
  [[nodiscard]] std::unique_ptr<Server>& server_of(const Line& line);
  [[nodiscard]] std::unique_ptr<Server>& server_of(int host, bool at_first) {
    return at_first ? client(host).own : client(host).successor;
  }
  void begin(int host, bool at_first, const store::ServerOptions& options);
  void end_server(std::unique_ptr<Server>& server);
  void step_down(Client& c);
  void serve(Server& server);
  void serve_soon(Server& server);

  // ---- the agents (links.cpp) ----
  void settle(int agent);
  void settle_soon(int agent);
  bool settle_link(int agent);
  bool settle_inquiries(int agent);
  void arm(int agent);
  void on_line(int line, bool refused, bool connected, const std::string& bytes);
  void on_control_line(int agent, int line, bool refused, bool connected, const std::string& bytes);
  void on_inquiry_line(int agent, int line, bool refused, bool connected, const std::string& bytes);
  void on_event(int agent, store::ControlEvent event);
  void on_link(int agent, store::ControlLink event);
  void on_time(int agent);
  void deliver(int agent, const rendezvous::KeyValueEvent& event);
  void drop_link(Client& c);

  void advance(int agent, launcher::BackendStep step);
  void perform(int, const std::monostate&) {}
  void perform(int, const launcher::GoAlone&) {}
  void perform(int, const launcher::Wait&) {}
  void perform(int agent, const launcher::LookUp& step);
  void perform(int agent, const launcher::Found& step);
  void perform(int agent, const launcher::BindRendezvous& step);
  void perform(int agent, const launcher::Connect& step);
  void perform(int agent, const launcher::Follow& step);
  void perform(int agent, const launcher::StartOver& step);
  void perform(int agent, const launcher::Join& step);
  void perform(int agent, const launcher::GiveUp& step);
  void perform(int agent, const launcher::Visit& step);
  void perform(int agent, const launcher::Stand& step);
  void perform(int agent, const launcher::GiveUpSearch& step);

  void begin_founding(int agent);
  void go(int agent, const launcher::FoundingFsm::Step& step);
  void follow(int agent, const launcher::SuccessionStep& step);
  launcher::SuccessionStep look_elsewhere(int agent, const rendezvous::LinkEvent& event);
  launcher::BackendStep on_backend_link(int agent, const rendezvous::LinkEvent& event);
  void complete(int agent, rendezvous::LinkEvent& event);
  void keep_lookout(int agent);
  void look_out(Client& c, const store::InquiryFsm::Options& asked);
  void on_answer(int agent, const Endpoint& endpoint, const store::Whereabouts& answer);
  void end_lookout(Client& c);
  bool wait_again(int agent);
  void move_to(int agent, const Endpoint& endpoint);
  void note_session(int agent);
  [[nodiscard]] Endpoint own_place(int agent);
  void say(int from, const Endpoint& to, const std::string& bytes);

  Scheduler& scheduler_;
  Random& random_;
  const launcher::Options options_;
  const Milliseconds max_delay_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::map<int, Line> lines_;
  int last_line_ = 0;
  int last_inquiry_ = 0;
  int served_ = 0;
  bool newcomers_ = true;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  std::map<int, Time> dark_;  // machines without power, since when
  std::map<std::pair<int, int>, Time> clear_;
  std::set<std::pair<int, int>> blocked_;
  std::map<std::pair<int, int>, std::vector<std::function<void()>>> held_;
};

}  // namespace drun::simulation
