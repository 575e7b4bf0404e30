// What the lines of drun's own log begin with.
#pragma once

#include <string>

namespace drun::log {

// As given to configure(): "drun", "drun group 1". Any thread.
[[nodiscard]] std::string own_name();

}  // namespace drun::log
