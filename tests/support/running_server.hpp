// A store server in a thread of its own, on a free port of the loopback interface.
#pragma once

#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "drun/store/server.hpp"

namespace drun::test {

class RunningServer {
 public:
  explicit RunningServer(const store::ServerOptions& options = {}, const std::string& snapshot = "")
      : server_(options) {
    if (!snapshot.empty()) {
      const Status loaded = server_.use_snapshot(snapshot, std::chrono::milliseconds(10));
      EXPECT_TRUE(loaded.ok()) << loaded.error().what();
    }
    endpoint_ = server_.add_listener(Endpoint{"127.0.0.1", 0}, store::Table::Job).value();
    thread_ = std::thread([this] { server_.run(); });
  }
  explicit RunningServer(const store::Limits& limits)
      : RunningServer(store::ServerOptions{limits}) {}
  ~RunningServer() { stop(); }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] store::Server& server() { return server_; }
  void stop() {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }

 private:
  store::Server server_;
  Endpoint endpoint_;
  std::thread thread_;
};

}  // namespace drun::test
