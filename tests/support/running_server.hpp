// A store server in a thread of its own, on a free port of the loopback interface.
#pragma once

#include <thread>

#include "drun/store/server.hpp"

namespace drun::test {

class RunningServer {
 public:
  explicit RunningServer(const store::ServerOptions& options = {}) : server_(options) {
    endpoint_ = server_.add_listener(Endpoint{"127.0.0.1", 0}, store::Table::Job).value();
    thread_ = std::thread([this] { server_.run(); });
  }
  ~RunningServer() {
    server_.stop();
    thread_.join();
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] store::Server& server() { return server_; }

 private:
  store::Server server_;
  Endpoint endpoint_;
  std::thread thread_;
};

}  // namespace drun::test
