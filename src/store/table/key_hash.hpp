// The hash of all maps and sets of keys in the server: short byte strings, by folded multiplication
// as in wyhash (https://github.com/wangyi-fudan/wyhash). Its secrets are random, new in every
// process: a peer that does not know them cannot prepare keys that collide, as it could for
// std::hash. It is no cryptographic hash: whoever can time the server well enough might find some.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "store/protocol/bytes.hpp"

namespace drun::store {

class KeyHash {
 public:
  using is_transparent = void;
  using Secrets = std::array<std::uint64_t, 3>;

  static const Secrets& process_secrets();

  KeyHash() : KeyHash(process_secrets()) {}
  explicit KeyHash(const Secrets& secrets) : secrets_(secrets) {}

  // Not noexcept: the standard library then keeps each key's hash beside it.
  std::size_t operator()(std::string_view key) const {
    const char* bytes = key.data();
    std::size_t left = key.size();
    std::uint64_t state = secrets_[0];
    for (; left > 16; left -= 16, bytes += 16)
      state = fold(load_at<std::uint64_t>(bytes) ^ secrets_[1],
                   load_at<std::uint64_t>(bytes + 8) ^ state);
    const Tail tail = last(bytes, left);
    state = fold(tail.first ^ secrets_[1], tail.second ^ state);
    return fold(state ^ secrets_[2], secrets_[1] ^ key.size());
  }

 private:
  struct Tail {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
  };

  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    __extension__ using Product = unsigned __int128;
    const Product product = static_cast<Product>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  // All of up to 16 bytes, some of them twice.
  static Tail last(const char* bytes, std::size_t size) {
    if (size >= 8) return {load_at<std::uint64_t>(bytes), load_at<std::uint64_t>(bytes + size - 8)};
    if (size >= 4) return {load_at<std::uint32_t>(bytes), load_at<std::uint32_t>(bytes + size - 4)};
    Tail tail;
    for (std::size_t i = 0; i < size; ++i)
      tail.first = tail.first << 8 | static_cast<unsigned char>(bytes[i]);
    return tail;
  }

  Secrets secrets_;
};

}  // namespace drun::store
