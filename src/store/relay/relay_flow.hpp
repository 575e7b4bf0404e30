// The bytes that a relay passes on between one client and its store, both ways, without the
// sockets. They are not looked into, but for the first ones: the control protocol, which the
// relay's token would open, is not for clients. What one end does not take is kept, and then the
// other end is not read. Pure, but for TLS's random numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "secure/tls_engine.hpp"

namespace drun::store {

class RelayFlow {
 public:
  enum class Side : std::uint8_t { Client, Store };
  enum class Fault : std::uint8_t {
    None,
    NoTcpStore,  // the client asks for drun's control protocol
    Token        // the store does not have the relay's token: token_failure() says more
  };

  // What is read at once, and kept of what comes from one end, but for a record of TLS or two.
  static constexpr std::size_t kAtOnce = 64 * 1024;

  // `tls` null: the store is spoken to plainly.
  explicit RelayFlow(std::shared_ptr<const secure::TlsContext> tls) : tls_(std::move(tls)) {}

  // What the client has said and is to hear already.
  void begin_with(std::string_view said, std::string_view heard);
  // The relay itself is the client, and may say what it likes.
  void trust_client() { looked_at_ = true; }

  // A connection to the store stands. Again after one that lost_store() told of. Throws
  // std::bad_alloc: as if it did not stand.
  void on_store();
  // It is gone: true if nothing has been said there yet, since neither has proved that it has the
  // token, so that another connection will do.
  [[nodiscard]] bool lost_store();

  // What has come from this side. There may be a fault() now.
  void take(Side from, std::string_view bytes);
  // Nothing more will.
  void end(Side from);
  // The client hears nothing more. What it has said still goes to the store.
  void lose_client();
  [[nodiscard]] Fault fault() const { return fault_; }
  [[nodiscard]] secure::TlsEngine::Failure token_failure() const { return engine_->failure(); }

  // Whether what this side says can be taken now.
  [[nodiscard]] bool wants(Side from) const;
  // What is to be sent there next; the caller takes what went off its front.
  [[nodiscard]] std::string_view output(Side to);
  void on_sent(Side to, std::size_t bytes);
  // All that the other side had to say has gone there: it is to hear of the end, once.
  [[nodiscard]] bool take_end(Side to);
  // Both have heard of the other's end.
  [[nodiscard]] bool is_over() const { return told_[0] && told_[1]; }
  // There is a store, which knows the token if there is one.
  [[nodiscard]] bool is_open() const { return has_store() && (!tls_ || engine_->is_open()); }
  // The client has gone before that, and nothing that it has said is left.
  [[nodiscard]] bool is_deserted() const {
    return ended_[index(Side::Client)] && to_store_.empty() && !ended_[index(Side::Store)] &&
           !is_open();
  }

 private:
  // Nothing is plain for a store that has the token.
  [[nodiscard]] bool has_store() const { return store_ && (!tls_ || engine_ != nullptr); }
  static constexpr std::size_t index(Side side) { return static_cast<std::size_t>(side); }
  void look_at_opening();
  void encrypt_some();
  static void consume(std::string& bytes, std::size_t size);

  const std::shared_ptr<const secure::TlsContext> tls_;
  std::unique_ptr<secure::TlsEngine> engine_;  // of the connection to the store
  std::string to_store_;                       // as the client has said it
  std::string to_client_;
  std::array<bool, 2> ended_{};  // by side: it says nothing more
  std::array<bool, 2> told_{};   // by side: it knows that of the other
  bool store_ = false;           // there is a connection to it
  bool looked_at_ = false;       // the client's first bytes are no control client's
  bool client_gone_ = false;
  Fault fault_ = Fault::None;
};

}  // namespace drun::store
