#include "launcher/backend/free_port.hpp"

#include <fstream>
#include <random>
#include <utility>

#include "base/bound_port.hpp"
#include "base/random_bytes.hpp"

namespace drun::launcher {

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
    if (FileDescriptor socket = bind_everywhere(static_cast<std::uint16_t>(port)))
      return HeldPort{std::move(socket), static_cast<std::uint16_t>(port)};
  }
  return Error(std::make_error_code(std::errc::address_in_use), "no free port on this machine");
}

}  // namespace drun::launcher
