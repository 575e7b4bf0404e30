// Whole small files, as those under /proc and in a cgroup.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace drun {

// Nothing if it cannot be read.
[[nodiscard]] std::optional<std::string> read_small_file(const std::string& path);

// One write. False if it was refused.
bool write_small_file(const std::string& path, std::string_view text);

}  // namespace drun
