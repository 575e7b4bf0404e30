// A few values that a process shares with those that it forks afterwards.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace drun::launcher {

// `size` times T, all bytes zero at first. T holds nothing but lock-free atomics. The processes
// have a copy each of this object, and the memory in common.
template <typename T>
class SharedArray {
 public:
  // Throws std::system_error.
  explicit SharedArray(std::size_t size) : size_(size) {
    void* memory = ::mmap(nullptr, size_ * sizeof(T), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    values_ = static_cast<T*>(memory);
  }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;
  ~SharedArray() { ::munmap(values_, size_ * sizeof(T)); }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] T& operator[](std::size_t i) { return values_[i]; }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free &&
                std::atomic<std::uint64_t>::is_always_lock_free);

  std::size_t size_;
  T* values_;
};

}  // namespace drun::launcher
