#include "launcher/backend/store_backend.hpp"

#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "drun/store/control_client.hpp"

namespace drun::launcher {
namespace {

store::ControlOptions control_options(StoreBackendOptions options) {
  store::ControlOptions result;
  result.endpoint = std::move(options.endpoint);
  result.connect_timeout = options.connect_timeout;
  result.time_to_live = options.time_to_live;
  result.grace = options.grace;
  result.keep_alive = options.keep_alive;
  result.heartbeat_timeout = options.heartbeat_timeout;
  result.read_timeout = options.read_timeout;
  return result;
}

std::vector<rendezvous::Change> translate(std::vector<store::ControlChange> changes) {
  std::vector<rendezvous::Change> result;
  result.reserve(changes.size());
  for (auto& change : changes)
    result.push_back({std::move(change.key), std::move(change.value)});
  return result;
}

rendezvous::KeyValueEvent translate(store::ControlSnapshot event) {
  return rendezvous::WatchSnapshot{event.watch, translate(std::move(event.entries))};
}

rendezvous::KeyValueEvent translate(store::ControlChanges event) {
  return rendezvous::WatchChanges{event.watch, translate(std::move(event.changes))};
}

rendezvous::KeyValueEvent translate(const store::ControlCommit& event) {
  switch (event.outcome) {
    case store::ControlOutcome::Committed:
      return rendezvous::CommitResult{event.request, rendezvous::CommitOutcome::Committed};
    case store::ControlOutcome::Refused:
      return rendezvous::CommitResult{event.request, rendezvous::CommitOutcome::Refused};
    case store::ControlOutcome::Unknown:
      break;
  }
  return rendezvous::CommitResult{event.request, rendezvous::CommitOutcome::Unknown};
}

rendezvous::Link translate(store::ControlState state) {
  switch (state) {
    case store::ControlState::Up:
      return rendezvous::Link::Up;
    case store::ControlState::NewSession:
      return rendezvous::Link::NewSession;
    case store::ControlState::Down:
      return rendezvous::Link::Down;
    case store::ControlState::Closed:
      return rendezvous::Link::Closed;
    case store::ControlState::Failed:
      break;
  }
  return rendezvous::Link::Failed;
}

rendezvous::KeyValueEvent translate(store::ControlLink event) {
  return rendezvous::LinkEvent{translate(event.state), std::move(event.detail), event.silent};
}

}  // namespace

class StoreBackend::Impl {
 public:
  Impl(asio::io_context& io, StoreBackendOptions options, Sink sink)
      : client_(io, control_options(std::move(options)),
                [sink = std::move(sink)](store::ControlEvent event) {
                  sink(std::visit([](auto& each) { return translate(std::move(each)); }, event));
                }) {}

  store::ControlClient& client() { return client_; }

 private:
  store::ControlClient client_;
};

StoreBackend::StoreBackend(asio::io_context& io, StoreBackendOptions options, Sink sink)
    : impl_(std::make_unique<Impl>(io, std::move(options), std::move(sink))) {}

StoreBackend::~StoreBackend() = default;

void StoreBackend::open() {
  impl_->client().open();
}

void StoreBackend::watch(rendezvous::WatchId watch, std::string key, bool prefix) {
  impl_->client().watch(watch, std::move(key), prefix);
}

void StoreBackend::unwatch(rendezvous::WatchId watch) {
  impl_->client().unwatch(watch);
}

void StoreBackend::commit(rendezvous::RequestId request, rendezvous::Transaction transaction) {
  store::ControlTransaction result;
  for (auto& guard : transaction.guards) {
    result.guards.push_back({std::move(guard.key), std::move(guard.expected)});
  }
  for (auto& write : transaction.writes) {
    result.writes.push_back({std::move(write.key), std::move(write.value), write.ephemeral});
  }
  impl_->client().commit(request, std::move(result));
}

void StoreBackend::close() {
  impl_->client().close();
}

std::string StoreBackend::local_address() const {
  return impl_->client().local_endpoint().host;
}

std::string StoreBackend::last_error() const {
  return impl_->client().last_error();
}

}  // namespace drun::launcher
