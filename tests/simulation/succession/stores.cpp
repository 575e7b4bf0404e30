#include "simulation/succession/stores.hpp"

#include <algorithm>
#include <utility>

#include "base/deadline.hpp"
#include "simulation/succession/places.hpp"

namespace drun::simulation {

using namespace rendezvous;

namespace {

constexpr Milliseconds kBoot{4'000};
constexpr Milliseconds kFirstKnock{1'000};

}  // namespace

Stores::~Stores() {
  for (auto& each : clients_)
    for (auto* server : {&each->own, &each->successor})
      if (*server) (*server)->peers.clear();
}

int Stores::agent_on(int machine) const {
  for (std::size_t i = 0; i < clients_.size(); ++i)
    if (clients_[i]->machine == machine && clients_[i]->running) return static_cast<int>(i);
  return -1;
}

bool Stores::is_cut(int machine) const {
  return std::any_of(blocked_.begin(), blocked_.end(), [machine](const auto& way) {
    return way.first == machine || way.second == machine;
  });
}

// ---- machines and processes ----

void Stores::post(int from, int to, std::function<void()> what) {
  if (!powered(from)) return;
  Time& clear = clear_[{from, to}];
  const int most = from == to ? 1 : static_cast<int>(max_delay_.count());
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
  if (agent < 0) return;
  Client& c = client(agent);
  if (!c.running) return;
  if (c.paused) return c.inbox.push_back(std::move(what));
  what();
}

// ---- connections ----

int Stores::dial(int agent, int inquiry, int from, const Endpoint& endpoint) {
  const int number = ++last_line_;
  Line& line = lines_[number];
  line.agent = agent;
  line.inquiry = inquiry;
  line.from = from;
  line.first = endpoint.port == kEndpointPort;
  line.machine = machine_of(endpoint);
  if (!line.first) line.to = agent_of_port(endpoint.port);
  knock(number, kFirstKnock);
  return number;
}

// As TCP does: a machine without power does not answer, so it is asked again, after a pause that
// doubles, until whoever asks gives up.
void Stores::knock(int number, Milliseconds pause) {
  const auto line = lines_.find(number);
  if (line == lines_.end() || !line->second.open || line->second.asked) return;
  const int from = line->second.from;
  const int machine = line->second.machine;
  if (!powered(machine) && line->second.agent >= 0) {
    scheduler_.after(pause, [this, number, pause] { knock(number, 2 * pause); });
    return;
  }
  post(from, machine, [this, number, machine] {
    Line& asked = lines_.at(number);
    if (std::exchange(asked.asked, true)) return;
    if (asked.first) asked.to = agent_on(machine);
    const bool takes = listens(asked, machine);
    asked.accepted = takes;
    post(machine, asked.from, [this, number, takes] {
      const Line& answered = lines_.at(number);
      if (answered.agent >= 0) on_line(number, !takes, takes, "");
    });
  });
}

// Who has one of several endpoints has its port in place of another.
bool Stores::listens(const Line& line, int machine) {
  if (line.to < 0) return false;
  const Client& host = client(line.to);
  if (!host.running || host.machine != machine) return false;
  return line.first ? host.listed || host.own : !host.listed;
}

void Stores::send(int number, bool up, std::string bytes) {
  const Line& line = lines_.at(number);
  const int host = line.machine;
  if (line.from != host) {
    ++messages_;
    bytes_ += bytes.size();
  }
  if (up)
    return post(line.from, host, [this, number, host, bytes = std::move(bytes)] {
      Line& there = lines_.at(number);
      there.came = scheduler_.now();
      // A machine that was started anew knows of no such connection, and says so.
      if (there.agent >= 0 && there.to >= 0 && !client(there.to).running)
        return post(host, there.from, [this, number] { on_line(number, false, false, ""); });
      run(there.to, [this, number, bytes] { take(number, bytes); });
    });
  if (line.agent >= 0)
    post(host, line.from,
         [this, number, bytes = std::move(bytes)] { on_line(number, false, false, bytes); });
}

// Whoever connected closes, or the store does.
void Stores::hang_up(int number, bool up) {
  Line& line = lines_.at(number);
  const int host = line.machine;
  if (up) {
    if (!std::exchange(line.open, false)) return;
    return post(line.from, host,
                [this, number] { run(lines_.at(number).to, [this, number] { end(number); }); });
  }
  if (std::exchange(line.ended, true)) return;
  if (line.agent < 0) return;
  post(host, line.from, [this, number] { on_line(number, false, false, ""); });
}

std::unique_ptr<Stores::Server>& Stores::server_of(const Line& line) {
  return server_of(line.to, line.first && !client(line.to).listed);
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
  peer->set_idle(std::chrono::duration_cast<Milliseconds>(scheduler_.now() - line.came));
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

void Stores::begin(int host, bool at_first, const store::ServerOptions& o) {
  auto& server = server_of(host, at_first);
  const Time now = scheduler_.now();
  server = std::make_unique<Server>(store::StoreSuccession::Options{
      o.successor, o.quorum, o.job, o.founders, o.founding, o.listening});
  server->host = host;
  server->at_first = at_first;
  server->world.now = now;
  if (!at_first) server->world.succession.recall(client(host).deaths, now);
  server->world.succession.start(now);
  if (!at_first) note(host, o.founding ? "would begin" : "would succeed");
  std::vector<int> waiting;
  for (const auto& [number, line] : lines_)
    if (line.to == host && line.accepted && !line.ended && &server_of(line) == &server)
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

void Stores::step_down(Client& c) {
  if (c.successor) c.deaths = c.successor->world.succession.deaths();
  end_server(c.successor);
}

// Once for all that has come at this moment.
void Stores::serve_soon(Server& s) {
  if (std::exchange(s.has_news, true)) return;
  scheduler_.after(Milliseconds(0), [this, host = s.host, at_first = s.at_first] {
    run(host, [this, host, at_first] {
      auto& server = server_of(host, at_first);
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
    if (generation > 1 && on_serving) on_serving(s.host, static_cast<std::int64_t>(generation));
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
  EarliestDeadline next;
  next.include(s.world.sessions.next_deadline());
  next.include(s.world.succession.next_deadline());
  const auto due = next.time();
  if (!due || (s.timer && *s.timer <= *due)) return;
  s.timer = due;
  scheduler_.at(*due, [this, host = s.host, at_first = s.at_first, at = *due] {
    run(host, [this, host, at_first, at] {
      auto& server = server_of(host, at_first);
      if (!server || server->timer != at) return;
      server->timer.reset();
      server->world.now = scheduler_.now();
      server->world.sessions.expire(scheduler_.now());
      server->world.succession.on_time(scheduler_.now());
      serve(*server);
    });
  });
}

void Stores::close(int agent, bool job_goes_on) {
  Client& c = client(agent);
  const std::string proof = c.fsm && job_goes_on ? c.fsm->proof_of_death() : std::string();
  if (c.fsm) c.fsm->close(scheduler_.now());
  if (c.fsm && c.is_open)
    if (std::string bytes = c.fsm->take_output(scheduler_.now()); !bytes.empty())
      send(c.line, true, std::move(bytes));
  for (const auto& other : c.standing.other_successors())
    say(c.machine, other, proof);
  end_process(agent);
}

// ---- faults ----

void Stores::kill(int agent) {
  end_process(agent);
}

void Stores::power_off(int agent) {
  const int dark = machine(agent);
  dark_.emplace(dark, scheduler_.now());
  end_process(agent);
  for (const auto& [number, line] : lines_)
    if (line.machine == dark && line.agent >= 0 && line.open && !line.asked)
      scheduler_.after(kFirstKnock, [this, number] { knock(number, 2 * kFirstKnock); });
}

bool Stores::power_on(int machine) {
  const auto found = dark_.find(machine);
  if (found == dark_.end()) return true;
  if (scheduler_.now() - found->second < kBoot) return false;
  dark_.erase(found);
  return true;
}

// To the store where it was, and to the successors.
void Stores::prove_death(int agent) {
  const Farewell& farewell = client(agent).farewell;
  if (farewell.to) say(machine(agent), *farewell.to, farewell.first);
  for (const auto& other : farewell.others)
    say(machine(agent), other, farewell.proof);
}

void Stores::say(int from, const Endpoint& to, const std::string& bytes) {
  if (bytes.empty()) return;
  const int line = dial(-1, 0, from, to);
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
