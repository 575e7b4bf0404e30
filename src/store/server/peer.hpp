// One peer of the server without its socket: bytes in, requests to the tables, bytes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "drun/store/limits.hpp"
#include "secure/tls_context.hpp"
#include "store/protocol/control_protocol.hpp"
#include "store/protocol/relay_frames.hpp"
#include "store/protocol/tcpstore_codec.hpp"
#include "store/server/job_scope.hpp"
#include "store/server/shared_output.hpp"
#include "store/server/succession.hpp"
#include "store/server/turn.hpp"
#include "store/table/sessions.hpp"
#include "store/table/table.hpp"

namespace drun::store {

// Why a peer is closed whose token, or lack of one, is not the store's.
inline constexpr const char* kHasToken = "it has a token or a certificate, and this store has none";
inline constexpr const char* kNeedsToken = "it shows no token, which this store asks for";
inline constexpr const char* kNeedsCertificate =
    "it shows no certificate, which this store asks for";
[[nodiscard]] constexpr bool is_about_token(std::string_view reason) {
  return reason == kHasToken || reason == kNeedsToken || reason == kNeedsCertificate;
}

class Peer;

// Counted since the server's start, but for `connections`.
struct ServerCounters {
  std::uint64_t connections = 0;
  std::uint64_t accepted = 0;
  std::uint64_t dropped = 0;
  std::uint64_t requests = 0;
};

// What the peers of one listener share. All of it outlives them.
struct PeerContext {
  const Limits& limits;
  Budget& budget;
  KeyTable& tcpstore_table;
  KeyTable& control_table;
  Sessions& sessions;
  StoreSuccession& succession;
  ServerCounters& counters;
  Turn& turn;
  bool old_clients_are_2_1 = false;         // not told apart by their bytes
  control::Token (*new_token)() = nullptr;  // random
  // Not null: without a proof of the job's token a peer gets the workers' store at the most.
  std::shared_ptr<const secure::TlsContext> tls{};
  bool workers_need_token = false;  // not even that

  // Whether a peer without a token gets anything.
  [[nodiscard]] bool serves_strangers() const {
    return tls == nullptr || (!workers_need_token && &tcpstore_table != &control_table);
  }

  // Scratch, so that requests need no memory of their own.
  tcpstore::Request tcpstore_request{};
  std::string relayed_reply{};
  control::Request control_request{};
};

class Peer : public TableClient, public SessionHolder, public Applicant {
 public:
  // Output that makes a peer stop taking requests until some of it was read.
  static constexpr std::size_t kHighWater = 256 * 1024;

  enum class State {
    Open,
    Paused,  // too much unread output, or the others have their turn: call feed() again with the
             // same bytes when the output is gone, or they have had it
    AwaitsTurn,  // the next request takes much, and there is no room for it in this turn: likewise
    Closed       // close the connection once the output is sent; close_reason() says why
  };
  struct Fed {
    std::size_t consumed = 0;  // from the front; the rest has to come again, followed by more
    std::size_t needed = 1;    // fewer bytes than these, the rest included, are no use
    State state = State::Open;
  };

  explicit Peer(PeerContext& context) : context_(context) {}
  ~Peer() override;

  // Takes as many complete requests off the front of `bytes` as there are.
  Fed feed(std::string_view bytes, Time now);
  // The connection is gone: forgets its waits and watches, and starts its session's grace. Feed
  // nothing afterwards.
  void disconnect(Time now);

  // What is to be sent, last of all; the sender takes what went off the front.
  [[nodiscard]] std::string& output() { return output_; }
  [[nodiscard]] const std::string& output() const { return output_; }
  // For people, never with a key or a value.
  [[nodiscard]] const char* close_reason() const { return close_reason_; }
  // TCPStore requests of this peer act on that table.
  [[nodiscard]] bool serves(const KeyTable& table) const {
    return &context_.tcpstore_table == &table;
  }
  // Speaks, or may yet speak, the TCPStore protocol.
  [[nodiscard]] bool may_be_tcpstore() const { return !is_control(); }
  [[nodiscard]] bool has_session() const { return session_ != kNoSession; }
  // It has proved that it has the job's token.
  [[nodiscard]] bool is_proven() const { return is_proven_; }
  // It has said nothing yet that tells what it speaks.
  [[nodiscard]] bool is_undecided() const { return phase_ == Phase::Unknown; }
  // Null: it may reach all there is.
  [[nodiscard]] const JobScope* scope() const { return scope_.get(); }
  [[nodiscard]] bool is_control() const {
    return phase_ == Phase::Control || phase_ == Phase::ControlOpening;
  }

  // There is a sign of life of the peer, which its session counts.
  void note_life(Time now) {
    if (has_session()) context_.sessions.renew(session_, now);
  }

  void on_wait_done(std::uint64_t wait) override;
  void on_push(std::uint64_t wait, std::string_view queue) override;
  void on_changes(std::uint64_t watch, Publication& publication) override;
  void on_session_ended(control::EndReason reason) override;

  // It asks for a session of a server that does not serve yet. Precondition: !is_waiting().
  void wait(std::uint64_t request, const control::OpenSuccessor& application, Time now);
  [[nodiscard]] bool is_waiting() const { return waiting_.has_value(); }
  // What it was called with while it waits. Precondition: is_waiting().
  void confirm(std::uint64_t stamp, Time now);
  void on_call(const control::Pulsed& call) override;
  SessionId on_welcome(Time now) override;
  void on_moved(const control::Moved& moved) override;
  // Of the control protocol, that both speak.
  [[nodiscard]] std::uint16_t version() const { return version_; }
  // For so long at least nothing has come from it: what it is being fed may have waited.
  [[nodiscard]] virtual Milliseconds idle() const { return Milliseconds(0); }

 protected:
  // There is output although this peer is not being fed. Called from within the tables: must not
  // call them, nor any peer.
  virtual void on_unasked_output() = 0;
  // There would be more output at once than a peer may leave unread: it must be dropped, for it
  // has missed a change. Called likewise, also while it is being fed.
  virtual void on_overflow() = 0;
  // Whether there is room for so much more output. If not, the peer is dropped. Called likewise.
  virtual bool has_room_to_tell([[maybe_unused]] std::size_t bytes) { return true; }
  // For send_now(), which is called while it is being fed.
  virtual std::size_t send_directly([[maybe_unused]] std::string_view bytes) { return 0; }
  // The bytes from `from` on are to be sent behind what is waiting; others have them, too.
  virtual void send_later(const std::shared_ptr<const std::string>& bytes, std::size_t from) {
    output_.append(*bytes, from);
  }
  // It is about to end: nothing more is done for it.
  void give_up() { is_given_up_ = true; }
  // What it is fed from now on comes from somebody with the token; with `job`, with a token that is
  // this job's alone.
  void note_proof(std::string_view job = {}) {
    is_proven_ = true;
    if (!job.empty()) scope_ = std::make_unique<const JobScope>(job);
  }

  SharedOutput shared_output_;  // goes before output()

 private:
  struct Waiting {
    std::uint64_t request = 0;
    std::uint32_t ttl_ms = 0;
    std::uint32_t grace_ms = 0;
    VoterId number = 0;
    std::string job{};
  };

  enum class Phase : std::uint8_t { Unknown, TcpStore, ControlOpening, Control, Relay };

  [[nodiscard]] KeyTable& table() const;
  [[nodiscard]] bool has_much_output() const {
    return shared_output_.size() + output_.size() + sent_now_ > kHighWater;
  }
  State close(const char* reason);
  State detect(std::string_view bytes, Fed& fed);
  State feed_tcpstore(std::string_view bytes, Fed& fed, Turn::Share& share);
  std::size_t send_now(std::string_view bytes) final;
  State next_opening(std::string_view bytes, Fed& fed);
  State next_frame(std::string_view bytes, Fed& fed, Turn::Share& share, Time now);
  // False: it needs more, or `state` says why there is none.
  [[nodiscard]] bool take_frame(std::string_view bytes, Fed& fed, control::FrameResult& found,
                                State& state);
  [[nodiscard]] bool may_relay() const;
  State next_relayed(std::string_view bytes, Fed& fed, Turn::Share& share);
  // Null, or why the client of a relay would be closed.
  const char* serve_relayed(relay_frames::Stream client, const tcpstore::Request& request,
                            bool shared);

  PeerContext& context_;
  std::string output_;
  const char* close_reason_ = "";
  SessionId session_ = kNoSession;
  std::optional<Waiting> waiting_;
  std::unique_ptr<const JobScope> scope_;
  std::uint64_t last_wait_ = 0;  // TCPStore: the numbers of its waits
  std::size_t sent_now_ = 0;     // while it is being fed
  tcpstore::Decoder decoder_{TcpStoreVersion::Torch1_13};
  Phase phase_ = Phase::Unknown;
  std::uint16_t version_ = control::kLowestVersion;
  std::set<relay_frames::Stream> closed_;  // of a relay's clients: for them nothing is done
  bool feeding_ = false;
  bool is_given_up_ = false;
  bool is_proven_ = false;
};

}  // namespace drun::store
