// What the reports of all nodes of a job together say. Pure.
#pragma once

#include <vector>

#include "doctor/check.hpp"
#include "doctor/node_report.hpp"

namespace drun::doctor {

// `reports` in the order of the nodes. What passes on all nodes is one line.
[[nodiscard]] std::vector<Check> judge_nodes(const std::vector<NodeReport>& reports);

}  // namespace drun::doctor
