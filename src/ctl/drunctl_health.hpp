// drunctl health: whether the agents on this host live, and run their workers.
#pragma once

#include <string>
#include <vector>

#include "ctl/drunctl.hpp"
#include "drun/base/result.hpp"
#include "status/agent_status.hpp"

namespace drun::ctl {

// Asks the agents of this host; kOk or kNo.
int health(const CtlOptions& options, std::chrono::steady_clock::time_point deadline);

// What the agent at this socket says.
[[nodiscard]] Result<status::AgentStatus> ask_status(
    const std::string& socket, std::chrono::steady_clock::time_point deadline);

// "job train: running, round 2: ranks 4-7 of 8 (pid 4711)". Pure.
[[nodiscard]] std::string health_line(const status::AgentStatus& status);

}  // namespace drun::ctl
