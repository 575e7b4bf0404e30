// The synchronous client's connection: finds the server, agrees on a version, and drives a
// ClientFsm over a blocking socket.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "drun/store/client.hpp"
#include "store/client/client_fsm.hpp"
#include "store/client/secure_socket.hpp"

namespace drun::store {

class ClientConnection {
 public:
  // A connected socket; `version` is what will be spoken on it.
  ClientConnection(const Endpoint& endpoint, SecureSocket socket, TcpStoreVersion version,
                   std::size_t max_value_bytes);

  // As Client::connect. Errors are complete: they name the endpoint.
  static Result<std::unique_ptr<ClientConnection>> open(const Endpoint& endpoint,
                                                        SteadyTime deadline,
                                                        const ClientOptions& options);

  // Until the call is over.
  [[nodiscard]] Result<tcpstore::Reply> run(ClientCall call, std::chrono::milliseconds limit);

  [[nodiscard]] bool connected() const { return socket_.is_open(); }
  [[nodiscard]] TcpStoreVersion version() const { return fsm_.version(); }
  [[nodiscard]] Endpoint local_endpoint() const;

 private:
  void send_or_receive();

  SecureSocket socket_;
  ClientFsm fsm_;
  std::array<char, 65536> buffer_;
};

}  // namespace drun::store
