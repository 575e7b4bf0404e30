// What the options mean for the connection to the store.
#pragma once

#include <chrono>

#include "drun/base/endpoint.hpp"
#include "drun/store/control_client.hpp"
#include "launcher/options/options.hpp"

namespace drun::launcher {

// How long this agent goes on without the store before it stops its workers.
[[nodiscard]] std::chrono::milliseconds keep_alive(const Options& options);

// For the connection to the store at `endpoint`, which must come about within `limit`.
[[nodiscard]] store::ControlOptions control_options(const Options& options,
                                                    const Endpoint& endpoint,
                                                    std::chrono::milliseconds limit);

}  // namespace drun::launcher
