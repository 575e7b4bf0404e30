// What simulate and simulate_succession print of a run.
#pragma once

#include <cstdio>

namespace drun::simulation {

// The schedule, all that happened, and what was wrong with it.
template <typename Plan, typename Report>
void print_run(const Plan& plan, const Report& report) {
  std::printf("%s", describe(plan).c_str());
  for (const auto& line : report.trace)
    std::printf("%s\n", line.c_str());
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(plan.seed),
              report.violation.empty() ? "no violation" : report.violation.c_str());
}

}  // namespace drun::simulation
