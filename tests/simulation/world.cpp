#include "simulation/world.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "rendezvous/documents.hpp"
#include "rendezvous/keys.hpp"

namespace drun::simulation {

using namespace rendezvous;

namespace {

constexpr Milliseconds kLimit{1'800'000};  // after this much virtual time a job hangs

constexpr int kBusy = 100'000;  // events in one moment
constexpr Milliseconds kHeartbeat{2'000};
// How long a node waits for failures of its other ranks before it tells of the first.
constexpr Milliseconds kReportSettles{150};

Timings timings(const Plan& plan) {
  Timings t;
  t.max_delay = Milliseconds(plan.max_delay_ms);
  t.reorder = plan.reorder;
  t.loose_sessions = plan.loose_sessions;
  t.keys_per_request = static_cast<std::size_t>(plan.keys_per_request);
  return t;
}

}  // namespace

World::World(const Plan& plan, bool trace)
    : plan_(plan),
      tracing_(trace),
      random_(plan.seed ^ 0xABCDEF),
      network_(scheduler_, random_, timings(plan)),
      checker_(plan_, scheduler_, network_, nodes_) {
  network_.on_applied = [this](int client, const Transaction& transaction) {
    if (tracing_) {
      for (const auto& write : transaction.writes)
        note(client, "wrote " + write.key + " = " + write.value.value_or("(deleted)"));
    }
    checker_.on_applied(client, transaction);
  };
  network_.on_rejected = [this](int client, bool known) { checker_.on_rejected(client, known); };
  network_.on_expired = [this](int client) {
    node(client).session_ended = scheduler_.now();
    note(client, "session has ended");
  };
}

void World::note(int number, const std::string& text) {
  if (!tracing_) return;
  const auto ms = std::chrono::duration_cast<Milliseconds>(scheduler_.now().time_since_epoch() -
                                                           std::chrono::hours(1))
                      .count();
  report_.trace.push_back(std::to_string(ms) + " node" + std::to_string(number) + " " + text);
}

bool World::over() const {
  return steps_left_ == 0 && std::none_of(nodes_.begin(), nodes_.end(),
                                          [](const auto& n) { return n->running || n->workers; });
}

Memory World::memory_of(const Step& step) const {
  if (step.fault != Fault::StoreRestart || step.detail >= 30)
    return step.detail < 70 ? Memory::Keys : Memory::Nothing;
  return plan_.snapshot_age_ms > 0 ? Memory::Older : Memory::Sessions;
}

Report World::run() {
  for (int i = 0; i < plan_.first_nodes; ++i) {
    const int spread = i == 0 ? 0 : plan_.start_spread_ms;
    ++steps_left_;
    scheduler_.after(Milliseconds(random_.in(0, spread)), [this] {
      --steps_left_;
      start_agent();
    });
  }
  for (const auto& step : plan_.steps) {
    ++steps_left_;
    scheduler_.after(Milliseconds(step.at_ms), [this, step] {
      --steps_left_;
      apply(step);
    });
    if (memory_of(step) == Memory::Older)
      scheduler_.after(Milliseconds(std::max(0, step.at_ms - plan_.snapshot_age_ms)),
                       [this] { network_.save_store(); });
  }
  const Time end = scheduler_.now() + kLimit;
  Time moment = scheduler_.now();
  int busy = 0;
  while (checker_.violation().empty() && !over() && scheduler_.step(end)) {
    busy = scheduler_.now() == moment ? busy + 1 : 0;
    moment = scheduler_.now();
    if (busy > kBusy) checker_.fail("time stands still: somebody is busy without end");
  }
  checker_.on_end(over() || !checker_.violation().empty());
  report_.violation = checker_.violation();
  report_.rounds = checker_.rounds();
  if (checker_.outcome()) report_.end = checker_.outcome()->end;
  report_.agents = static_cast<int>(nodes_.size());
  return std::move(report_);
}

void World::start_agent(bool hosts) {
  const int number = static_cast<int>(nodes_.size());
  Config s;
  s.run_id = "job";
  s.min_nodes = plan_.min_nodes;
  s.max_nodes = plan_.max_nodes;
  s.node_step = plan_.node_step;
  s.max_restarts = plan_.max_restarts;
  s.max_losses = plan_.max_losses;
  s.min_runtime = Milliseconds(plan_.min_runtime_ms);
  s.rank_order = plan_.rank_order;
  s.resize = plan_.resize;
  s.local_world_size = 1 + number % 3;
  s.role = number % 4 == 3 ? "other" : "default";
  s.host = "host" + std::to_string(random_.in(0, 20));
  s.address = "10.0.0." + std::to_string(number);
  // Every fourth does not know.
  if (number % 4 != 3) s.network = "spine/leaf" + std::to_string(number % 3);
  s.worker_store_port = static_cast<std::uint16_t>(1000 + number);
  s.is_host = hosts || (plan_.hosted && number == 0);
  s.stands_at_once = !plan_.hosted && number == 0;
  s.ticket = "t" + std::to_string(random_.in(100, 999)) + "-" + std::to_string(number);
  if (plan_.asked_ranks) {
    // The rank of one that is gone, else the next.
    std::vector<bool> taken(static_cast<std::size_t>(plan_.max_nodes), false);
    for (const auto& n : nodes_) {
      if (n->running) taken[static_cast<std::size_t>(*n->config.node_rank)] = true;
    }
    const auto free = std::find(taken.begin(), taken.end(), false);
    s.node_rank = static_cast<int>(free - taken.begin()) % plan_.max_nodes;
  }
  s.join_timeout = Milliseconds(plan_.join_timeout_ms);
  s.last_call_timeout = Milliseconds(10'000);
  s.quiet_period = Milliseconds(1'000);
  s.close_timeout = Milliseconds(30'000);
  s.keep_alive = Milliseconds(6'000);
  s.stop_timeout = Milliseconds(20'000);

  auto& n = *nodes_.emplace_back(std::make_unique<Node>());
  n.number = number;
  n.config = s;
  n.slow_stop = random_.chance(plan_.slow_stop);
  auto& a = *agents_.emplace_back(std::make_unique<Agent>());
  a.participant = std::make_unique<Participant>(std::move(s), scheduler_.now());
  a.alarm.emplace(scheduler_, a.participant, [this, number] {
    input(number, [this](Participant& p) { p.on_time(scheduler_.now()); });
  });
  note(number, "starts");
  a.client = network_.add([this, number](const KeyValueEvent& event) {
    if (tracing_) {
      if (const auto* link = std::get_if<LinkEvent>(&event))
        note(number, "link " + std::to_string(static_cast<int>(link->link)) + " " + link->detail);
    }
    if (const auto* link = std::get_if<LinkEvent>(&event)) {
      if (link->link == Link::Down) {
        if (!node(number).link_lost) node(number).link_lost = scheduler_.now() - link->silent;
        node(number).was_in_trouble = true;
      } else {
        if (node(number).link_lost || !node(number).came_through)
          node(number).link_up = scheduler_.now();
        node(number).link_lost.reset();
        node(number).came_through = true;
      }
    }
    const auto* link = std::get_if<LinkEvent>(&event);
    const bool renews =
        link != nullptr && link->link != Link::Down && network_.in_touch(agent(number).client);
    input(number, [this, event](Participant& p) { p.on_key_value(event, scheduler_.now()); });
    if (renews) renew_lease(number, scheduler_.now());
  });
  heartbeat(number);
  a.alarm->arm();
}

// An input from this machine; the network keeps its own queue for a stopped process.
void World::input(int number, std::function<void(Participant&)> what) {
  Agent& a = agent(number);
  if (!a.participant) return;
  if (node(number).paused) {
    a.inbox.push_back([this, number, what = std::move(what)] { input(number, what); });
    return;
  }
  ++report_.inputs;
  what(*a.participant);
  act(number);
}

void World::act(int number) {
  Agent& a = agent(number);
  while (a.participant) {
    auto actions = a.participant->take_actions();
    if (actions.empty()) break;
    if (a.cost > Milliseconds(0)) return take_long(number, std::move(actions));
    for (const auto& action : actions)
      do_action(number, action);
  }
  if (node(number).outcome && a.participant) {
    a.participant.reset();
    node(number).running = false;
  }
  a.alarm->arm();
}

// Its process has no time for anything else until then. What runs beside it goes on: workers, their
// guardian, and the store of a host.
void World::take_long(int number, std::vector<Action> actions) {
  note(number, "is busy");
  node(number).paused = node(number).was_in_trouble = true;
  network_.pause(agent(number).client, true);
  const auto cost = std::exchange(agent(number).cost, Milliseconds(0));
  agent(number).stops = std::any_of(actions.begin(), actions.end(), [](const auto& action) {
    return std::holds_alternative<StopAction>(action);
  });
  scheduler_.after(cost, [this, number, actions = std::move(actions)] {
    note(number, "acts");
    Agent& a = agent(number);
    node(number).paused = a.stops = false;
    node(number).awake = scheduler_.now();
    if (a.participant) {
      a.late = true;
      for (const auto& action : actions)
        do_action(number, action);
      a.late = false;
    }
    act(number);
    for (auto& what : std::exchange(a.inbox, {}))
      what();
    if (!node(number).paused) network_.pause(a.client, false);
  });
}

void World::do_action(int number, const Action& action) {
  Agent& a = agent(number);
  if (const auto* watch = std::get_if<WatchAction>(&action)) {
    network_.watch(a.client, watch->watch, watch->key, watch->prefix);
  } else if (const auto* unwatch = std::get_if<UnwatchAction>(&action)) {
    network_.unwatch(a.client, unwatch->watch);
  } else if (const auto* commit = std::get_if<CommitAction>(&action)) {
    network_.commit(a.client, commit->request, commit->transaction);
  } else if (const auto* prepare = std::get_if<PrepareWorkerStoreAction>(&action)) {
    note(number, "prepares round " + std::to_string(prepare->assignment.round));
    scheduler_.after(Milliseconds(random_.in(0, 20)), [this, number, p = *prepare] {
      input(number, [this, p](Participant& participant) {
        participant.on_worker_store_ready(p.assignment.round, p.assignment.master_port,
                                          scheduler_.now());
      });
    });
  } else if (const auto* start = std::get_if<StartAction>(&action)) {
    start_workers(number, start->assignment);
  } else if (const auto* renew = std::get_if<RenewLeaseAction>(&action)) {
    checker_.on_renewed(node(number));
    node(number).renewed = renew->sent;
    if (node(number).workers) keep_lease(number);
  } else if (const auto* stop = std::get_if<StopAction>(&action)) {
    note(number, "stops its workers: " + stop->reason);
    stop_workers(number, stop->immediately);
  } else if (const auto* finish = std::get_if<FinishAction>(&action)) {
    note(number, "finishes: " + std::to_string(static_cast<int>(finish->outcome.end)) + " " +
                     finish->outcome.text);
    checker_.on_finish(node(number), finish->outcome);
    node(number).outcome = finish->outcome;
    network_.close(a.client);
    if (node(number).config.is_host) network_.stop_store(Memory::Sessions);
  } else if (std::holds_alternative<HangAction>(action)) {
    note(number, "is told that the job hangs");
    checker_.on_hang(node(number));
    if (random_.chance(50)) fail_workers(number);
  } else if (const auto* stops = std::get_if<RoundStopsAction>(&action)) {
    note(number, "stops the round: " + stops->reason);
  } else if (const auto* log = std::get_if<LogAction>(&action)) {
    note(number, "says: " + log->text);
  }
}

// ---- workers ----

void World::start_workers(int number, const Assignment& assignment) {
  Agent& a = agent(number);
  Node& n = node(number);
  note(number, "starts workers of round " + std::to_string(assignment.round) + ", group rank " +
                   std::to_string(assignment.group_rank));
  // There was one when the agent decided that. The guardian starts none now, and says so.
  if (a.late && scheduler_.now() >= n.renewed + n.config.keep_alive) {
    note(number, "has no lease for them");
    scheduler_.after(Milliseconds(0), [this, number] {
      input(number, [this](Participant& p) { p.on_lease_over(scheduler_.now()); });
    });
    return;
  }
  checker_.on_start(n, assignment);
  n.workers = assignment;
  n.restart_count = std::max(n.restart_count, assignment.restart_count);
  keep_lease(number);
  a.work = Agent::Work::Starting;
  const auto life = ++a.life;
  scheduler_.after(Milliseconds(random_.in(0, 40)), [this, number, life, round = assignment.round] {
    Agent& b = agent(number);
    if (b.life != life || b.work != Agent::Work::Starting) return;
    b.work = Agent::Work::Running;
    input(number, [this, round](Participant& p) { p.on_workers_started(round, scheduler_.now()); });
  });
  scheduler_.after(Milliseconds(plan_.work_ms + random_.in(0, 300)),
                   [this, number, life, round = assignment.round] {
                     Agent& b = agent(number);
                     if (b.life != life || b.work != Agent::Work::Running) return;
                     b.work = Agent::Work::Done;
                     note(number, "workers have succeeded");
                     if (!b.stops) checker_.on_success_reported(number, round);
                     input(number, [this, round](Participant& p) {
                       p.on_workers_succeeded(round, scheduler_.now());
                     });
                   });
}

void World::fail_workers(int number, const std::optional<HangClue>& hang) {
  Agent& a = agent(number);
  Node& n = node(number);
  if (!n.workers || (a.work != Agent::Work::Starting && a.work != Agent::Work::Running)) return;
  note(number, hang ? "a worker hangs" : "a worker fails");
  a.work = Agent::Work::Stopping;
  FailureSummary failure;
  failure.rank = n.workers->first_rank;
  failure.group_rank = n.workers->group_rank;
  failure.host = n.config.host;
  failure.exit_code = 1 + number % 250;
  failure.cause = "exit code " + std::to_string(failure.exit_code);
  failure.pid = 1;
  failure.timed_out = number % 4 == 3;
  if (hang) {
    failure.exit_code = 124;
    failure.cause = "hangs";
    failure.hung = true;
    failure.timed_out = false;
    failure.clue = *hang;
  }
  const int round = n.workers->round;
  const auto report = [this, number, round, failure] {
    if (!agent(number).stops) checker_.on_failure_reported(number, round, failure.hung);
    input(number, [this, round, failure](Participant& p) {
      p.on_workers_failed(round, failure, scheduler_.now());
    });
  };
  auto rest = Milliseconds(0);
  if (hang)
    rest = hang->others_within + Milliseconds(1'000);  // then the node stops them by itself
  else
    peers_notice(round, number);
  rest += Milliseconds(n.slow_stop ? random_.in(0, 30'000) : random_.in(0, 50));
  // One that waits for the others of its ranks says so first.
  if (number % 3 == 1) {
    input(number, [this, round](Participant& p) { p.on_workers_failing(round, scheduler_.now()); });
    scheduler_.after(std::min(rest, kReportSettles), [this, number, report, life = a.life] {
      if (agent(number).life == life && node(number).workers) report();
    });
  } else {
    report();
  }
  scheduler_.after(rest, [this, number, life = a.life] {
    if (agent(number).life == life) end_workers(number);
  });
}

// Each node of the round finds it in its time, or one does.
void World::hang_workers(int first, const Step& step) {
  for (const auto& each : nodes_) {
    if (each->number != first && step.detail >= 70) continue;
    HangClue clue;
    clue.behind = each->number == first && step.detail % 2 == 0;
    clue.alike = 1;
    clue.others_within = Milliseconds(step.duration_ms);
    scheduler_.after(Milliseconds(random_.in(0, step.duration_ms)),
                     [this, clue, number = each->number, life = agent(each->number).life] {
                       const Agent& a = agent(number);
                       if (a.life == life && a.work == Agent::Work::Running)
                         fail_workers(number, clue);
                     });
  }
}

// They make no more progress, and again after that time, unless something else becomes of them.
void World::stall_workers(int number, Milliseconds duration) {
  Node& n = node(number);
  if (!n.workers || agent(number).work != Agent::Work::Running || n.stalls) return;
  const auto say = [this, number, round = n.workers->round](bool stalled) {
    note(number, stalled ? "workers make no more progress" : "workers make progress again");
    input(number, [this, round, stalled](Participant& p) {
      p.on_workers_stalled(round, stalled, scheduler_.now());
    });
  };
  n.stalls = n.stalled = n.workers->round;
  n.stall_changed = scheduler_.now();
  say(true);
  scheduler_.after(duration, [this, number, say, life = agent(number).life] {
    if (agent(number).life != life || agent(number).work != Agent::Work::Running) return;
    checker_.check_hang(node(number));
    node(number).stalls = 0;
    node(number).stall_changed = scheduler_.now();
    say(false);
  });
}

// The others' workers talk to the one that is gone.
void World::peers_notice(int round, int but) {
  for (const auto& peer : nodes_) {
    if (peer->number == but || !peer->workers || peer->workers->round != round) continue;
    if (!random_.chance(plan_.cascade)) continue;
    const auto life = agent(peer->number).life;
    scheduler_.after(Milliseconds(random_.in(0, 60)), [this, number = peer->number, life] {
      if (agent(number).life == life) fail_workers(number);
    });
  }
}

void World::stop_workers(int number, bool immediately) {
  Agent& a = agent(number);
  Node& n = node(number);
  if (!n.workers) {
    scheduler_.after(Milliseconds(0), [this, number] {
      input(number, [this](Participant& p) { p.on_workers_stopped(scheduler_.now()); });
    });
    return;
  }
  a.work = Agent::Work::Stopping;
  auto grace = Milliseconds(n.slow_stop ? random_.in(0, 30'000) : random_.in(0, 50));
  if (immediately) grace = Milliseconds(random_.in(0, 5));
  scheduler_.after(grace, [this, number, life = a.life] {
    if (agent(number).life == life) end_workers(number);
  });
}

void World::end_workers(int number) {
  Agent& a = agent(number);
  if (!node(number).workers) return;
  note(number, "workers are gone");
  node(number).workers.reset();
  node(number).stalls = 0;
  a.work = Agent::Work::None;
  ++a.life;
  input(number, [this](Participant& p) { p.on_workers_stopped(scheduler_.now()); });
}

// ---- the lease ----

void World::heartbeat(int number) {
  if (!agent(number).participant) return;
  if (network_.in_touch(agent(number).client)) renew_lease(number, scheduler_.now());
  scheduler_.after(kHeartbeat, [this, number] { heartbeat(number); });
}

// The agent asks, and the store answers.
void World::renew_lease(int number, Time sent) {
  input(number, [this, sent](Participant& p) { p.on_key_value(Renewed{sent}, scheduler_.now()); });
}

// The guardian, whatever becomes of the agent.
void World::keep_lease(int number) {
  const Time renewed = node(number).renewed;
  scheduler_.at(renewed + node(number).config.keep_alive, [this, number, renewed] {
    if (!node(number).workers || node(number).renewed != renewed) return;
    note(number, "the lease is over");
    input(number, [this](Participant& p) { p.on_lease_over(scheduler_.now()); });
    end_workers(number);
  });
}

// ---- faults ----

int World::pick(int which) const {
  std::vector<int> living;
  for (const auto& n : nodes_) {
    if (n->running) living.push_back(n->number);
  }
  return living.empty() ? -1 : living[static_cast<std::size_t>(which) % living.size()];
}

void World::kill(int number, bool silently) {
  Node& n = node(number);
  note(number, silently ? "loses power" : "is killed");
  agent(number).participant.reset();
  agent(number).inbox.clear();
  n.running = false;
  n.was_in_trouble = true;
  network_.kill(agent(number).client, silently);
  const int round = n.workers ? n.workers->round : 0;
  if (silently) {
    n.workers.reset();
    ++agent(number).life;
  } else {
    scheduler_.after(Milliseconds(random_.in(0, 20)), [this, number] {
      end_workers(number);
      network_.prove_death(agent(number).client);
    });
  }
  if (round != 0) peers_notice(round, number);
  if (n.config.is_host) {
    note(number, "takes the store with it");
    checker_.on_store_restart(Memory::Sessions);
    network_.stop_store(Memory::Sessions);
  }
}

// The first time counts: it waits no longer for being told again.
void World::note_stop(Node& n) const {
  if (!n.told_to_stop) n.stop_told = scheduler_.now();
  n.told_to_stop = true;
}

void World::tell_to_go(int number) {
  Node& n = node(number);
  if (!n.running || n.told_to_go) return;
  note(number, "is told to go");
  n.told_to_go = scheduler_.now();
  if (n.config.is_host) note_stop(n);
  input(number, [this](Participant& p) {
    p.on_leave_requested("told to go by SIGTERM", 143, scheduler_.now());
  });
  if (n.workers && !n.paused) peers_notice(n.workers->round, number);
}

void World::apply(const Step& step) {
  if (step.fault == Fault::Join) {
    if (network_.store_up() || !plan_.hosted) start_agent();
    return;
  }
  const bool of_host = step.fault == Fault::HostDies || step.fault == Fault::HostRestarts;
  const int number = of_host ? 0 : pick(step.node);
  if (number < 0 || nodes_.empty() || !node(number).running) return;
  Node& n = node(number);
  const auto duration = Milliseconds(step.duration_ms);
  switch (step.fault) {
    case Fault::Join:
      break;
    case Fault::Crash:
    case Fault::PowerOff:
      if (n.config.is_host && step.detail < 90) return;  // ends all: rather something else
      kill(number, step.fault == Fault::PowerOff);
      break;
    case Fault::HostDies:
      if (plan_.hosted) kill(number, step.detail < 50);
      break;
    case Fault::StoreFull: {
      constexpr std::size_t kRoom[] = {0, 0, 1, 2};
      const std::size_t room = kRoom[step.detail % 4];
      note(number, "sees the store full but for " + std::to_string(room) + " keys");
      checker_.on_store_full(true);
      network_.fill_store(room);
      scheduler_.after(duration, [this] {
        checker_.on_store_full(false);
        network_.fill_store(SIZE_MAX);
      });
      break;
    }
    case Fault::HostRestarts:
      checker_.on_store_restart(Memory::Nothing);
      kill(number, false);
      network_.stop_store(Memory::Nothing);
      ++steps_left_;
      scheduler_.after(duration, [this] {
        --steps_left_;
        start_agent(true);
        network_.start_store();
      });
      break;
    case Fault::Busy:
      agent(number).cost = duration;
      break;
    case Fault::Pause:
      if (n.config.is_host || n.paused) return;
      note(number, "is paused");
      n.paused = n.was_in_trouble = true;
      network_.pause(agent(number).client, true);
      scheduler_.after(duration, [this, number] {
        note(number, "goes on");
        node(number).paused = false;
        node(number).awake = scheduler_.now();
        for (auto& what : std::exchange(agent(number).inbox, {}))
          what();
        if (!node(number).paused) network_.pause(agent(number).client, false);
      });
      break;
    case Fault::Partition:
      if (n.config.is_host) return;
      note(number, "is cut off");
      n.was_in_trouble = true;
      network_.partition(agent(number).client, true);
      scheduler_.after(duration, [this, number] {
        note(number, "is connected again");
        node(number).linked = scheduler_.now();
        network_.partition(agent(number).client, false);
      });
      break;
    case Fault::Reset:
      note(number, "connection is reset");
      n.was_in_trouble = true;
      network_.reset(agent(number).client, step.detail < 50 ? duration : Milliseconds(0));
      break;
    case Fault::WorkerFails:
      fail_workers(number);
      break;
    case Fault::Stall:
      for (const auto& each : nodes_)
        if (each->number == number || step.detail < 70) stall_workers(each->number, duration);
      break;
    case Fault::Hang:
      hang_workers(number, step);
      break;
    case Fault::Go:
      tell_to_go(number);
      break;
    case Fault::GoAll: {
      checker_.on_cancel();
      // All within two seconds; or one, which may lead, long before the others.
      const bool one_first = step.detail < 50;
      for (const auto& each : nodes_) {
        const bool first = one_first && each->number == number;
        const int after = first ? 0 : random_.in(one_first ? 1'500 : 0, 2'000);
        scheduler_.after(Milliseconds(after), [this, told = each->number] { tell_to_go(told); });
      }
      break;
    }
    case Fault::Stop:
      note(number, "is told to stop");
      note_stop(n);
      input(number, [this](Participant& p) {
        p.on_stop_requested("told to stop by SIGTERM", 143, scheduler_.now());
      });
      break;
    case Fault::Stranger: {
      const std::string ticket = step.detail < 70 ? "nobody" : n.config.ticket;
      note(number, "sees a stranger name " + ticket + " the leader");
      network_.write(rendezvous::Keys(n.config.run_id).leader,
                     step.detail < 40
                         ? "null"
                         : rendezvous::encode(rendezvous::LeaderDocument{ticket, 1, "elsewhere"}));
      break;
    }
    case Fault::StoreRestart: {
      if (plan_.hosted || !network_.store_up()) return;
      const auto memory = memory_of(step);
      note(number, "sees the store restart, memory " + std::to_string(static_cast<int>(memory)));
      checker_.on_store_restart(memory);
      network_.stop_store(memory);
      scheduler_.after(duration, [this] { network_.start_store(); });
      break;
    }
  }
}

}  // namespace drun::simulation
