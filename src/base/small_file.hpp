// Whole small files, as those under /proc and in a cgroup.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"

namespace drun {

// Nothing if it cannot be read.
[[nodiscard]] std::optional<std::string> read_small_file(const std::string& path);
// Or the system's reason why it cannot be read, without its name; one of more than `most` bytes is
// an error, too.
[[nodiscard]] Result<std::string> read_small_file(const std::string& path, std::size_t most);

// One write. False if it was refused.
bool write_small_file(const std::string& path, std::string_view text);

}  // namespace drun
