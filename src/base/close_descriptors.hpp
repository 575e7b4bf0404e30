// For a process that was forked: what it must not keep open.
#pragma once

#include <span>

namespace drun {

// Closes every descriptor from `first` on but `kept`, which are ascending and not below it. Takes
// no memory, so that it may run in a forked child of a program with threads.
void close_descriptors(int first, std::span<const int> kept);

}  // namespace drun
