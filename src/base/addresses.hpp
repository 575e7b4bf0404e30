// This machine's own addresses and names. Never asks a name server.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drun {

struct Interface {
  std::string name;                    // "eth0"
  std::vector<std::string> addresses;  // numeric, IPv4 before IPv6, link-local last
};

// As the system lists them. Throws std::system_error if it cannot tell.
[[nodiscard]] std::vector<Interface> own_interfaces();

// `text` as an address in canonical form, if it is one ("127.1" and names are not; brackets and a
// scope are accepted); or what "localhost" always means. Empty: a name that must be resolved.
[[nodiscard]] std::vector<std::string> numeric_addresses(std::string_view text);

// A numeric address, or "localhost", that leads every machine to itself.
[[nodiscard]] bool is_loopback_address(std::string_view text);

// A numeric address that one of this machine's interfaces has; all of 127.0.0.0/8 is. "0.0.0.0" and
// "::" are too.
[[nodiscard]] bool is_own_address(std::string_view address);
// The same, pure.
[[nodiscard]] bool is_own_address(std::string_view address,
                                  const std::vector<Interface>& interfaces);

// The address that others reach an interface by; nullopt: no such interface, or it has none.
[[nodiscard]] std::optional<std::string> interface_address(
    std::string_view name, const std::vector<Interface>& interfaces);

// gethostname(), never empty.
[[nodiscard]] std::string own_host_name();

}  // namespace drun
