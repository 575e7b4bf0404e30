// rendezvous::KeyValue over drun's store: one control connection with a session, kept up across
// broken connections.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "launcher/backend/remote_backend.hpp"

namespace drun::launcher {

class StoreBackend : public RemoteBackend {
 public:
  // `io` must outlive this. The sink is called from `io`'s thread, never from inside a call, and
  // not any more when this is gone: a connection is dropped without a goodbye then. `called`,
  // likewise: proof_of_death() is another from now on, which must be known before this returns.
  StoreBackend(asio::io_context& io, store::ControlOptions options, Sink sink,
               std::function<void()> called = {});

  void open() override;

  void watch(rendezvous::WatchId watch, std::string key, bool prefix) override;
  void unwatch(rendezvous::WatchId watch) override;
  void commit(rendezvous::RequestId request, rendezvous::Transaction transaction) override;
  void vote(const rendezvous::Vote& vote,
            const std::vector<rendezvous::Successor>& successors) override;
  void close() override;

  [[nodiscard]] const std::string& local_address() const override {
    return client_.local_endpoint().host;
  }
  [[nodiscard]] std::optional<store::ControlFarewell> farewell(
      std::string_view sign) const override {
    return client_.farewell(sign);
  }
  [[nodiscard]] const std::string& last_error() const override { return client_.last_error(); }
  using RemoteBackend::go_to;
  void go_to(const Endpoint& endpoint, bool founds) override { client_.go_to(endpoint, founds); }
  [[nodiscard]] bool was_refused() const override { return loss_.refused; }
  [[nodiscard]] bool is_resting() const override { return loss_.deserted; }
  [[nodiscard]] std::optional<Endpoint> moved() const override { return loss_.moved; }
  [[nodiscard]] bool was_early() const override { return loss_.early; }
  [[nodiscard]] Endpoint store_endpoint() const override { return client_.store_endpoint(); }
  [[nodiscard]] std::string proof_of_death() const override { return client_.proof_of_death(); }

 private:
  void on_event(store::ControlEvent event);
  void tell(rendezvous::KeyValueEvent event);

  const bool votes_;
  const Sink sink_;
  const std::function<void()> called_;
  store::ControlLink loss_;  // the last one
  store::ControlClient client_;
};

}  // namespace drun::launcher
