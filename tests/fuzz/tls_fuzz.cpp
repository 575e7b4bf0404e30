// Fuzz target: the server's end of TLS, with a client that has the token, and somebody on the way
// between them.
//
// Input: u8 options (1: the client has another token), then steps. A step is u8: what happens, in
// its two lowest bits, and how many bytes of it. 0: bytes of the input go to the server in between;
// 1: the client's next ones, as they are; 2: the same, of which the first is changed by a bit that
// u8 chooses; 3: the client says something. What the server hears is what the client has said, in
// order, and without a proof of the token it hears nothing.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/fuzz.hpp"
#include "secure/tls_context.hpp"
#include "secure/tls_engine.hpp"
#include "secure/token.hpp"

namespace drun::fuzz {
namespace {

using secure::TlsContext;
using secure::TlsEngine;

std::shared_ptr<const TlsContext> context_of(const char* token) {
  auto context = TlsContext::of(secure::Token::from(token).value());
  require(static_cast<bool>(context), "OpenSSL is there");
  return std::move(*context);
}

// More than the longest record: what waits for an answer is a handshake's flight, or less.
constexpr std::size_t kMostOutput = 64 * 1024;

class Way {
 public:
  explicit Way(bool other)
      : client_(other ? wrong_ : right_, TlsEngine::Role::Client), other_token_(other) {}

  void insert(std::string_view bytes) { to_server(bytes, false); }
  void pass(std::size_t size) { to_server(take(size), true); }
  void change(std::size_t size, std::uint8_t bit) {
    std::string bytes = take(size);
    if (!bytes.empty())
      bytes.front() =
          static_cast<char>(static_cast<unsigned char>(bytes.front()) ^ (1U << (bit % 8)));
    to_server(bytes, false);
  }
  void say(std::size_t size) {
    if (!client_.is_open()) return pass(client_.output().size());
    const std::string text(size, static_cast<char>('a' + said_.size() % 26));
    client_.send(text);
    said_ += text;
  }
  void check() const {
    require(std::string_view(said_).starts_with(heard_), "it hears what the client says");
    if (other_token_ || !genuine_) require(!server_.is_open(), "nobody else is let in");
    if (server_.state() == TlsEngine::State::Handshake)
      require(heard_.empty(), "nothing is heard before the proof");
    require(server_.output().size() < kMostOutput, "little waits to be sent");
  }

 private:
  std::string take(std::size_t size) {
    std::string bytes = client_.output().substr(0, size);
    client_.output().erase(0, bytes.size());
    return bytes;
  }
  void to_server(std::string_view bytes, bool genuine) {
    genuine_ = genuine_ || genuine;
    if (server_.state() == TlsEngine::State::Failed) return;
    server_.receive(bytes, heard_);
    std::string ignored;
    client_.receive(std::exchange(server_.output(), {}), ignored);
  }

  static inline const std::shared_ptr<const TlsContext> right_ =
      context_of("0123456789abcdef0123456789abcdef");
  static inline const std::shared_ptr<const TlsContext> wrong_ =
      context_of("0123456789abcdef0123456789abcdeF");
  TlsEngine client_;
  TlsEngine server_{right_, TlsEngine::Role::Server};
  const bool other_token_;
  std::string said_;
  std::string heard_;
  bool genuine_ = false;  // something has come from the client
};

}  // namespace
}  // namespace drun::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drun::fuzz;
  Source source(as_text(data, size));
  Way way((source.u8() & 1) != 0);
  while (!source.empty()) {
    const std::uint8_t step = source.u8();
    const std::size_t amount = step < 252 ? step / 4 : 100'000;
    if (step % 4 == 0) way.insert(source.bytes(amount));
    if (step % 4 == 1) way.pass(amount);
    if (step % 4 == 2) way.change(amount, source.u8());
    if (step % 4 == 3) way.say(amount % 20'000);
    way.check();
  }
  return 0;
}
