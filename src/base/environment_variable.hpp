// A look into an environment that came in as an argument: nobody below main() calls getenv().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drun {

// The value of NAME in "NAME=value" entries: of the first, as getenv() has it. Nullopt: not set.
[[nodiscard]] std::optional<std::string> environment_variable(
    const std::vector<std::string>& environment, std::string_view name);

// Every entry of NAME goes.
void erase_variable(std::vector<std::string>& environment, std::string_view name);

// This process's environment as "NAME=value", for main().
[[nodiscard]] std::vector<std::string> own_environment();

}  // namespace drun
