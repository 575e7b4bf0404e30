#include "launcher/starter/name_lookup.hpp"

#include <algorithm>

#include "base/addresses.hpp"
#include "base/tcp_calls.hpp"

namespace drun::launcher {

bool leads_others(const std::string& name) {
  const auto addresses = look_up(name);
  return std::any_of(addresses.begin(), addresses.end(),
                     [](const std::string& each) { return !is_loopback_address(each); });
}

}  // namespace drun::launcher
