#include "launcher/backend/backend_link.hpp"

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

}  // namespace

BackendLink::BackendLink(asio::io_context& io, const Options& options, std::string host_name,
                         Calls calls, BackendDiscovery::StartLookUp start_look_up,
                         MakeLink make_link)
    : io_(io),
      options_(options),
      calls_(std::move(calls)),
      make_link_(std::move(make_link)),
      fsm_(options, Clock::now(), [this] { return port_holder_text(); }),
      discovery_(io, start_look_up),
      own_address_(io, start_look_up),
      address_book_(io, start_look_up,
                    [this] {
                      if (is_up()) note_session(rendezvous::Link::Up);
                    }),
      store_(server_options(options, false)),
      standing_(options),
      worker_store_(options, store_),
      founding_(io, options, successor_store_, std::move(start_look_up), founding_calls()),
      search_(options, standing_, successor_store_, search_calls()),
      lookouts_(io, options, standing_,
                [this](const Endpoint& endpoint, const store::Whereabouts& answer) {
                  on_answer(endpoint, answer);
                }),
      timer_(io, [this] { on_time(); }) {
  identity_.host_name = std::move(host_name);
  identity_.ticket = random_name(kTicketLength);
}

StoreFounding::Calls BackendLink::founding_calls() {
  StoreFounding::Calls calls;
  calls.drop_link = [this] {
    lookouts_.forget();
    drop_link();
  };
  calls.make_link = [this](store::ControlOptions options) {
    set_link(make_store_link(std::move(options)));
  };
  calls.begun = [this] { keep_lookout(); };
  calls.go_to = [this](const Endpoint& place, bool founds) { link_->go_to(place, founds); };
  calls.changed = [this] { arm_timer(); };
  return calls;
}

StoreSearch::Calls BackendLink::search_calls() {
  StoreSearch::Calls calls;
  calls.moved = [this] { calls_.session(own_farewells()); };
  calls.lost = [this](std::string why) { on_search_failed(std::move(why)); };
  calls.changed = [this] {
    keep_lookout();
    arm_timer();
  };
  return calls;
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
  search_.leave();
  discovery_.abandon();
  own_address_.abandon();
  address_book_.abandon();
  end_founding();
  store_.stop_waiting();
  arm_timer();
}

void BackendLink::release() {
  asio::post(io_, [this] {
    lookouts_.end();
    drop_link();
    worker_store_.end_relay();
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
  due.include(search_.next_deadline());
  due.include(founding_.next_deadline());
  timer_.set(due.time());
}

void BackendLink::on_time() {
  const std::string cause = founding_.is_under_way() ? founding_.text()
                            : link_ != nullptr       ? link_->last_error()
                                                     : "";
  advance(fsm_.on_time(cause, Clock::now()));
  search_.on_time(cause);
  founding_.on_time();
  arm_timer();
}

// ---- where the store is, said and heard ----

void BackendLink::note_address() {
  if (!standing_.has_moved() && link_ != nullptr && options_.endpoints.empty())
    lookouts_.note_address(link_->store_endpoint());
}

void BackendLink::keep_lookout() {
  const LookoutTask task = standing_.lookout(fsm_.state(), founding_.is_asking(), search_.fsm());
  if (task == LookoutTask::None) return lookouts_.keep(task, {});
  const auto numeric = numeric_addresses(options_.local_addr.value_or(""));
  const Endpoint own{numeric.empty() ? "" : numeric.front(), successor_store_.port()};
  const Endpoint store = link_ != nullptr ? link_->store_endpoint() : Endpoint();
  lookouts_.keep(task, standing_.news(task, own, store));
}

void BackendLink::on_answer(const Endpoint& endpoint, const store::Whereabouts& answer) {
  if (founding_.is_under_way()) return founding_.on_answer(endpoint, answer);
  search_.on_answer(endpoint, answer);
}

void BackendLink::end_founding() {
  founding_.end();
  lookouts_.forget();
}

// ---- steps ----

void BackendLink::perform(Found) {
  founding_.start();
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
    backend = make_store_link(control_options(options_, own, step.endpoint, step.limit));
  }
  set_link(std::move(backend));
  link_->open();
}

// A store that calls this agent takes it for alive: what is said for it when it is killed must not
// make another one count it out.
std::unique_ptr<RemoteBackend> BackendLink::make_store_link(store::ControlOptions options) {
  const auto sink = [this](rendezvous::KeyValueEvent event) { on_event(std::move(event)); };
  const auto called = [this] { note_session(rendezvous::Link::Up); };
  if (make_link_) return make_link_(io_, std::move(options), sink, called);
  return std::make_unique<StoreBackend>(io_, std::move(options), sink, called);
}

void BackendLink::set_link(std::unique_ptr<RemoteBackend> link) {
  link_ = link.get();
  search_.set_link(link_);
  key_value_ = std::move(link);
}

void BackendLink::drop_link() {
  link_ = nullptr;
  search_.set_link(nullptr);
  key_value_.reset();
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
  drop_link();
  if (!step.serves_on) {
    store_.start_over();
    worker_store_.start_over();
  }
  successor_store_.end();
  if (search_.fsm() != nullptr) search_.begin_at(options_.endpoint);
  end_founding();
  founding_.wait_nowhere();
  standing_.start_over(step.serves_on);
  port_holder_.reset();
  calls_.waiting(std::move(step.text));
}

void BackendLink::perform(Join) {
  identity_.hosting = fsm_.state() == BackendState::Hosting || standing_.hosts();
  if (fsm_.state() != BackendState::Hosting && !standing_.has_founded()) {
    note_loopback();
    const auto listed = founding_.listed();
    const auto& address = listed ? options_.endpoints[*listed].host : link_->local_address();
    const auto bound = worker_store_.bind(options_.local_addr.value_or(address));
    if (!bound) return advance(fsm_.on_unusable(bound.error().what(), Clock::now()));
  }
  const bool founded = founding_.is_under_way();
  if (!founded && standing_.has_moved())
    log::info("the store is now at {}", to_string(link_->store_endpoint()));
  if (founded || (search_.fsm() != nullptr && standing_.has_moved())) {
    search_.begin_at(link_->store_endpoint());
    end_founding();
  }
  identity_.address = worker_store_.place().host;
  identity_.worker_store_port = worker_store_.place().port;
  search_.join(founding_.listed(), identity_);
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
  end_founding();
  calls_.dropped();
  calls_.gave_up(std::move(step.outcome));
}

// ---- after the store ----

void BackendLink::vote(const rendezvous::Vote& vote,
                       const std::vector<rendezvous::Successor>& successors) {
  key_value_->vote(vote, successors);
  if (search_.fsm() == nullptr) return;
  search_.vote(vote, successors);
  look_up_addresses();
  note_session(rendezvous::Link::Up);
}

// Where others may be who are to hear of this agent's death: those at the endpoints before anybody
// has named a successor, so that they are known when the first round does. Again with each round.
void BackendLink::look_up_addresses() {
  if (search_.fsm() == nullptr) return;
  address_book_.look_up(options_.endpoints);
  address_book_.look_up(standing_.other_successors());
}

void BackendLink::on_search_failed(std::string why) {
  rendezvous::LinkEvent failed;
  failed.link = rendezvous::Link::Failed;
  failed.detail = std::move(why);
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
    return founding_.on_turned_away(link_->moved());
  if (!fsm_.has_joined() && event.link == rendezvous::Link::Down && link_ != nullptr &&
      link_->moved())
    return advance(fsm_.on_moved(*link_->moved(), Clock::now()));
  const auto known_as = fsm_.state();
  // The rendezvous hears of the loss once, not of each attempt to find another store.
  const bool again = event.link == rendezvous::Link::Down && search_.is_broken();
  const auto elsewhere = search_.on_link(event, fsm_.has_joined());
  note_session(event.link);
  advance(on_link(event));
  if (fsm_.has_joined() && !again) calls_.event(event);
  // Not if advance() has started over or left: then the search belongs to the old link.
  if (fsm_.state() == known_as) return search_.follow(elsewhere);
  keep_lookout();
}

// Adds what only this class knows: the store's generation, whether it is here, and where.
void BackendLink::complete(rendezvous::LinkEvent& event) {
  using enum rendezvous::Link;
  if (search_.fsm() == nullptr || (event.link != Up && event.link != NewSession)) return;
  standing_.on_link_up(fsm_.state(), successor_store_.is_at(link_->store_endpoint()), event);
  event.store = to_string(link_->store_endpoint());
  note_address();
  if (standing_.hosts()) return;
  if (founding_.listed()) search_.point_to_store();
  if (standing_.has_founded())
    store_.point_to(static_cast<std::uint64_t>(standing_.generation()), link_->store_endpoint());
}

Farewells BackendLink::own_farewells() const {
  return farewells(*link_, standing_, address_book_,
                   rendezvous::Keys(options_.run_id).death_of(identity_.ticket));
}

void BackendLink::note_session(rendezvous::Link link) {
  using enum rendezvous::Link;
  if ((link == Up || link == NewSession) && link_ != nullptr) calls_.session(own_farewells());
  if (link != Closed && link != Failed) return;
  // The store that heard the goodbye may be lost, with this process or later, so its successors are
  // told, too.
  const bool others_hear = job_goes_on_ && link_ != nullptr;
  calls_.session(others_hear ? farewells_to_others(*link_, standing_, address_book_) : Farewells());
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
