#include "simulation/succession/stores.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/deadline.hpp"
#include "rendezvous/keys.hpp"

namespace drun::simulation {

using namespace rendezvous;

namespace {

constexpr std::uint16_t kEndpointPort = 29'400;
constexpr Milliseconds kFarewellLimit{3'000};

Endpoint endpoint_of(const std::string& address, std::uint16_t port = kEndpointPort) {
  return {address, port};
}

int machine_of(const Endpoint& endpoint) {
  return std::atoi(endpoint.host.c_str() + endpoint.host.rfind('.') + 1);
}

store::ControlOptions control_options(const StoreTimes& times) {
  store::ControlOptions options;
  options.endpoint = endpoint_of(Stores::address_of(0));
  options.connect_timeout = times.patience;
  options.time_to_live = times.ttl;
  options.grace = times.ttl;
  options.keep_alive = std::chrono::hours(24);
  options.heartbeat_interval = times.heartbeat;
  options.heartbeat_timeout = times.silence;
  options.job = Keys("job").prefix;
  options.majority_timeout = times.outage;
  options.tell_refusal = true;
  return options;
}

launcher::SuccessionFsm::Limits limits(const StoreTimes& times) {
  launcher::SuccessionFsm::Limits limits;
  limits.keep_alive = times.outage;
  return limits;
}

std::uint32_t rank_of(int rank) {
  return rank < 0 ? store::kNoRank : static_cast<std::uint32_t>(rank);
}

std::vector<Change> translate(std::vector<store::ControlChange> changes) {
  std::vector<Change> result;
  result.reserve(changes.size());
  for (auto& change : changes)
    result.push_back({std::move(change.key), std::move(change.value)});
  return result;
}

CommitOutcome translate(store::ControlOutcome outcome) {
  switch (outcome) {
    case store::ControlOutcome::Committed:
      return CommitOutcome::Committed;
    case store::ControlOutcome::Refused:
      return CommitOutcome::Refused;
    case store::ControlOutcome::Rejected:
      return CommitOutcome::Rejected;
    case store::ControlOutcome::Unknown:
      break;
  }
  return CommitOutcome::Unknown;
}

Link translate(store::ControlState state) {
  switch (state) {
    case store::ControlState::Up:
      return Link::Up;
    case store::ControlState::NewSession:
      return Link::NewSession;
    case store::ControlState::Down:
      return Link::Down;
    case store::ControlState::Closed:
      return Link::Closed;
    case store::ControlState::Failed:
      break;
  }
  return Link::Failed;
}

}  // namespace

Stores::~Stores() {
  for (auto& each : clients_)
    for (auto* server : {&each->own, &each->successor})
      if (*server) (*server)->peers.clear();
}

int Stores::agent_at(int machine) const {
  int found = -1;
  for (std::size_t i = 0; i < clients_.size(); ++i)
    if (clients_[i]->machine == machine) found = static_cast<int>(i);
  return found;
}

// ---- machines and processes ----

void Stores::post(int from, int to, std::function<void()> what) {
  if (!powered(from)) return;
  Time& clear = clear_[{from, to}];
  const int most = from == to ? 1 : static_cast<int>(times_.max_delay.count());
  clear = std::max(clear, scheduler_.now() + Milliseconds(random_.in(0, most)));
  scheduler_.at(clear, [this, from, to, what = std::move(what)] { arrive(from, to, what); });
}

void Stores::arrive(int from, int to, std::function<void()> what) {
  if (!powered(to)) return;
  if (blocked_.contains({from, to})) return held_[{from, to}].push_back(std::move(what));
  what();
}

// When the process runs.
void Stores::run(int agent, std::function<void()> what) {
  Client& c = client(agent);
  if (!c.running) return;
  if (c.paused) return c.inbox.push_back(std::move(what));
  what();
}

// ---- connections ----

int Stores::dial(int agent, int from, const Endpoint& endpoint) {
  const int number = ++last_line_;
  Line& line = lines_[number];
  line.agent = agent;
  line.from = from;
  line.first = endpoint.port == kEndpointPort;
  const int machine = machine_of(endpoint);
  line.to = line.first ? agent_at(machine) : endpoint.port - port_of(0);
  post(from, machine, [this, number, machine] {
    Line& asked = lines_.at(number);
    const Client& host = client(asked.to);
    const bool listens = host.running && host.machine == machine && (!asked.first || host.own);
    asked.accepted = listens;
    post(machine, asked.from, [this, number, listens] {
      const Line& answered = lines_.at(number);
      if (answered.agent >= 0) return on_line(answered.agent, number, !listens, listens, "");
      if (!listens && answered.on_end) lines_.at(number).on_end(false);
    });
  });
  return number;
}

void Stores::send(int number, bool up, std::string bytes) {
  const Line& line = lines_.at(number);
  const int host = client(line.to).machine;
  if (line.from != host) {
    ++messages_;
    bytes_ += bytes.size();
  }
  if (up)
    return post(line.from, host, [this, number, bytes = std::move(bytes)] {
      run(lines_.at(number).to, [this, number, bytes] { take(number, bytes); });
    });
  if (line.agent >= 0)
    post(host, line.from, [this, number, agent = line.agent, bytes = std::move(bytes)] {
      on_line(agent, number, false, false, bytes);
    });
}

// Whoever connected closes, or the store does.
void Stores::hang_up(int number, bool up) {
  Line& line = lines_.at(number);
  const int host = client(line.to).machine;
  if (up) {
    if (!std::exchange(line.open, false)) return;
    return post(line.from, host,
                [this, number] { run(lines_.at(number).to, [this, number] { end(number); }); });
  }
  if (std::exchange(line.ended, true)) return;
  const bool whole = line.backlog.empty();
  post(host, line.from, [this, number, agent = line.agent, whole] {
    if (agent >= 0) return on_line(agent, number, false, false, "");
    if (lines_.at(number).on_end) lines_.at(number).on_end(whole);
  });
}

std::unique_ptr<Stores::Server>& Stores::server_of(const Line& line) {
  return line.first ? client(line.to).own : client(line.to).successor;
}

// What has come for a store; it waits in the kernel where none is served yet.
void Stores::take(int number, const std::string& bytes) {
  Line& line = lines_.at(number);
  if (!line.accepted || line.ended) return;
  auto& server = server_of(line);
  if (!server) {
    line.backlog += bytes;
    return;
  }
  auto& peer = server->peers[number];
  if (!peer) peer = std::make_unique<test::TestPeer>(server->world);
  server->world.now = scheduler_.now();
  peer->send(bytes);
  serve_soon(*server);
}

void Stores::end(int number) {
  Line& line = lines_.at(number);
  auto& server = server_of(line);
  if (!server) return;  // seen when somebody serves
  const auto peer = server->peers.find(number);
  if (peer != server->peers.end()) {
    server->world.now = scheduler_.now();
    peer->second->leave();
    server->peers.erase(peer);
    serve_soon(*server);
  }
  hang_up(number, false);
}

// All that the process had open is closed by its kernel.
void Stores::end_process(int agent) {
  Client& c = client(agent);
  c.running = false;
  c.inbox.clear();
  end_server(c.own);
  end_server(c.successor);
  for (auto& [number, line] : lines_) {
    if (line.to == agent && line.accepted) hang_up(number, false);
    if (line.agent == agent) hang_up(number, true);
  }
}

// ---- the stores ----

void Stores::begin(int host, bool first) {
  Client& c = client(host);
  auto& server = first ? c.own : c.successor;
  store::Succession::Options options;
  options.is_successor = !first;
  server = std::make_unique<Server>(options);
  server->host = host;
  server->first = first;
  server->world.now = scheduler_.now();
  if (!first) note(host, "would succeed");
  std::vector<int> waiting;
  for (const auto& [number, line] : lines_)
    if (line.to == host && line.first == first && line.accepted && !line.ended)
      waiting.push_back(number);
  for (const int number : waiting) {
    Line& line = lines_.at(number);
    if (!line.backlog.empty()) take(number, std::exchange(line.backlog, {}));
    if (!line.open) end(number);
  }
  serve_soon(*server);
}

void Stores::end_server(std::unique_ptr<Server>& server) {
  if (!server) return;
  std::vector<int> open;
  for (const auto& [number, peer] : server->peers)
    open.push_back(number);
  server->peers.clear();
  server.reset();
  for (const int number : open)
    hang_up(number, false);
}

// Once for all that has come at this moment.
void Stores::serve_soon(Server& s) {
  if (std::exchange(s.has_news, true)) return;
  scheduler_.after(Milliseconds(0), [this, host = s.host, first = s.first] {
    run(host, [this, host, first] {
      auto& server = first ? client(host).own : client(host).successor;
      if (server && std::exchange(server->has_news, false)) serve(*server);
    });
  });
}

// Sends what there is to say, and ends what is over.
void Stores::serve(Server& s) {
  if (!s.said && s.world.succession.is_serving()) {
    s.said = true;
    ++served_;
    const auto generation = s.world.succession.pulsed("", scheduler_.now()).generation;
    note(s.host, "serves store " + std::to_string(generation));
    if (!s.first && on_serving) on_serving(s.host, static_cast<std::int64_t>(generation));
  }
  std::vector<int> closed;
  for (auto& [number, peer] : s.peers) {
    do {
      if (std::string bytes = peer->take(); !bytes.empty()) send(number, false, std::move(bytes));
    } while (peer->is_paused() && peer->resume());
    if (peer->is_closed()) closed.push_back(number);
  }
  for (const int number : closed) {
    s.peers.at(number)->leave();
    s.peers.erase(number);
    hang_up(number, false);
  }
  const auto due = s.world.sessions.next_deadline();
  if (!due || (s.timer && *s.timer <= *due)) return;
  s.timer = due;
  scheduler_.at(*due, [this, host = s.host, first = s.first, at = *due] {
    run(host, [this, host, first, at] {
      auto& server = first ? client(host).own : client(host).successor;
      if (!server || server->timer != at) return;
      server->timer.reset();
      server->world.now = scheduler_.now();
      server->world.sessions.expire(scheduler_.now());
      serve(*server);
    });
  });
}

// ---- the agents ----

int Stores::add(Milliseconds wait, Receiver receive, std::optional<int> machine) {
  const int agent = static_cast<int>(clients_.size());
  clients_.push_back(std::make_unique<Client>(control_options(times_), 1U + random_.next() % 1000,
                                              limits(times_), endpoint_of(address_of(0))));
  Client& c = *clients_.back();
  c.receive = std::move(receive);
  c.machine = machine.value_or(agent);
  if (c.machine == 0) begin(agent, true);
  scheduler_.after(wait, [this, agent] {
    run(agent, [this, agent] {
      client(agent).fsm.open(scheduler_.now());
      settle(agent);
    });
  });
  return agent;
}

void Stores::round_of(int agent) {
  scheduler_.after(Milliseconds(0),
                   [this, agent] { run(agent, [this, agent] { settle(agent); }); });
}

// As the client's shell does: its connection, what it sends, what it tells.
void Stores::settle(int agent) {
  Client& c = client(agent);
  if (c.busy) return;
  c.busy = true;
  for (bool more = true; more && c.running;) {
    more = false;
    if (const auto wanted = c.fsm.wanted_connection(); wanted != c.wanted) {
      c.wanted = wanted;
      c.is_open = false;
      if (c.line != 0) hang_up(std::exchange(c.line, 0), true);
      if (wanted) c.line = dial(agent, c.machine, c.fsm.endpoint());
    }
    if (c.is_open)
      if (std::string bytes = c.fsm.take_output(scheduler_.now()); !bytes.empty())
        send(c.line, true, std::move(bytes));
    for (auto& event : c.fsm.take_events()) {
      if (c.running) on_event(agent, std::move(event));
      more = true;
    }
    more |= c.fsm.wanted_connection() != c.wanted;
  }
  c.busy = false;
  if (!c.running) return;
  EarliestDeadline next;
  next.include(c.fsm.next_deadline());
  next.include(c.succession.next_deadline());
  const auto due = next.time();
  if (!due || (c.timer && *c.timer <= *due)) return;
  c.timer = due;
  scheduler_.at(*due, [this, agent, at = *due] {
    run(agent, [this, agent, at] {
      if (client(agent).timer != at) return;
      client(agent).timer.reset();
      on_time(agent);
    });
  });
}

void Stores::on_time(int agent) {
  Client& c = client(agent);
  const Time now = scheduler_.now();
  if (c.fsm.next_deadline() && now >= *c.fsm.next_deadline()) c.fsm.on_time(now);
  follow(agent, c.succession.on_time(c.fsm.last_error(), now));
  settle(agent);
}

// Something has come on its connection: that it is refused or there, bytes, or (none) its end.
void Stores::on_line(int agent, int number, bool refused, bool connected,
                     const std::string& bytes) {
  run(agent, [this, agent, number, refused, connected, bytes] {
    Client& c = client(agent);
    if (c.line != number) return;
    const Time now = scheduler_.now();
    if (refused || (!connected && bytes.empty())) {
      c.line = 0;
      c.is_open = false;
      (void)std::exchange(lines_.at(number).open, false);
      if (refused)
        c.fsm.on_connect_failed("Connection refused", now, true);
      else
        c.fsm.on_disconnected("it closed the connection", now);
    } else if (connected) {
      c.is_open = true;
      c.peer = c.fsm.endpoint();
      c.fsm.on_connected(now);
    } else {
      c.fsm.on_received(bytes, now);
    }
    settle(agent);
  });
}

void Stores::on_event(int agent, store::ControlEvent event) {
  if (client(agent).is_lost) return;
  if (auto* link = std::get_if<store::ControlLink>(&event)) return on_link(agent, *link);
  if (auto* snapshot = std::get_if<store::ControlSnapshot>(&event))
    return deliver(agent, WatchSnapshot{snapshot->watch, translate(std::move(snapshot->entries))});
  if (auto* changes = std::get_if<store::ControlChanges>(&event))
    return deliver(agent, WatchChanges{changes->watch, translate(std::move(changes->changes))});
  if (const auto* rejected = std::get_if<store::ControlWatchRejected>(&event))
    return deliver(agent, WatchRejected{rejected->watch, rejected->detail});
  if (const auto* commit = std::get_if<store::ControlCommit>(&event))
    return deliver(agent,
                   CommitResult{commit->request, translate(commit->outcome), commit->detail});
  const auto& renewal = std::get<store::ControlRenewal>(event);
  deliver(agent, Renewed{renewal.sent, static_cast<std::int64_t>(renewal.settled.era),
                         static_cast<int>(renewal.settled.round)});
}

void Stores::deliver(int agent, const KeyValueEvent& event) {
  if (client(agent).running) client(agent).receive(event);
}

void Stores::on_link(int agent, store::ControlLink event) {
  Client& c = client(agent);
  if (event.state == store::ControlState::Down) c.loss = event;
  LinkEvent told{translate(event.state), event.detail, event.silent, event.keys_per_request};
  told.generation = static_cast<std::int64_t>(event.generation);
  const bool up = told.link == Link::Up || told.link == Link::NewSession;
  const bool joined = c.generation > 0;
  if (up) {
    told.hosting = (!c.has_moved && c.own) || c.successor;
    if (told.link == Link::NewSession && told.generation != c.generation)
      told.old_leases = times_.ttl;
    c.generation = told.generation;
  }
  // Of several attempts to find a store the rendezvous hears once.
  const bool again = told.link == Link::Down && c.succession.is_broken();
  launcher::SuccessionStep step;
  if (up) c.succession.on_link_up();
  if (told.link == Link::Closed || told.link == Link::Failed) c.succession.leave();
  if (told.link == Link::Down && joined)
    step = c.succession.on_link_down(
        {c.loss.refused, c.loss.deserted, event.silent, c.fsm.last_error()}, scheduler_.now());
  if (up) note_session(agent);
  if (!again) deliver(agent, told);
  if (c.running) follow(agent, step);
}

void Stores::follow(int agent, const launcher::SuccessionStep& step) {
  Client& c = client(agent);
  if (const auto* visit = std::get_if<launcher::Visit>(&step)) {
    note(agent, "visits " + to_string(visit->endpoint));
    end_server(c.successor);
    move_to(agent, visit->endpoint);
  } else if (std::holds_alternative<launcher::Stand>(step)) {
    end_server(c.successor);
    begin(agent, false);
    move_to(agent, endpoint_of(address_of(machine(agent)), port_of(agent)));
  } else if (const auto* over = std::get_if<launcher::GiveUpSearch>(&step)) {
    c.is_lost = true;
    end_server(c.successor);
    LinkEvent failed;
    failed.link = Link::Failed;
    failed.detail = over->text;
    c.fsm.close(scheduler_.now());
    deliver(agent, failed);
  }
}

void Stores::move_to(int agent, const Endpoint& endpoint) {
  client(agent).has_moved = endpoint != endpoint_of(address_of(0));
  client(agent).fsm.go_to(endpoint, scheduler_.now());
  note_session(agent);
}

// What the guardian is to say.
void Stores::note_session(int agent) {
  Client& c = client(agent);
  c.farewell.first = c.fsm.farewell();
  c.farewell.to.reset();
  if (!c.farewell.first.empty()) c.farewell.to = c.peer;
  c.farewell.proof = c.fsm.proof_of_death();
  c.farewell.others = c.other_successors;
}

void Stores::watch(int agent, WatchId watch, std::string key, bool prefix) {
  client(agent).fsm.watch(watch, std::move(key), prefix);
  round_of(agent);
}

void Stores::unwatch(int agent, WatchId watch) {
  client(agent).fsm.unwatch(watch);
  round_of(agent);
}

void Stores::commit(int agent, RequestId request, Transaction transaction) {
  store::ControlTransaction result;
  for (auto& guard : transaction.guards)
    result.guards.push_back({std::move(guard.key), std::move(guard.expected)});
  for (auto& write : transaction.writes)
    result.writes.push_back({std::move(write.key), std::move(write.value), write.ephemeral});
  client(agent).fsm.commit(request, std::move(result));
  round_of(agent);
}

void Stores::vote(int agent, const Vote& vote, const std::vector<Successor>& successors) {
  Client& c = client(agent);
  if (const Place& latest = vote.latest; latest.exists()) {
    const store::ElectorateId id{static_cast<std::uint64_t>(latest.era),
                                 static_cast<std::uint64_t>(latest.round)};
    c.fsm.vote({id, rank_of(latest.rank), static_cast<std::uint32_t>(latest.nodes),
                rank_of(latest.casting)},
               scheduler_.now());
  }
  launcher::SuccessionPlan plan;
  plan.nodes = vote.latest.nodes;
  c.other_successors.clear();
  for (const auto& each : successors) {
    if (each.self) plan.own = plan.successors.size();
    plan.successors.push_back({each.address, each.port});
    if (!each.self) c.other_successors.push_back(plan.successors.back());
  }
  c.succession.set_plan(std::move(plan));
  note_session(agent);
  round_of(agent);
}

void Stores::close(int agent) {
  Client& c = client(agent);
  c.fsm.close(scheduler_.now());
  if (c.is_open)
    if (std::string bytes = c.fsm.take_output(scheduler_.now()); !bytes.empty())
      send(c.line, true, std::move(bytes));
  end_process(agent);
}

// ---- faults ----

void Stores::kill(int agent) {
  end_process(agent);
}

void Stores::power_off(int agent) {
  dark_.insert(machine(agent));
  end_process(agent);
}

// To the store where it was; if that does not take it, to the successors.
void Stores::prove_death(int agent) {
  const Farewell& farewell = client(agent).farewell;
  const int from = machine(agent);
  const auto tell_others = [this, from, farewell] {
    for (const auto& other : farewell.others)
      say(from, other, farewell.proof, {});
  };
  if (!farewell.to) return tell_others();
  const auto taken = std::make_shared<std::optional<bool>>();
  const auto answer = [taken, tell_others](bool took) {
    if (*taken) return;
    *taken = took;
    if (!took) tell_others();
  };
  say(from, *farewell.to, farewell.first, answer);
  scheduler_.after(kFarewellLimit, [answer] { answer(false); });
}

void Stores::say(int from, const Endpoint& to, const std::string& bytes,
                 std::function<void(bool)> then) {
  if (bytes.empty()) return;
  const int line = dial(-1, from, to);
  lines_.at(line).on_end = std::move(then);
  send(line, true, bytes);
  hang_up(line, true);
}

void Stores::pause(int agent, bool paused) {
  Client& c = client(agent);
  c.paused = paused;
  while (!c.paused && !c.inbox.empty()) {
    const auto what = std::move(c.inbox.front());
    c.inbox.pop_front();
    what();
  }
}

void Stores::block(int from, int to, bool blocked) {
  if (blocked) {
    blocked_.insert({from, to});
    return;
  }
  if (blocked_.erase({from, to}) == 0) return;
  for (auto& what : std::exchange(held_[{from, to}], {}))
    arrive(from, to, std::move(what));
}

}  // namespace drun::simulation
