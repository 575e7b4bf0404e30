// What this agent says of itself to drunctl health.
#pragma once

#include <string>

#include "launcher/agent/participant_driver.hpp"
#include "launcher/options/options.hpp"
#include "launcher/telling/status_reporter.hpp"
#include "launcher/workers/worker_supervisor.hpp"
#include "status/agent_status.hpp"

namespace drun::launcher {

[[nodiscard]] status::AgentStatus own_status(const Options& options, const std::string& host,
                                             const WorkerSupervisor& workers,
                                             const StatusReporter& reporter,
                                             const ParticipantDriver& participant);

}  // namespace drun::launcher
