// The client's end of one TCPStore connection as a state machine: calls go in and become bytes to
// send; bytes that arrive become outcomes. No socket, no clock, no thread.
//
// Requests are pipelined: replies carry no number and come in the order of the requests. Two things
// hold up what was called later: a request that may be answered late (WAIT, BARRIER), because its
// reply would overtake or be overtaken, and a call of several requests until its last one is sent.
//
// What ends the connection: a request whose reply is late (a later reply would be taken for it),
// unless it is a wait that can be cancelled; bytes that make no sense; the network.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "drun/store/client.hpp"
#include "store/client/client_calls.hpp"
#include "store/protocol/tcpstore_codec.hpp"

namespace drun::store {

class ClientFsm {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Milliseconds = std::chrono::milliseconds;
  using Finished = std::function<void(Result<tcpstore::Reply>)>;
  // Of a call that is over: call finished(result).
  struct Outcome {
    Finished finished;
    Result<tcpstore::Reply> result;
  };

  // How long a server may take for the answer to a cancelled wait.
  static constexpr Milliseconds kCancelLimit{5000};

  ClientFsm(Endpoint endpoint, TcpStoreVersion version, std::size_t max_value_bytes);

  // Each call has exactly one outcome, at the latest when its time is over; in the order of the
  // calls, but for those that end without having been sent.
  void start(ClientCall call, Milliseconds limit, Time now, Finished finished);
  // What is to be sent; how much of its front has been.
  [[nodiscard]] std::string_view output() const;
  void on_sent(std::size_t bytes);
  void on_received(std::string_view bytes);
  // The connection is over, for this reason (empty: there never was one).
  void on_closed(const Error& cause);
  // Hear what has arrived first: then a late call of this program is not a late answer.
  void on_time(Time now);
  // When on_time() has something to do, or earlier.
  [[nodiscard]] std::optional<Time> next_deadline() const;
  [[nodiscard]] std::vector<Outcome> take_outcomes();

  // False: close the socket.
  [[nodiscard]] bool open() const { return open_; }
  [[nodiscard]] bool idle() const { return calls_.empty(); }
  [[nodiscard]] TcpStoreVersion version() const { return version_; }

 private:
  // A call under way.
  struct Active {
    ClientCall call;
    Finished finished;
    Time deadline;
    Milliseconds limit{};
    std::size_t step = 0;
    bool sent = false;          // the step's bytes are output
    std::uint64_t sent_at = 0;  // how many bytes are out when the last of them is
    bool cancelling = false;    // of a wait: its time is over, the store has been told
    bool extended = false;      // its wait ended in time: the step after it may take longer
    bool released = false;      // ... and it was released before it heard that

    [[nodiscard]] const ClientStep& now() const { return call.steps[step]; }
    [[nodiscard]] bool at_last_step() const { return step + 1 == call.steps.size(); }
  };

  void append(std::string bytes);
  void pump();
  void settle();
  void advance();
  void on_reply(tcpstore::Reply reply);
  bool on_wait_reply(std::int64_t byte);
  void finish_front(Result<tcpstore::Reply> result);
  void break_off(std::size_t index, const Error& cause);
  [[nodiscard]] std::string where(const ClientCall& call, const ClientStep& step) const;
  [[nodiscard]] Error late(const Active& active) const;
  [[nodiscard]] Error closed(const ClientCall& call) const;

  Endpoint endpoint_;
  TcpStoreVersion version_;
  std::size_t max_value_bytes_;
  std::deque<Active> calls_;
  std::size_t unsent_ = 0;  // of calls_: the first that has steps left to send
  std::vector<Outcome> outcomes_;
  std::string output_;
  std::size_t output_begin_ = 0;
  std::uint64_t handed_out_ = 0;  // bytes that were ever output
  std::uint64_t sent_ = 0;        // of them
  std::optional<tcpstore::ReplyReader> reader_;
  std::string input_;              // the beginning of what the reader cannot take yet
  Time next_check_ = Time::max();  // no deadline is earlier
  bool open_ = true;
  std::string why_closed_;
};

}  // namespace drun::store
