// drun's store in a thread of this process, and a wire to it that a test can cut.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/file_descriptor.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/store/server.hpp"

namespace drun::test {

class StoreThread {
 public:
  explicit StoreThread(std::uint16_t port = 0, store::ServerOptions options = {});
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;
  ~StoreThread();  // ends it; all connections close

  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }

 private:
  std::unique_ptr<store::Server> server_;
  Endpoint endpoint_;
  std::thread thread_;
};

// Carries TCP connections to an endpoint.
class Wire {
 public:
  explicit Wire(Endpoint to);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire();

  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  void cut() { cuts_ = true; }  // closes the present connections; new ones work
  // Nothing is carried any more, in either direction, and nothing is closed.
  void freeze(bool frozen) { frozen_ = frozen; }

 private:
  struct Pair {
    FileDescriptor client;
    FileDescriptor server;
  };
  void run();
  void accept_one();

  Endpoint to_;
  FileDescriptor listener_;
  Endpoint endpoint_;
  std::vector<Pair> pairs_;
  std::atomic<bool> cuts_{false};
  std::atomic<bool> frozen_{false};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace drun::test
