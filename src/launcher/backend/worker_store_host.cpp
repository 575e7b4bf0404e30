#include "launcher/backend/worker_store_host.hpp"

#include <system_error>

#include "base/fd_limit.hpp"
#include "base/log.hpp"
#include "launcher/backend/backend_settings.hpp"
#include "launcher/backend/free_port.hpp"
#include "launcher/backend/port_holder.hpp"

namespace drun::launcher {

Status WorkerStoreHost::bind(const std::string& address) {
  place_ = {address, 0};
  if (options_.worker_store == WorkerStore::Rank0) return Done{};
  // Static: --master-port is the endpoint, which the node of rank 0 holds already.
  const bool fixed = options_.master_port && options_.backend != Backend::Static;
  const std::uint16_t wanted = fixed ? *options_.master_port : std::uint16_t{0};
  auto bound = store_.bind_worker_store(listen_endpoint(address, wanted));
  if (!bound) {
    const auto holder = fixed ? port_holder(wanted) : std::nullopt;
    const std::string why = bound.error().what() + fd_limit_advice(bound.error().code()) +
                            "; it was to be the port of the workers' store" +
                            (holder ? ", and is held by " + *holder : "");
    // torchrun does not look at --master-port here, so scripts give several jobs of one machine the
    // same. No other machine has to reach it.
    const bool replaceable =
        fixed && options_.max_nodes == 1 && bound.error().code() == std::errc::address_in_use;
    if (replaceable) bound = store_.bind_worker_store(listen_endpoint(address, 0));
    if (!bound) return Error(bound.error().code(), why);
    log::warning("{}: port {} takes its place", why, bound->port);
  }
  place_.port = bound->port;
  return Done{};
}

Result<std::uint16_t> WorkerStoreHost::prepare(asio::io_context& io) {
  if (options_.worker_store != WorkerStore::Rank0) {
    const auto reset = store_.reset_worker_store();
    if (!reset) return reset.error();
    store_.start_serving_on_demand(io);
    return place_.port;
  }
  if (options_.master_port) return *options_.master_port;
  const auto free = hold_free_port();
  if (!free) return free.error();
  return free->port;
}

Result<std::optional<Endpoint>> WorkerStoreHost::relay_to(const Endpoint& store) {
  if (options_.worker_store != WorkerStore::Local) return std::optional<Endpoint>();
  if (!relay_) relay_.emplace(relay_options(options_));
  auto place = relay_->begin(store);
  if (!place)
    return Error(place.error().code(), place.error().what() +
                                           fd_limit_advice(place.error().code()) +
                                           "; it was to be this node's port of the "
                                           "workers' store");
  return std::optional(*std::move(place));
}

}  // namespace drun::launcher
