// drun's own log on stderr, as the user wants it.
#pragma once

#include <string_view>

#include "launcher/options/options.hpp"

namespace drun::launcher {

// `name` begins each line: "drun". As log::configure().
void configure_log(const Options& options, std::string_view name);

}  // namespace drun::launcher
