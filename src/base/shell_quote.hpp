// Text that a user may paste into a shell.
#pragma once

#include <string>
#include <string_view>

namespace drun {

// `text` as one word of a POSIX shell.
[[nodiscard]] std::string shell_quoted(std::string_view text);

}  // namespace drun
