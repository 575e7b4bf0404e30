// The control client's decisions: what to send, when to connect, what to tell the caller. Bytes and
// the time go in, wishes and events come out; no socket and no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drun/store/control_client.hpp"
#include "store/client/backoff.hpp"
#include "store/protocol/control_protocol.hpp"

namespace drun::store {

class ControlFsm {
 public:
  using Time = std::chrono::steady_clock::time_point;

  ControlFsm(ControlOptions options, std::uint32_t seed);

  // The caller's.
  void open(Time now);
  void watch(std::uint32_t watch, std::string key, bool prefix);
  void unwatch(std::uint32_t watch);
  void commit(std::uint64_t request, ControlTransaction transaction);
  void vote(const Place& place, Time now);
  void go_to(Endpoint endpoint, Time now, bool founds = true);
  void close(Time now);

  // The network's. `cause` is a bare one ("Connection refused"); `refused`: nobody listens there.
  void on_connected(Time now);
  void on_connect_failed(const std::string& cause, Time now, bool refused = false);
  void on_received(std::string_view bytes, Time now);
  void on_disconnected(const std::string& cause, Time now);  // not asked for
  // What answers does not have the token, or asks for one: `cause` follows "the store at ... ".
  void on_refused(const std::string& cause, Time now);

  // At or after next_deadline().
  void on_time(Time now);
  [[nodiscard]] std::optional<Time> next_deadline() const;

  // The connection that should exist now: none, or the one of this number (a new number: drop the
  // old connection, make a new one, call on_connected() or on_connect_failed()).
  [[nodiscard]] std::optional<std::uint64_t> wanted_connection() const;
  // There was a session, and there is no connection that has it now: it is being got back.
  [[nodiscard]] bool is_reconnecting() const;
  // Where the wanted connection goes.
  [[nodiscard]] const Endpoint& endpoint() const { return options_.endpoint; }
  // To be sent now, when the caller knows of all events: a call is told before it is confirmed.
  [[nodiscard]] std::string take_output(Time now);
  [[nodiscard]] std::vector<ControlEvent> take_events();

  // What ends the present session when it is sent over a new connection; empty: there is none.
  [[nodiscard]] std::string farewell(std::string_view sign = {}) const;

  // What tells a store that this client has gone, with all that counts of it; empty: nothing does.
  [[nodiscard]] std::string proof_of_death() const;

  [[nodiscard]] const std::string& last_error() const { return last_error_; }

 private:
  enum class Phase { Idle, Connecting, Handshake, Up, Pausing, Stranded, Closing, Over };
  enum class HandshakeStep { AwaitsWelcome, AwaitsSession };
  struct Watch {
    std::string key;
    bool prefix = false;
    std::uint64_t request = 0;  // of this connection; 0: not sent on it yet
  };
  using Queued = std::pair<std::uint64_t, ControlTransaction>;

  template <typename Message>
  std::uint64_t send(const Message& message);
  void send_open_session(Time now);
  // The first store may be of a version that cannot be told which job this is about; what succeeds
  // one is not.
  [[nodiscard]] bool asks_after_welcome() const { return !options_.job.empty() && !has_moved_; }
  // Whether the store is asked how old its majority is.
  [[nodiscard]] bool votes() const { return !options_.job.empty() && version_ >= 2; }
  void send_heartbeat(Time now);
  void on_pulsed(std::uint64_t request, const control::Pulsed& pulsed, Time now);
  // Of a store that this client may go to.
  [[nodiscard]] std::uint64_t least_generation() const;
  // False: the store is older than one that this client has been called by.
  bool accept(const control::Pulsed& pulsed, Time now);
  void renewed(Time sent);
  [[nodiscard]] std::chrono::milliseconds heartbeat_interval() const;
  [[nodiscard]] std::chrono::milliseconds short_attempt() const;
  void send_watch(std::uint32_t name, Watch& watch);
  void send_commit(const Queued& queued);
  void connect(Time now);
  void on_handshake_reply(const control::Reply& reply, Time now);
  void session_ready(ControlState state, Time now);
  void handle(std::uint64_t request, const control::Reply& reply, Time now);
  void commit_answered(std::uint64_t request, ControlOutcome outcome, std::string detail = {});
  void rejected(std::uint64_t request, std::string detail);
  void answered_error(std::uint64_t request, const control::Error& error, Time now);
  bool first_bytes_fit() const;

  // When the store should have been heard from at the latest.
  [[nodiscard]] Time answer_due() const;

  // The attempt or the connection ended; `silent`: nothing was heard for so long.
  void lost(const std::string& cause, Time now, std::chrono::milliseconds silent = {},
            bool refused = false);
  void strand(ControlLink link);
  void on_moved(const control::Moved& moved, Time now);
  void drop_connection();
  void forget_commits();
  void fail(std::string detail);
  void over(ControlState state, std::string detail);
  [[nodiscard]] std::string store() const;

  ControlOptions options_;
  Backoff backoff_;
  Phase phase_ = Phase::Idle;
  HandshakeStep handshake_ = HandshakeStep::AwaitsWelcome;
  std::uint64_t connection_ = 0;
  bool had_session_ = false;  // of this client, ever: decides between first connect and reconnect
  std::optional<control::ResumeSession> session_;  // to resume
  std::chrono::milliseconds time_to_live_;         // as granted
  std::size_t longest_frame_ = SIZE_MAX;           // that the store takes
  std::size_t keys_per_request_ = 0;               // the same
  int handshakes_refused_ = 0;                     // closed in the handshake, in a row
  std::uint16_t version_ = 1;                      // of the protocol
  std::uint64_t generation_;                       // the highest that has called or welcomed it
  bool has_moved_ = false;                         // to a store that may not be the first
  bool visiting_ = false;                          // on the way to another store
  bool told_refusal_ = false;                      // since the break
  bool founds_ = true;                             // a founder's place counts where it is

  Time started_;         // trying to connect since
  Time give_up_;         // when not up
  Time phase_deadline_;  // of Handshake, Pausing, Closing
  Time next_heartbeat_;
  std::optional<Time> heartbeat_sent_;  // and nothing was heard since
  // The requests up to this number were sent then, and are not all answered; answers come in order.
  std::deque<std::pair<std::uint64_t, Time>> unanswered_;
  Voter voter_;
  std::chrono::milliseconds unsettled_pause_{0};  // until it asks again whether its vote is settled
  std::map<std::uint64_t, Time> pulses_;          // not answered: when they were sent
  Time last_heard_;
  std::optional<Time> confirmed_;  // the last answer to a pulse, or call
  // It has confirmed answers in this session without a gap since then. None: nullopt.
  std::optional<Time> counts_from_;
  Time session_asked_;   // when the handshake's last request for a session was sent
  Time renewed_;         // as told last
  Time majority_known_;  // to be with its store; at first: its first session
  ElectorateId told_settled_;

  std::map<std::uint32_t, Watch> watches_;
  std::deque<Queued> queued_;                                // transactions not sent yet
  std::map<std::uint64_t, std::uint64_t> commits_;           // our number -> the caller's
  std::map<std::uint64_t, std::uint32_t> watch_of_request_;  // our number -> the caller's
  std::uint64_t next_request_ = 1;
  std::uint64_t goodbye_request_ = 0;

  std::string input_;
  std::string output_;
  std::vector<ControlEvent> events_;
  std::string last_error_;
};

template <typename Message>
std::uint64_t ControlFsm::send(const Message& message) {
  const std::uint64_t request = next_request_++;
  control::encode(output_, request, control::Request(message));
  return request;
}

}  // namespace drun::store
