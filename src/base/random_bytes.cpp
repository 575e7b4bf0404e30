#include "base/random_bytes.hpp"

#include <sys/random.h>

#include <cerrno>
#include <string_view>
#include <system_error>

namespace drun {

void fill_with_random_bytes(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::getrandom(bytes.data(), bytes.size(), 0);
    if (n < 0 && errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "getrandom");
    if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

std::uint32_t random_seed() {
  std::uint32_t seed = 0;
  fill_with_random_bytes(std::as_writable_bytes(std::span(&seed, 1)));
  return seed;
}

std::string random_name(std::size_t count) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string name(count, '\0');
  fill_with_random_bytes(std::as_writable_bytes(std::span(name)));
  for (char& letter : name)
    letter = kLetters[static_cast<unsigned char>(letter) % kLetters.size()];
  return name;
}

}  // namespace drun
