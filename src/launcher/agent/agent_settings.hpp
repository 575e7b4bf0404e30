// The settings of the agent's parts, derived from the options. Nothing here waits or decides.
#pragma once

#include <chrono>
#include <string>

#include "launcher/backend/node_identity.hpp"
#include "launcher/options/options.hpp"
#include "launcher/output/output.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// Whether somebody is told, without having to ask, what the workers have used.
[[nodiscard]] bool tells_usage(const Options& options);

[[nodiscard]] OutputOptions output_options(const Options& options, const std::string& host_name);

// `join_timeout`: what is left of it.
[[nodiscard]] rendezvous::Config rendezvous_config(const Options& options, const NodeIdentity& node,
                                                   std::chrono::milliseconds join_timeout);

}  // namespace drun::launcher
