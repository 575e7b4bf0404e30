#include "cli/usage_error.hpp"

#include "base/hex.hpp"

namespace drun::cli {

std::string quote(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      append_hex(result, std::string_view(&c, 1), "\\x");
    } else {
      result += c;
    }
  }
  return result + (text.size() > kLongest ? "...'" : "'");
}

}  // namespace drun::cli
