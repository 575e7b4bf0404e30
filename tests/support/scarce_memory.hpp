// Memory that is not there when a test wants it so. A program that has this source has its
// operators new and delete.
#pragma once

#include <atomic>
#include <cstddef>

namespace drun::test {

// ThreadSanitizer has operators of its own, which cannot be replaced.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DRUN_OWN_MEMORY_ONLY
#endif
#endif
#ifdef DRUN_OWN_MEMORY_ONLY
inline constexpr bool kHasScarceMemory = false;
#else
inline constexpr bool kHasScarceMemory = true;
#endif

// Objects of this size find no memory; 0: all do.
extern std::atomic<std::size_t> too_large;

}  // namespace drun::test
