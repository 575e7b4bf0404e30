#include "store/table/key_hash.hpp"

#include <span>

#include "base/random_bytes.hpp"

namespace drun::store {

const KeyHash::Secrets& KeyHash::process_secrets() {
  static const Secrets kSecrets = [] {
    Secrets random{};
    fill_with_random_bytes(std::as_writable_bytes(std::span(random)));
    return random;
  }();
  return kSecrets;
}

}  // namespace drun::store
