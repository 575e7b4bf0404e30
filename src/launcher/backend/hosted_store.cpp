#include "launcher/backend/hosted_store.hpp"

#include <fcntl.h>

#include <system_error>

#include "base/addresses.hpp"
#include "base/signal_block.hpp"

namespace drun::launcher {

void HostedStore::end() {
  first_client_.reset();
  if (thread_.joinable()) {
    server_->stop();
    thread_.join();
  }
  server_.reset();
}

Result<Endpoint> HostedStore::bind_rendezvous(const Endpoint& endpoint, bool workers_too) {
  return server_->add_listener(endpoint, workers_too ? store::Table::Workers : store::Table::Job);
}

Result<Endpoint> HostedStore::bind_worker_store(const Endpoint& endpoint) {
  return server_->add_listener(endpoint, store::Table::Workers, store::Listen::AtReset);
}

void HostedStore::start_serving() {
  first_client_.reset();
  if (thread_.joinable()) return;
  const SignalBlock no_signals;  // they are the other threads' business
  try {
    thread_ = std::thread([this] { server_->run(); });
  } catch (const std::system_error& error) {
    throw std::system_error(error.code(), "start a thread for the store");
  }
}

void HostedStore::start_serving_on_demand(asio::io_context& io) {
  if (thread_.joinable() || first_client_) return;
  const int fd = ::fcntl(server_->fd(), F_DUPFD_CLOEXEC, 3);
  if (fd < 0) return start_serving();
  first_client_.emplace(io, fd);
  first_client_->async_wait(asio::posix::descriptor_base::wait_read,
                            [this](asio::error_code error) {
                              if (!error && server_ != nullptr) start_serving();
                            });
}

void HostedStore::start_over() {
  end();
  server_ = std::make_unique<store::Server>(options_);
}

Status HostedStore::reset_worker_store() {
  return thread_.joinable() ? server_->reset_worker_table() : server_->open_worker_table();
}

Endpoint listen_endpoint(const std::string& host, std::uint16_t port) {
  const auto numeric = numeric_addresses(host);
  const bool exact = !numeric.empty() && is_own_address(numeric.front());
  return {exact ? numeric.front() : "", port};
}

}  // namespace drun::launcher
