// What one of several agents on this machine is told. Pure.
#pragma once

#include "drun/base/endpoint.hpp"
#include "launcher/options/options.hpp"

namespace drun::launcher {

// For agent number `node`; the store that all of them use serves at `store`, in their parent.
[[nodiscard]] Options node_options(const Options& options, int node, const Endpoint& store);

}  // namespace drun::launcher
