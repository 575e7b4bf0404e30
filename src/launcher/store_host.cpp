#include "launcher/store_host.hpp"

namespace drun::launcher {

StoreHost::~StoreHost() {
  if (!thread_.joinable()) return;
  server_.stop();
  thread_.join();
}

Result<Endpoint> StoreHost::carry_rendezvous(const Endpoint& endpoint, bool workers_too) {
  return server_.add_listener(endpoint, workers_too ? store::Table::Workers : store::Table::Job);
}

Result<Endpoint> StoreHost::carry_workers(const Endpoint& endpoint) {
  return server_.add_listener(endpoint, store::Table::Workers, false);
}

void StoreHost::serve() {
  if (!thread_.joinable()) thread_ = std::thread([this] { server_.run(); });
}

Status StoreHost::reset_workers() {
  serve();
  return server_.reset_worker_table();
}

}  // namespace drun::launcher
