// Requests from a few bytes of a fuzzer's input, so that it need not find lengths that fit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "store/protocol/control_protocol.hpp"
#include "store/protocol/tcpstore_codec.hpp"

namespace drun::fuzz {

// Few keys, so that requests meet; some are prefixes of others.
[[nodiscard]] std::string_view take_key(Source& source);
[[nodiscard]] std::string_view take_value(Source& source);

// A request that the version has.
[[nodiscard]] store::tcpstore::Request take_request(Source& source, store::TcpStoreVersion version);

// A frame of the control protocol, header included. All sessions have the token `token`.
[[nodiscard]] std::string take_frame(Source& source, const store::control::Token& token);

// Frames that watch few keys very often, and one that writes the longest value to one of them.
[[nodiscard]] std::string take_flood(Source& source, std::size_t value_bytes);

}  // namespace drun::fuzz
