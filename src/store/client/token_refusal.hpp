// What a client says of a server that does not have the client's token, or asks for one; the same
// of certificates.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "secure/tls_engine.hpp"
#include "store/protocol/control_protocol.hpp"

namespace drun::store {

// What a server says that has a token to a client that shows none; used likewise.
inline constexpr std::string_view kAsksForToken =
    "asks for a token: give the same DRUN_TOKEN or --token-file on every node";
inline constexpr std::string_view kAsksForCertificate =
    "asks for a certificate: give --tls-cert, --tls-key and --tls-ca on every node";

// The same of what a store answers in plain bytes; nullopt: it is about something else.
[[nodiscard]] constexpr std::optional<std::string_view> token_refusal(control::ErrorCode code) {
  if (code == control::ErrorCode::NeedsToken) return kAsksForToken;
  if (code == control::ErrorCode::NeedsCertificate) return kAsksForCertificate;
  return std::nullopt;
}

// Behind "the store at HOST:PORT ", for one line: what is wrong and what mends it.
[[nodiscard]] std::string token_refusal(secure::TlsEngine::Failure failure);

}  // namespace drun::store
