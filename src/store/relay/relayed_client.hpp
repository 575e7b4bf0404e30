// One client of a relay with its socket, in a turn of an asio loop. It begins as one of those that
// a trunk speaks for, and may go on with a connection to the store of its own: RelayFlow with its
// sockets. One thread: the loop's. Made with std::make_shared.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include "base/file_descriptor.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "store/client/dialer.hpp"
#include "store/relay/relay_flow.hpp"
#include "store/relay/relay_trunk.hpp"

namespace drun::store {

class RelayedClient : public std::enable_shared_from_this<RelayedClient>, private TrunkClient {
 public:
  using Clock = std::chrono::steady_clock;
  using Buffer = RelayTrunk::Buffer;

  // What all clients of a round share; it outlives them.
  struct Round {
    asio::io_context& io;
    Endpoint store;
    std::shared_ptr<const secure::TlsContext> tls;
    std::chrono::milliseconds patience;
    Buffer& buffer;  // used within one call
    RelayTrunk::Say say;
    std::shared_ptr<RelayTrunk> trunk;
    std::function<void(RelayedClient& client)> gone;  // the last call
  };

  RelayedClient(const Round& round, FileDescriptor socket);

  void start();
  // The end of both connections, as after a fault: whoever reads or writes there gets an error.
  // Calls nobody.
  void reset();

  std::size_t index = 0;  // the owner's own note

 private:
  using Side = RelayFlow::Side;
  struct End {
    explicit End(asio::io_context& io) : socket(io) {}
    asio::posix::stream_descriptor socket;
    unsigned number = 0;  // grows with each socket, so that late handlers know theirs
    bool awaits_readable = false;
    bool awaits_writable = false;
  };

  [[nodiscard]] End& end_of(Side side) { return side == Side::Client ? client_ : store_; }
  static void close(End& end, bool with_reset);
  void on_change() override;
  void on_renumbered(RelayMux::Stream stream) override;
  void on_lost() override;
  void await_trunk();
  void read_for_trunk();
  void send_what_came();
  void go_on_alone();
  void dial();
  void on_dialed(Result<FileDescriptor> socket);
  void redial();
  void await_token();
  void try_again(const std::string& why);
  void give_up(const std::string& why);
  void pump();
  void flush(Side to);
  void read(Side from);
  void on_broken(Side side);
  [[nodiscard]] bool has_fault();
  void await_readable(Side side);
  void await_writable(Side side);
  void finish(bool with_reset);

  const Round& round_;
  RelayFlow flow_;
  End client_;
  End store_;
  std::optional<Dialer> dialer_;
  asio::steady_timer again_;
  std::optional<RelayMux::Stream> stream_;  // while the trunk speaks for it
  Clock::time_point since_ = Clock::now();  // the patience for the store counts from here
  std::chrono::milliseconds pause_;
  bool ended_ = false;  // it says nothing more
  bool lost_ = false;   // it hears nothing more
  bool over_ = false;
};

}  // namespace drun::store
