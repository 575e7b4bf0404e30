#include "ctl/drunctl_health.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/number_ranges.hpp"
#include "base/printable.hpp"
#include "jobs/job_view.hpp"
#include "status/agent_socket.hpp"

namespace drun::ctl {
namespace {

using status::AgentStatus;

bool is_healthy(const AgentStatus& status, bool ready) {
  return !ready || status.phase == status::Phase::Running;
}

}  // namespace

bool is_gone(const Error& error) {
  return error.code() == std::errc::connection_refused ||
         error.code() == std::errc::connection_reset ||
         error.code() == std::errc::permission_denied;
}

Result<AgentStatus> ask_status(const std::string& socket,
                               std::chrono::steady_clock::time_point deadline) {
  const auto answer = status::ask(socket, deadline);
  if (!answer) return answer.error();
  return status::parse_status(*answer);
}

std::string health_line(const AgentStatus& status) {
  std::string text = "job " + escaped(status.job) + ": " + std::string(name_of(status.phase));
  if (status.round > 0) {
    const NumberRange ranks{status.first_rank, status.first_rank + status.workers - 1};
    text += ", round " + std::to_string(status.round) + ": " + ranks_text(std::vector{ranks}) +
            " of " + std::to_string(status.world_size);
  }
  if (status.behind)
    text += ", rank " + std::to_string(status.behind->rank) + " " +
            jobs::behind_text(status.behind->step, status.behind->age_ms);
  // What waits says first that it is a spare.
  const std::string phase = std::string(name_of(status.phase)) + ": ";
  const std::string_view waiting = status.waiting;
  if (!waiting.empty())
    text += ": " + escaped(waiting.substr(waiting.starts_with(phase) ? phase.size() : 0));
  return text + " (pid " + std::to_string(status.pid) + ")";
}

int health(const CtlOptions& options, std::chrono::steady_clock::time_point deadline) {
  const auto job = options.words.empty() ? std::nullopt : std::optional(options.words.front());
  std::size_t found = 0;
  bool healthy = true;
  for (const std::string& socket : status::find_sockets(job)) {
    // One that keeps us waiting says nothing of those after it.
    const auto status =
        ask_status(socket, std::max(deadline, std::chrono::steady_clock::now() + kLeastForAgent));
    if (!status) {
      if (is_gone(status.error())) continue;
      ++found;
      healthy = false;
      log::error("{}", status.error().what());
      continue;
    }
    ++found;
    healthy = healthy && is_healthy(*status, options.ready);
    print((options.json ? to_json(*status, on_terminal()) : health_line(*status)) + "\n");
  }
  if (found > 0) return healthy ? kOk : kNo;
  log::error("no drun of this user runs here{}", job ? " with job " + escaped(*job) : "");
  return kNo;
}

}  // namespace drun::ctl
