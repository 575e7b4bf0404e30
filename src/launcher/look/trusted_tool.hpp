// Programs of others that may run with drun's rights.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace drun::launcher {

// The program `name` in the folders of `path` ("/usr/bin:/bin"), without links; empty: there is
// none. One that somebody else could have put there is passed over: it must belong to root or to
// this process's user, nobody else may write to it, and not everybody to a folder above it.
[[nodiscard]] std::string find_trusted_tool(std::string_view name, std::string_view path);

}  // namespace drun::launcher
