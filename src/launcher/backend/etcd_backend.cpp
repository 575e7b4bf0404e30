#include "launcher/backend/etcd_backend.hpp"

#include <utility>

namespace drun::launcher {

EtcdBackend::EtcdBackend(asio::io_context& io, etcd::EtcdOptions options, Sink sink)
    : client_(io, std::move(options), std::move(sink)) {}

void EtcdBackend::watch(rendezvous::WatchId watch, std::string key, bool prefix) {
  client_.watch(watch, std::move(key), prefix);
}

void EtcdBackend::commit(rendezvous::RequestId request, rendezvous::Transaction transaction) {
  client_.commit(request, std::move(transaction));
}

std::optional<store::ControlFarewell> EtcdBackend::farewell(std::string_view /*sign*/) const {
  auto farewell = client_.farewell();
  if (!farewell) return std::nullopt;
  return store::ControlFarewell{std::move(farewell->address), std::move(farewell->bytes)};
}

}  // namespace drun::launcher
