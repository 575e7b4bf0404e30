// The connection to a round's store that the clients of this node share: RelayMux with its socket,
// in a turn of an asio loop. Dials when there is somebody to speak for. One thread: the loop's.
// Made with std::make_shared.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include "base/file_descriptor.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "store/client/dialer.hpp"
#include "store/relay/relay_flow.hpp"
#include "store/relay/relay_mux.hpp"

namespace drun::store {

// Somebody whom a trunk speaks for.
class TrunkClient {
 public:
  TrunkClient() = default;
  TrunkClient(const TrunkClient&) = delete;
  TrunkClient& operator=(const TrunkClient&) = delete;
  virtual ~TrunkClient() = default;

  // There is something new in the trunk's mux.
  virtual void on_change() = 0;
  // Its number is another one now.
  virtual void on_renumbered(RelayMux::Stream stream) = 0;
  // The store has lost what it had said, or did not want it. The trunk has forgotten it.
  virtual void on_lost() = 0;
};

class RelayTrunk : public std::enable_shared_from_this<RelayTrunk> {
 public:
  using Say = std::function<void(const std::string& what, const std::string& kind)>;
  using Buffer = std::array<char, RelayFlow::kAtOnce>;

  // `buffer` is used within one call, and outlives this. `say`: for the user; of each `kind` only
  // now and then.
  RelayTrunk(asio::io_context& io, Endpoint store, std::shared_ptr<const secure::TlsContext> tls,
             Buffer& buffer, Say say);

  [[nodiscard]] RelayMux::Stream join(TrunkClient& client);
  // Nothing is called for it any more.
  void leave(RelayMux::Stream stream);
  // Calls nobody any more.
  void close();

  [[nodiscard]] RelayMux& mux() { return mux_; }
  // To be called when the mux was told something: what follows from it, soon.
  void touch();
  // The store knows this relay, or does not want to.
  [[nodiscard]] bool is_settled() const { return mux_.is_open() || mux_.is_refused(); }
  // Why not, as far as it is known.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  using Side = RelayFlow::Side;

  void dial();
  void on_dialed(Result<FileDescriptor> socket);
  void try_again(const std::string& why);
  template <typename Act>
  void safely(Act act);
  void pump();
  void flush();
  void read();
  void on_gone();
  void lose_all();
  void give_up(const std::string& why, const std::string& kind);
  void start_over();
  void disconnect();
  void tell_clients();
  void await_readable();
  void await_writable();
  [[nodiscard]] std::string place() const;

  asio::io_context& io_;
  const Endpoint store_;
  const std::shared_ptr<const secure::TlsContext> tls_;
  Buffer& buffer_;
  const Say say_;
  RelayMux mux_;
  std::unique_ptr<RelayFlow> flow_;
  std::unordered_map<RelayMux::Stream, TrunkClient*> clients_;
  asio::posix::stream_descriptor socket_;
  unsigned number_ = 0;  // grows with each socket, so that late handlers know theirs
  std::optional<Dialer> dialer_;
  asio::steady_timer again_;
  std::chrono::milliseconds pause_;
  std::string failure_ = "it gives no answer";
  bool awaits_readable_ = false;
  bool awaits_writable_ = false;
  bool is_touched_ = false;
  bool is_waiting_ = false;  // to dial again
  bool is_closed_ = false;
};

}  // namespace drun::store
