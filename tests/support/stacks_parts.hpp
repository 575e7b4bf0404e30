// What an AgentStacks is made of, with looks that find nothing.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "launcher/job_stacks/agent_stacks.hpp"
#include "stacks/stack_report.hpp"
#include "support/agent_parts.hpp"

namespace drun::launcher::test {

// `looked` hears of each look, in the thread of the look. The references must outlive the stacks.
[[nodiscard]] inline AgentStacks::Parts stacks_parts(
    AgentParts& parts, const std::string& host, Output& output,
    std::function<void(const LookRequest&)> looked) {
  return {parts.io,
          parts.options,
          host,
          output,
          parts.worker_output,
          parts.status,
          [&parts]() -> const WorkerGroup& { return parts.workers.group(); },
          [] {},
          {},
          [looked = std::move(looked)](const LookRequest& request,
                                       ChildStop& /*stop*/) -> Result<std::string> {
            looked(request);
            stacks::StackReport report;
            report.nodes.push_back(request.node);
            return to_json(report);
          }};
}

}  // namespace drun::launcher::test
