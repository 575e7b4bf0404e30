// Passes on what this host's TCPStore clients say to a store elsewhere, over one connection for all
// of them, and one each for those that move long values; over TLS if there is a token: clients know
// none of that. A place on the loopback interface, for the processes of one
// user. A thread of its own does it, so that neither values nor encryption hold up anybody else.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <memory>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"

namespace drun::secure {
class TlsContext;
}

namespace drun::store {

struct RelayOptions {
  std::shared_ptr<const secure::TlsContext> tls{};  // null: the store is spoken to plainly
  uid_t user = ::geteuid();                         // others are not served
  // At once; each takes a descriptor of this process, or two with a connection of its own. More
  // wait until others have gone.
  std::size_t clients = 4'096;
  // A client waits for so long for a store that cannot be reached: torch's clients do.
  std::chrono::milliseconds patience{300'000};
};

class Relay {
 public:
  explicit Relay(RelayOptions options = {});
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay();

  // From now on at a new place, which is returned: its clients get `store`. Those at the place
  // before lose their connections.
  [[nodiscard]] Result<Endpoint> begin(const Endpoint& store);
  // All connections end.
  void end();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drun::store
