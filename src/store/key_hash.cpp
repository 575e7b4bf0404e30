#include "store/key_hash.hpp"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace drun::store {

const KeyHash::Secrets& KeyHash::process_secrets() {
  static const Secrets secrets = [] {
    Secrets random{};
    if (::getrandom(random.data(), sizeof random, 0) != static_cast<ssize_t>(sizeof random))
      throw std::system_error(errno, std::generic_category(), "getrandom");
    return random;
  }();
  return secrets;
}

}  // namespace drun::store
