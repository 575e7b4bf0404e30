// Where agents of the simulation are: machine N is 10.0.(N / 256).(N % 256), and agent N holds port
// 20000 + N.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "drun/base/endpoint.hpp"

namespace drun::simulation {

constexpr int kFirstPort = 20'000;

inline int machine_of(const Endpoint& endpoint) {
  const auto last = endpoint.host.rfind('.');
  const auto third = endpoint.host.rfind('.', last - 1);
  return 256 * std::atoi(endpoint.host.c_str() + third + 1) +
         std::atoi(endpoint.host.c_str() + last + 1);
}
inline int agent_of_port(std::uint16_t port) {
  return port - kFirstPort;
}
inline std::uint16_t port_of(int agent) {
  return static_cast<std::uint16_t>(kFirstPort + agent);
}

}  // namespace drun::simulation
