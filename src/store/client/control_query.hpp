// A synchronous client of the control protocol: for drunctl. A session that it opens is not
// renewed. Blocking calls that end at a deadline; errors are one line that names the endpoint.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "secure/tls_context.hpp"
#include "store/client/resolve.hpp"
#include "store/client/secure_socket.hpp"
#include "store/protocol/control_protocol.hpp"

namespace drun::store {

class ControlQuery {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  using Tls = std::shared_ptr<const secure::TlsContext>;

  // Connects and agrees on a version. With `retry` until the deadline, else every address once.
  // `tls`: the job's token; null: none.
  static Result<ControlQuery> open(const Endpoint& endpoint, Deadline deadline, bool retry,
                                   const Tls& tls);

  // Sends a request; its number.
  Result<std::uint64_t> send(const control::Request& request, Deadline deadline);
  // The next reply to the request of this number; replies to others are passed over. Its views are
  // valid until the next call.
  Result<control::Reply> receive(std::uint64_t request, Deadline deadline);
  // From now on receive() also ends, with Errc::Closed, when nobody reads what is written to `fd`.
  void end_without_reader(int fd) { output_ = fd; }
  [[nodiscard]] bool has_no_reader() const { return no_reader_; }

 private:
  ControlQuery(Endpoint endpoint, SecureSocket socket);
  static Result<ControlQuery> attempt(const Endpoint& endpoint, Deadline deadline, const Tls& tls);
  static Result<ControlQuery> attempt(const Endpoint& endpoint, const SocketAddress& address,
                                      Deadline deadline, const Tls& tls);
  [[nodiscard]] Status handshake(Deadline deadline);
  [[nodiscard]] Error named(const Error& error) const;

  Endpoint endpoint_;
  SecureSocket socket_;
  [[nodiscard]] Status wait_readable(Deadline deadline);

  int output_ = -1;
  bool no_reader_ = false;
  std::string input_;
  std::size_t used_ = 0;  // bytes of input_ that the last reply took
  std::uint64_t next_request_ = 1;
};

}  // namespace drun::store
