// A connection of the synchronous client: finds the server, agrees on a dialect, exchanges requests
// and replies. Knows nothing of keys.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "drun/base/endpoint.hpp"
#include "drun/base/file_descriptor.hpp"
#include "drun/base/result.hpp"
#include "drun/store/client.hpp"
#include "store/socket.hpp"
#include "store/tcpstore_call.hpp"

namespace drun::store {

class ClientConnection {
 public:
  // A connected socket; `dialect` is what will be spoken on it.
  ClientConnection(FileDescriptor socket, Dialect dialect, std::size_t max_value_bytes);

  // As Client::connect. Errors are complete: they name the endpoint.
  static Result<std::unique_ptr<ClientConnection>> open(const Endpoint& endpoint,
                                                        SteadyTime deadline,
                                                        const ClientOptions& options);

  // Errors of these are a bare cause, without endpoint and request.
  [[nodiscard]] Status send(std::string_view bytes, SteadyTime deadline);
  // One reply. After timed_out what has arrived of it is kept: call read_more() or close.
  [[nodiscard]] Result<Reply> receive(ReplyShape shape, std::size_t count, SteadyTime deadline);

  void close(std::string why);
  [[nodiscard]] bool connected() const { return socket_.valid(); }
  [[nodiscard]] const std::string& why_closed() const { return why_closed_; }
  [[nodiscard]] Dialect dialect() const { return dialect_; }
  [[nodiscard]] Endpoint local_endpoint() const;

 private:
  // Proves that the peer speaks the dialect.
  [[nodiscard]] Status handshake(SteadyTime deadline);

  FileDescriptor socket_;
  std::string why_closed_;
  Dialect dialect_;
  std::size_t max_value_bytes_;
  std::array<char, 65536> buffer_;  // [begin_, end_) has arrived and is not used yet
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  friend class Connector;
};

// "5 s", "1.5 s", "20 ms".
[[nodiscard]] std::string to_text(std::chrono::steady_clock::duration duration);

// What a peer sent, or a key, for a message: "'HTTP'" or "0x160301"; the beginning, if it is long.
[[nodiscard]] std::string quote_bytes(std::string_view bytes);

}  // namespace drun::store
