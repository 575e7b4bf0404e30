#include "cli/usage_error.hpp"

namespace drun::cli {

std::string quote(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      result += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 15U]};
    } else {
      result += c;
    }
  }
  return result + (text.size() > kLongest ? "...'" : "'");
}

}  // namespace drun::cli
