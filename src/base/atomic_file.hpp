// Writes a small file so that a reader sees all of it or nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"

namespace drun {

// A device or a pipe, or a name of something that is open already ("/dev/stderr").
[[nodiscard]] bool is_written_in_place(const std::string& path);

// Replaces `path`, or adds to what is_written_in_place(). An error names the path and the cause;
// nothing is left behind then. Does not wait for the reader of a named pipe to come, and not for
// long for one that has stalled.
[[nodiscard]] Status write_whole_file(const std::string& path, std::string_view content);

}  // namespace drun
