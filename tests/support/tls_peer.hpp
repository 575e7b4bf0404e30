// The client's end of TLS with a token, over whatever carries the bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "secure/tls_context.hpp"
#include "secure/tls_engine.hpp"
#include "secure/token.hpp"

namespace drun::test {

inline const std::string kToken = "the-token-of-the-job-0123456789ab";
inline const std::string kOtherToken = "the-token-of-the-job-0123456789ac";

inline std::shared_ptr<const secure::TlsContext> tls_of(const std::string& token) {
  auto context = secure::TlsContext::of(secure::Token::from(token).value());
  EXPECT_TRUE(context) << context.error().what();
  return *context;
}

class TlsPeer {
 public:
  explicit TlsPeer(const std::string& token = kToken)
      : engine_(tls_of(token), secure::TlsEngine::Role::Client) {}

  // To be sent: what `plain` becomes, behind what the handshake asks for.
  std::string say(std::string_view plain = {}) {
    if (!plain.empty()) engine_.send(plain);
    return std::exchange(engine_.output(), {});
  }
  // What was received says.
  std::string hear(std::string_view bytes) {
    std::string plain;
    engine_.receive(bytes, plain);
    return plain;
  }
  [[nodiscard]] const secure::TlsEngine& engine() const { return engine_; }

 private:
  secure::TlsEngine engine_;
};

}  // namespace drun::test
