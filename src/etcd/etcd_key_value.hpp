// rendezvous::KeyValue over an etcd v3 cluster: one session at one member at a time, and at another
// when that one does not answer. docs/rendezvous.md says what holds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "etcd/etcd_options.hpp"
#include "rendezvous/key_value.hpp"

namespace drun::etcd {

// What ends a session in its owner's stead: any process of this machine may connect to `address` (a
// sockaddr, as bytes), send `bytes` and close its side.
struct EtcdFarewell {
  std::string address;
  std::string bytes;
};

class EtcdKeyValue : public rendezvous::KeyValue {
 public:
  using Sink = std::function<void(rendezvous::KeyValueEvent)>;

  // `io` must outlive this. The sink is called from `io`'s thread, never from inside a call, and
  // not any more when this is gone; it may destroy this.
  EtcdKeyValue(asio::io_context& io, EtcdOptions options, Sink sink);
  ~EtcdKeyValue() override;  // without a goodbye: the session times out

  void open();  // once; Link::Up or Link::Failed follows

  void watch(rendezvous::WatchId watch, std::string key, bool prefix) override;
  void unwatch(rendezvous::WatchId watch) override;
  void commit(rendezvous::RequestId request, rendezvous::Transaction transaction) override;
  void close() override;

  // The numeric address of this end of the last connection; empty before Link::Up.
  [[nodiscard]] const std::string& local_address() const;
  // Of the present session; nullopt: there is none, or the cluster speaks TLS alone.
  [[nodiscard]] std::optional<EtcdFarewell> farewell() const;
  // Why the last attempt failed; empty when connected.
  [[nodiscard]] const std::string& last_error() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with its pending handlers
};

}  // namespace drun::etcd
