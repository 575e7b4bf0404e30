// A look into an environment that came in as an argument: nobody below main() calls getenv().
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drun {

// The value of NAME in "NAME=value" strings, as getenv gives it (the first); nullptr: not set.
// Points into `environment`.
[[nodiscard]] const char* variable(const std::vector<std::string>& environment,
                                   std::string_view name);

// This process's environment as "NAME=value", for main().
[[nodiscard]] std::vector<std::string> own_environment();

}  // namespace drun
