#include "launcher/backend/backend_link.hpp"

#include <system_error>
#include <utility>

#include <asio/post.hpp>

#include "base/atomic_file.hpp"
#include "base/fd_limit.hpp"
#include "base/log.hpp"
#include "launcher/backend/backend_settings.hpp"
#include "launcher/backend/etcd_backend.hpp"
#include "launcher/backend/in_process_backend.hpp"
#include "launcher/backend/port_holder.hpp"
#include "launcher/backend/store_backend.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kTicketLength = 32;

}  // namespace

BackendLink::BackendLink(asio::io_context& io, const Options& options, std::string host_name,
                         Calls calls, BackendDiscovery::StartLookUp start_look_up)
    : io_(io),
      options_(options),
      calls_(std::move(calls)),
      fsm_(options, Clock::now(), [this] { return port_holder_text(); }),
      discovery_(io, std::move(start_look_up)),
      worker_store_(options, store_),
      timer_(io) {
  identity_.host_name = std::move(host_name);
  identity_.ticket = random_name(kTicketLength);
}

void BackendLink::start() {
  advance(fsm_.start(Clock::now()));
}

void BackendLink::leave() {
  fsm_.leave();
  discovery_.abandon();
  store_.stop_waiting();
  arm_timer();
}

void BackendLink::release() {
  asio::post(io_, [this] {
    key_value_.reset();
    link_ = nullptr;
    store_.end();
  });
}

bool BackendLink::is_up() const {
  return fsm_.state() == BackendState::Joined || fsm_.state() == BackendState::Hosting;
}

bool BackendLink::hosts_for_others() const {
  return fsm_.state() == BackendState::Hosting && options_.backend != Backend::Standalone;
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
  const auto due = fsm_.next_deadline();
  timer_.cancel();
  if (!due) return;
  timer_.expires_at(*due);
  timer_.async_wait([this](std::error_code cancelled) {
    if (cancelled) return;
    advance(fsm_.on_time(link_ != nullptr ? link_->last_error() : "", Clock::now()));
  });
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
  own->host = listen.host.empty() ? "127.0.0.1" : listen.host;
  return fsm_.on_bound(*own, Clock::now());
}

void BackendLink::perform(GoAlone) {
  const auto bound = worker_store_.bind(options_.local_addr.value_or("127.0.0.1"));
  if (!bound) return advance(fsm_.on_unusable(bound.error().what(), Clock::now()));
  auto backend = std::make_unique<InProcessBackend>(
      io_, [this](const rendezvous::KeyValueEvent& event) { on_event(event); });
  backend->open();
  key_value_ = std::move(backend);
}

void BackendLink::perform(const Connect& step) {
  const auto sink = [this](const rendezvous::KeyValueEvent& event) { on_event(event); };
  std::unique_ptr<RemoteBackend> backend;
  if (options_.backend == Backend::Etcd) {
    backend = std::make_unique<EtcdBackend>(io_, etcd_options(options_, step.limit), sink);
  } else {
    const bool own = fsm_.state() == BackendState::Opening;
    backend = std::make_unique<StoreBackend>(
        io_, control_options(options_, own, step.endpoint, step.limit), sink);
  }
  link_ = backend.get();
  key_value_ = std::move(backend);
  link_->open();
}

void BackendLink::perform(Wait& step) {
  calls_.waiting(std::move(step.text));
}

void BackendLink::perform(StartOver& step) {
  calls_.dropped();
  calls_.session(std::nullopt);
  link_ = nullptr;
  key_value_.reset();
  store_.start_over();
  worker_store_.start_over();
  port_holder_.reset();
  calls_.waiting(std::move(step.text));
}

void BackendLink::perform(Join) {
  identity_.hosting = fsm_.state() == BackendState::Hosting;
  if (!identity_.hosting) {
    note_loopback();
    const auto bound = worker_store_.bind(options_.local_addr.value_or(link_->local_address()));
    if (!bound) return advance(fsm_.on_unusable(bound.error().what(), Clock::now()));
  }
  identity_.address = worker_store_.place().host;
  identity_.worker_store_port = worker_store_.place().port;
  calls_.joined(identity_);
}

// A store at a loopback address is one of this machine alone; but each node may have a member of
// etcd of its own there.
void BackendLink::note_loopback() const {
  const auto& address = link_->local_address();
  const bool loopback = address.starts_with("127.") || address == "::1";
  if (options_.backend == Backend::Etcd && options_.max_nodes > 1 && !options_.local_addr &&
      loopback)
    log::info(
        "etcd is reached at {}, so this node is known to the others by that address; if they "
        "are on other machines, give --local-addr",
        address);
}

void BackendLink::perform(GiveUp& step) {
  calls_.dropped();
  calls_.gave_up(std::move(step.outcome));
}

void BackendLink::on_event(const rendezvous::KeyValueEvent& event) {
  if (const auto* link = std::get_if<rendezvous::LinkEvent>(&event)) {
    note_session(link->link);
    advance(on_link(*link));
  }
  if (fsm_.has_joined()) calls_.event(event);
}

void BackendLink::note_session(rendezvous::Link link) {
  using enum rendezvous::Link;
  if ((link == Up || link == NewSession) && link_ != nullptr) calls_.session(link_->farewell());
  if (link == Closed || link == Failed) calls_.session(std::nullopt);
}

BackendStep BackendLink::on_link(const rendezvous::LinkEvent& event) {
  switch (event.link) {
    case rendezvous::Link::Up:
      return fsm_.on_link_up();
    case rendezvous::Link::Down:
      return fsm_.on_link_down(event.detail, calls_.dispensable(), Clock::now());
    case rendezvous::Link::Failed:
      return fsm_.on_link_failed(event.detail, calls_.dispensable(), Clock::now());
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
