// What the launcher's BackendLink does with its machines, for the agents of a simulation.
#include <algorithm>
#include <utility>
#include <variant>

#include "base/deadline.hpp"
#include "launcher/backend/backend_settings.hpp"
#include "rendezvous/keys.hpp"
#include "simulation/succession/places.hpp"
#include "simulation/succession/stores.hpp"

namespace drun::simulation {

using namespace rendezvous;
using launcher::BackendState;
using launcher::LookoutTask;

namespace {

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

int Stores::add(Milliseconds late, Calls calls, int machine) {
  const int agent = static_cast<int>(clients_.size());
  clients_.push_back(std::make_unique<Client>(options_, scheduler_.now()));
  Client& c = *clients_.back();
  c.calls = std::move(calls);
  c.machine = machine;
  if (launcher::successors(options_) > 0)
    c.succession.emplace(launcher::succession_limits(options_), options_.endpoint);
  c.late = late;
  scheduler_.after(Milliseconds(0), [this, agent] {
    run(agent, [this, agent] { advance(agent, client(agent).backend.start(scheduler_.now())); });
  });
  return agent;
}

// ---- turns ----

void Stores::settle_soon(int agent) {
  scheduler_.after(Milliseconds(0),
                   [this, agent] { run(agent, [this, agent] { settle(agent); }); });
}

// As the clients' shells do: their connections, what they send, what they tell.
void Stores::settle(int agent) {
  Client& c = client(agent);
  if (c.busy) return;
  c.busy = true;
  for (bool more = true; more && c.running;) {
    more = settle_link(agent);
    if (c.running) more |= settle_inquiries(agent);
  }
  c.busy = false;
  c.retired.clear();
  if (c.running) arm(agent);
}

bool Stores::settle_link(int agent) {
  Client& c = client(agent);
  if (!c.fsm) return false;
  store::ControlFsm* const fsm = c.fsm.get();
  if (const auto wanted = fsm->wanted_connection(); wanted != c.wanted) {
    c.wanted = wanted;
    c.is_open = false;
    if (c.line != 0) hang_up(std::exchange(c.line, 0), true);
    if (wanted) c.line = dial(agent, 0, c.machine, fsm->endpoint());
  }
  auto events = fsm->take_events();
  for (auto& event : events)
    if (c.running && c.fsm.get() == fsm) on_event(agent, std::move(event));
  if (!events.empty()) return true;
  if (!c.is_open) return c.fsm->wanted_connection() != c.wanted;
  std::string bytes = fsm->take_output(scheduler_.now());
  if (bytes.empty()) return false;
  send(c.line, true, std::move(bytes));
  if (std::exchange(c.is_called, false)) std::exchange(on_confirmed, {})(agent);
  return false;
}

bool Stores::settle_inquiries(int agent) {
  Client& c = client(agent);
  std::vector<std::pair<Endpoint, store::Whereabouts>> said;
  for (auto& [number, each] : c.lookout) {
    if (const auto wanted = each->fsm.wanted_connection(); wanted != each->wanted) {
      each->wanted = wanted;
      each->is_open = false;
      if (each->line != 0) hang_up(std::exchange(each->line, 0), true);
      if (wanted) each->line = dial(agent, number, c.machine, each->endpoint);
    }
    if (each->is_open)
      if (std::string bytes = each->fsm.take_output(); !bytes.empty())
        send(each->line, true, std::move(bytes));
    if (each->fsm.answer() == each->said) continue;
    each->said = each->fsm.answer();
    said.emplace_back(each->endpoint, each->said);
  }
  for (const auto& [endpoint, answer] : said)
    if (c.running) on_answer(agent, endpoint, answer);
  return !said.empty();
}

void Stores::arm(int agent) {
  Client& c = client(agent);
  EarliestDeadline next;
  next.include(c.backend.next_deadline());
  if (c.fsm) next.include(c.fsm->next_deadline());
  if (c.succession) next.include(c.succession->next_deadline());
  if (c.founding) next.include(c.founding->next_deadline());
  for (const auto& [number, each] : c.lookout)
    next.include(each->fsm.next_deadline());
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
  for (auto& [number, each] : c.lookout)
    each->fsm.on_time(now);
  if (c.fsm && c.fsm->next_deadline() && now >= *c.fsm->next_deadline()) c.fsm->on_time(now);
  const std::string cause = c.founding ? c.founding->text() : c.fsm ? c.fsm->last_error() : "";
  advance(agent, c.backend.on_time(cause, now));
  if (c.running && c.succession) follow(agent, c.succession->on_time(cause, now));
  if (c.running && c.founding) go(agent, c.founding->on_time(now));
  if (c.running) settle(agent);
}

// ---- lines ----

// Something has come on it: that it is refused or there, bytes, or (none) its end.
void Stores::on_line(int number, bool refused, bool connected, const std::string& bytes) {
  const Line& line = lines_.at(number);
  run(line.agent,
      [this, agent = line.agent, inquiry = line.inquiry, number, refused, connected, bytes] {
        if (inquiry == 0)
          on_control_line(agent, number, refused, connected, bytes);
        else
          on_inquiry_line(agent, number, refused, connected, bytes);
        settle(agent);
      });
}

void Stores::on_control_line(int agent, int number, bool refused, bool connected,
                             const std::string& bytes) {
  Client& c = client(agent);
  if (c.line != number || !c.fsm) return;
  const Time now = scheduler_.now();
  if (refused || (!connected && bytes.empty())) {
    c.line = 0;
    c.is_open = false;
    lines_.at(number).open = false;
    if (refused)
      c.fsm->on_connect_failed("Connection refused", now, true);
    else
      c.fsm->on_disconnected("it closed the connection", now);
  } else if (connected) {
    c.is_open = true;
    c.peer = c.fsm->endpoint();
    c.fsm->on_connected(now);
  } else {
    const bool elsewhere = lines_.at(number).machine != c.machine;
    const bool waits = on_confirmed && elsewhere && c.succession && c.succession->is_searching();
    const std::string proof = waits ? c.fsm->proof_of_death() : "";
    c.fsm->on_received(bytes, now);
    c.is_called = waits && c.fsm->proof_of_death() != proof;
  }
}

void Stores::on_inquiry_line(int agent, int number, bool refused, bool connected,
                             const std::string& bytes) {
  Client& c = client(agent);
  const auto found = c.lookout.find(lines_.at(number).inquiry);
  const bool mine = found != c.lookout.end() && found->second->line == number;
  const Time now = scheduler_.now();
  if (refused || (!connected && bytes.empty())) {
    if (mine) {
      found->second->line = 0;
      found->second->is_open = false;
      if (refused)
        found->second->fsm.on_connect_failed("Connection refused", now);
      else
        found->second->fsm.on_disconnected("it closed the connection", now);
    }
    if (refused && mine)
      lines_.erase(number);  // there may be many
    else
      lines_.at(number).open = false;
    return;
  }
  if (!mine) return;
  if (connected) {
    found->second->is_open = true;
    found->second->fsm.on_connected(address_of(c.machine), found->second->endpoint.host, now);
  } else {
    found->second->fsm.on_received(bytes, now);
  }
}

// ---- the rendezvous's calls ----

void Stores::watch(int agent, WatchId watch, std::string key, bool prefix) {
  client(agent).fsm->watch(watch, std::move(key), prefix);
  settle_soon(agent);
}

void Stores::unwatch(int agent, WatchId watch) {
  client(agent).fsm->unwatch(watch);
  settle_soon(agent);
}

void Stores::commit(int agent, RequestId request, Transaction transaction) {
  store::ControlTransaction result;
  for (auto& guard : transaction.guards)
    result.guards.push_back({std::move(guard.key), std::move(guard.expected)});
  for (auto& write : transaction.writes)
    result.writes.push_back({std::move(write.key), std::move(write.value), write.ephemeral});
  client(agent).fsm->commit(request, std::move(result));
  settle_soon(agent);
}

void Stores::vote(int agent, const Vote& vote, const std::vector<Successor>& successors) {
  Client& c = client(agent);
  if (const Place& latest = vote.latest; latest.exists()) {
    const store::ElectorateId id{static_cast<std::uint64_t>(latest.era),
                                 static_cast<std::uint64_t>(latest.round)};
    c.fsm->vote({id, rank_of(latest.rank), static_cast<std::uint32_t>(latest.nodes),
                 rank_of(latest.casting)},
                scheduler_.now());
  }
  if (!c.succession) return;
  c.succession->set_plan(c.standing.on_vote(vote, successors));
  note_session(agent);
  settle_soon(agent);
}

// ---- events ----

void Stores::on_event(int agent, store::ControlEvent event) {
  if (client(agent).standing.is_lost()) return;
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
  if (std::holds_alternative<store::ControlCall>(event)) return note_session(agent);
  const auto& renewal = std::get<store::ControlRenewal>(event);
  deliver(agent, Renewed{renewal.sent, static_cast<std::int64_t>(renewal.settled.era),
                         static_cast<int>(renewal.settled.round)});
}

void Stores::deliver(int agent, const KeyValueEvent& event) {
  const Client& c = client(agent);
  if (c.running && c.backend.has_joined()) c.calls.event(event);
}

void Stores::on_link(int agent, store::ControlLink event) {
  Client& c = client(agent);
  if (event.state == store::ControlState::Down) c.loss = event;
  LinkEvent told{translate(event.state), event.detail, event.silent, event.keys_per_request};
  told.generation = static_cast<std::int64_t>(event.generation);
  complete(agent, told);
  const bool down = told.link == Link::Down;
  if (c.backend.state() == BackendState::Founding && down)
    return go(agent, c.founding->on_turned_away(c.loss.moved, scheduler_.now()));
  if (!c.backend.has_joined() && down && c.loss.moved)
    return advance(agent, c.backend.on_moved(*c.loss.moved, scheduler_.now()));
  const auto known_as = c.backend.state();
  const bool again = down && c.succession && c.succession->is_broken();
  const auto elsewhere = look_elsewhere(agent, told);
  if (told.link == Link::Up || told.link == Link::NewSession) note_session(agent);
  advance(agent, on_backend_link(agent, told));
  if (!again) deliver(agent, told);
  if (!c.running) return;
  if (c.backend.state() == known_as) return follow(agent, elsewhere);
  keep_lookout(agent);
}

void Stores::complete(int agent, LinkEvent& event) {
  Client& c = client(agent);
  if (!c.succession || (event.link != Link::Up && event.link != Link::NewSession)) return;
  c.standing.on_link_up(c.backend.state(), c.successor && c.peer == own_place(agent), event);
  if (c.standing.hosts()) return;
  const auto generation = static_cast<std::uint64_t>(c.standing.generation());
  if (c.standing.has_founded() && c.own) {
    (void)c.own->world.succession.point_to(generation, c.peer, scheduler_.now());
    serve_soon(*c.own);
  }
  if (!c.listed) return;
  const store::StoreNews news{generation, c.peer.port, c.peer.host};
  if (c.successor && c.pointed_to == news) return;
  c.pointed_to = news;
  if (!c.successor ||
      !c.successor->world.succession.point_to(generation, c.peer, scheduler_.now())) {
    step_down(c);
    begin(agent, false, launcher::server_options(options_, true));
    (void)c.successor->world.succession.point_to(generation, c.peer, scheduler_.now());
  }
  serve_soon(*c.successor);
}

launcher::SuccessionStep Stores::look_elsewhere(int agent, const LinkEvent& event) {
  Client& c = client(agent);
  if (!c.succession) return {};
  if (event.link == Link::Up || event.link == Link::NewSession) c.succession->on_link_up();
  if (event.link == Link::Closed || event.link == Link::Failed) c.succession->leave();
  if (event.link != Link::Down || !c.backend.has_joined()) return {};
  return c.succession->on_link_down({c.loss.refused, c.loss.deserted, event.silent,
                                     c.fsm->last_error(), c.loss.moved, c.loss.early},
                                    scheduler_.now());
}

launcher::BackendStep Stores::on_backend_link(int agent, const LinkEvent& event) {
  Client& c = client(agent);
  const Time now = scheduler_.now();
  switch (event.link) {
    case Link::Up:
      return c.backend.on_link_up();
    case Link::Down:
      if (c.loss.moved) return {};
      return c.backend.on_link_down(event.detail, c.calls.dispensable(c.standing.may_still_move()),
                                    now);
    case Link::Failed:
      return c.backend.on_link_failed(event.detail, c.calls.dispensable(false), now);
    case Link::Closed:
      c.backend.on_link_closed();
      return {};
    case Link::NewSession:
      break;
  }
  return {};
}

// ---- steps of BackendFsm ----

void Stores::advance(int agent, launcher::BackendStep step) {
  std::visit([this, agent](const auto& each) { perform(agent, each); }, step);
  if (client(agent).running && !client(agent).busy) settle_soon(agent);
}

void Stores::perform(int agent, const launcher::LookUp&) {
  scheduler_.after(Milliseconds(random_.in(0, 1)), [this, agent] {
    run(agent, [this, agent] {
      Client& c = client(agent);
      const bool own = c.machine == machine_of(options_.endpoint);
      advance(agent, c.backend.on_resolved(own, scheduler_.now()));
    });
  });
}

void Stores::perform(int agent, const launcher::BindRendezvous&) {
  Client& c = client(agent);
  begin(agent, true, launcher::server_options(options_, false));
  c.standing.on_founded();
  advance(agent, c.backend.on_bound(options_.endpoint, scheduler_.now()));
}

void Stores::drop_link(Client& c) {
  if (c.line != 0) hang_up(std::exchange(c.line, 0), true);
  c.wanted.reset();
  c.is_open = false;
  if (c.fsm) c.retired.push_back(std::move(c.fsm));
}

void Stores::perform(int agent, const launcher::Connect& step) {
  Client& c = client(agent);
  drop_link(c);
  const bool own = c.backend.state() == BackendState::Opening;
  c.fsm = std::make_unique<store::ControlFsm>(
      launcher::control_options(options_, own, step.endpoint, step.limit),
      static_cast<std::uint32_t>(1U + random_.next() % 1000));
  if (!own || c.late <= Milliseconds(0)) return c.fsm->open(scheduler_.now());
  scheduler_.after(c.late, [this, agent, fsm = c.fsm.get()] {
    run(agent, [this, agent, fsm] {
      if (client(agent).fsm.get() != fsm) return;
      fsm->open(scheduler_.now());
      settle(agent);
    });
  });
}

void Stores::perform(int agent, const launcher::Follow& step) {
  note(agent, "follows to " + to_string(step.endpoint));
  client(agent).standing.on_followed();
  client(agent).fsm->go_to(step.endpoint, scheduler_.now());
}

void Stores::perform(int agent, const launcher::StartOver& step) {
  Client& c = client(agent);
  note(agent, "starts over: " + step.text);
  c.calls.dropped();
  c.farewell = {};
  drop_link(c);
  if (!step.serves_on) end_server(c.own);
  end_server(c.successor);
  c.deaths = {};
  if (c.succession) c.succession.emplace(launcher::succession_limits(options_), options_.endpoint);
  c.founding.reset();
  end_lookout(c);
  c.listed.reset();
  c.pointed_to.reset();
  c.standing.start_over(step.serves_on);
}

void Stores::perform(int agent, const launcher::Join&) {
  Client& c = client(agent);
  if (c.founding || (c.succession && c.standing.has_moved())) {
    c.succession.emplace(launcher::succession_limits(options_), c.peer);
    c.founding.reset();
    end_lookout(c);
  }
  launcher::NodeIdentity identity;
  identity.hosting = c.backend.state() == BackendState::Hosting || c.standing.hosts();
  identity.address = address_of(c.machine);
  if (c.succession) identity.successor_port = own_place(agent).port;
  if (c.listed) identity.listed = static_cast<int>(*c.listed);
  c.calls.joined(identity);
}

void Stores::perform(int agent, const launcher::GiveUp& step) {
  client(agent).calls.dropped();
  client(agent).calls.gave_up(step.outcome);
}

// ---- several endpoints ----

void Stores::perform(int agent, const launcher::Found&) {
  client(agent).founding.emplace(options_.endpoints);
  begin_founding(agent);
}

void Stores::begin_founding(int agent) {
  Client& c = client(agent);
  end_lookout(c);
  drop_link(c);
  end_server(c.successor);
  c.deaths = {};
  for (std::size_t i = 0; i < options_.endpoints.size(); ++i)
    if (machine_of(options_.endpoints[i]) == c.machine) c.listed = i;
  auto control = launcher::control_options(options_, false, options_.endpoint, {});
  if (c.listed) {
    auto options = launcher::server_options(options_, true);
    options.founding = true;
    begin(agent, false, options);
    control.founder = launcher::founders(options_, c.listed);
  }
  c.fsm = std::make_unique<store::ControlFsm>(
      control, static_cast<std::uint32_t>(1U + random_.next() % 1000));
  c.founding->start(scheduler_.now());
  keep_lookout(agent);
}

void Stores::go(int agent, const launcher::FoundingFsm::Step& step) {
  if (!step) return;
  note(agent, "goes to " + to_string(*step));
  client(agent).fsm->go_to(*step, scheduler_.now(), client(agent).founding->founds());
}

// ---- where the store is, said and heard ----

void Stores::end_lookout(Client& c) {
  for (auto& [number, each] : c.lookout)
    if (each->line != 0) hang_up(each->line, true);
  c.lookout.clear();
}

void Stores::look_out(Client& c, const store::InquiryFsm::Options& asked) {
  const bool single = options_.endpoints.empty();
  for (const auto& endpoint : single ? std::vector{options_.endpoint} : options_.endpoints) {
    auto& inquiry = c.lookout[++last_inquiry_];
    inquiry = std::make_unique<Inquiry>(asked, endpoint);
    inquiry->fsm.start(scheduler_.now());
  }
}

void Stores::keep_lookout(int agent) {
  Client& c = client(agent);
  const bool founding = c.backend.state() == BackendState::Founding;
  const auto task =
      c.standing.lookout(c.backend.state(), founding, c.succession ? &*c.succession : nullptr);
  if (task == LookoutTask::None || tells(task) != tells(c.lookout_task)) end_lookout(c);
  c.lookout_task = task;
  if (task == LookoutTask::None) return;
  if (c.lookout.empty()) {
    look_out(c, c.standing.inquiry(task));
    if (tells(task) && newcomers_) look_out(c, c.standing.quick_inquiry());
  }
  const auto news = c.standing.news(task, {"", own_place(agent).port}, c.peer);
  for (auto& [number, each] : c.lookout)
    each->fsm.tell(news, scheduler_.now());
  if (!c.busy) settle_soon(agent);
}

void Stores::on_answer(int agent, const Endpoint& endpoint, const store::Whereabouts& answer) {
  Client& c = client(agent);
  if (c.founding && c.backend.state() == BackendState::Founding) {
    const auto& all = options_.endpoints;
    const auto asked = std::find(all.begin(), all.end(), endpoint);
    return go(agent, c.founding->on_answer(static_cast<std::size_t>(asked - all.begin()), answer,
                                           scheduler_.now()));
  }
  const auto place = c.standing.later_store(answer, endpoint);
  if (place && c.succession) follow(agent, c.succession->on_found(*place, scheduler_.now()));
}

// ---- steps of SuccessionFsm ----

void Stores::follow(int agent, const launcher::SuccessionStep& step) {
  if (!std::holds_alternative<std::monostate>(step))
    std::visit([this, agent](const auto& each) { perform(agent, each); }, step);
  if (client(agent).running) keep_lookout(agent);
}

bool Stores::wait_again(int agent) {
  Client& c = client(agent);
  if (!c.successor || !c.successor->world.succession.point_to(0, {}, scheduler_.now()))
    return false;
  serve_soon(*c.successor);
  return true;
}

Endpoint Stores::own_place(int agent) {
  const Client& c = client(agent);
  return c.listed ? options_.endpoints[*c.listed] : Endpoint{address_of(c.machine), port_of(agent)};
}

void Stores::perform(int agent, const launcher::Visit& step) {
  Client& c = client(agent);
  note(agent, "visits " + to_string(step.endpoint));
  c.pointed_to.reset();
  if (!c.listed || !wait_again(agent)) step_down(c);
  if (c.listed && !c.successor) begin(agent, false, launcher::server_options(options_, true));
  move_to(agent, step.endpoint);
}

void Stores::perform(int agent, const launcher::Stand&) {
  Client& c = client(agent);
  c.pointed_to.reset();
  if (!c.listed || !wait_again(agent)) {
    step_down(c);
    begin(agent, false, launcher::server_options(options_, true));
  }
  move_to(agent, own_place(agent));
}

void Stores::perform(int agent, const launcher::GiveUpSearch& step) {
  Client& c = client(agent);
  c.standing.on_lost();
  step_down(c);
  c.farewell = {};
  LinkEvent failed;
  failed.link = Link::Failed;
  failed.detail = step.text;
  advance(agent, on_backend_link(agent, failed));
  c.fsm->close(scheduler_.now());
  deliver(agent, failed);
}

void Stores::move_to(int agent, const Endpoint& endpoint) {
  Client& c = client(agent);
  c.standing.on_moved(endpoint);
  c.fsm->go_to(endpoint, scheduler_.now());
  note_session(agent);
  if (!c.busy) settle_soon(agent);
}

// What the guardian is to say.
void Stores::note_session(int agent) {
  Client& c = client(agent);
  c.farewell.first = c.standing.hosts() ? std::string() : c.fsm->farewell();
  c.farewell.to.reset();
  if (!c.farewell.first.empty()) c.farewell.to = c.peer;
  c.farewell.proof = c.fsm->proof_of_death();
  c.farewell.others = c.standing.other_successors();
}

}  // namespace drun::simulation
