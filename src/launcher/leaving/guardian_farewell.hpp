// What the guardian says for an agent that was killed, in the words of the store's link.
#pragma once

#include "launcher/backend/backend_link.hpp"
#include "launcher/process/farewell.hpp"

namespace drun::launcher {

[[nodiscard]] process::Farewell guardian_farewell(Farewells farewells);

}  // namespace drun::launcher
