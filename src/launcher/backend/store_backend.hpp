// rendezvous::KeyValue over drun's store: one control connection with a session, kept up across
// broken connections.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "drun/store/control_client.hpp"
#include "rendezvous/key_value.hpp"

namespace drun::launcher {

class StoreBackend : public rendezvous::KeyValue {
 public:
  using Sink = std::function<void(rendezvous::KeyValueEvent)>;

  // `io` must outlive this. The sink is called from `io`'s thread, never from inside a call, and
  // not any more when this is gone: a connection is dropped without a goodbye then.
  StoreBackend(asio::io_context& io, store::ControlOptions options, Sink sink);

  void open();  // once; Link::Up or Link::Failed follows

  void watch(rendezvous::WatchId watch, std::string key, bool prefix) override;
  void unwatch(rendezvous::WatchId watch) override;
  void commit(rendezvous::RequestId request, rendezvous::Transaction transaction) override;
  void close() override;

  // The numeric address of this end of the connection, as the store's host sees this machine; empty
  // before Link::Up.
  [[nodiscard]] const std::string& local_address() const { return client_.local_endpoint().host; }
  // What ends the present session in this process's stead.
  [[nodiscard]] std::optional<store::ControlFarewell> farewell() const {
    return client_.farewell();
  }
  // The last reason why no connection could be made, for the waiting line; empty when connected.
  [[nodiscard]] const std::string& last_error() const { return client_.last_error(); }

 private:
  store::ControlClient client_;
};

}  // namespace drun::launcher
