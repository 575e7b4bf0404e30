#include "drun/store/server.hpp"

#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "store/server/listen_socket.hpp"
#include "store/server/server_loop.hpp"

namespace drun::store {

class Server::Impl {
 public:
  explicit Impl(const ServerOptions& options) : loop(options) {}

  // What `question` returns in the loop's thread; nothing if run() has returned.
  template <typename T, typename Question>
  std::optional<T> ask(Question question) {
    // Shared: this thread may be through with it before the other is.
    const auto done = std::make_shared<std::promise<T>>();
    std::future<T> answer = done->get_future();
    {
      const std::lock_guard lock(mutex_);
      if (has_run_) return std::nullopt;
      loop.post([question, done] { done->set_value(question()); });
    }
    return answer.get();
  }

  void run() {
    loop.run();
    {
      const std::lock_guard lock(mutex_);
      has_run_ = true;
    }
    loop.run_commands();  // of those who have asked meanwhile, and wait
  }

  ServerLoop loop;

 private:
  std::mutex mutex_;
  bool has_run_ = false;  // nobody answers any more
};

Server::Server(const ServerOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Server::~Server() = default;

Result<Endpoint> Server::add_listener(const Endpoint& endpoint, Table tcpstore_table,
                                      Listen listen) {
  Result<std::vector<FileDescriptor>> bound = bind_endpoint(endpoint);
  if (!bound) return bound.error();
  Result<Endpoint> first;
  for (FileDescriptor& socket : bound.value()) {
    Result<Endpoint> added = adopt_listener(socket.release(), tcpstore_table, listen);
    if (!added) return added;
    if (!first) first = std::move(added);
  }
  return first;
}

Result<Endpoint> Server::adopt_listener(int bound, Table tcpstore_table, Listen listen) {
  return impl_->loop.add_listener(FileDescriptor(bound), tcpstore_table, listen);
}

Status Server::use_snapshot(const std::string& file, std::chrono::milliseconds interval) {
  return impl_->loop.use_snapshot(file, interval);
}

Status Server::last_snapshot() const {
  return impl_->loop.last_snapshot();
}

void Server::stop_on(const sigset_t& signals) {
  impl_->loop.stop_on(signals);
}

void Server::run() {
  impl_->run();
}

void Server::stop() {
  impl_->loop.stop();
}

bool Server::stop_unless(const std::function<bool(std::string_view key)>& needed) {
  return impl_->ask<bool>([this, &needed] { return impl_->loop.stop_unless(needed); })
      .value_or(true);
}

bool Server::point_to(std::uint64_t generation, const Endpoint& store) {
  return impl_
      ->ask<bool>([this, generation, &store] { return impl_->loop.point_to(generation, store); })
      .value_or(false);
}

std::shared_ptr<const Deaths> Server::deaths() const {
  return std::make_shared<const Deaths>(impl_->loop.deaths());
}

Status Server::reset_worker_table() {
  auto result = impl_->ask<Status>([this] { return impl_->loop.reset_worker_table(); });
  if (result) return *std::move(result);
  return Error(std::make_error_code(std::errc::operation_canceled), "the store was stopped");
}

Status Server::open_worker_table() {
  return impl_->loop.reset_worker_table();
}

int Server::fd() const {
  return impl_->loop.fd();
}

}  // namespace drun::store
