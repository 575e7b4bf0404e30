// How long tests wait for what must come.
#pragma once

#include <chrono>

namespace drun::test {

// Long enough for a loaded machine under a sanitizer; nothing waits longer than it needs to.
inline constexpr std::chrono::milliseconds kPatience{60'000};

}  // namespace drun::test
