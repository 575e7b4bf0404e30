// What a client says of a server that does not have the client's token, or asks for one.
#pragma once

#include <string>
#include <string_view>

#include "secure/tls_engine.hpp"

namespace drun::store {

// What a server says that has a token to a client that shows none; used likewise.
inline constexpr std::string_view kAsksForToken =
    "asks for a token: give the same DRUN_TOKEN or --token-file on every node";

// Behind "the store at HOST:PORT ", for one line: what is wrong and what mends it.
[[nodiscard]] std::string token_refusal(secure::TlsEngine::Failure failure);

}  // namespace drun::store
