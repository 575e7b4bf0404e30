#include "drun/base/endpoint.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include "base/whole_number.hpp"

namespace drun {
namespace {

Error bad(std::string_view text, const std::string& why) {
  return Error(std::make_error_code(std::errc::invalid_argument),
               "'" + std::string(text) + "': " + why);
}

// Letters, digits and what host names, IPv4 and IPv6 addresses (with a %scope) are made of.
bool host_is_plausible(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return (std::isalnum(c) != 0) || c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
  });
}

bool is_ipv6(std::string_view text) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

// What is written as an address must be one: nobody has a name like that. Four numbers, and a
// single one, are left to the look-up: command lines in public have such placeholders.
std::string why_no_address(std::string_view host) {
  if (host.find(':') != std::string_view::npos)
    return is_ipv6(host.substr(0, host.find('%'))) ? "" : "is no IPv6 address";
  const bool name = host.find_first_not_of("0123456789.") != std::string_view::npos;
  const auto dots = std::count(host.begin(), host.end(), '.');
  const bool shortened = !name && (dots == 1 || dots == 2);
  return shortened ? "is no IPv4 address, which has four numbers" : "";
}

}  // namespace

Result<std::uint16_t> parse_port(std::string_view text) {
  if (const auto port = whole_number<std::uint16_t>(text)) return *port;
  return bad(text, "a port is a number from 0 to 65535");
}

Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port) {
  Endpoint result;
  result.port = default_port;
  std::string_view host = text;
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return bad(text, "the bracket is not closed");
    host = text.substr(1, close - 1);
    const auto rest = text.substr(close + 1);
    if (!rest.empty()) {
      if (rest.front() != ':') return bad(text, "expected ':port' after the bracket");
      port = rest.substr(1);
      has_port = true;
    }
  } else if (text.find(':') != std::string_view::npos && !is_ipv6(text)) {
    const auto colon = text.rfind(':');
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    has_port = true;
  }
  if (has_port) {
    const auto parsed = parse_port(port);
    if (!parsed) return bad(text, "a port is a number from 0 to 65535");
    result.port = *parsed;
  }
  if (!host_is_plausible(host)) return bad(text, "expected host, host:port or [IPv6]:port");
  if (const auto why = why_no_address(host); !why.empty())
    return bad(text, std::string(host) + " " + why);
  result.host = std::string(host);
  return result;
}

std::string to_string(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return (v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

}  // namespace drun
