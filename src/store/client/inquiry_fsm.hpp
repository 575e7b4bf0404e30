// Asks the server at one endpoint again and again where a job's store is, and tells it what this
// program knows of that. The decisions: bytes and the time go in, wishes and answers come out; no
// socket and no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "drun/base/endpoint.hpp"
#include "secure/tls_context.hpp"
#include "store/protocol/control_protocol.hpp"

namespace drun::store {

// What a server has said.
struct Whereabouts {
  enum class Kind {
    Unknown,   // nothing yet
    NoAnswer,  // `cause` says why
    Waits,     // it serves nobody, and knows of no store
    Here,      // it is the job's store
    Sought,    // the job has lost its store, of that generation, and looks for another
    There      // the job's store is at `place`
  };

  Kind kind = Kind::Unknown;
  std::string cause{};
  std::uint64_t generation = 0;  // of the store
  Endpoint place{};              // a numeric address

  bool operator==(const Whereabouts&) const = default;
};

// What this program knows.
struct StoreNews {
  std::uint64_t generation = 0;  // 0: nothing
  std::uint16_t port = 0;        // of the store; 0: it was lost
  // The store's, as others reach it. Empty: the store is on this machine; the server uses the
  // address that this connection came from.
  std::string address{};

  bool operator==(const StoreNews&) const = default;
};

class InquiryFsm {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::milliseconds;

  struct Options {
    std::string job;
    std::uint64_t founders = 0;                       // control::Find
    Duration period{1'000};                           // between two questions
    Duration retry{250};                              // until the next attempt to connect
    Duration connecting{1'000};                       // how long one may take, and
    Duration patience{2'000};                         // an answer
    std::shared_ptr<const secure::TlsContext> tls{};  // ControlOptions
  };

  explicit InquiryFsm(Options options) : options_(std::move(options)) {}

  // Asks from now on.
  void start(Time now);
  // What it is told with each question, and at once.
  void tell(StoreNews news, Time now);

  // The network's. `local`, `peer`: the addresses of the connection's ends.
  void on_connected(std::string local, std::string_view peer, Time now);
  void on_connect_failed(const std::string& cause, Time now);
  void on_received(std::string_view bytes, Time now);
  void on_disconnected(const std::string& cause, Time now);

  // At or after next_deadline().
  void on_time(Time now);
  [[nodiscard]] std::optional<Time> next_deadline() const;

  // The connection that should exist now, by number, as ControlFsm has it.
  [[nodiscard]] std::optional<std::uint64_t> wanted_connection() const;
  [[nodiscard]] std::string take_output();
  // The last one. Forgotten when the server cannot be asked any more.
  [[nodiscard]] const Whereabouts& answer() const { return answer_; }

 private:
  enum class Phase { Idle, Connecting, Connected, Resting };

  void connect(Time now);
  void ask(Time now);
  void rest(std::string cause, Time now);
  void on_reply(const control::Reply& reply, Time now);

  const Options options_;
  StoreNews news_;
  Phase phase_ = Phase::Idle;
  std::uint64_t connection_ = 0;
  Time due_;  // the end of an attempt, of a rest or of the wait for an answer; the next question
  bool asked_ = false;          // and not answered
  bool is_to_be_told_ = false;  // what it has not been
  bool peer_is_loopback_ = false;
  std::string local_;
  std::uint64_t next_request_ = 1;
  std::string input_;
  std::string output_;
  Whereabouts answer_;
};

}  // namespace drun::store
