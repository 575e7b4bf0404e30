// How long tests wait for what must come.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace drun::test {

// Long enough for a loaded machine under a sanitizer; nothing waits longer than it needs to.
inline constexpr std::chrono::milliseconds kPatience{60'000};

// Asks until the answer is yes (true) or `patience` is over (false). For what nothing announces.
[[nodiscard]] inline bool eventually(const std::function<bool()>& condition,
                                     std::chrono::milliseconds patience = kPatience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return condition();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace drun::test
