#include "store/table/key_hash.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace drun::store {
namespace {

// Any will do; these are the digits of pi.
constexpr KeyHash::Secrets kSecrets{0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0};

// In memory of exactly their size, so that a sanitizer sees a byte too many.
std::size_t hash_of(std::string_view bytes, const KeyHash& hash) {
  const std::vector<char> exact(bytes.begin(), bytes.end());
  return hash(std::string_view(exact.data(), exact.size()));
}

TEST(KeyHashTest, EveryByteAndTheLengthCount) {
  const KeyHash hash(kSecrets);
  std::set<std::size_t> seen;
  std::size_t hashed = 0;
  for (std::size_t size = 0; size <= 70; ++size) {
    std::string key(size, '\0');
    seen.insert(hash_of(key, hash));
    ++hashed;
    for (char& byte : key) {
      for (const char value : {'\1', '\x80', '0', '9'}) {
        byte = value;
        seen.insert(hash_of(key, hash));
        ++hashed;
      }
      byte = '\0';
    }
  }
  EXPECT_EQ(seen.size(), hashed) << "no two of these collide in 64 bits";
}

TEST(KeyHashTest, IsTheSameWhereverTheKeyIs) {
  const KeyHash hash(kSecrets);
  const std::string text = std::string(16, 'x') + "/group/rank/12345";
  for (std::size_t at = 0; at < 16; ++at) {
    std::string moved = std::string(at, 'y') + "/group/rank/12345" + std::string(at, 'z');
    EXPECT_EQ(hash(std::string_view(moved).substr(at, text.size() - 16)),
              hash(std::string_view(text).substr(16)));
  }
}

TEST(KeyHashTest, DependsOnTheSecrets) {
  for (const std::string_view key : {"", "k", "/rank/1", "init/", "/a/key/of/more/than/16/bytes"}) {
    std::set<std::size_t> seen;
    for (std::uint64_t i = 0; i < 100; ++i)
      seen.insert(KeyHash({kSecrets[0] + i, kSecrets[1] * (2 * i + 1), kSecrets[2] ^ i})(key));
    EXPECT_EQ(seen.size(), 100U) << key;
  }
}

TEST(KeyHashTest, IsOfThisProcessWhereNoSecretsAreGiven) {
  EXPECT_EQ(KeyHash()("key"), KeyHash()("key"));
  EXPECT_NE(KeyHash()("key"), KeyHash(kSecrets)("key"));
}

// Numbered keys, as jobs have them, spread as random ones would: with as many buckets as keys the
// fullest has a dozen at most.
TEST(KeyHashTest, SpreadsNumberedKeys) {
  const KeyHash hash(kSecrets);
  constexpr std::size_t kKeys = 1 << 16;
  for (const std::string_view prefix :
       {"", "/rank/", "default_pg/0//cpu//0/rank_", "0123456789abcde"}) {
    for (const int shift : {0, 48}) {
      std::vector<int> buckets(kKeys);
      for (std::size_t i = 0; i < kKeys; ++i)
        ++buckets[hash(std::string(prefix) + std::to_string(i)) >> shift & (kKeys - 1)];
      EXPECT_LE(*std::max_element(buckets.begin(), buckets.end()), 12) << prefix;
      const auto empty = std::count(buckets.begin(), buckets.end(), 0);
      EXPECT_NEAR(static_cast<double>(empty) / kKeys, 0.368, 0.02) << prefix;  // 1/e
    }
  }
}

}  // namespace
}  // namespace drun::store
