#include "simulation/succession/stores.hpp"

#include <algorithm>

#include "rendezvous/keys.hpp"

namespace drun::simulation {

using namespace rendezvous;

namespace {

constexpr Milliseconds kTick{50};
constexpr Milliseconds kRetry{200};
constexpr std::size_t kMostDoublings = 3;

store::Place to_store(const Place& place) {
  if (!place.exists()) return {};
  const auto rank = [](int number) {
    return number < 0 ? store::kNoRank : static_cast<std::uint32_t>(number);
  };
  return {{static_cast<std::uint64_t>(place.era), static_cast<std::uint64_t>(place.round)},
          rank(place.rank),
          static_cast<std::uint32_t>(place.nodes),
          rank(place.casting)};
}

bool has_majority(const store::Electorate& electorate) {
  return electorate.has_majority();
}

}  // namespace

// ---- messages ----

void Stores::post(int from, int to, std::function<void()> what) {
  if (!client(from).powered) return;
  Time& clear = clear_[{from, to}];
  const int most = from == to ? 1 : static_cast<int>(times_.max_delay.count());
  clear = std::max(clear, scheduler_.now() + Milliseconds(random_.in(0, most)));
  scheduler_.at(clear, [this, from, to, what = std::move(what)] { arrive(from, to, what); });
}

void Stores::arrive(int from, int to, std::function<void()> what) {
  if (!client(to).powered) return;
  if (blocked_.contains({from, to})) return held_[{from, to}].push_back(std::move(what));
  if (client(to).paused) return client(to).inbox.push_back(std::move(what));
  what();
}

// To the store at the other end of the agent's connection, in its session there.
void Stores::send_up(int agent, std::function<void(Server&, SessionId)> what) {
  const int number = client(agent).server;
  const int connection = client(agent).connection;
  post(agent, server(number).host, [this, number, connection, what = std::move(what)] {
    Server& s = server(number);
    if (s.closed) return;
    for (auto& [id, session] : s.sessions) {
      if (session.connection != connection) continue;
      session.heard = scheduler_.now();
      return what(s, id);
    }
  });
}

void Stores::send_down(int number, int connection, int agent, std::function<void()> what) {
  post(server(number).host, agent, [this, connection, agent, what = std::move(what)] {
    const Client& c = client(agent);
    if (c.running && c.connection == connection) what();
  });
}

// ---- the stores ----

int Stores::begin_server(int host, bool first) {
  const int number = static_cast<int>(servers_.size());
  servers_.push_back(
      std::make_unique<Server>([this, number](SessionId session, const KeyValueEvent& event) {
        const Server& s = server(number);
        const auto at = s.sessions.find(session);
        if (at == s.sessions.end() || at->second.connection == 0) return;
        send_down(number, at->second.connection, at->second.agent,
                  [this, agent = at->second.agent, event] { deliver(agent, event); });
      }));
  Server& s = *servers_.back();
  s.number = number;
  s.host = host;
  if (first) {
    s.generation = 1;
    s.serving = true;
  }
  store::Electorate::Options options;
  options.is_first = first;
  s.electorate = store::Electorate(options);
  for (const auto& say : std::exchange(words_[host], {}))
    say(s);
  for (const auto& [agent, connection] : std::exchange(backlog_[host], {}))
    if (client(agent).connection == connection) open(number, agent, connection);
  return number;
}

void Stores::close_server(int number) {
  Server& s = server(number);
  if (s.closed) return;
  s.closed = true;
  std::vector<std::pair<int, int>> open;
  for (const auto& [connection, waiting] : s.waiting)
    open.emplace_back(waiting.agent, connection);
  for (const auto& [id, session] : s.sessions)
    if (session.connection != 0) open.emplace_back(session.agent, session.connection);
  for (const auto& [agent, connection] : open)
    post(s.host, agent, [this, agent = agent, connection = connection] {
      reset_from(agent, connection, "the store is closed");
    });
}

// A connection has come, and its opening with it.
void Stores::open(int number, int agent, int connection) {
  Server& s = server(number);
  const Client& c = client(agent);
  if (!s.serving) {
    const store::VoterId voter = ++voters_;
    s.waiting[connection] = {agent, voter, c.generation};
    s.electorate.vote(voter, c.voter.vote(), scheduler_.now());
    if (has_majority(s.electorate)) serve(s);
    return;
  }
  // Who was welcomed at another store of this age has left that one for good, or should go back.
  if (c.home != number && c.generation >= s.generation) {
    post(s.host, agent, [this, agent, connection] { reset_from(agent, connection, "too old"); });
    return;
  }
  const auto at = c.home == number ? s.sessions.find(c.session) : s.sessions.end();
  if (at == s.sessions.end()) return start_session(s, agent, connection, ++voters_);
  if (at->second.connection != 0) s.store.disconnect(at->first);
  at->second.connection = connection;
  at->second.heard = scheduler_.now();
  s.electorate.vote(at->second.voter, c.voter.vote(), scheduler_.now());
  welcome(s, at->first, true);
}

void Stores::serve(Server& s) {
  for (const auto& [connection, waiting] : s.waiting)
    s.generation = std::max(s.generation, waiting.generation + 1);
  s.serving = true;
  note(s.host, "serves store " + std::to_string(s.number) + " of generation " +
                   std::to_string(s.generation));
  for (const auto& [connection, waiting] : std::exchange(s.waiting, {}))
    start_session(s, waiting.agent, connection, waiting.voter);
}

void Stores::start_session(Server& s, int agent, int connection, store::VoterId voter) {
  const SessionId id = s.store.open();
  s.sessions[id] = {agent, voter, scheduler_.now(), connection};
  s.electorate.vote(voter, client(agent).voter.vote(), scheduler_.now());
  watch_session(s.number, id);
  welcome(s, id, false);
}

void Stores::welcome(Server& s, SessionId id, bool resumed) {
  const Session& session = s.sessions.at(id);
  send_down(s.number, session.connection, session.agent,
            [this, number = s.number, agent = session.agent, connection = session.connection, id,
             resumed] { on_welcome(agent, number, connection, id, resumed); });
}

void Stores::watch_session(int number, SessionId id) {
  Server& s = server(number);
  const auto at = s.sessions.find(id);
  if (s.closed || at == s.sessions.end()) return;
  const Time due = at->second.heard + times_.ttl;
  Client& host = client(s.host);
  if (scheduler_.now() >= due && host.paused)  // what has come meanwhile is read first
    return host.inbox.push_back([this, number, id] { watch_session(number, id); });
  if (scheduler_.now() >= due) {
    note(at->second.agent, "has no session at store " + std::to_string(number) + " any more");
    return end_session(s, id, false, nullptr);
  }
  scheduler_.at(due, [this, number, id] { watch_session(number, id); });
}

void Stores::end_session(Server& s, SessionId id, bool proven, const store::Vote* vote) {
  const auto at = s.sessions.find(id);
  if (at == s.sessions.end()) return;
  const Session session = at->second;
  s.sessions.erase(at);
  if (proven) {
    s.electorate.gone(session.voter);
    if (vote != nullptr) note_gone(s, client(session.agent).job, *vote);
  } else {
    s.electorate.leave(session.voter);
  }
  s.store.expire(id);
  if (session.connection != 0)
    post(s.host, session.agent, [this, session] {
      reset_from(session.agent, session.connection, "the session has ended");
    });
}

void Stores::note_gone(Server& s, const std::string& job, const store::Vote& vote) {
  const store::Place& latest = vote.latest();
  if (latest.nodes == 0 || latest.rank == store::kNoRank) return;
  Place place;
  place.era = static_cast<std::int64_t>(latest.electorate.era);
  place.round = static_cast<int>(latest.electorate.round);
  place.rank = static_cast<int>(latest.rank);
  const std::string key = job + "gone/" + std::to_string(place.era) + "." +
                          std::to_string(place.round) + "." + std::to_string(place.rank);
  s.store.commit(0, Transaction{{}, {{key, "1", false}}});
}

void Stores::on_pulse(Server& s, SessionId id, const store::Vote& vote, Time sent) {
  const Session& session = s.sessions.at(id);
  s.electorate.vote(session.voter, vote, scheduler_.now());
  const auto quorum = s.electorate.quorum(scheduler_.now());
  send_down(s.number, session.connection, session.agent,
            [this, agent = session.agent, number = s.number, quorum, sent, stamp = scheduler_.now(),
             settled = s.electorate.settled()] {
              on_pulsed(agent, number, quorum, sent, stamp, settled, stamp);
            });
}

void Stores::server_break(Server& s, int connection) {
  const auto waiting = s.waiting.find(connection);
  if (waiting != s.waiting.end()) {
    s.electorate.leave(waiting->second.voter);
    s.waiting.erase(waiting);
  }
  for (auto& [id, session] : s.sessions) {
    if (session.connection != connection) continue;
    session.connection = 0;
    s.store.disconnect(id);
  }
}

// ---- the agents' side ----

int Stores::add(std::string address, Milliseconds wait, Receiver receive) {
  const int agent = static_cast<int>(clients_.size());
  clients_.push_back(std::make_unique<Client>());
  Client& c = *clients_.back();
  c.receive = std::move(receive);
  c.address = std::move(address);
  c.contact = scheduler_.now();
  if (agent == 0) begin_server(0, true);
  scheduler_.after(wait, [this, agent] {
    if (client(agent).running) connect(agent, 0);
    tick(agent);
  });
  return agent;
}

void Stores::deliver(int agent, const KeyValueEvent& event) {
  Client& c = client(agent);
  if (!c.running) return;
  if (const auto* result = std::get_if<CommitResult>(&event))
    if (c.outstanding.erase(result->request) == 0) return;
  c.receive(event);
}

void Stores::watch(int agent, WatchId watch, std::string key, bool prefix) {
  Client& c = client(agent);
  c.watches[watch] = {key, prefix};
  if (!c.up) return;
  send_up(agent, [watch, key = std::move(key), prefix](Server& s, SessionId id) {
    s.store.watch(id, watch, key, prefix);
  });
}

void Stores::unwatch(int agent, WatchId watch) {
  Client& c = client(agent);
  c.watches.erase(watch);
  if (c.up) send_up(agent, [watch](Server& s, SessionId id) { s.store.unwatch(id, watch); });
}

void Stores::commit(int agent, RequestId request, Transaction transaction) {
  Client& c = client(agent);
  c.outstanding.insert(request);
  if (!c.up) {
    scheduler_.after(Milliseconds(0), [this, agent, request] {
      deliver(agent, CommitResult{request, CommitOutcome::Unknown});
    });
    return;
  }
  send_up(agent,
          [this, agent, request, transaction = std::move(transaction)](Server& s, SessionId id) {
            const auto outcome = s.store.commit(id, transaction);
            const auto at = s.sessions.find(id);
            send_down(s.number, at->second.connection, agent, [this, agent, request, outcome] {
              deliver(agent, CommitResult{request, outcome});
            });
            if (outcome == CommitOutcome::Committed && on_applied) on_applied(agent, transaction);
          });
}

void Stores::vote(int agent, const Vote& vote, const std::vector<Successor>& successors) {
  Client& c = client(agent);
  c.job = vote.job;
  c.successors = successors;
  c.voter.give(to_store(vote.latest));
  if (vote.first) c.voter.settle(to_store(vote.latest));
  if (c.welcomed) pulse(agent);
}

void Stores::close(int agent) {
  Client& c = client(agent);
  if (c.welcomed)
    send_up(agent, [this, vote = c.voter.vote()](Server& s, SessionId id) {
      end_session(s, id, true, &vote);
    });
  c.running = c.up = c.welcomed = false;
  for (const auto& s : servers_)
    if (s->host == agent) close_server(s->number);
}

void Stores::tick(int agent) {
  Client& c = client(agent);
  if (!c.running || !c.powered) return;
  const Time now = scheduler_.now();
  scheduler_.after(kTick, [this, agent] { tick(agent); });
  if (c.paused) return;
  if (c.welcomed) {
    const bool fresh = now < c.contact + times_.pulse * 2;
    if (now >= c.pulsed + (fresh ? times_.pulse : times_.pulse / 5)) pulse(agent);
    if (now > std::max(c.contact, c.began) + times_.noticed) drop(agent, "no answer", false);
  } else if (now > c.began + c.patience) {
    next_attempt(agent);
  }
}

void Stores::pulse(int agent) {
  Client& c = client(agent);
  c.pulsed = scheduler_.now();
  send_up(agent, [this, vote = c.voter.vote(), sent = c.pulsed](Server& s, SessionId id) {
    on_pulse(s, id, vote, sent);
  });
}

void Stores::connect(int agent, int number) {
  Client& c = client(agent);
  c.server = number;
  c.connection = ++connections_;
  c.welcomed = false;
  c.began = scheduler_.now();
  const int host = server(number).host;
  post(agent, host, [this, agent, number, connection = c.connection, host] {
    if (client(agent).connection != connection) return;
    Server& s = server(number);
    if (!s.closed && client(host).running) return open(number, agent, connection);
    post(host, agent, [this, agent, connection] { reset_from(agent, connection, "refused"); });
  });
}

// The connection is over, as far as this agent knows.
void Stores::drop(int agent, const std::string& why, bool refused) {
  Client& c = client(agent);
  const int connection = std::exchange(c.connection, 0);
  c.welcomed = false;
  if (c.server >= 0 && connection != 0)
    post(agent, server(c.server).host,
         [this, number = c.server, connection] { server_break(server(number), connection); });
  if (std::exchange(c.up, false)) {
    LinkEvent down{Link::Down, why};
    if (!refused)
      down.silent = std::chrono::duration_cast<Milliseconds>(scheduler_.now() - c.contact);
    const auto lost = c.outstanding;
    deliver(agent, down);
    for (const RequestId request : lost)
      deliver(agent, CommitResult{request, CommitOutcome::Unknown});
  }
  if (!c.running) return;
  c.began = scheduler_.now();
  if (refused) return next_attempt(agent);
  connect(agent, c.server);
}

void Stores::reset_from(int agent, int connection, const std::string& why) {
  Client& c = client(agent);
  if (!c.running || c.connection != connection) return;
  drop(agent, why, true);
}

// Where next: the successors in turn, and the store of before, which may be back.
void Stores::next_attempt(int agent) {
  Client& c = client(agent);
  const Time now = scheduler_.now();
  c.connection = 0;
  if (c.successors.empty()) {  // a newcomer looks where the job is
    c.connection = -1;
    scheduler_.after(kRetry, [this, agent] {
      Client& again = client(agent);
      if (!again.running || again.connection != -1) return;
      const int count = static_cast<int>(servers_.size());
      connect(agent,
              again.home >= 0 ? again.home : static_cast<int>(again.turn++) % std::max(count, 1));
    });
    return;
  }
  const bool lost = c.home < 0 || server(c.home).closed || now > c.contact + times_.keep_alive;
  if (!lost) {
    c.turn = 0;
    c.connection = -1;
    scheduler_.after(kRetry, [this, agent] {
      if (client(agent).running && client(agent).connection == -1)
        connect(agent, client(agent).home);
    });
    return;
  }
  if (c.own >= 0 && c.own == c.server && !server(c.own).serving) {  // its turn is over
    close_server(c.own);
    c.own = -1;
  }
  // Longer and longer, so that those that began at different times meet.
  const std::size_t pass = c.turn / (c.successors.size() + 1);
  const std::size_t turn = c.turn++ % (c.successors.size() + 1);
  c.patience = times_.turn * (1 << std::min<std::size_t>(pass, kMostDoublings));
  if (turn == c.successors.size()) {
    c.patience = times_.turn;
    c.connection = -1;
    scheduler_.after(kRetry, [this, agent] {
      if (client(agent).running && client(agent).connection == -1)
        connect(agent, std::max(client(agent).home, 0));
    });
    return;
  }
  const Successor& successor = c.successors[turn];
  if (successor.self) {
    if (c.own >= 0) close_server(c.own);
    note(agent, "would succeed");
    c.own = begin_server(agent, false);
    return connect(agent, c.own);
  }
  const int host = successor.port - port_of(0);
  c.server = -1;
  c.connection = ++connections_;
  c.began = now;
  post(agent, host, [this, agent, host, connection = c.connection] {
    Client& who = client(agent);
    if (who.connection != connection) return;
    const Client& other = client(host);
    if (!other.running) {
      post(host, agent, [this, agent, connection] { reset_from(agent, connection, "refused"); });
    } else if (other.own >= 0) {
      who.server = other.own;
      open(other.own, agent, connection);
    } else {
      backlog_[host].emplace_back(agent, connection);
    }
  });
}

void Stores::on_welcome(int agent, int number, int connection, SessionId id, bool resumed) {
  Client& c = client(agent);
  if (c.connection != connection) return;
  c.server = number;
  c.welcomed = true;
  c.began = scheduler_.now();
  c.told_new |= !resumed;
  c.session = id;
  c.home = number;
  c.generation = server(number).generation;
  pulse(agent);
  if (times_.eager) tell_up(agent);
}

void Stores::tell_up(int agent) {
  Client& c = client(agent);
  if (c.up) return;
  c.up = true;
  LinkEvent event;
  event.link = c.was_up && c.told_new ? Link::NewSession : Link::Up;
  event.generation = c.generation;
  if (c.told_generation != c.generation) event.old_leases = times_.ttl;
  event.hosting = server(c.server).host == agent;
  c.told_generation = c.generation;
  c.told_new = false;
  c.was_up = true;
  for (const auto& [watch, what] : c.watches)
    send_up(agent, [watch = watch, what = what](Server& s, SessionId id) {
      s.store.watch(id, watch, what.first, what.second);
    });
  deliver(agent, event);
}

// `quorum` counts by the store's clock, which is this agent's here: a real one says how long ago.
void Stores::on_pulsed(int agent, int number, std::optional<Time> quorum, Time sent, Time stamp,
                       const store::Place& settled, Time answered) {
  Client& c = client(agent);
  if (!c.welcomed || c.server != number) return;
  send_up(agent, [stamp](Server& s, SessionId id) {
    s.electorate.confirm(s.sessions.at(id).voter, stamp);
  });
  c.voter.settle(settled);
  if (!quorum || answered - *quorum > times_.keep_alive) return;
  c.contact = sent - (answered - *quorum);
  c.turn = 0;
  if (!c.up) tell_up(agent);
  Renewed renewed;
  renewed.sent = c.contact;
  renewed.settled_era = static_cast<std::int64_t>(settled.electorate.era);
  renewed.settled_round = static_cast<int>(settled.electorate.round);
  deliver(agent, renewed);
}

// ---- faults ----

void Stores::kill(int agent) {
  Client& c = client(agent);
  c.running = c.up = false;
  c.inbox.clear();
  if (c.welcomed)
    post(agent, server(c.server).host, [this, number = c.server, connection = c.connection] {
      server_break(server(number), connection);
    });
  for (const auto& s : servers_)
    if (s->host == agent) close_server(s->number);
  for (const auto& [other, connection] : std::exchange(backlog_[agent], {}))
    post(agent, other, [this, other = other, connection = connection] {
      reset_from(other, connection, "refused");
    });
}

void Stores::power_off(int agent) {
  Client& c = client(agent);
  c.running = c.up = c.powered = false;
  c.inbox.clear();
  for (const auto& s : servers_)
    if (s->host == agent) s->closed = true;
}

// Its guardian tells the store where it was; if that does not take it, the successors.
void Stores::prove_death(int agent) {
  Client& c = client(agent);
  const auto vote = c.voter.vote();
  const auto tell_others = [this, agent, vote] {
    for (const Successor& successor : client(agent).successors) {
      const int host = successor.port - port_of(0);
      const auto say = [this, vote, job = client(agent).job](Server& s) {
        s.electorate.gone(vote);
        note_gone(s, job, vote);
        if (!s.serving && has_majority(s.electorate)) serve(s);
      };
      post(agent, host, [this, host, say] {
        const Client& other = client(host);
        if (!other.running) return;
        if (other.own >= 0 && !server(other.own).closed) return say(server(other.own));
        words_[host].emplace_back(say);
      });
    }
  };
  if (c.home < 0) return;
  const int number = c.home;
  const int host = server(number).host;
  if (server(number).closed || blocked_.contains({agent, host}) || !client(host).running)
    return tell_others();
  post(agent, host, [this, number, id = c.session, vote] {
    Server& s = server(number);
    if (!s.closed) end_session(s, id, true, &vote);
  });
}

void Stores::pause(int agent, bool paused) {
  Client& c = client(agent);
  c.paused = paused;
  if (paused) return;
  while (!c.inbox.empty() && !c.paused) {
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
