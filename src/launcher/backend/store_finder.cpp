#include "launcher/backend/store_finder.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/addresses.hpp"
#include "base/open_files.hpp"
#include "drun/base/log.hpp"
#include "launcher/backend/port_holder.hpp"
#include "launcher/backend/worker_store_port.hpp"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstRetry{250};
constexpr milliseconds kLastRetry{5'000};
constexpr milliseconds kOwnStoreLimit{5'000};  // a store that this very process serves

}  // namespace

StoreFinder::StoreFinder(asio::io_context& io, const Options& options, HostedStore& host,
                         Clock::time_point deadline, Calls calls)
    : io_(io),
      options_(options),
      store_(host),
      deadline_(deadline),
      calls_(std::move(calls)),
      discovery_(io),
      timer_(io),
      retry_(kFirstRetry) {}

void StoreFinder::find() {
  if (options_.backend == Backend::Standalone) {
    go_alone();
  } else if (options_.conf.is_host && !*options_.conf.is_host) {
    connect_to_endpoint();
  } else {
    resolve();
  }
}

void StoreFinder::go_alone() {
  hosting_ = true;
  if (const auto held = bind_worker_store(options_.local_addr.value_or("127.0.0.1")); !held)
    return calls_.fail(held.error().what());
  calls_.go_alone();
}

void StoreFinder::cancel() {
  cancelled_ = true;
  store_.stop_waiting();
  timer_.cancel();
  discovery_.abandon();
}

// Whether this machine is to host is a question of addresses, so a name must be resolved first; a
// name that is not there yet (a pod that is still to start) is asked for again.
void StoreFinder::resolve() {
  const auto give_up = [this] {
    const std::string why = unresolved_.empty() ? "no answer" : unresolved_;
    calls_.fail(cannot_resolve(why) + "; check --rdzv-endpoint");
  };
  if (!unresolved_.empty() && Clock::now() >= deadline_) return give_up();
  timer_.expires_at(deadline_);
  timer_.async_wait([this, give_up](asio::error_code cancelled) {
    if (!cancelled && !cancelled_) give_up();
  });
  discovery_.ask(options_.endpoint, [this](const Result<bool>& own) { on_answer(own); });
}

void StoreFinder::on_answer(const Result<bool>& own) {
  timer_.cancel();
  if (own) {
    unresolved_.clear();
    return host_or_connect(*own);
  }
  unresolved_ = own.error().what();
  if (Clock::now() >= deadline_) return resolve();  // gives up
  later(cannot_resolve(unresolved_) + "; trying again", &StoreFinder::resolve);
}

std::string StoreFinder::cannot_resolve(const std::string& why) const {
  return "cannot resolve '" + options_.endpoint.host + "': " + why;
}

void StoreFinder::later(const std::string& what, void (StoreFinder::*step)()) {
  timer_.expires_at(std::min(deadline_, Clock::now() + retry_));
  retry_ = std::min<Clock::duration>(kLastRetry, retry_ * 3 / 2);
  timer_.async_wait([this, step](asio::error_code cancelled) {
    if (!cancelled && !cancelled_) (this->*step)();
  });
  calls_.wait(what);
}

void StoreFinder::find_again(const std::string& cause) {
  store_.start_over();
  worker_port_ = 0;
  taken_ = false;
  holder_.reset();
  const std::string what = "the store at " + to_string(options_.endpoint) +
                           " went away before it knew this node: " + cause;
  if (Clock::now() >= deadline_) return calls_.fail(what);
  later(what + "; looking for it again", &StoreFinder::find);
}

bool StoreFinder::host_after_all() {
  if (!taken_ || hosting_ || cancelled_) return false;
  const auto own = carry();
  if (own) serve(*own);
  return own.ok();
}

void StoreFinder::host_or_connect(bool own) {
  if (!options_.conf.is_host && options_.backend == Backend::Static) {
    // The first node carries the store, as under torchrun: the address may be one that is
    // translated on the way, a service's or a cloud's.
    const bool first = options_.node_rank == 0 || options_.max_nodes == 1;
    const bool other = options_.node_rank.value_or(0) != 0;
    if (!first && (other || !own)) return connect_to_endpoint();
    if (!own) {
      log::info(options_.endpoint.host +
                " is no address of this machine: node rank 0 carries the store on all of its own" +
                (options_.max_nodes > 1 ? "; a node that has it must be node rank 0 itself" : ""));
    }
  } else if (!options_.conf.is_host.value_or(own)) {
    return connect_to_endpoint();
  }
  host();
}

void StoreFinder::connect_to_endpoint() {
  calls_.connect(options_.endpoint, deadline_ - Clock::now());
}

// Where to listen: on the very address that was named, as long as it is one of ours. A name may
// mean other addresses elsewhere (Debian's own host name is 127.0.1.1 at home), so it means all of
// them.
Endpoint StoreFinder::listen_endpoint() const {
  const auto numeric = numeric_addresses(options_.endpoint.host);
  const bool exact = !numeric.empty() && is_own_address(numeric.front());
  return Endpoint{exact ? numeric.front() : "", options_.endpoint.port};
}

// Where this agent itself reaches what it carries.
Result<Endpoint> StoreFinder::carry() {
  const Endpoint listen = listen_endpoint();
  auto own = store_.bind_rendezvous(listen, options_.backend == Backend::Static);
  if (own) own->host = listen.host.empty() ? "127.0.0.1" : listen.host;
  return own;
}

void StoreFinder::serve(const Endpoint& own) {
  hosting_ = true;
  // How others reach this machine: as the user said, else as they reach the endpoint.
  const auto reachable = options_.local_addr.value_or(options_.endpoint.host);
  if (options_.backend == Backend::Static) {
    advertised_host_ = options_.endpoint.host;
    worker_port_ = own.port;
  } else if (const auto held = bind_worker_store(reachable); !held) {
    return calls_.fail(held.error().what());
  }
  store_.start_serving();
  calls_.connect(own, kOwnStoreLimit);
}

void StoreFinder::host() {
  const auto own = carry();
  if (own) return serve(*own);
  const Error& error = own.error();
  taken_ = error.code() == std::errc::address_in_use;
  if (!taken_ || options_.conf.is_host.value_or(false))
    return calls_.fail(error.what() + open_files_advice(error.code()) + holder());
  // Another agent of this machine was first; or something that is no store, which the handshake
  // will tell.
  connect_to_endpoint();
}

const std::string& StoreFinder::holder() {
  if (!holder_) {
    const auto who = taken_ ? port_holder(options_.endpoint.port) : std::nullopt;
    holder_ = who ? "; port " + std::to_string(options_.endpoint.port) + " is held by " + *who : "";
  }
  return *holder_;
}

Status StoreFinder::bind_worker_store(const std::string& address) {
  advertised_host_ = address;
  if (options_.worker_store == WorkerStore::Rank0) return Done{};
  const auto numeric = numeric_addresses(address);
  const bool exact = !numeric.empty() && is_own_address(numeric.front());
  // Static: --master-port is the endpoint, which the node of rank 0 holds already.
  const bool fixed = options_.master_port && options_.backend != Backend::Static;
  const std::string listen = exact ? numeric.front() : "";
  auto bound = store_.bind_worker_store({listen, fixed ? *options_.master_port : std::uint16_t{0}});
  if (!bound) {
    const auto who = fixed ? port_holder(*options_.master_port) : std::nullopt;
    const std::string why = bound.error().what() + open_files_advice(bound.error().code()) +
                            "; it was to be the port of the workers' store" +
                            (who ? ", and is held by " + *who : "");
    // torchrun does not look at --master-port here, so scripts give several jobs of one machine the
    // same. No other machine has to reach it.
    const bool replaceable =
        fixed && options_.max_nodes == 1 && bound.error().code() == std::errc::address_in_use;
    if (replaceable) bound = store_.bind_worker_store({listen, 0});
    if (!bound) return Error(bound.error().code(), why);
    log::warning(why + ": port " + std::to_string(bound->port) + " takes its place");
  }
  worker_port_ = bound->port;
  return Done{};
}

Result<std::uint16_t> StoreFinder::prepare_master() {
  if (options_.worker_store == WorkerStore::Agent) {
    const auto reset = store_.reset_worker_store();
    if (!reset) return reset.error();
    store_.start_serving_on_demand(io_);
    return worker_port_;
  }
  if (options_.master_port) return *options_.master_port;
  return find_worker_store_port();
}

NodeIdentity StoreFinder::identity(const std::string& host_name) const {
  NodeIdentity node;
  node.host_name = host_name;
  node.address = advertised_host_;
  node.worker_port = worker_port_;
  node.hosting = hosting_;
  return node;
}

}  // namespace drun::launcher
