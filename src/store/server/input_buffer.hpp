// The bytes of a connection that wait for the rest of their request. Empty, it holds no memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace drun::store {

class InputBuffer {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::string_view view() const { return {bytes_.get(), size_}; }

  // Room behind the bytes: room() bytes at tail(). What was put there counts after grow().
  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    auto bytes = std::make_unique_for_overwrite<char[]>(capacity);
    if (size_ > 0) std::memcpy(bytes.get(), bytes_.get(), size_);
    bytes_ = std::move(bytes);
    capacity_ = capacity;
  }
  [[nodiscard]] char* tail() { return bytes_.get() + size_; }
  [[nodiscard]] std::size_t room() const { return capacity_ - size_; }
  void grow(std::size_t bytes) { size_ += bytes; }

  void assign(std::string_view bytes) {
    clear();
    if (bytes.empty()) return;
    reserve(bytes.size());
    std::memcpy(bytes_.get(), bytes.data(), bytes.size());
    size_ = bytes.size();
  }
  // Takes `bytes` off the front. Room that the rest would leave mostly empty is given back.
  void consume(std::size_t bytes) {
    if (bytes == size_) return clear();
    if (bytes == 0) return;
    std::memmove(bytes_.get(), bytes_.get() + bytes, size_ - bytes);
    size_ -= bytes;
  }
  void clear() {
    bytes_.reset();
    size_ = 0;
    capacity_ = 0;
  }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace drun::store
