// Many TCPStore clients over one connection to their store, without the sockets: takes their
// requests apart, sends them on in frames that carry the client's number, and hands out what comes
// back. Adds to one key travel as their sum, and waits for one key as one. Pure.
//
// A client whose requests or replies are long, and every client of a store that does not know
// relays, is to have a connection of its own: fate() says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "drun/store/limits.hpp"
#include "store/protocol/relay_frames.hpp"
#include "store/protocol/tcpstore_codec.hpp"

namespace drun::store {

class RelayMux {
 public:
  using Stream = relay_frames::Stream;

  // The longest request that travels with others'; also what is kept of a client's input or output
  // before it has to wait, but for one request or reply more.
  static constexpr std::size_t kLongest = relay_frames::kLongestAnswer;
  // Clients wait while so much of what they said waits to be sent to the store.
  static constexpr std::size_t kMostToSend = 256 * 1024;

  enum class Fate : std::uint8_t {
    Served,
    Closing,  // to be closed as soon as its output has gone
    Own       // to have a connection of its own: take_over()
  };

  // `limits`: the store's.
  explicit RelayMux(const Limits& limits = {});

  // ---- clients ----

  [[nodiscard]] Stream add();
  // What it says.
  void take(Stream stream, std::string_view bytes);
  // It says nothing more, but wants to hear the answers.
  void end(Stream stream);
  // It hears nothing more. What it has said still goes to the store.
  void lose(Stream stream);
  // Whether what it says can be taken now.
  [[nodiscard]] bool wants(Stream stream) const;
  // What it is to be sent; the caller takes what went off the front, by on_sent().
  [[nodiscard]] std::string_view output(Stream stream) const;
  void on_sent(Stream stream, std::size_t bytes);
  [[nodiscard]] Fate fate(Stream stream) const;
  // Why it is closed, if not for its own end; empty: there is nothing to say.
  [[nodiscard]] const std::string& reason(Stream stream) const;
  // What it would have said on a connection of its own and is not answered; forgets it.
  [[nodiscard]] std::string take_over(Stream stream);
  // Its connection is gone, and all that it has said is answered, or never will be.
  void forget(Stream stream);
  // Those that have new output, another fate, or may be read again, each once.
  [[nodiscard]] std::vector<Stream> take_changed();

  // ---- the store ----

  [[nodiscard]] const std::string& to_store() const { return to_store_; }
  // So much of it has gone.
  void on_store_took(std::size_t bytes);
  void take_from_store(std::string_view bytes);
  // Sends what was kept in order to be sent together.
  void end_turn();
  // It does not know relays: its connection is of no use.
  [[nodiscard]] bool is_refused() const { return state_ == State::Refused; }
  // What it says is not the protocol.
  [[nodiscard]] bool is_broken() const { return state_ == State::Broken; }
  // It lets this relay speak for clients.
  [[nodiscard]] bool is_open() const { return state_ == State::Open; }

 private:
  enum class State : std::uint8_t { Opening, Open, Refused, Broken };
  enum class Awaits : std::uint8_t {
    Nothing,  // or only the end of a WAIT or BARRIER
    Answer,   // to the request at the front of its input
    Sum,      // of its ADD
    Sync,     // that all it has said has reached the store
    Join,     // that the store has seen a moment at which its WAITs were there
    Leave     // the same, behind its last request
  };
  struct Client {
    std::optional<tcpstore::Decoder> decoder;  // once it is known what it speaks
    std::string input;
    std::string output;
    std::string reason;
    std::size_t served = 0;        // bytes of the input, within one call
    std::size_t needed = 1;        // fewer bytes of input are no use
    std::size_t leaves = 0;        // that are not answered
    std::size_t asked = 0;         // bytes of the request that is to be answered
    std::size_t own_waits = 0;     // WAIT and BARRIER that are not over
    std::vector<Stream> shares{};  // WAITs that are others', too
    std::size_t joins = 0;         // of these, that it came to too late as far as is known
    Awaits awaits = Awaits::Nothing;
    Fate fate = Fate::Served;
    bool cancels = false;   // what is to be answered is a CANCEL_WAIT
    bool unsynced = false;  // it has said what is not answered
    bool touched = false;
    bool ended = false;
    bool lost = false;
    bool changed = false;

    [[nodiscard]] bool is_waiting() const { return own_waits > 0 || !shares.empty(); }
    // What it has given up may have been over when the store heard of it. Its own end is no such
    // Leave.
    [[nodiscard]] bool has_given_up() const { return leaves > (awaits == Awaits::Leave ? 1U : 0U); }
  };
  struct Term {
    Stream client = 0;
    std::int64_t delta = 0;
  };
  // The adds to one key.
  struct Adds {
    std::vector<Term> waiting;
    std::vector<Term> sent;  // as one ADD, that is not answered
    std::size_t alone = 0;   // of those that wait the first so many must not travel as a sum
  };

  [[nodiscard]] Stream next_stream();
  // Clients that wait for one key. The store knows of one WAIT.
  struct SharedWait {
    std::string key;
    std::uint64_t begins = 0;  // where its frame does, of all that goes to the store
    struct Member {
      Stream client = 0;
      std::uint64_t sync = 0;  // 0: the store has seen a moment since it came
    };
    std::vector<Member> members{};  // in the order in which they came
  };

  void change(Stream stream, Client& client);
  void share_wait(Stream stream, Client& client, const std::string& key);
  [[nodiscard]] Stream begin_shared_wait(const std::string& key);
  void drop_shares(Stream stream, Client& client);
  void take_member_off(Client& client, Stream wait, const SharedWait::Member& member);
  void end_shared_wait(Stream wait);
  void note_queue(std::string_view key);
  void take_sync();
  void take_woken(Stream wait);
  void take_push(Stream wait, std::string_view queue);
  void take_refused_wait(Stream wait, std::string_view reason);
  void send_leave(Stream stream, Client& client);
  void go_on(Stream stream, Client& client);
  bool detect(Stream stream, Client& client);
  bool serve_next(Stream stream, Client& client);
  void serve(Stream stream, Client& client, std::size_t size);
  void send(Stream stream, Client& client, std::string_view bytes, bool whole);
  void promote(Stream stream, Client& client);
  void close(Stream stream, Client& client, std::string_view reason);
  void reply(Stream stream, Client& client, std::string_view bytes);
  void send_adds(const std::string& key, Adds& adds);
  [[nodiscard]] bool take_sum(Stream stream, std::string_view sum);
  [[nodiscard]] bool take_refused_adds(Stream stream, std::string_view reason);
  void take_frame(const control::Frame& frame);
  void take_opening(const control::Frame& frame);
  void resume_all();

  Limits limits_;
  State state_ = State::Opening;
  std::unordered_map<Stream, Client> clients_;
  std::unordered_map<std::string, Adds> adds_;    // by key
  std::unordered_map<Stream, std::string> sums_;  // the keys of the adds that were sent
  std::vector<std::string> keys_;                 // with adds to be sent
  std::vector<Stream> changed_;
  std::unordered_map<Stream, SharedWait> shared_waits_;
  std::unordered_map<std::string, Stream> waits_of_;  // by key: those that others may join
  std::vector<Stream> deserted_;                      // shared waits whose last member has gone
  std::unordered_set<std::string> queues_;            // who waits for them is woken one by one
  std::vector<Stream> joins_;                         // clients that wait for a sync
  std::uint64_t last_sync_ = 0;                       // that was sent
  bool syncs_ = false;                                // it is not answered
  std::uint64_t taken_ = 0;                           // bytes of all that went to the store
  std::vector<Stream> held_up_;                       // until the store has taken something
  Stream last_stream_ = 0;
  std::string to_store_;
  std::string from_store_;
  tcpstore::Request request_;  // scratch
};

}  // namespace drun::store
