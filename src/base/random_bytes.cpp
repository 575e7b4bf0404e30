#include "base/random_bytes.hpp"

#include <sys/random.h>

#include <cerrno>
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

}  // namespace drun
