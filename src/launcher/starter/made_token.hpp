// The token that drun makes for a job whose agents it starts itself, if the user gives none.
#pragma once

#include <optional>

#include "launcher/options/options.hpp"
#include "secure/token.hpp"

namespace drun::launcher {

// Nullopt: none is to be made, or OpenSSL is not here, so that it may be missing there, too.
[[nodiscard]] std::optional<secure::Token> made_token(const Options& options);

}  // namespace drun::launcher
