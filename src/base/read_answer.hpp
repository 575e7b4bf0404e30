// What a child or a peer says, to its end.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "drun/base/result.hpp"

namespace drun {

// All that is read from `fd` until its other end is closed. The error: the deadline came first
// (std::errc::timed_out, "it gives no answer"), there are more than `most` bytes
// (std::errc::message_size, "its answer is too long"), or why it cannot be read.
[[nodiscard]] Result<std::string> read_answer(int fd, std::size_t most,
                                              std::chrono::steady_clock::time_point deadline);

}  // namespace drun
