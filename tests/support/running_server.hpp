// A store server in a thread of its own.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "drun/store/server.hpp"

namespace drun::test {

// A thread in which the server serves while this lives: a failed assertion ends it, too.
class Serving {
 public:
  explicit Serving(store::Server& server) : server_(server), thread_([&server] { server.run(); }) {}
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;
  ~Serving() { stop(); }

  void stop() {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }

 private:
  store::Server& server_;
  std::thread thread_;
};

// On a free port of the loopback interface.
class RunningServer {
 public:
  explicit RunningServer(const store::ServerOptions& options = {}, const std::string& snapshot = "")
      : server_(options) {
    if (!snapshot.empty()) {
      const Status loaded = server_.use_snapshot(snapshot, std::chrono::milliseconds(10));
      EXPECT_TRUE(loaded.ok()) << loaded.error().what();
    }
    endpoint_ = server_.add_listener(Endpoint{"127.0.0.1", 0}, store::Table::Job).value();
    serving_.emplace(server_);
  }
  explicit RunningServer(const store::Limits& limits)
      : RunningServer(store::ServerOptions{limits}) {}
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] store::Server& server() { return server_; }
  void stop() { serving_->stop(); }

 private:
  store::Server server_;
  Endpoint endpoint_;
  std::optional<Serving> serving_;
};

}  // namespace drun::test
