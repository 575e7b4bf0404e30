// rendezvous::KeyValue over drun's store: one control connection with a session, kept up across
// broken connections.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <asio/io_context.hpp>

#include "drun/base/endpoint.hpp"
#include "rendezvous/key_value.hpp"

namespace drun::launcher {

struct StoreBackendOptions {
  Endpoint endpoint;
  // Until the first Link::Up: names are resolved and addresses tried again, with backoff, for this
  // long; then Link::Failed with the endpoint and the last cause. Zero: one attempt.
  std::chrono::milliseconds connect_timeout{600'000};
  // The session's time to live at the store; heartbeats go out three times as often.
  std::chrono::milliseconds time_to_live{6'000};
  // How long after its connection broke without a goodbye the session may be resumed.
  std::chrono::milliseconds grace{1'000};
  // After a break: reconnect with backoff for this long, then Link::Failed.
  std::chrono::milliseconds keep_alive{6'000};
  // An answer that is later than this breaks the connection: to a heartbeat, to anything.
  std::chrono::milliseconds heartbeat_timeout{5'000};
  std::chrono::milliseconds read_timeout{60'000};
};

class StoreBackend : public rendezvous::KeyValue {
 public:
  using Sink = std::function<void(rendezvous::KeyValueEvent)>;

  // `io` must outlive this. The sink is called from `io`'s thread, never from inside a call.
  StoreBackend(asio::io_context& io, StoreBackendOptions options, Sink sink);
  ~StoreBackend() override;  // drops the connection without a goodbye; the sink is not called again

  void open();  // once; Link::Up or Link::Failed follows

  void watch(rendezvous::WatchId watch, std::string key, bool prefix) override;
  void unwatch(rendezvous::WatchId watch) override;
  void commit(rendezvous::RequestId request, rendezvous::Transaction transaction) override;
  void close() override;

  // The numeric address of this end of the connection, as the store's host sees this machine; empty
  // before Link::Up.
  [[nodiscard]] std::string local_address() const;
  // The last reason why no connection could be made, for the waiting line; empty when connected.
  [[nodiscard]] std::string last_error() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drun::launcher
