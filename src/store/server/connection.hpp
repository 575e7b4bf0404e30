// A peer with its socket: reads all there is, has it applied, writes once. Keeps buffers only while
// a request is incomplete or the peer does not read.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"
#include "secure/tls_engine.hpp"
#include "store/server/connection_phase.hpp"
#include "store/server/event_source.hpp"
#include "store/server/input_buffer.hpp"
#include "store/server/peer.hpp"
#include "store/server/turn_queue.hpp"

namespace drun::store {

class Connection;

// Memory that a server's connections share: used by one at a time, within one call.
struct SharedBuffers {
  static constexpr std::size_t kInputBytes = 256 * 1024;
  static constexpr std::size_t kKeptOutputBytes = 1024 * 1024;

  // Not zeroed: of its pages only those exist that a read has filled.
  std::unique_ptr<char[]> input = std::make_unique_for_overwrite<char[]>(kInputBytes);
  std::string output;
  std::string plain;  // of TLS
  std::size_t strangers_in_reserve = 0;
};

class ConnectionOwner {
 public:
  ConnectionOwner() = default;
  ConnectionOwner(const ConnectionOwner&) = delete;
  ConnectionOwner& operator=(const ConnectionOwner&) = delete;
  virtual ~ConnectionOwner() = default;

  // Call send_waiting() soon.
  virtual void request_flush(Connection& connection) = 0;
  // Of the events that are being served.
  [[nodiscard]] virtual Time now() const = 0;
  // Call resume() in a later turn, when those who asked before have had theirs.
  virtual void request_turn(Connection& connection) = 0;
  // There is no room for what `asking` needs: of those that owe a proof of the token the one that
  // came first goes. False: there is none but `asking`.
  virtual bool end_a_stranger([[maybe_unused]] const Connection& asking) { return false; }
};

class Connection final : public EventSource, public Peer, public TurnQueue::Waiter {
 public:
  Connection(FileDescriptor socket, PeerContext& context, SharedBuffers& shared,
             ConnectionOwner& owner);
  ~Connection() override;

  // Reads once, applies what is complete, sends the replies. False: there was no more to read. A
  // read ends before and behind urgent data, which is `has_urgent`.
  bool receive(Time now, bool has_urgent);
  // Sends what is waiting.
  void send_waiting(Time now);
  // Likewise; then goes on with requests that had to pause.
  void flush(Time now);
  // Its turn has come.
  void resume(Time now);
  // It is over: lets go of the tables. Afterwards only the destructor may be called.
  void disconnect(Time now);

  // Dead: call disconnect() and destroy it.
  [[nodiscard]] bool is_dead() const { return phase_ == ConnectionPhase::Dead; }
  // Why the server ends it; empty: the peer closed, or the network did.
  [[nodiscard]] std::string_view reason() const { return reason_; }
  void drop(const char* reason);

  [[nodiscard]] bool wants_to_read() const {
    return awaits_input(phase_) || (is_paused() && has_session() && read_ahead_ < kReadAhead);
  }
  [[nodiscard]] bool wants_to_write() const {
    return unsent() > 0 || (is_paused() && !awaits_turn_);
  }
  // It pauses, or stopped sending, to give the others their turn, while the socket would take more.
  [[nodiscard]] bool gave_way() const { return wants_to_write() && !send_blocked_; }
  // True while it waits for the peer to read, or to close after an error: since when.
  [[nodiscard]] bool is_blocked() const { return wants_to_write() || is_lingering(); }
  [[nodiscard]] Time blocked_since() const { return blocked_since_; }
  [[nodiscard]] bool is_lingering() const { return phase_ == ConnectionPhase::Lingering; }

  [[nodiscard]] int fd() const { return socket_.get(); }
  // More than the beginning of what a client begins with. A peer that has begun with TLS says
  // something when it has proved that it has the token.
  [[nodiscard]] bool has_said_something() const { return has_said_something_; }
  // It may not begin TLS any more: nobody waits for the token.
  void end_proving() { may_prove_ = false; }
  // Whether it may stay as long as it likes, as far as the token is concerned.
  [[nodiscard]] bool is_welcome() const { return is_proven() || (!tls_ && serves_strangers_); }

  // The server's own notes.
  std::size_t index = 0;     // in its list of connections
  bool is_listed = false;    // among those to be flushed
  bool is_reported = false;  // the log says why it is dropped
  std::uint64_t number = 0;  // in the order in which they came

 private:
  static constexpr std::size_t kReadAhead = 4 * 1024;

  [[nodiscard]] std::size_t unsent() const {
    return shared_output_.size() + output().size() - sent_ + (tls_ ? tls_->output().size() : 0);
  }
  [[nodiscard]] bool is_paused() const { return phase_ == ConnectionPhase::Paused; }
  void enter(ConnectionPhase next);
  void die();
  void on_unasked_output() override;
  void on_overflow() override;
  bool has_room_to_tell(std::size_t bytes) override;
  [[nodiscard]] Milliseconds idle() const override;
  std::size_t send_directly(std::string_view bytes) override;
  void send_later(const std::shared_ptr<const std::string>& bytes, std::size_t from) override;
  void discard_output();
  void take(std::string_view bytes, Time now);
  [[nodiscard]] bool begin_secure();
  // False: there was no memory, and it is dead.
  [[nodiscard]] bool decrypt(std::string_view bytes, std::string& plain);
  [[nodiscard]] bool receive_secure(Time now, bool has_urgent);
  void take_secure(std::string_view bytes, Time now);
  void encrypt_some();
  ssize_t send_encrypted(std::size_t& asked);
  void write(Time now);
  ssize_t send_some(std::size_t& asked);
  bool read_ahead(Time now);
  void settle();
  [[nodiscard]] bool has_room(std::size_t bytes);
  [[nodiscard]] bool fits(std::size_t bytes);
  // Within the reserve, too, if it may be the rendezvous, or come to make room.
  [[nodiscard]] bool fits_somewhere(std::size_t bytes);
  void leave_reserve();
  void charge(std::size_t bytes);
  void begin_lingering(Time now);
  bool discard_input();

  FileDescriptor socket_;
  const Limits& limits_;
  Budget& budget_;
  const std::shared_ptr<const secure::TlsContext>& tls_context_;
  SharedBuffers& shared_;
  ConnectionOwner& owner_;
  InputBuffer input_;
  std::unique_ptr<secure::TlsEngine> tls_;  // null: it speaks plainly
  std::size_t needed_ = 1;                  // fewer bytes of input are no use
  std::size_t sent_ = 0;                    // of the output, already
  std::size_t charged_ = 0;                 // to the budget
  std::size_t read_ahead_ = 0;              // while it is paused
  Time blocked_since_{};
  const char* reason_ = "";
  ConnectionPhase phase_ = ConnectionPhase::Reading;
  const bool serves_strangers_;
  bool has_sent_ = false;
  bool has_said_something_ = false;
  bool may_prove_ = true;
  bool in_reserve_ = false;    // while it is a stranger
  bool awaits_turn_ = false;   // until resume()
  bool send_blocked_ = false;  // the socket took less than there was
};

}  // namespace drun::store
