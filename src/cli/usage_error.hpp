// What a user did wrong on a command line.
#pragma once

#include <stdexcept>

namespace drun::cli {

// One sentence that names the flag, the value and what is allowed.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace drun::cli
