// What a host's name means on this machine.
#pragma once

#include <string>

namespace drun::launcher {

// It has an address here by which others may reach it, not only this machine itself. Asks a name
// server if need be, and waits for it.
[[nodiscard]] bool leads_others(const std::string& name);

}  // namespace drun::launcher
