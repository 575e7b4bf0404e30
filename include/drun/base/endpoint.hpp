// A host and a port as users write them: "host:29500", "10.0.0.1", "[::1]:29500", "::1:29500".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"

namespace drun {

struct Endpoint {
  std::string host;        // as given, without brackets; never looked up here
  std::uint16_t port = 0;  // 0: not given, or any free port

  bool operator==(const Endpoint&) const = default;
};

// An IPv6 address needs no brackets if it cannot be misread: "::1" has no port, "::1:29500" has
// one (a group holds at most four digits). A missing port becomes `default_port`. The error names
// the text and what is wrong with it.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port);

// A decimal port number 0..65535, nothing else around it.
[[nodiscard]] Result<std::uint16_t> parse_port(std::string_view text);

// "host:port", with brackets around an IPv6 address.
[[nodiscard]] std::string to_string(const Endpoint& endpoint);

}  // namespace drun
