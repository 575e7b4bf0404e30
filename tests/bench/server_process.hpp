// The servers that are measured, each in a process of its own, and what the kernel says about them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/store/client.hpp"

namespace drun::bench {

class ServerProcess {
 public:
  // Runs `serve` in a child process; it writes its endpoint to the given descriptor, as one line.
  ServerProcess(std::string name, store::TcpStoreVersion version,
                const std::function<void(int)>& serve);
  // Runs a program whose first line of output is its endpoint or port.
  ServerProcess(std::string name, store::TcpStoreVersion version,
                const std::vector<std::string>& argv);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();  // kills it

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] store::TcpStoreVersion version() const { return version_; }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] bool alive() const;

  // User and system time of all its threads so far, nanoseconds.
  [[nodiscard]] std::uint64_t cpu_time() const;
  // Resident memory, bytes. The kernel's socket buffers are not in it.
  [[nodiscard]] std::size_t memory() const;
  void pin(std::size_t cpu) const;

 private:
  void read_endpoint(FileDescriptor output);

  std::string name_;
  store::TcpStoreVersion version_;
  pid_t pid_ = -1;
  Endpoint endpoint_;
};

}  // namespace drun::bench
