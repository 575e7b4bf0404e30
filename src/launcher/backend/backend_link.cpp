#include "launcher/backend/backend_link.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <asio/post.hpp>

#include "base/addresses.hpp"
#include "base/deadline.hpp"
#include "base/fd_limit.hpp"
#include "base/log.hpp"
#include "base/random_bytes.hpp"
#include "launcher/backend/backend_settings.hpp"
#include "launcher/backend/etcd_backend.hpp"
#include "launcher/backend/in_process_backend.hpp"
#include "launcher/backend/port_holder.hpp"
#include "launcher/backend/store_backend.hpp"
#include "rendezvous/keys.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kTicketLength = 32;
constexpr std::chrono::seconds kLookUpAgain{2};

}  // namespace

BackendLink::BackendLink(asio::io_context& io, const Options& options, std::string host_name,
                         Calls calls, BackendDiscovery::StartLookUp start_look_up)
    : io_(io),
      options_(options),
      calls_(std::move(calls)),
      fsm_(options, Clock::now(), [this] { return port_holder_text(); }),
      discovery_(io, start_look_up),
      start_look_up_(start_look_up),
      own_address_(io, std::move(start_look_up)),
      address_book_(io, start_look_up_,
                    [this] {
                      if (is_up()) note_session(rendezvous::Link::Up);
                    }),
      store_(server_options(options, false)),
      standing_(options),
      worker_store_(options, store_),
      timer_(io, [this] { on_time(); }) {
  identity_.host_name = std::move(host_name);
  identity_.ticket = random_name(kTicketLength);
  if (successors(options) > 0) succession_.emplace(succession_limits(options), options.endpoint);
}

void BackendLink::start() {
  check_local_address();
  advance(fsm_.start(Clock::now()));
}

// Checked now: a wrong --local-addr would show only when workers wait for one another in vain.
void BackendLink::check_local_address() {
  if (!options_.local_addr || *options_.local_addr == options_.endpoint.host) return;
  const std::string& given = *options_.local_addr;
  own_address_.ask({given, 0}, [given](const Result<bool>& own) {
    if (!own)
      log::warning(
          "--local-addr '{}': this machine has no such interface with an address, and the name has "
          "none: {}; nobody may reach this node by it",
          given, own.error().what());
    else if (!*own)
      log::warning(
          "--local-addr '{}' is no address of this machine; is it passed on to this node, as by a "
          "service?",
          given);
  });
}

void BackendLink::leave(bool job_goes_on) {
  job_goes_on_ = job_goes_on;
  fsm_.leave();
  if (succession_) succession_->leave();
  discovery_.abandon();
  own_address_.abandon();
  address_book_.abandon();
  for (const auto& each : look_ups_)
    each->abandon();
  end_founding();
  store_.stop_waiting();
  arm_timer();
}

void BackendLink::release() {
  asio::post(io_, [this] {
    lookout_.reset();
    quick_.reset();
    key_value_.reset();
    link_ = nullptr;
    store_.end();
    successor_store_.end();
  });
}

bool BackendLink::is_up() const {
  return fsm_.state() == BackendState::Joined || fsm_.state() == BackendState::Hosting;
}

std::optional<Endpoint> BackendLink::moved_to() const {
  if (!standing_.has_moved() || link_ == nullptr) return std::nullopt;
  return link_->store_endpoint();
}

bool BackendLink::hosts_for_others() const {
  return fsm_.state() == BackendState::Hosting && options_.backend != Backend::Standalone &&
         !standing_.has_moved();
}

bool BackendLink::stop_hosting_unless(const std::function<bool(std::string_view key)>& needed) {
  return store_.stop_unless(needed);
}

rendezvous::Outcome BackendLink::failure(std::string text) const {
  return fsm_.failure(std::move(text), Clock::now());
}

void BackendLink::advance(BackendStep step) {
  std::visit([this](auto& each) { perform(each); }, step);
  arm_timer();
}

void BackendLink::arm_timer() {
  EarliestDeadline due;
  due.include(fsm_.next_deadline());
  if (succession_) due.include(succession_->next_deadline());
  if (founding_) due.include(founding_->next_deadline());
  if (own_endpoints_) due.include(own_endpoints_->next_deadline());
  timer_.set(due.time());
}

void BackendLink::on_time() {
  const std::string cause = founding_          ? founding_->text()
                            : link_ != nullptr ? link_->last_error()
                                               : "";
  advance(fsm_.on_time(cause, Clock::now()));
  if (succession_) follow(succession_->on_time(cause, Clock::now()));
  if (founding_) go(founding_->on_time(Clock::now()));
  if (own_endpoints_) perform(own_endpoints_->on_time(Clock::now()));
  arm_timer();
}

// ---- several endpoints ----

void BackendLink::perform(Found) {
  founding_.emplace(options_.endpoints);
  const std::size_t all = options_.endpoints.size();
  look_ups_.resize(all);
  for (std::size_t i = 0; i < all; ++i)
    look_ups_[i] = std::make_unique<BackendDiscovery>(io_, start_look_up_);
  own_endpoints_.emplace(all, kLookUpAgain);
  perform(own_endpoints_->start(Clock::now()));
}

void BackendLink::perform(const OwnEndpointFsm::Step& step) {
  if (step.begin) begin_founding();
  for (const std::size_t each : step.look_up)
    look_up(each);
}

void BackendLink::look_up(std::size_t endpoint) {
  look_ups_[endpoint]->ask(options_.endpoints[endpoint], [this, endpoint](const Result<bool>& own) {
    if (!own_endpoints_ || fsm_.state() != BackendState::Founding) return;
    using Own = OwnEndpointFsm::Own;
    const Own whose = !own ? Own::Unknown : *own ? Own::Yes : Own::No;
    perform(own_endpoints_->on_answer(endpoint, whose, Clock::now()));
    arm_timer();
  });
}

void BackendLink::end_founding() {
  founding_.reset();
  lookout_.reset();
  own_endpoints_.reset();
}

// Waits at its own endpoint for the others, if it has one, and asks all.
void BackendLink::begin_founding() {
  lookout_.reset();
  link_ = nullptr;
  key_value_.reset();
  successor_store_.end();
  listed_.reset();
  std::string why_not;
  for (std::size_t i = 0; i < options_.endpoints.size() && !listed_; ++i) {
    if (!own_endpoints_->is_own(i) || options_.conf.is_host == false) continue;
    auto held = successor_store_.hold(options_.endpoints[i]);
    auto options = server_options(options_, true);
    options.founding = true;
    if (held && successor_store_.stand(options).ok())
      listed_ = i;
    else if (!held)
      why_not = held.error().what();
  }
  if (listed_) own_endpoints_->on_listed();
  if (!listed_ && own_endpoints_->has_all_answers() && !why_not.empty())
    log::info("{}; this node's agent begins no store", why_not);
  auto options = control_options(options_, false, options_.endpoint, {});
  if (listed_) options.founder = founders(options_, listed_);
  auto backend = make_store_backend(std::move(options));
  link_ = backend.get();
  key_value_ = std::move(backend);
  founding_->start(Clock::now());
  keep_lookout();
}

void BackendLink::go(const FoundingFsm::Step& step) {
  if (step) link_->go_to(*step, founding_->founds());
  arm_timer();
}

// Whoever comes to the endpoint is told where the store is.
void BackendLink::point_to_store() {
  const Endpoint place = link_->store_endpoint();
  const store::StoreNews news{static_cast<std::uint64_t>(standing_.generation()), place.port,
                              place.host};
  if (successor_store_.stands() && news == pointed_to_) return;
  pointed_to_ = news;
  const auto stands =
      successor_store_.point_to(news.generation, place, server_options(options_, true));
  if (!stands) log::warning("{}; nobody finds the job there", stands.error().what());
}

// ---- where the store is, said and heard ----

std::vector<Endpoint> BackendLink::known_endpoints() const {
  return options_.endpoints.empty() ? std::vector{options_.endpoint} : options_.endpoints;
}

// Those that can be asked without a name look-up.
std::vector<Endpoint> BackendLink::known_addresses() const {
  std::vector<Endpoint> result;
  for (const auto& each : options_.endpoints)
    if (!store::literal_addresses(each).empty()) result.push_back(each);
  if (!options_.endpoints.empty()) return result;
  if (!store::literal_addresses(options_.endpoint).empty()) return {options_.endpoint};
  return address_ ? std::vector{*address_} : std::vector<Endpoint>{};
}

void BackendLink::note_address() {
  if (!standing_.has_moved() && link_ != nullptr && options_.endpoints.empty())
    address_ = link_->store_endpoint();
}

void BackendLink::keep_lookout() {
  const LookoutTask task = standing_.lookout(fsm_.state(), founding_ && founding_->is_started(),
                                             succession_ ? &*succession_ : nullptr);
  if (!tells(task)) quick_.reset();
  if (task == LookoutTask::None) return lookout_.reset();
  if (lookout_ && tells(lookout_task_) != tells(task)) {
    lookout_.reset();
    quick_.reset();
  }
  lookout_task_ = task;
  look_out(lookout_, known_endpoints(), standing_.inquiry(task));
  if (tells(task)) look_out(quick_, known_addresses(), standing_.quick_inquiry());
}

void BackendLink::look_out(std::unique_ptr<store::Lookout>& lookout,
                           const std::vector<Endpoint>& endpoints,
                           const store::InquiryFsm::Options& options) {
  if (!lookout)
    lookout = std::make_unique<store::Lookout>(
        io_, endpoints, options,
        [this, endpoints](std::size_t endpoint, const store::Whereabouts& answer) {
          on_answer(endpoints[endpoint], answer);
        });
  lookout->tell(news());
}

store::StoreNews BackendLink::news() const {
  const auto numeric = numeric_addresses(options_.local_addr.value_or(""));
  const Endpoint own{numeric.empty() ? "" : numeric.front(), successor_store_.port()};
  return standing_.news(lookout_task_, own,
                        link_ != nullptr ? link_->store_endpoint() : Endpoint());
}

void BackendLink::on_answer(const Endpoint& endpoint, const store::Whereabouts& answer) {
  if (founding_ && fsm_.state() == BackendState::Founding) {
    const auto& all = options_.endpoints;
    const auto asked = std::find(all.begin(), all.end(), endpoint);
    return go(
        founding_->on_answer(static_cast<std::size_t>(asked - all.begin()), answer, Clock::now()));
  }
  const auto place = standing_.later_store(answer, endpoint);
  if (place && succession_) follow(succession_->on_found(*place, Clock::now()));
}

void BackendLink::perform(LookUp) {
  discovery_.ask(options_.endpoint, [this](const Result<bool>& own) {
    const auto now = Clock::now();
    advance(own ? fsm_.on_resolved(*own, now) : fsm_.on_unresolved(own.error().what(), now));
  });
}

void BackendLink::perform(const BindRendezvous& step) {
  if (!step.note.empty()) log::info("{}", step.note);
  advance(become_host());
}

BackendStep BackendLink::become_host() {
  const bool shared = options_.backend == Backend::Static;
  const Endpoint listen = listen_endpoint(options_.endpoint.host, options_.endpoint.port);
  auto own = store_.bind_rendezvous(listen, shared);
  if (!own) {
    const auto& error = own.error();
    return fsm_.on_bind_failed(error.code() == std::errc::address_in_use,
                               error.what() + fd_limit_advice(error.code()), Clock::now());
  }
  if (shared) {
    worker_store_.share({options_.endpoint.host, own->port});
  } else if (const auto bound =
                 worker_store_.bind(options_.local_addr.value_or(options_.endpoint.host));
             !bound) {
    return fsm_.on_unusable(bound.error().what(), Clock::now());
  }
  store_.start_serving();
  standing_.on_founded();
  own->host = listen.host.empty() ? "127.0.0.1" : listen.host;
  return fsm_.on_bound(*own, Clock::now());
}

void BackendLink::perform(GoAlone) {
  const auto bound = worker_store_.bind(options_.local_addr.value_or("127.0.0.1"));
  if (!bound) return advance(fsm_.on_unusable(bound.error().what(), Clock::now()));
  auto backend = std::make_unique<InProcessBackend>(
      io_, [this](rendezvous::KeyValueEvent event) { on_event(std::move(event)); });
  backend->open();
  key_value_ = std::move(backend);
}

void BackendLink::perform(const Connect& step) {
  std::unique_ptr<RemoteBackend> backend;
  if (options_.backend == Backend::Etcd) {
    backend = std::make_unique<EtcdBackend>(
        io_, etcd_options(options_, step.limit),
        [this](rendezvous::KeyValueEvent event) { on_event(std::move(event)); });
  } else {
    const bool own = fsm_.state() == BackendState::Opening;
    backend = make_store_backend(control_options(options_, own, step.endpoint, step.limit));
  }
  link_ = backend.get();
  key_value_ = std::move(backend);
  link_->open();
}

// A store that calls this agent takes it for alive: what is said for it when it is killed must not
// make another one count it out.
std::unique_ptr<RemoteBackend> BackendLink::make_store_backend(store::ControlOptions options) {
  return std::make_unique<StoreBackend>(
      io_, std::move(options),
      [this](rendezvous::KeyValueEvent event) { on_event(std::move(event)); },
      [this] { note_session(rendezvous::Link::Up); });
}

// A store of its own at the endpoint serves on, and tells others the same.
void BackendLink::perform(const Follow& step) {
  note_address();
  standing_.on_followed();
  link_->go_to(step.endpoint);
}

void BackendLink::perform(Wait& step) {
  calls_.waiting(std::move(step.text));
}

void BackendLink::perform(StartOver& step) {
  calls_.dropped();
  calls_.session({});
  link_ = nullptr;
  key_value_.reset();
  if (!step.serves_on) {
    store_.start_over();
    worker_store_.start_over();
  }
  successor_store_.end();
  if (succession_) succession_.emplace(succession_limits(options_), options_.endpoint);
  end_founding();
  listed_.reset();
  standing_.start_over(step.serves_on);
  port_holder_.reset();
  calls_.waiting(std::move(step.text));
}

void BackendLink::perform(Join) {
  identity_.hosting = fsm_.state() == BackendState::Hosting || standing_.hosts();
  if (fsm_.state() != BackendState::Hosting && !standing_.has_founded()) {
    note_loopback();
    const auto& address = listed_ ? options_.endpoints[*listed_].host : link_->local_address();
    const auto bound = worker_store_.bind(options_.local_addr.value_or(address));
    if (!bound) return advance(fsm_.on_unusable(bound.error().what(), Clock::now()));
  }
  if (!founding_ && standing_.has_moved())
    log::info("the store is now at {}", to_string(link_->store_endpoint()));
  if (founding_ || (succession_ && standing_.has_moved())) {
    succession_.emplace(succession_limits(options_), link_->store_endpoint());
    end_founding();
  }
  identity_.address = worker_store_.place().host;
  identity_.worker_store_port = worker_store_.place().port;
  hold_successor_port();
  look_up_addresses();
  calls_.joined(identity_);
}

// A store at a loopback address is one of this machine alone; but each node may have a member of
// etcd of its own there.
void BackendLink::note_loopback() const {
  const auto& address = link_->local_address();
  if (options_.backend == Backend::Etcd && options_.max_nodes > 1 && !options_.local_addr &&
      is_loopback_address(address))
    log::info(
        "etcd is reached at {}, so this node is known to the others by that address; if they "
        "are on other machines, give --local-addr",
        address);
}

void BackendLink::perform(GiveUp& step) {
  calls_.dropped();
  calls_.gave_up(std::move(step.outcome));
}

// ---- after the store ----

// A node without such a port takes part, but no store begins there.
void BackendLink::hold_successor_port() {
  if (!succession_) return;
  identity_.successor_port = successor_store_.port();
  if (listed_) identity_.listed = static_cast<int>(*listed_);
  if (listed_) return;
  const auto held = successor_store_.hold(identity_.address);
  if (!held)
    log::warning("{}; this node cannot succeed the one with the store", held.error().what());
  identity_.successor_port = successor_store_.port();
}

void BackendLink::vote(const rendezvous::Vote& vote,
                       const std::vector<rendezvous::Successor>& successors) {
  key_value_->vote(vote, successors);
  if (!succession_) return;
  succession_->set_plan(standing_.on_vote(vote, successors));
  look_up_addresses();
  note_session(rendezvous::Link::Up);
}

// Where others may be who are to hear of this agent's death: those at the endpoints before anybody
// has named a successor, so that they are known when the first round does. Again with each round.
void BackendLink::look_up_addresses() {
  if (!succession_) return;
  address_book_.look_up(options_.endpoints);
  address_book_.look_up(standing_.other_successors());
}

void BackendLink::follow(const SuccessionStep& step) {
  std::visit([this](const auto& each) { perform(each); }, step);
  keep_lookout();
  arm_timer();
}

void BackendLink::perform(const Visit& step) {
  // Others who come to the endpoint of a list wait there. If it serves them, this agent is told.
  pointed_to_ = {};
  if (!listed_)
    successor_store_.step_down();
  else if (!successor_store_.wait_again())
    (void)successor_store_.stand(server_options(options_, true));
  move_to(step.endpoint);
}

void BackendLink::perform(Stand) {
  pointed_to_ = {};
  if (listed_ && successor_store_.wait_again()) return move_to(successor_store_.own());
  const auto own = successor_store_.stand(server_options(options_, true));
  if (own) return move_to(*own);
  log::warning("{}", own.error().what());
  follow(succession_->on_stand_failed(Clock::now()));
}

// The store that this agent leaves must not hear of its death any more, so the farewells change
// with the move.
void BackendLink::move_to(const Endpoint& endpoint) {
  standing_.on_moved(endpoint);
  link_->go_to(endpoint);
  calls_.session(farewells());
}

void BackendLink::perform(const GiveUpSearch& step) {
  standing_.on_lost();
  successor_store_.step_down();
  rendezvous::LinkEvent failed;
  failed.link = rendezvous::Link::Failed;
  failed.detail = step.text;
  note_session(failed.link);
  advance(on_link(failed));
  key_value_->close();
  if (fsm_.has_joined()) calls_.event(failed);
}

// ---- events ----

void BackendLink::on_event(rendezvous::KeyValueEvent event) {
  if (standing_.is_lost()) return;
  if (auto* link = std::get_if<rendezvous::LinkEvent>(&event))
    return on_link_event(std::move(*link));
  if (fsm_.has_joined()) calls_.event(event);
}

void BackendLink::on_link_event(rendezvous::LinkEvent event) {
  complete(event);
  if (fsm_.state() == BackendState::Founding && event.link == rendezvous::Link::Down)
    return go(founding_->on_turned_away(link_->moved(), Clock::now()));
  if (!fsm_.has_joined() && event.link == rendezvous::Link::Down && link_ != nullptr &&
      link_->moved())
    return advance(fsm_.on_moved(*link_->moved(), Clock::now()));
  const auto known_as = fsm_.state();
  // The rendezvous hears of the loss once, not of each attempt to find another store.
  const bool again =
      event.link == rendezvous::Link::Down && succession_ && succession_->is_broken();
  const auto elsewhere = look_elsewhere(event);
  note_session(event.link);
  advance(on_link(event));
  if (fsm_.has_joined() && !again) calls_.event(event);
  // Not if advance() has started over or left: then the search belongs to the old link.
  if (fsm_.state() == known_as) return follow(elsewhere);
  keep_lookout();
}

// Adds what only this class knows: the store's generation, whether it is here, and where.
void BackendLink::complete(rendezvous::LinkEvent& event) {
  using enum rendezvous::Link;
  if (!succession_ || (event.link != Up && event.link != NewSession)) return;
  standing_.on_link_up(fsm_.state(), successor_store_.is_at(link_->store_endpoint()), event);
  event.store = to_string(link_->store_endpoint());
  note_address();
  if (standing_.hosts()) return;
  if (listed_) point_to_store();
  if (standing_.has_founded())
    store_.point_to(static_cast<std::uint64_t>(standing_.generation()), link_->store_endpoint());
}

SuccessionStep BackendLink::look_elsewhere(const rendezvous::LinkEvent& event) {
  using enum rendezvous::Link;
  if (!succession_) return {};
  if (event.link == Up || event.link == NewSession) {
    const bool found = succession_->is_searching();
    succession_->on_link_up();
    if (found)
      log::info("the store is now at {}{}", to_string(succession_->store()),
                event.hosting ? ", on this node" : "");
  }
  if (event.link == Closed || event.link == Failed) succession_->leave();
  if (event.link != Down || !fsm_.has_joined()) return {};
  return succession_->on_link_down({link_->was_refused(), link_->is_resting(), event.silent,
                                    link_->last_error(), link_->moved(), link_->was_early()},
                                   Clock::now());
}

void BackendLink::note_session(rendezvous::Link link) {
  using enum rendezvous::Link;
  if ((link == Up || link == NewSession) && link_ != nullptr) calls_.session(farewells());
  if (link != Closed && link != Failed) return;
  // The store that heard the goodbye ends with this process, so its successors are told, too.
  Farewells last;
  if (job_goes_on_ && standing_.hosts()) last.others = proofs_for_others();
  calls_.session(std::move(last));
}

// What the helpers say for this agent if it is killed. A store that it hosts dies with it, so that
// one is not told: whatever has the port by then is another program.
Farewells BackendLink::farewells() const {
  return {standing_.hosts() ? std::nullopt : link_->farewell(), proofs_for_others()};
}

std::vector<store::ControlFarewell> BackendLink::proofs_for_others() const {
  std::vector<store::ControlFarewell> result;
  const std::string proof = link_->proof_of_death();
  if (proof.empty()) return result;
  for (const auto& successor : standing_.other_successors())
    for (const auto& address : address_book_.addresses(successor))
      result.push_back({std::string(address.bytes()), proof});
  return result;
}

BackendStep BackendLink::on_link(const rendezvous::LinkEvent& event) {
  switch (event.link) {
    case rendezvous::Link::Up:
      return fsm_.on_link_up();
    case rendezvous::Link::Down: {
      if (link_ != nullptr && link_->moved()) return {};
      return fsm_.on_link_down(event.detail, calls_.dispensable(standing_.may_still_move()),
                               Clock::now());
    }
    case rendezvous::Link::Failed:
      return fsm_.on_link_failed(event.detail, calls_.dispensable(false), Clock::now());
    case rendezvous::Link::Closed:
      fsm_.on_link_closed();
      return {};
    case rendezvous::Link::NewSession:
      break;
  }
  return {};
}

// The system is asked once: it may have to look at every process.
std::string BackendLink::port_holder_text() {
  const auto port = options_.endpoint.port;
  if (!port_holder_) {
    const auto holder = port_holder(port);
    port_holder_ = holder ? "; port " + std::to_string(port) + " is held by " + *holder : "";
  }
  return *port_holder_;
}

}  // namespace drun::launcher
