// What a child process finds out with a library that leaves threads and descriptors behind, or
// whose driver may never answer.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace drun {

// The text of `ask`, which runs in a child; nullopt: it had none, or the child gave none within
// `limit`. Call it before any thread exists.
[[nodiscard]] std::optional<std::string> answer_of_child(
    const std::function<std::optional<std::string>()>& ask, std::chrono::milliseconds limit);

}  // namespace drun
