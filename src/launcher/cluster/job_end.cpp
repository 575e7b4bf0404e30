// When the job ends. Slurm says so in every process of a job, in a step or not.
#include <cstdint>

#include "base/whole_number.hpp"
#include "launcher/cluster/variables.hpp"

namespace drun::launcher::cluster {
namespace {

// Milliseconds of it still fit a number of nanoseconds.
constexpr std::int64_t kLatestEnd = 9'000'000'000;

}  // namespace

Value find_job_end(const std::vector<std::string>& environment) {
  const SchedulerInput around{environment, {}, "", false, false};
  const Variables variables(around);
  std::string_view name = kJobEnd;
  if (!variables.has(name) && variables.has("SLURM_JOB_ID")) name = "SLURM_JOB_END_TIME";
  const auto text = variables.find(name);
  if (!text) return {};
  const auto seconds = whole_number<std::int64_t>(*text);
  if (!seconds || *seconds < 1 || *seconds > kLatestEnd)
    return problem(variables.shown(name) + ": expected a time in Unix seconds");
  return value(*text, name);
}

}  // namespace drun::launcher::cluster
