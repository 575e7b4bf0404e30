// What a user did wrong on a command line.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace drun::cli {

// One sentence that names the flag, the value and what is allowed.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// 'text' for an error message: in quotes, control characters made visible, long ones cut.
[[nodiscard]] std::string quote(std::string_view text);

}  // namespace drun::cli
