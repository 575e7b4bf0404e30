#include "launcher/backend/free_port.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <fstream>
#include <random>
#include <utility>

#include "base/random_bytes.hpp"

namespace drun::launcher {
namespace {

// Nothing if the port is taken.
FileDescriptor bound_to(std::uint16_t port) {
  FileDescriptor v6(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (v6) {  // dual stack: taken on either family means taken
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(port);
    if (::bind(v6.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) v6.reset();
    return v6;
  }
  FileDescriptor v4(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  if (v4 && ::bind(v4.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) v4.reset();
  return v4;
}

}  // namespace

Result<HeldPort> hold_free_port() {
  unsigned first_ephemeral = 32768;
  unsigned last_ephemeral = 60999;
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  range >> first_ephemeral >> last_ephemeral;
  std::minstd_rand random(random_seed());
  std::uniform_int_distribution<unsigned> any_port(10'000, 65'000);
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    const unsigned port = any_port(random);
    const bool ephemeral = port >= first_ephemeral && port <= last_ephemeral;
    if (ephemeral && attempt < 9'000)
      continue;  // a range that leaves nothing else: take what is free
    if (FileDescriptor socket = bound_to(static_cast<std::uint16_t>(port)))
      return HeldPort{std::move(socket), static_cast<std::uint16_t>(port)};
  }
  return Error(std::make_error_code(std::errc::address_in_use), "no free port on this machine");
}

}  // namespace drun::launcher
