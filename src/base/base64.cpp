#include "base/base64.hpp"

#include <cstddef>
#include <cstdint>

namespace drun {
namespace {

// By hand: no library that drun links has it.
constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8U | (k < group.size() ? static_cast<unsigned char>(group[k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text.push_back(k <= group.size() ? kBase64Digits[bits >> (18 - 6 * k) & 63U] : '=');
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool padded = i + padding >= text.size();
    const auto digit = padded ? 0 : kBase64Digits.find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (const unsigned shift : {16U, 8U, 0U})
      bytes.push_back(static_cast<char>(bits >> shift & 255U));
    bits = 0;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace drun
