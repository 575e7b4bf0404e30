#include "simulation/network.hpp"

#include <algorithm>
#include <variant>

namespace drun::simulation {

using namespace rendezvous;

namespace {

constexpr std::uint32_t kAnswers = 0xFFFFFFFF;  // the stream of commit results

std::uint32_t stream(const KeyValueEvent& event) {
  if (const auto* snapshot = std::get_if<WatchSnapshot>(&event)) return snapshot->watch;
  if (const auto* changes = std::get_if<WatchChanges>(&event)) return changes->watch;
  return kAnswers;
}

}  // namespace

Network::Network(Scheduler& scheduler, Random& random, Timings timings)
    : scheduler_(scheduler),
      random_(random),
      timings_(timings),
      store_([this](SessionId session, KeyValueEvent event) {
        send_down(session, std::move(event));
      }) {}

Milliseconds Network::delay() {
  return Milliseconds(random_.in(0, static_cast<int>(timings_.max_delay.count())));
}

int Network::add(Receiver receive) {
  const int client = static_cast<int>(peers_.size());
  peers_.push_back(std::make_unique<Peer>());
  peers_.back()->receive = std::move(receive);
  try_connect(client, delay());
  return client;
}

// ---- the client's side ----

void Network::watch(int client, WatchId watch, std::string key, bool prefix) {
  Peer& p = peer(client);
  p.watches[watch] = {key, prefix};
  if (!p.connected) return;
  send_up(client, [this, client, watch, key = std::move(key), prefix] {
    store_.watch(peer(client).session, watch, key, prefix);
  });
}

void Network::unwatch(int client, WatchId watch) {
  Peer& p = peer(client);
  p.watches.erase(watch);
  if (!p.connected) return;
  send_up(client, [this, client, watch] { store_.unwatch(peer(client).session, watch); });
}

void Network::commit(int client, RequestId request, Transaction transaction) {
  Peer& p = peer(client);
  if (p.connected) return transmit(client, request, std::move(transaction));
  if (random_.chance(50)) {
    p.queued.emplace_back(request, std::move(transaction));
    return;
  }
  scheduler_.after(Milliseconds(0), [this, client, request] {
    deliver(client, CommitResult{request, CommitOutcome::Unknown});
  });
}

void Network::transmit(int client, RequestId request, Transaction transaction) {
  Peer& p = peer(client);
  p.outstanding[request] = p.generation;
  send_up(client, [this, client, request, transaction = std::move(transaction)] {
    const auto session = peer(client).session;
    const bool dead = !alive_.contains(session) &&
                      std::any_of(transaction.writes.begin(), transaction.writes.end(),
                                  [](const Write& write) { return write.ephemeral; });
    if (!takes(client, transaction))
      return send_down(session, CommitResult{request, CommitOutcome::Rejected, "it is full"});
    const auto outcome = dead ? CommitOutcome::Refused : store_.commit(session, transaction);
    send_down(session, CommitResult{request, outcome});
    if (outcome == CommitOutcome::Committed && on_applied) on_applied(client, transaction);
  });
}

bool Network::takes(int client, const Transaction& transaction) const {
  const std::size_t most = timings_.keys_per_request;
  const bool too_many = most != 0 && transaction.writes.size() > most;
  const bool rejected = too_many || test::values_set(transaction) > room_;
  if (rejected && on_rejected) on_rejected(client, too_many);
  return !rejected;
}

void Network::close(int client) {
  Peer& p = peer(client);
  if (p.connected) {
    send_up(client, [this, client] {
      const auto session = peer(client).session;
      peer(client).open = false;
      expire(client, session);
    });
  }
  p.running = false;
  p.watches.clear();
}

void Network::client_break(int client, const std::string& why) {
  Peer& p = peer(client);
  if (!p.running || !p.connected) return;
  p.connected = false;
  // The socket is closed; the server hears of it when the link lets it.
  const auto close = [this, client, generation = p.generation] {
    if (peer(client).server_generation == generation) server_close(client);
  };
  if (p.cut) {
    p.frozen.push_back(close);
  } else {
    scheduler_.after(delay(), close);
  }
  ++p.generation;
  note_silence(client);
  auto lost = std::exchange(p.outstanding, {});
  const bool answers_first = random_.chance(50);
  const auto answer = [&] {
    for (const auto& [request, generation] : lost)
      deliver(client, CommitResult{request, CommitOutcome::Unknown});
  };
  if (answers_first) answer();
  LinkEvent down{Link::Down, why};
  if (p.cut) down.silent = std::chrono::duration_cast<Milliseconds>(scheduler_.now() - p.cut_since);
  deliver(client, down);
  if (random_.chance(10)) deliver(client, down);
  if (!answers_first) answer();
  try_connect(client, Milliseconds(random_.in(5, 300)));
}

void Network::deliver(int client, const KeyValueEvent& event) {
  Peer& p = peer(client);
  if (!p.running) return;
  if (p.paused) {
    p.inbox.push_back([this, client, event] { deliver(client, event); });
    return;
  }
  if (const auto* result = std::get_if<CommitResult>(&event)) p.outstanding.erase(result->request);
  p.receive(event);
}

// ---- the wire ----

void Network::send_up(int client, std::function<void()> what) {
  Peer& p = peer(client);
  p.up_clear = std::max(p.up_clear, scheduler_.now() + delay());
  scheduler_.at(p.up_clear, [this, client, generation = p.generation, what = std::move(what)] {
    arrive_up(client, generation, what);
  });
}

void Network::arrive_up(int client, int generation, std::function<void()> what) {
  Peer& p = peer(client);
  if (p.cut) {
    p.frozen.push_back([this, client, generation, what = std::move(what)] {
      arrive_up(client, generation, what);
    });
    return;
  }
  if (store_up_ && p.open && p.server_generation == generation) what();
}

void Network::send_down(SessionId session, KeyValueEvent event) {
  const auto owner = owners_.find(session);
  if (owner == owners_.end()) return;
  const int client = owner->second;
  Peer& p = peer(client);
  if (!p.open) return;
  Time& clear = p.down_clear[timings_.reorder ? stream(event) : 0];
  clear = std::max({clear, p.link_clear, scheduler_.now() + delay()});
  scheduler_.at(
      clear, [this, client, generation = p.server_generation, event = std::move(event)]() mutable {
        arrive_down(client, generation, std::move(event));
      });
}

void Network::arrive_down(int client, int generation, KeyValueEvent event) {
  Peer& p = peer(client);
  if (p.cut) {
    p.frozen.push_back([this, client, generation, event = std::move(event)]() mutable {
      arrive_down(client, generation, std::move(event));
    });
    return;
  }
  if (!p.running || p.generation != generation) return;
  if (p.paused) {  // on this machine already: a link that is cut later holds it no more
    p.inbox.push_back([this, client, generation, event = std::move(event)] {
      const Peer& q = peer(client);
      if (q.running && q.generation == generation) deliver(client, event);
    });
    return;
  }
  deliver(client, event);
}

// ---- the server's side ----

void Network::server_close(int client) {
  Peer& p = peer(client);
  if (!p.open) return;
  // That the connection broke proves nothing; nor is it a sign of life.
  if (!p.silent) p.heard = scheduler_.now();
  p.open = false;
  note_silence(client);
  store_.disconnect(p.session);
  scheduler_.at(std::max(scheduler_.now(), p.heard + timings_.ttl),
                [this, client, closed = p.server_generation] {
                  const Peer& q = peer(client);
                  if (store_up_ && !q.open && q.server_generation == closed)
                    expire(client, q.session);
                });
}

void Network::expire(int client, SessionId session, bool connection_too) {
  if (!alive_.erase(session)) return;
  if (connection_too) {
    store_.expire(session);
  } else {
    store_.drop_keys(session);
  }
  if (on_expired) on_expired(client);
}

void Network::note_silence(int client) {
  Peer& p = peer(client);
  const bool silent =
      p.open && (p.cut || p.paused || !p.running || p.generation != p.server_generation);
  if (silent == p.silent) return;
  p.silent = silent;
  if (silent) p.heard = scheduler_.now();
  const int silence = ++p.silence;
  if (!silent) {
    if (alive_.contains(p.session)) return;
    // Sooner or later it hears that its session has ended.
    scheduler_.after(Milliseconds(random_.in(0, 500)), [this, client, session = p.session] {
      if (peer(client).session == session) client_break(client, "the session has ended");
    });
    return;
  }
  scheduler_.after(timings_.ttl, [this, client, silence] {
    Peer& q = peer(client);
    if (q.silence != silence || !q.open || !store_up_) return;
    if (timings_.loose_sessions && q.running) return expire(client, q.session, false);
    q.open = q.silent = false;
    store_.disconnect(q.session);
    expire(client, q.session);
    // A process that was only stopped finds a closed connection.
    if (q.running && !q.cut) q.inbox.push_back([this, client] { client_break(client, "closed"); });
  });
}

// ---- connecting ----

void Network::try_connect(int client, Milliseconds wait) {
  Peer& p = peer(client);
  const int attempt = ++p.attempts;
  scheduler_.after(wait, [this, client, attempt] {
    Peer& q = peer(client);
    if (!q.running || q.connected || q.attempts != attempt) return;
    if (q.cut || q.paused || !store_up_ || scheduler_.now() < q.unreachable_until)
      return try_connect(client, Milliseconds(random_.in(50, 300)));
    establish(client);
  });
}

void Network::establish(int client) {
  Peer& p = peer(client);
  if (p.open) store_.disconnect(p.session);  // the old connection is replaced
  p.server_generation = ++p.generation;
  p.open = true;
  if (!alive_.contains(p.session)) {
    owners_.erase(p.session);
    p.session = store_.open();
    owners_[p.session] = client;
    alive_.insert(p.session);
  }
  // One of which it was not told is none that it could resume.
  const Link link = p.told == 0 || p.told == p.session ? Link::Up : Link::NewSession;
  note_silence(client);
  p.down_clear.clear();
  p.link_clear = scheduler_.now() + delay();
  scheduler_.at(p.link_clear, [this, client, generation = p.generation, link] {
    welcome(client, generation, link);
  });
}

void Network::welcome(int client, int generation, Link link) {
  Peer& p = peer(client);
  const auto again = [this, client, generation, link] { welcome(client, generation, link); };
  if (p.cut) return p.frozen.push_back(again);
  if (!p.running) return server_close(client);
  if (p.generation != generation) return;
  if (p.paused) return p.inbox.push_back(again);
  if (!p.open || p.server_generation != generation)  // broken before it was of use
    return try_connect(client, Milliseconds(random_.in(5, 300)));
  p.connected = true;
  p.told = p.session;
  for (const auto& [id, what] : p.watches) {
    send_up(client, [this, client, watch = id, key = what.first, prefix = what.second] {
      store_.watch(peer(client).session, watch, key, prefix);
    });
  }
  for (auto& [request, transaction] : std::exchange(p.queued, {}))
    transmit(client, request, std::move(transaction));
  const std::size_t most = timings_.keys_per_request;
  deliver(client, LinkEvent{link, {}, {}, most});
  if (random_.chance(5)) deliver(client, LinkEvent{Link::Up, {}, {}, most});
}

// ---- faults ----

void Network::kill(int client, bool silently) {
  Peer& p = peer(client);
  p.running = false;
  p.connected = false;
  ++p.generation;
  p.inbox.clear();
  if (!silently && !p.cut) {
    scheduler_.after(delay(), [this, client] { server_close(client); });
  } else {
    note_silence(client);
  }
}

void Network::prove_death(int client) {
  if (peer(client).cut) return;
  scheduler_.after(delay(), [this, client] {
    Peer& p = peer(client);
    if (!store_up_) return;
    if (std::exchange(p.open, false)) store_.disconnect(p.session);
    note_silence(client);
    expire(client, p.session);
  });
}

void Network::pause(int client, bool paused) {
  Peer& p = peer(client);
  p.paused = paused;
  note_silence(client);
  if (paused) return;
  auto inbox = std::exchange(p.inbox, {});
  for (auto& what : inbox)
    what();
}

void Network::partition(int client, bool cut) {
  Peer& p = peer(client);
  if (p.cut == cut) return;
  p.cut = cut;
  note_silence(client);
  if (!cut) {
    auto frozen = std::exchange(p.frozen, {});
    for (auto& what : frozen)
      what();
    if (p.connected && !p.open) client_break(client, "closed");  // answered with a reset
    return;
  }
  p.cut_since = scheduler_.now();
  const int cuts = ++p.cuts;
  const auto wait = Milliseconds(random_.in(500, static_cast<int>(timings_.noticed.count())));
  scheduler_.after(wait, [this, client, cuts] {
    Peer& q = peer(client);
    if (!q.cut || q.cuts != cuts) return;
    if (q.paused) return q.inbox.push_back([this, client] { client_break(client, "no answer"); });
    client_break(client, "no answer");
  });
}

void Network::reset(int client, Milliseconds outage) {
  Peer& p = peer(client);
  if (!p.running || !p.connected || p.cut) return;
  p.unreachable_until = scheduler_.now() + outage;
  scheduler_.after(delay(), [this, client, generation = p.server_generation] {
    if (peer(client).server_generation == generation) server_close(client);
  });
  scheduler_.after(delay(), [this, client, generation = p.generation] {
    Peer& q = peer(client);
    if (q.generation != generation) return;
    if (q.paused) return q.inbox.push_back([this, client] { client_break(client, "reset"); });
    client_break(client, "reset");
  });
}

void Network::stop_store(Memory memory) {
  store_up_ = false;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const int client = static_cast<int>(i);
    Peer& p = *peers_[i];
    const bool was_open = std::exchange(p.open, false);
    if (p.session != 0) store_.disconnect(p.session);
    if (was_open && !p.cut) {
      scheduler_.after(delay(), [this, client, generation = p.generation] {
        Peer& q = peer(client);
        if (q.generation != generation) return;
        if (q.paused) return q.inbox.push_back([this, client] { client_break(client, "reset"); });
        client_break(client, "reset");
      });
    }
    if (memory == Memory::Sessions) continue;
    if (memory == Memory::Older && saved_sessions_.contains(p.session)) continue;
    if (alive_.erase(p.session) && on_expired) on_expired(client);
  }
  if (memory == Memory::Older) {
    alive_ = saved_sessions_;
    store_.restart(saved_);
  } else if (memory != Memory::Sessions) {
    store_.restart(memory == Memory::Nothing);
  }
}

void Network::write(const std::string& key, const std::string& value) {
  if (!store_up_) return;
  rendezvous::Transaction transaction;
  transaction.writes.push_back({key, value, false});
  (void)store_.commit(0, transaction);
}

void Network::save_store() {
  saved_ = store_.save();
  saved_sessions_ = alive_;
}

void Network::start_store() {
  store_up_ = true;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const int client = static_cast<int>(i);
    // Unless it comes back first: then its connection's own end counts.
    scheduler_.after(timings_.ttl, [this, client, session = peers_[i]->session,
                                    last = peers_[i]->server_generation] {
      const Peer& p = peer(client);
      if (store_up_ && !p.open && p.session == session && p.server_generation == last)
        expire(client, session);
    });
  }
  // Those that have come back from the dead and have no owner any more.
  for (const SessionId session : alive_) {
    const auto owner = owners_.find(session);
    if (owner != owners_.end() && peer(owner->second).session == session) continue;
    scheduler_.after(timings_.ttl, [this, session] {
      if (store_up_ && alive_.erase(session) > 0) store_.expire(session);
    });
  }
}

}  // namespace drun::simulation
