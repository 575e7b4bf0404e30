// What an end on a host makes of the environment in which the launcher has started it. Pure.
#pragma once

#include <string>
#include <vector>

namespace drun::launcher {

// The address of this machine by which ssh has come; empty: it was not ssh.
[[nodiscard]] std::string address_reached_by(const std::vector<std::string>& environment);

// Of both; of a variable that is in both, the one of `over`.
[[nodiscard]] std::vector<std::string> merged_environment(const std::vector<std::string>& under,
                                                          const std::vector<std::string>& over);

}  // namespace drun::launcher
