// What the fuzz targets share: each defines LLVMFuzzerTestOneInput().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace drun::fuzz {

// What must hold whatever the input is; else the fuzzer keeps the input.
inline void require(bool holds, const char* what,
                    std::source_location at = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u: %s\n", at.file_name(), static_cast<unsigned>(at.line()), what);
  std::abort();
}

// Shows both in hexadecimal if they differ.
inline void require_same(std::string_view a, std::string_view b, const char* what,
                         std::source_location at = std::source_location::current()) {
  if (a == b) return;
  for (const std::string_view bytes : {a, b}) {
    for (const char byte : bytes)
      std::fprintf(stderr, "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    std::fputc('\n', stderr);
  }
  require(false, what, at);
}

// Takes an input apart; zeros follow its end.
class Source {
 public:
  explicit Source(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }
  std::uint8_t u8() {
    const std::string_view taken = bytes(1);
    return taken.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(taken[0]);
  }
  std::uint16_t u16() {
    const unsigned low = u8();
    return static_cast<std::uint16_t>(low | (static_cast<unsigned>(u8()) << 8));
  }
  std::string_view bytes(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() { return bytes(rest_.size()); }

 private:
  std::string_view rest_;
};

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Cuts bytes at places that `seed` decides; 0: not at all. Calls take(piece) in order.
template <typename Take>
void in_pieces(std::string_view bytes, std::uint8_t seed, Take take) {
  std::uint32_t random = seed;
  while (!bytes.empty()) {
    random = random * 1664525U + 1013904223U;
    const std::size_t longest = seed % 4 == 1 ? 1 : seed % 4 == 2 ? 7 : 64;
    const std::size_t size = seed == 0 ? bytes.size() : 1 + (random >> 16) % longest;
    take(bytes.substr(0, size));
    bytes.remove_prefix(size < bytes.size() ? size : bytes.size());
  }
}

}  // namespace drun::fuzz
