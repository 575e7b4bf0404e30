#include "base/addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <variant>

namespace drun {
namespace {

using Address = std::variant<std::monostate, in_addr, in6_addr>;

// Without brackets and scope. An IPv4 address inside IPv6 (::ffff:1.2.3.4) is the IPv4 address.
Address parse(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  const std::string plain(text.substr(0, text.find('%')));
  in_addr v4{};
  if (::inet_pton(AF_INET, plain.c_str(), &v4) == 1) return v4;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, plain.c_str(), &v6) != 1) return {};
  if (!IN6_IS_ADDR_V4MAPPED(&v6)) return v6;
  std::memcpy(&v4, &v6.s6_addr[12], sizeof v4);
  return v4;
}

std::string text_of(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  if (const auto* v4 = std::get_if<in_addr>(&address)) {
    ::inet_ntop(AF_INET, v4, buffer.data(), buffer.size());
  } else if (const auto* v6 = std::get_if<in6_addr>(&address)) {
    ::inet_ntop(AF_INET6, v6, buffer.data(), buffer.size());
  }
  return buffer.data();
}

bool is_loopback(const Address& address) {
  if (const auto* v4 = std::get_if<in_addr>(&address)) return ntohl(v4->s_addr) >> 24U == 127;
  const auto* v6 = std::get_if<in6_addr>(&address);
  return v6 != nullptr && IN6_IS_ADDR_LOOPBACK(v6);
}

bool is_any(const Address& address) {
  if (const auto* v4 = std::get_if<in_addr>(&address)) return v4->s_addr == INADDR_ANY;
  const auto* v6 = std::get_if<in6_addr>(&address);
  return v6 != nullptr && IN6_IS_ADDR_UNSPECIFIED(v6);
}

// Orders addresses: those that others can use best come first.
int preference(const std::string& text) {
  const Address address = parse(text);
  if (std::holds_alternative<in_addr>(address)) return 0;
  const auto* v6 = std::get_if<in6_addr>(&address);
  return v6 != nullptr && IN6_IS_ADDR_LINKLOCAL(v6) ? 2 : 1;
}

// With the scope, without which a link-local address is of no use.
std::string text_of(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return text_of(Address(v4.sin_addr));
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  std::string text = text_of(Address(v6.sin6_addr));
  std::array<char, IF_NAMESIZE> name{};
  if (v6.sin6_scope_id != 0 && ::if_indextoname(v6.sin6_scope_id, name.data()) != nullptr) {
    text += "%" + std::string(name.data());
  }
  return text;
}

}  // namespace

std::vector<Interface> own_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    throw std::system_error(errno, std::generic_category(), "list the network interfaces");
  }
  std::vector<Interface> result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    auto found = std::find_if(result.begin(), result.end(), [&](const Interface& interface) {
      return interface.name == entry->ifa_name;
    });
    if (found == result.end()) found = result.insert(found, {entry->ifa_name, {}});
    if (entry->ifa_addr == nullptr) continue;
    const auto family = entry->ifa_addr->sa_family;
    if (family == AF_INET || family == AF_INET6) {
      found->addresses.push_back(text_of(*entry->ifa_addr));
    }
  }
  ::freeifaddrs(list);
  for (Interface& interface : result) {
    std::stable_sort(interface.addresses.begin(), interface.addresses.end(),
                     [](const auto& a, const auto& b) { return preference(a) < preference(b); });
  }
  return result;
}

std::vector<std::string> numeric_addresses(std::string_view text) {
  if (text == "localhost") return {"127.0.0.1"};
  const Address address = parse(text);
  if (std::holds_alternative<std::monostate>(address)) return {};
  std::string canonical = text_of(address);
  const auto scope = text.find('%');
  if (scope != std::string_view::npos && std::holds_alternative<in6_addr>(address)) {
    canonical += text.substr(scope, text.find(']') - scope);
  }
  return {canonical};
}

bool is_loopback_address(std::string_view text) {
  return text == "localhost" || is_loopback(parse(text));
}

bool is_own_address(std::string_view text, const std::vector<Interface>& interfaces) {
  const Address address = parse(text);
  if (std::holds_alternative<std::monostate>(address)) return false;
  if (is_loopback(address) || is_any(address)) return true;
  const std::string canonical = text_of(address);
  return std::any_of(interfaces.begin(), interfaces.end(), [&](const Interface& interface) {
    return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                       [&](const std::string& own) { return text_of(parse(own)) == canonical; });
  });
}

bool is_own_address(std::string_view address) {
  const Address parsed = parse(address);
  if (is_loopback(parsed) || is_any(parsed)) return true;  // without asking the system
  return is_own_address(address, own_interfaces());
}

std::optional<std::string> interface_address(std::string_view name,
                                             const std::vector<Interface>& interfaces) {
  for (const Interface& interface : interfaces) {
    if (interface.name == name && !interface.addresses.empty()) return interface.addresses.front();
  }
  return std::nullopt;
}

std::string own_host_name() {
  std::array<char, 256> buffer{};
  if (::gethostname(buffer.data(), buffer.size() - 1) != 0 || buffer[0] == '\0') return "localhost";
  return buffer.data();
}

}  // namespace drun
