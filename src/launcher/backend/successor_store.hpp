// The rendezvous store that this agent serves when it succeeds another. Its port is held from the
// beginning: the others of the job know it, and may come before this agent has noticed that the
// store is lost. They wait in the kernel's queue, and are not refused.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "base/file_descriptor.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "drun/store/server.hpp"

namespace drun::launcher {

class SuccessorStore {
 public:
  SuccessorStore() = default;
  SuccessorStore(const SuccessorStore&) = delete;
  SuccessorStore& operator=(const SuccessorStore&) = delete;
  ~SuccessorStore() { end(); }

  // Takes any free port at the address that the others reach this machine by.
  Status hold(const std::string& address) { return hold(Endpoint{address, 0}); }
  // Takes this one; errc::address_in_use: somebody else has it.
  Status hold(const Endpoint& endpoint);
  // 0: none is held.
  [[nodiscard]] std::uint16_t port() const { return own_.port; }

  // Serves a fresh store at the port; what it has served so far is gone, but for what it has heard
  // of the deaths of nodes, since each is reported only once. Says where this agent itself reaches
  // it. Connections that wait at the port are served.
  Result<Endpoint> stand(const store::ServerOptions& options);
  // Says there where the job's store is, and serves nobody. `options`: of a store that is to begin
  // now.
  Status point_to(std::uint64_t generation, const Endpoint& store,
                  const store::ServerOptions& options);
  // Waits for a majority again, as stand() does, with all that it has heard. False: it serves, or
  // does not stand.
  [[nodiscard]] bool wait_again() { return stands() && server_->point_to(0, {}); }
  [[nodiscard]] const Endpoint& own() const { return own_; }
  // Whether `place`, a numeric address, is this store as others reach it. Agents of one machine
  // that listen at all of its addresses differ by port, those that listen at one differ by address.
  [[nodiscard]] bool is_at(const Endpoint& place) const;
  // Serves no more, and forgets everything but deaths; all connections end. The port is still held.
  void step_down();
  [[nodiscard]] bool stands() const { return server_ != nullptr; }
  // While it stands: see HostedStore.
  [[nodiscard]] bool stop_unless(const std::function<bool(std::string_view key)>& needed) {
    return server_->stop_unless(needed);
  }

  // Lets go of the port, too.
  void end();

 private:
  FileDescriptor held_;
  Endpoint own_;
  bool everywhere_ = false;  // it listens at all addresses
  std::shared_ptr<const store::Deaths> deaths_;
  std::unique_ptr<store::Server> server_;
  std::thread thread_;
};

}  // namespace drun::launcher
