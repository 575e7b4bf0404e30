// What an asynchronous client is besides its state machine: one TCP connection on an asio loop. It
// connects, reads, writes, keeps one timer, and gives the machine its turns. One thread: the
// loop's.
//
// A client derives from this, is made with std::make_shared, and calls abandon() before it lets go;
// handlers that are still pending keep it alive and do nothing.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include "base/file_descriptor.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "secure/tls_engine.hpp"
#include "store/client/dialer.hpp"

namespace drun::store {

class StreamConnection : public std::enable_shared_from_this<StreamConnection> {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  // `tls` not null: it speaks TLS with that token, and the machine hears and says nothing before
  // the other side has proved that it has it.
  explicit StreamConnection(asio::io_context& io,
                            std::shared_ptr<const secure::TlsContext> tls = nullptr)
      : io_(io), tls_context_(std::move(tls)), socket_(io), timer_(io) {}
  StreamConnection(const StreamConnection&) = delete;
  StreamConnection& operator=(const StreamConnection&) = delete;
  virtual ~StreamConnection() = default;

  // What calls have asked of the machine is done in the next turn of the loop, in one write.
  void schedule();
  // The end: closes everything, and calls nobody any more.
  virtual void abandon();

 protected:
  // ---- the machine's side ----

  // Does one round of what the machine wants, and calls its caller, who may abandon() this. False:
  // nothing is left to be done.
  virtual bool do_round() = 0;
  // The attempt of dial() is over: adopt() the socket, or note the bare cause.
  virtual void on_dialed(Result<FileDescriptor> socket) = 0;
  // False: the machine is done with this connection, and wants nothing read or written any more.
  [[nodiscard]] virtual bool is_wanted() const = 0;
  // What is to be sent now; how much of its front has been.
  [[nodiscard]] virtual std::string_view output() = 0;
  virtual void on_sent(std::size_t bytes) = 0;
  virtual void on_received(std::string_view bytes) = 0;
  // The connection broke for this reason; 0: the peer closed it. The socket is closed already.
  virtual void on_broken(int error) = 0;
  // The other side does not have the token: as on_broken().
  virtual void on_unproven(secure::TlsEngine::Failure failure);
  [[nodiscard]] virtual std::optional<Time> next_deadline() const = 0;
  virtual void on_time(Time now) = 0;

  // ---- for the machine's side ----

  // Starts an attempt, in place of one under way. `first`: of the addresses, the first to be tried.
  void dial(const Endpoint& endpoint, std::size_t first = 0);
  void stop_dialing() { dialer_.reset(); }
  // In on_dialed(): which address is connected.
  [[nodiscard]] std::size_t dialed_address() const { return dialer_->address(); }
  // From now on this is the connection: reads it.
  void adopt(FileDescriptor socket);
  void close();
  // Sends what there is.
  void flush();
  // Rounds until nothing is left to be done. The last thing that a handler does.
  void pump();

  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  [[nodiscard]] int fd() { return socket_.native_handle(); }
  [[nodiscard]] asio::io_context& io() { return io_; }
  [[nodiscard]] bool is_abandoned() const { return abandoned_; }

 private:
  void await_readable();
  void await_writable();
  void read_all();
  void take(std::string_view bytes);
  void flush_secure();
  void broken(int error);
  void arm_timer();

  asio::io_context& io_;
  const std::shared_ptr<const secure::TlsContext> tls_context_;
  std::unique_ptr<secure::TlsEngine> tls_;  // of the open connection
  std::string plain_;                       // what it has said
  asio::posix::stream_descriptor socket_;
  asio::steady_timer timer_;
  std::optional<Time> armed_;
  std::optional<Dialer> dialer_;
  std::uint64_t number_ = 0;  // grows with each socket, so that late handlers know theirs
  std::array<char, 65536> buffer_;
  bool awaits_writable_ = false;
  bool scheduled_ = false;  // a turn of the loop will pump
  bool pumping_ = false;    // the caller is being called; what it asks for is done right after
  bool abandoned_ = false;
};

}  // namespace drun::store
