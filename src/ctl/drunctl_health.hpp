// drunctl health: whether the agents on this host live, and run their workers.
#pragma once

#include <chrono>
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

// One that goes in this moment, or another user's process with an agent's name, is none.
[[nodiscard]] bool is_gone(const Error& error);
// So long at least an agent has to answer in, whatever the others have taken.
inline constexpr std::chrono::milliseconds kLeastForAgent{200};

// "job train: running, round 2: ranks 4-7 of 8 (pid 4711)". Pure.
[[nodiscard]] std::string health_line(const status::AgentStatus& status);

}  // namespace drun::ctl
