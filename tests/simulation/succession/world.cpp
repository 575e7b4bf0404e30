#include "simulation/succession/world.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace drun::simulation {

using namespace rendezvous;

namespace {

constexpr Milliseconds kLimit{1'200'000};  // after this much virtual time a job hangs
constexpr Milliseconds kLease{8'000};
constexpr Milliseconds kSoon{3'000};     // the quiet period included
constexpr Milliseconds kInTime{13'000};  // likewise: the lease, and 2 s for the killing
constexpr int kBusy = 100'000;           // events in one moment, and for each node

constexpr Milliseconds kJoinTimeout{120'000};
// Agents that wait in vain end, and others have forgotten what they knew: that is later.
constexpr Milliseconds kBack{110'000};
constexpr Milliseconds kSupervisorPause{500};
// Of who was killed with most of the others: those who are left have missed the store by then.
constexpr Milliseconds kNoticed{4'000};
// The leases of those who know nothing of the loss are over by then, or they have begun to look.
constexpr Milliseconds kReboot{9'000};
constexpr int kEndCode = 130;  // of who is told to end the job

launcher::Options options_of(const SuccessionPlan& plan) {
  launcher::Options options;
  options.backend = launcher::Backend::C10d;
  options.run_id = "job";
  options.min_nodes = plan.min_nodes;
  options.max_nodes = std::max(plan.max_nodes, 2);  // one alone has no successors
  options.conf.join_timeout = kJoinTimeout;
  options.conf.successors = plan.successors;
  options.endpoint = Stores::endpoint_at(0);
  for (int i = 0; i < plan.endpoints && plan.endpoints > 1; ++i)
    options.endpoints.push_back(Stores::endpoint_at(i));
  return options;
}

// Somebody may begin a store at an endpoint.
bool comes_back(const Blow& blow) {
  return blow.harm == Harm::Return || (blow.harm == Harm::Join && blow.of_host);
}

// Rounds of one number are two if they began at two stores.
std::string identity(const Assignment& a) {
  return std::to_string(a.round) + " of " + std::to_string(a.group_world_size) + " nodes at " +
         a.master_address;
}

}  // namespace

SuccessionWorld::SuccessionWorld(const SuccessionPlan& plan, bool trace)
    : plan_(plan),
      tracing_(trace),
      random_(plan.seed ^ 0xABCDEF),
      stores_(scheduler_, random_, options_of(plan), Milliseconds(plan.max_delay_ms)) {
  stores_.on_note = [this](int number, const std::string& what) { note(number, what); };
  stores_.on_serving = [this](int number, std::int64_t generation) {
    on_serving(number, generation);
  };
}

void SuccessionWorld::note(int number, const std::string& text) {
  if (!tracing_) return;
  const auto ms = (scheduler_.now().time_since_epoch() - std::chrono::hours(1)) / Milliseconds(1);
  report_.trace.push_back(std::to_string(ms) + " node" + std::to_string(number) + " " + text);
}

void SuccessionWorld::fail(const std::string& what) {
  if (!report_.violation.empty()) return;
  const auto ms = (scheduler_.now().time_since_epoch() - std::chrono::hours(1)) / Milliseconds(1);
  report_.violation = "at " + std::to_string(ms) + " ms: " + what;
}

bool SuccessionWorld::over() const {
  return steps_left_ == 0 && std::none_of(agents_.begin(), agents_.end(),
                                          [](const auto& a) { return a->running || a->workers; });
}

SuccessionReport SuccessionWorld::run() {
  machines_ = std::max(plan_.nodes, plan_.endpoints);
  stores_.expect_newcomers(plan_.promise == Promise::Returns ||
                           std::any_of(plan_.blows.begin(), plan_.blows.end(), comes_back));
  for (int i = 0; i < plan_.nodes; ++i) {
    ++steps_left_;
    scheduler_.after(Milliseconds(i == 0 ? 0 : random_.in(0, 50)), [this, i] {
      --steps_left_;
      start_agent(i, false);
    });
  }
  for (const auto& blow : plan_.blows) {
    ++steps_left_;
    scheduler_.after(Milliseconds(blow.at_ms), [this, blow] {
      --steps_left_;
      strike(blow);
    });
  }
  const Time end = scheduler_.now() + kLimit;
  Time moment = scheduler_.now();
  int busy = 0;
  while (report_.violation.empty() && !over() && scheduler_.step(end)) {
    busy = scheduler_.now() == moment ? busy + 1 : 0;
    moment = scheduler_.now();
    if (busy > kBusy * (1 + plan_.nodes / 100))
      fail("time stands still: somebody is busy without end");
  }
  if (report_.violation.empty()) check_end();
  report_.stores = stores_.stores();
  report_.rounds = static_cast<int>(rounds_.size());
  return std::move(report_);
}

// Every job ends, and with a majority that lives it succeeds.
void SuccessionWorld::check_end() {
  if (!over()) return fail("the job does not end");
  for (const auto& a : agents_) {
    if (!a->outcome) continue;
    const bool success = a->outcome->end == End::Success;
    report_.succeeded += success ? 1 : 0;
    if (plan_.promise == Promise::Returns) continue;
    if (plan_.promise == Promise::Nothing || a->harmed || a->is_newcomer) continue;
    if (plan_.promise == Promise::Ended ? a->outcome->exit_code != kEndCode : !success)
      fail("node " + std::to_string(a->number) +
           ", to which nothing happened, ends: " + a->outcome->text);
  }
  if (plan_.promise == Promise::Returns && report_.succeeded < plan_.min_nodes)
    fail("the job does not come back");
  if (plan_.promise == Promise::Soon && (rounds_.size() != 2 || report_.fail_over > kSoon))
    fail("the host was killed, and there was no new round within " + std::to_string(kSoon.count()) +
         " ms");
  if (plan_.promise == Promise::InTime && (rounds_.size() != 3 || report_.fail_over > kInTime))
    fail("the second host fell silent, and there was no new round within " +
         std::to_string(kInTime.count()) + " ms");
  if (plan_.promise == Promise::NoNewRound && rounds_.size() != 1)
    fail("workers were touched, though the node with the store had none");
}

// Somebody is left who was in a round. Else newcomers begin the job anew.
bool SuccessionWorld::is_known() const {
  return std::any_of(agents_.begin(), agents_.end(),
                     [](const auto& each) { return each->running && each->present; });
}

// No two stores have one generation. Before the first round founders may begin anew, and forget the
// stores that they have been at.
void SuccessionWorld::on_serving(int number, std::int64_t generation) {
  if (rounds_.empty()) return;
  if (!is_known()) served_.clear();
  if (!served_.emplace(generation, scheduler_.now()).second)
    fail("node " + std::to_string(number) + " serves a second store of generation " +
         std::to_string(generation));
}

// Of all stores one renews leases: when a later one serves, the majority is not with this one any
// more.
void SuccessionWorld::check_renewal(const Agent& a, Time sent) {
  const auto later = served_.upper_bound(a.generation);
  if (later != served_.end() && sent > later->second)
    fail("node " + std::to_string(a.number) + " has a lease from store " +
         std::to_string(a.generation) + ", and store " + std::to_string(later->first) +
         " served before that");
}

void SuccessionWorld::start_agent(int machine, bool newcomer) {
  const int number = static_cast<int>(agents_.size());
  Config s;
  s.run_id = "job";
  s.min_nodes = plan_.min_nodes;
  s.max_nodes = plan_.max_nodes;
  s.max_restarts = plan_.max_restarts;
  s.host = "host" + std::to_string(machine);
  s.worker_store_port = static_cast<std::uint16_t>(1000 + number);
  s.ticket = "t" + std::to_string(number);
  s.join_timeout = kJoinTimeout;
  s.last_call_timeout = Milliseconds(10'000);
  s.quiet_period = Milliseconds(1'000);
  s.close_timeout = Milliseconds(30'000);
  s.keep_alive = kLease;
  s.stop_timeout = Milliseconds(20'000);
  s.successors = plan_.successors;
  auto& a = *agents_.emplace_back(std::make_unique<Agent>());
  a.number = number;
  a.config = std::move(s);
  a.is_newcomer = newcomer;
  a.alarm.emplace(scheduler_, a.participant, [this, number] {
    input(number, [this](Participant& p) { p.on_time(scheduler_.now()); });
  });
  note(number, "starts on machine " + std::to_string(machine));
  Stores::Calls calls;
  calls.joined = [this, number](const launcher::NodeIdentity& identity) { join(number, identity); };
  calls.dispensable = [this, number](bool known) {
    const Agent& b = agent(number);
    return !b.participant || b.participant->dispensable(known);
  };
  calls.dropped = [this, number] { drop(number); };
  calls.gave_up = [this, number](const Outcome& outcome) { finish(number, outcome); };
  calls.event = [this, number](const KeyValueEvent& event) { on_event(number, event); };
  const Milliseconds late(plan_.host_is_spare && number == 0 ? 2'000 : 0);
  stores_.add(late, std::move(calls), machine);
}

// On machines of endpoints, if that is asked for, as long as there are such without an agent.
void SuccessionWorld::start_newcomers(int count, bool at_endpoints) {
  for (int machine = 0; machine < plan_.endpoints && at_endpoints && count > 0; ++machine) {
    if (stores_.agent_on(machine) >= 0) continue;
    // Where the network keeps them from all others, nothing denies them a job of their own.
    if (plan_.promise != Promise::Nothing && stores_.is_cut(machine)) continue;
    if (!stores_.power_on(machine)) continue;
    start_agent(machine);
    --count;
  }
  for (; count > 0; --count)
    start_agent(machines_++);
}

void SuccessionWorld::start_again(int machine, Milliseconds pause) {
  ++steps_left_;
  scheduler_.after(pause, [this, machine] {
    --steps_left_;
    const bool is_over = std::any_of(agents_.begin(), agents_.end(), [](const auto& a) {
      return a->outcome && a->outcome->end == End::Success;
    });
    if (is_over) return;
    if (!stores_.power_on(machine)) return start_again(machine, Milliseconds(random_.in(1, 3'000)));
    start_agent(machine);
  });
}

void SuccessionWorld::join(int number, const launcher::NodeIdentity& identity) {
  Agent& a = agent(number);
  a.config.address = identity.address;
  a.config.is_host = identity.hosting;
  a.config.successor_port = identity.successor_port;
  a.config.listed = identity.listed;
  a.participant = std::make_unique<Participant>(a.config, scheduler_.now());
  a.alarm->arm();
}

void SuccessionWorld::drop(int number) {
  Agent& a = agent(number);
  a.participant.reset();
  a.up = a.hosts = false;
  if (a.workers) fail("node " + std::to_string(number) + " is dropped with workers running");
}

void SuccessionWorld::on_event(int number, const KeyValueEvent& event) {
  Agent& a = agent(number);
  if (const auto* link = std::get_if<LinkEvent>(&event)) {
    note(number, "link " + std::to_string(static_cast<int>(link->link)) + " " + link->detail +
                     " generation " + std::to_string(link->generation));
    a.up = link->link == Link::Up || link->link == Link::NewSession;
    a.hosts = a.up && link->hosting;
    if (a.up) a.generation = link->generation;
  }
  input(number, [this, event](Participant& p) { p.on_key_value(event, scheduler_.now()); });
}

void SuccessionWorld::finish(int number, const Outcome& outcome) {
  Agent& a = agent(number);
  note(number, "finishes: " + std::to_string(static_cast<int>(outcome.end)) + " " + outcome.text);
  if (a.workers) fail("node " + std::to_string(number) + " leaves with workers running");
  a.outcome = outcome;
  a.running = a.up = false;
  stores_.close(number, outcome.leaves);
  if (plan_.promise == Promise::Returns) start_again(stores_.machine(number), kSupervisorPause);
}

void SuccessionWorld::input(int number, std::function<void(Participant&)> what) {
  Agent& a = agent(number);
  if (!a.participant) return;
  if (a.paused) {
    a.inbox.push_back([this, number, what = std::move(what)] { input(number, what); });
    return;
  }
  what(*a.participant);
  act(number);
}

void SuccessionWorld::act(int number) {
  Agent& a = agent(number);
  while (a.participant) {
    const auto actions = a.participant->take_actions();
    if (actions.empty()) break;
    for (const auto& action : actions)
      do_action(number, action);
    if (!a.running) a.participant.reset();
  }
  a.alarm->arm();
}

void SuccessionWorld::do_action(int number, const Action& action) {
  Agent& a = agent(number);
  if (const auto* watch = std::get_if<WatchAction>(&action)) {
    stores_.watch(number, watch->watch, watch->key, watch->prefix);
  } else if (const auto* unwatch = std::get_if<UnwatchAction>(&action)) {
    stores_.unwatch(number, unwatch->watch);
  } else if (const auto* commit = std::get_if<CommitAction>(&action)) {
    for (const auto& write : commit->transaction.writes)
      note(number, "writes " + write.key + " = " + write.value.value_or("(deleted)"));
    stores_.commit(number, commit->request, commit->transaction);
  } else if (const auto* vote = std::get_if<VoteAction>(&action)) {
    const Place& place = vote->vote.latest;
    note(number, "speaks for " + std::to_string(place.era) + "." + std::to_string(place.round) +
                     " rank " + std::to_string(place.rank) + " of " + std::to_string(place.nodes) +
                     ", " + std::to_string(vote->successors.size()) + " successors");
    stores_.vote(number, vote->vote, vote->successors);
  } else if (const auto* prepare = std::get_if<PrepareWorkerStoreAction>(&action)) {
    scheduler_.after(Milliseconds(random_.in(0, 20)), [this, number, p = *prepare] {
      input(number, [this, p](Participant& participant) {
        participant.on_worker_store_ready(p.assignment.round, p.assignment.master_port,
                                          scheduler_.now());
      });
    });
  } else if (const auto* start = std::get_if<StartAction>(&action)) {
    start_workers(number, start->assignment);
  } else if (const auto* renew = std::get_if<RenewLeaseAction>(&action)) {
    if (a.workers) check_renewal(a, renew->sent);
    a.lease = renew->sent + a.config.keep_alive;
    if (a.workers) watch_lease(number);
  } else if (const auto* stop = std::get_if<StopAction>(&action)) {
    note(number, "stops its workers: " + stop->reason);
    stop_workers(number, stop->immediately);
  } else if (const auto* finish = std::get_if<FinishAction>(&action)) {
    this->finish(number, finish->outcome);
  } else if (const auto* log = std::get_if<LogAction>(&action)) {
    note(number, "says: " + log->text);
  }
}

// ---- workers ----

// Two rounds' workers never run at the same time, whatever has happened: no exception.
void SuccessionWorld::check_start(const Agent& a, const Assignment& assignment) {
  const std::string who =
      "node " + std::to_string(a.number) + " starts workers of round " + identity(assignment);
  if (a.workers) fail(who + " beside those it has");
  if (scheduler_.now() >= a.lease) fail(who + " without a lease");
  check_renewal(a, a.lease - a.config.keep_alive);
  for (const auto& other : agents_) {
    if (!other->workers || other.get() == &a) continue;
    const Assignment& its = *other->workers;
    if (other->present->first != a.present->first) {
      fail(who + " while node " + std::to_string(other->number) + " has some of round " +
           identity(its));
    } else if (its.group_rank == assignment.group_rank || its.world_size != assignment.world_size ||
               its.restart_count != assignment.restart_count) {
      fail(who + ", and does not agree with node " + std::to_string(other->number));
    } else if (a.before && other->before && a.before->first == last_round_ &&
               other->before->first == last_round_ &&
               (a.before->second < other->before->second) !=
                   (assignment.group_rank < its.group_rank)) {
      fail(who + ", and has changed places with node " + std::to_string(other->number));
    }
  }
  // What only those know that are elsewhere is lost.
  if (assignment.restart_count < a.restarts) fail(who + ": the restart counter goes back");
  if (assignment.restart_count > std::min(failures_, plan_.max_restarts))
    fail(who + ": a restart spent without a failure");
  if (assignment.group_world_size < plan_.min_nodes ||
      assignment.group_world_size > plan_.max_nodes)
    fail(who + " of " + std::to_string(assignment.group_world_size) + " nodes");
}

// Where nothing keeps newcomers from the job, they begin no other one beside it.
void SuccessionWorld::check_one_job(int number, const Assignment& assignment) {
  if (plan_.promise == Promise::Nothing || plan_.promise == Promise::Returns ||
      rounds_.contains(identity(assignment)))
    return;
  const bool is_over = std::any_of(agents_.begin(), agents_.end(), [](const auto& a) {
    return a->is_done || (a->outcome && a->outcome->end == End::Success);
  });
  if (is_over || rounds_.empty()) return;
  if (assignment.round == 1 || assignment.round < present_number_)
    fail("node " + std::to_string(number) + " begins the job anew, with round " +
         identity(assignment) + " after round " + std::to_string(present_number_));
}

void SuccessionWorld::start_workers(int number, const Assignment& assignment) {
  Agent& a = agent(number);
  note(number, "starts workers of round " + identity(assignment) + ", group rank " +
                   std::to_string(assignment.group_rank) + " of " +
                   std::to_string(assignment.group_world_size));
  check_one_job(number, assignment);
  if (!is_known()) served_.clear();
  if (rounds_.insert(identity(assignment)).second) {
    const bool in_time = scheduler_.now() < struck_ + kBack;
    if (plan_.promise == Promise::Returns && struck_ != Time{} && !in_time)
      fail("the job comes back late");
    last_round_ = std::exchange(present_round_, identity(assignment));
    // One that was begun and started nowhere has ranks of its own, which not all need to know.
    if (std::exchange(present_number_, assignment.round) + 1 != assignment.round)
      last_round_.clear();
  }
  note_cost();
  a.before = std::exchange(a.present, std::pair(identity(assignment), assignment.group_rank));
  check_start(a, assignment);
  a.restarts = std::max(a.restarts, assignment.restart_count);
  a.workers = assignment;
  a.working = true;
  a.is_done = false;
  watch_lease(number);
  const int round = assignment.round;
  const auto life = ++a.life;
  scheduler_.after(Milliseconds(5), [this, number, life, round] {
    if (agent(number).life != life) return;
    input(number, [this, round](Participant& p) { p.on_workers_started(round, scheduler_.now()); });
  });
  scheduler_.after(Milliseconds(plan_.work_ms + random_.in(0, 300)), [this, number, life, round] {
    Agent& b = agent(number);
    if (b.life != life || !b.working) return;
    b.working = false;
    b.is_done = true;
    note(number, "workers have succeeded");
    input(number,
          [this, round](Participant& p) { p.on_workers_succeeded(round, scheduler_.now()); });
  });
}

void SuccessionWorld::fail_worker(int number) {
  Agent& a = agent(number);
  if (!a.workers || !a.working) return;
  note(number, "a worker fails");
  a.working = false;
  ++failures_;
  FailureSummary failure;
  failure.rank = a.workers->first_rank;
  failure.group_rank = a.workers->group_rank;
  failure.host = a.config.host;
  failure.exit_code = 1 + number % 250;
  failure.cause = "exit code " + std::to_string(failure.exit_code);
  failure.uptime_ms = 20'000;
  const int round = a.workers->round;
  input(number, [this, round, failure](Participant& p) {
    p.on_workers_failed(round, failure, scheduler_.now());
  });
  scheduler_.after(Milliseconds(random_.in(0, 50)), [this, number, life = a.life] {
    if (agent(number).life == life) end_workers(number);
  });
}

void SuccessionWorld::stop_workers(int number, bool immediately) {
  Agent& a = agent(number);
  a.working = false;
  const auto grace = Milliseconds(a.workers ? random_.in(0, immediately ? 5 : 50) : 0);
  scheduler_.after(grace, [this, number, life = a.life] {
    if (agent(number).life == life) end_workers(number);
  });
}

void SuccessionWorld::end_workers(int number) {
  Agent& a = agent(number);
  if (a.workers) note(number, "workers are gone");
  a.workers.reset();
  a.working = false;
  ++a.life;
  input(number, [this](Participant& p) { p.on_workers_stopped(scheduler_.now()); });
}

void SuccessionWorld::note_cost() {
  if (struck_ == Time{}) return;
  report_.messages = stores_.messages() - messages_then_;
  report_.bytes = stores_.bytes() - bytes_then_;
  report_.fail_over = std::chrono::duration_cast<Milliseconds>(scheduler_.now() - struck_);
}

// The guardian, whatever becomes of the agent.
void SuccessionWorld::watch_lease(int number) {
  scheduler_.at(agent(number).lease, [this, number, until = agent(number).lease] {
    if (!agent(number).workers || agent(number).lease != until) return;
    note(number, "the lease is over");
    input(number, [this](Participant& p) { p.on_lease_over(scheduler_.now()); });
    end_workers(number);
  });
}

// ---- what happens to them ----

int SuccessionWorld::pick(const Blow& blow) const {
  std::vector<int> living;
  for (const auto& a : agents_) {
    if (!a->running) continue;
    if (blow.of_host && a->hosts) return a->number;
    living.push_back(a->number);
  }
  return living.empty() ? -1 : living[static_cast<std::size_t>(blow.node) % living.size()];
}

void SuccessionWorld::strike(const Blow& blow) {
  // Who has heard of the end goes, so a majority of the others is not promised then.
  const bool ends =
      std::any_of(agents_.begin(), agents_.end(), [](const auto& a) { return a->is_done; });
  if (ends && plan_.promise != Promise::Nothing) return;
  if (struck_ == Time{} || plan_.promise == Promise::InTime || plan_.promise == Promise::Returns) {
    struck_ = scheduler_.now();
    messages_then_ = stores_.messages();
    bytes_then_ = stores_.bytes();
  }
  if (blow.harm == Harm::Join) return start_newcomers(blow.detail, blow.of_host);
  if (blow.harm == Harm::Called) {
    stores_.on_confirmed = [this](int number) { kill(number, false); };
    return;
  }
  const int number = pick(blow);
  if (number < 0) return;
  const Milliseconds duration(blow.duration_ms);
  const int count = machines_;
  switch (blow.harm) {
    case Harm::Kill:
    case Harm::PowerOff:
      return kill(number, blow.harm == Harm::PowerOff);
    case Harm::Stop:
      return pause(number, duration);
    case Harm::Cut:
      return separate({stores_.machine(number)}, Way::Both, duration);
    case Harm::Split: {
      std::set<int> some;
      for (int i = 0; i < count; ++i)
        if ((blow.detail >> (i % 16)) & 1) some.insert(i);
      const int way = blow.detail >> 16 & 7;
      return separate(some, way == 0 ? Way::In : way == 1 ? Way::Out : Way::Both, duration);
    }
    case Harm::OneWay: {
      const int from = stores_.machine(number);
      const int to = blow.detail % count;
      note(number, "does not reach machine " + std::to_string(to));
      agent(number).harmed = true;
      stores_.block(from, to, true);
      scheduler_.after(duration, [this, from, to] { stores_.block(from, to, false); });
      return;
    }
    case Harm::Fail:
      return fail_worker(number);
    case Harm::Go:
      note(number, "is told to go");
      agent(number).harmed = true;
      return input(number, [this](Participant& p) {
        p.on_leave_requested("told to go by SIGTERM", 143, scheduler_.now());
      });
    case Harm::End:
      note(number, "is told to end the job");
      return input(number, [this](Participant& p) {
        p.on_stop_requested("received SIGINT", kEndCode, scheduler_.now());
      });
    case Harm::Return:
      if (!agent(0).running) return;
      kill(0, false);
      ++steps_left_;
      scheduler_.after(duration, [this] {
        --steps_left_;
        if (stores_.agent_on(0) < 0) start_agent(0);
      });
      return;
    case Harm::Join:
    case Harm::Called:
      return;
  }
}

void SuccessionWorld::kill(int number, bool silently) {
  Agent& a = agent(number);
  note(number, silently ? "loses power" : "is killed");
  a.participant.reset();
  a.inbox.clear();
  a.running = a.up = a.hosts = a.working = false;
  a.harmed = true;
  if (plan_.promise == Promise::Returns)
    start_again(stores_.machine(number),
                (silently ? kReboot : kNoticed) + Milliseconds(random_.in(0, 5'000)));
  if (silently) {
    stores_.power_off(number);
    a.workers.reset();
    ++a.life;
    return;
  }
  stores_.kill(number);
  scheduler_.after(Milliseconds(random_.in(0, 20)), [this, number] {
    end_workers(number);
    stores_.prove_death(number);
  });
}

void SuccessionWorld::pause(int number, Milliseconds duration) {
  Agent& a = agent(number);
  if (a.paused) return;
  note(number, "is stopped");
  a.paused = a.harmed = true;
  stores_.pause(number, true);
  scheduler_.after(duration, [this, number] {
    Agent& b = agent(number);
    note(number, "goes on");
    b.paused = false;
    for (auto& what : std::exchange(b.inbox, {}))
      what();
    stores_.pause(number, false);
  });
}

// Machines, whose agents may have other numbers.
void SuccessionWorld::separate(const std::set<int>& some, Way way, Milliseconds duration) {
  std::vector<std::pair<int, int>> ways;
  const int count = machines_;
  for (const auto& a : agents_) {
    if (!some.contains(stores_.machine(a->number))) continue;
    note(a->number, "is cut off from some");
    a->harmed = true;
  }
  for (const int inside : some) {
    for (int outside = 0; outside < count; ++outside) {
      if (some.contains(outside)) continue;
      if (way != Way::In) ways.emplace_back(inside, outside);
      if (way != Way::Out) ways.emplace_back(outside, inside);
    }
  }
  for (const auto& [from, to] : ways)
    stores_.block(from, to, true);
  scheduler_.after(duration, [this, ways] {
    note(0, "the ways are open again");
    for (const auto& [from, to] : ways)
      stores_.block(from, to, false);
  });
}

}  // namespace drun::simulation
