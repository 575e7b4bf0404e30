#include "support/scarce_memory.hpp"

#include <cstdlib>
#include <new>

namespace drun::test {

std::atomic<std::size_t> too_large = 0;

}  // namespace drun::test

#ifndef DRUN_OWN_MEMORY_ONLY
void* operator new(std::size_t size) {
  void* memory = size == drun::test::too_large ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif
