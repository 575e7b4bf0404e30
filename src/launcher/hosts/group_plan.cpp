#include "launcher/hosts/group_plan.hpp"

#include <algorithm>
#include <string>

namespace drun::launcher::hosts {

StartPlan group_plan(const StartPlan& all, int groups, int group) {
  StartPlan plan = all;
  const auto each = static_cast<std::ptrdiff_t>(all.hosts.size()) / groups;
  plan.hosts.assign(all.hosts.begin() + group * each, all.hosts.begin() + (group + 1) * each);
  plan.flags.push_back("--replica-group-id=" + std::to_string(group));
  // This machine logs in to no more of them at once than it would for a job without groups.
  plan.fan_out = std::max<std::size_t>(1, all.fan_out / static_cast<std::size_t>(groups));
  return plan;
}

}  // namespace drun::launcher::hosts
