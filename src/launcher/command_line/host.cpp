// The real machine behind parse_options: the only part of it that does not come in as an argument.
#include <array>
#include <bit>
#include <cstddef>

#include "base/addresses.hpp"
#include "base/random_bytes.hpp"
#include "launcher/command_line/parse.hpp"

namespace drun::launcher {
namespace {

// A version 4 UUID, as torchrun names standalone jobs.
std::string random_uuid() {
  std::array<std::byte, 16> random{};
  fill_with_random_bytes(random);
  auto bytes = std::bit_cast<std::array<unsigned char, 16>>(random);
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0fU) | 0x40U);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3fU) | 0x80U);
  std::string result;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    if (i == 4 || i == 6 || i == 8 || i == 10) result += '-';
    result += kDigits[bytes[i] >> 4U];
    result += kDigits[bytes[i] & 15U];
  }
  return result;
}

}  // namespace

Host this_host() {
  Host result;
  result.fresh_id = random_uuid;
  result.host_name = own_host_name;
  result.place_workers = plan_placement;
  result.interface_address = [](const std::string& name) -> std::optional<std::string> {
    if (!numeric_addresses(name).empty()) return std::nullopt;
    return interface_address(name, own_interfaces());
  };
  return result;
}

}  // namespace drun::launcher
