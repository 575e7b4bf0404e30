// This program's own file, for hosts that have none (--copy-self).
#pragma once

#include <string>

#include "base/file_descriptor.hpp"
#include "launcher/hosts/remote_command.hpp"

namespace drun::launcher {

// Reads the file once. These throw std::system_error if it cannot be read.
[[nodiscard]] hosts::SelfOffer self_offer();
[[nodiscard]] FileDescriptor open_self();
// "Linux x86_64", as uname -sm says it.
[[nodiscard]] std::string own_machine();

}  // namespace drun::launcher
