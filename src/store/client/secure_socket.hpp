// A connected socket with blocking calls, as socket.hpp has them, that speaks TLS if there is a
// token. The handshake comes with the first call.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "drun/base/result.hpp"
#include "secure/tls_engine.hpp"
#include "store/client/socket.hpp"

namespace drun::store {

class SecureSocket {
 public:
  // `tls` null: it speaks plainly.
  SecureSocket(FileDescriptor socket, const std::shared_ptr<const secure::TlsContext>& tls);

  // Errc::WrongToken: the other side does not have it. With TLS `send_some` takes all.
  [[nodiscard]] Result<std::size_t> send_some(std::string_view bytes, SteadyTime deadline);
  [[nodiscard]] Status send_all(std::string_view bytes, SteadyTime deadline);
  [[nodiscard]] Result<std::size_t> receive_some(char* buffer, std::size_t size,
                                                 SteadyTime deadline);
  [[nodiscard]] bool is_secure() const { return tls_ != nullptr; }
  // receive_some() has something at once.
  [[nodiscard]] bool has_unread() const { return !plain_.empty(); }

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] bool is_open() const { return socket_.valid(); }
  void close() { socket_.reset(); }

 private:
  [[nodiscard]] Status shake_hands(SteadyTime deadline);
  [[nodiscard]] Status flush(SteadyTime deadline);
  [[nodiscard]] Status read_more(SteadyTime deadline);
  [[nodiscard]] Status hear(SteadyTime deadline);

  FileDescriptor socket_;
  std::unique_ptr<secure::TlsEngine> tls_;
  std::string plain_;  // received and not asked for yet
};

}  // namespace drun::store
