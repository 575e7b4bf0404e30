#include "launcher/backend/successor_store.hpp"

#include <system_error>
#include <utility>

#include "base/addresses.hpp"
#include "base/fd_limit.hpp"
#include "base/signal_block.hpp"
#include "launcher/backend/hosted_store.hpp"
#include "store/server/listen_socket.hpp"

namespace drun::launcher {

Status SuccessorStore::hold(const Endpoint& endpoint) {
  const Endpoint listen = listen_endpoint(endpoint.host, endpoint.port);
  auto bound = store::bind_endpoint(listen);
  if (!bound)
    return Error(bound.error().code(),
                 bound.error().what() + fd_limit_advice(bound.error().code()));
  FileDescriptor& socket = bound->front();
  if (const auto listens = store::start_listening(socket.get()); !listens) return listens.error();
  const auto local = store::local_endpoint(socket.get());
  if (!local) return local.error();
  held_ = std::move(socket);
  everywhere_ = listen.host.empty();
  own_ = {everywhere_ ? "127.0.0.1" : listen.host, local->port};
  return Done{};
}

bool SuccessorStore::is_at(const Endpoint& place) const {
  if (!stands() || place.port != own_.port) return false;
  return everywhere_ ? is_own_address(place.host)
                     : numeric_addresses(place.host) == numeric_addresses(own_.host);
}

Result<Endpoint> SuccessorStore::stand(const store::ServerOptions& options) {
  step_down();
  if (!held_)
    return Error(std::make_error_code(std::errc::bad_file_descriptor), "it holds no port");
  store::ServerOptions with_deaths = options;
  with_deaths.deaths = deaths_;
  server_ = std::make_unique<store::Server>(with_deaths);
  try {
    FileDescriptor socket = duplicate(held_.get(), "serve a store");
    const auto added = server_->adopt_listener(socket.release(), store::Table::Job);
    if (!added) {
      server_.reset();
      return added.error();
    }
    const SignalBlock no_signals;  // they are the other threads' business
    thread_ = std::thread([this] { server_->run(); });
  } catch (const std::system_error& error) {
    server_.reset();
    return Error(error.code(), std::string("serve a store: ") + error.what());
  }
  return own_;
}

Status SuccessorStore::point_to(std::uint64_t generation, const Endpoint& store,
                                const store::ServerOptions& options) {
  if (stands() && server_->point_to(generation, store)) return Done{};
  const auto own = stand(options);
  if (!own) return own.error();
  (void)server_->point_to(generation, store);
  return Done{};
}

void SuccessorStore::step_down() {
  if (thread_.joinable()) {
    server_->stop();
    thread_.join();
  }
  if (server_) deaths_ = server_->deaths();
  server_.reset();
}

void SuccessorStore::end() {
  step_down();
  deaths_.reset();
  held_.reset();
  own_ = {};
}

}  // namespace drun::launcher
