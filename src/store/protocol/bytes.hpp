// Little-endian integers in byte strings: what both protocols and the snapshot file are made of.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace drun::store {

static_assert(std::endian::native == std::endian::little,
              "load() and append() copy integers as they are in memory");

// The integer in the first sizeof(T) bytes from `bytes` on.
template <typename T>
[[nodiscard]] T load_at(const char* bytes) {
  static_assert(std::is_integral_v<T>);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// The integer at the front of `bytes`, which holds at least sizeof(T) of them.
template <typename T>
[[nodiscard]] T load(std::string_view bytes) {
  return load_at<T>(bytes.data());
}

template <typename T>
void append(std::string& out, T value) {
  static_assert(std::is_integral_v<T>);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

// Takes values off the front of a byte string. After the first that does not fit, ok() is false and
// everything taken is zero or empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T take() {
    const std::string_view taken = take_bytes(sizeof(T));
    return ok_ ? load<T>(taken) : T{};
  }
  std::string_view take_bytes(std::size_t size) {
    if (!ok_ || rest_.size() < size) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  void fail() { ok_ = false; }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace drun::store
