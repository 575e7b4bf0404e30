// An etcd cluster as a RemoteBackend.
#pragma once

#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "etcd/etcd_key_value.hpp"
#include "launcher/backend/remote_backend.hpp"

namespace drun::launcher {

class EtcdBackend : public RemoteBackend {
 public:
  // As etcd::EtcdKeyValue.
  EtcdBackend(asio::io_context& io, etcd::EtcdOptions options, Sink sink);

  void open() override { client_.open(); }
  void watch(rendezvous::WatchId watch, std::string key, bool prefix) override;
  void unwatch(rendezvous::WatchId watch) override { client_.unwatch(watch); }
  void commit(rendezvous::RequestId request, rendezvous::Transaction transaction) override;
  void close() override { client_.close(); }

  [[nodiscard]] const std::string& local_address() const override {
    return client_.local_address();
  }
  [[nodiscard]] std::optional<store::ControlFarewell> farewell(
      std::string_view sign) const override;
  [[nodiscard]] const std::string& last_error() const override { return client_.last_error(); }

 private:
  etcd::EtcdKeyValue client_;
};

}  // namespace drun::launcher
