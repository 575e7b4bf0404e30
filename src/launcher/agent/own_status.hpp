// What this agent says of itself to drunctl health.
#pragma once

#include <string>

#include "launcher/agent/status_reporter.hpp"
#include "launcher/options/options.hpp"
#include "launcher/workers/worker_group.hpp"
#include "status/agent_status.hpp"

namespace drun::launcher {

// `joined`: the store knows this agent. `leaving`: its workers are gone for good.
[[nodiscard]] status::AgentStatus own_status(const Options& options, const std::string& host,
                                             const WorkerGroup& group,
                                             const StatusReporter& reporter, bool joined,
                                             bool leaving);

}  // namespace drun::launcher
