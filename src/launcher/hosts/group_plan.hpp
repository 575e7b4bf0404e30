// Which of the hosts are whose, if the job is several replica groups. Pure.
#pragma once

#include "launcher/hosts/start_plan.hpp"

namespace drun::launcher::hosts {

// What is started for one of `groups` groups, which have equally many of the hosts, in their order.
[[nodiscard]] StartPlan group_plan(const StartPlan& all, int groups, int group);

}  // namespace drun::launcher::hosts
