// One end of a TLS connection without its socket: bytes in, bytes out. Pure, but for the random
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "secure/tls_context.hpp"

// OpenSSL's.
struct ssl_st;
struct bio_st;

namespace drun::secure {

// Of the first byte of what a client of TLS sends.
inline constexpr char kTlsHello = 0x16;
// What a server that has no token answers to a client of TLS: the alert "unknown PSK identity".
inline constexpr std::string_view kNoTokenAnswer{"\x15\x03\x03\x00\x02\x02\x73", 7};

class TlsEngine {
 public:
  enum class Role : std::uint8_t { Client, Server };
  enum class State : std::uint8_t {
    Handshake,
    Open,   // the other side has proved that it has the token
    Ended,  // it has said that nothing more comes of it: what does is thrown away
    Failed  // see failure(); output() may hold a last word for the other side
  };
  enum class Failure : std::uint8_t {
    None,
    NotTls,      // the other side does not speak TLS
    NoToken,     // it says that it has none
    OtherToken,  // it has another one
    Stranger,    // its handshake is not drun's
    Broken,      // bytes on the way were changed or lost, after the handshake
    // Of two with certificates:
    NoCertificate,  // it has none, and perhaps a token instead
    Untrusted,      // the authorities do not vouch for its certificate
    Expired,        // its certificate has expired, or is not valid yet
    Unfit,          // its certificate is for another use
    Refused         // it does not accept this side's certificate
  };

  // Until the handshake is done no more than these are taken from the other side; the latter with
  // certificates, which come in chains.
  static constexpr std::size_t kHandshakeBytes = 8 * 1024;
  static constexpr std::size_t kCertifiedHandshakeBytes = 32 * 1024;
  // Beyond what is being received, plaintext may come of bytes that came earlier.
  static constexpr std::size_t kHeldBack = 17 * 1024;

  // A client has its first bytes in output() at once.
  TlsEngine(std::shared_ptr<const TlsContext> context, Role role);
  TlsEngine(const TlsEngine&) = delete;
  TlsEngine& operator=(const TlsEngine&) = delete;
  ~TlsEngine();

  // What came from the other side; what it says is appended to `plain`, in whole records.
  void receive(std::string_view bytes, std::string& plain);
  // To be said. Precondition: Open.
  void send(std::string_view plain);
  // What is to be sent; the sender takes what went off the front.
  [[nodiscard]] std::string& output() { return output_; }
  [[nodiscard]] const std::string& output() const { return output_; }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool is_open() const { return state_ == State::Open; }
  [[nodiscard]] Failure failure() const { return failure_; }
  // Of a server: the job whose token the other side has. Empty: it has this side's own.
  // Precondition: is_open().
  [[nodiscard]] const std::string& job() const { return job_; }

 private:
  void take(std::string_view bytes, std::string& plain);
  void go_on(std::string& plain);
  void fail(Failure failure);
  [[nodiscard]] Failure reason() const;
  [[nodiscard]] Failure reason_with_certificates() const;
  [[nodiscard]] bool is_proven() const;
  void collect();

  std::shared_ptr<const TlsContext> context_;
  const TlsLibrary& library_;
  ssl_st* ssl_;
  bio_st* from_network_;  // ssl_'s
  bio_st* to_network_;    // likewise
  std::string output_;
  std::string job_;           // that the other side says it is of
  std::size_t received_ = 0;  // in the handshake
  bool heard_ = false;        // plaintext has come
  const Role role_;
  State state_ = State::Handshake;
  Failure failure_ = Failure::None;
};

}  // namespace drun::secure
