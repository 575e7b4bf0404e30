#include "launcher/workers/environment.hpp"

#include <algorithm>
#include <unordered_set>

#include "base/environment_variable.hpp"
#include "base/template_text.hpp"
#include "hang/file_timers.hpp"
#include "hang/heartbeat_file.hpp"
#include "launcher/output/log_layout.hpp"

namespace drun::launcher {
namespace {

std::string entry(std::string_view name, std::string_view value) {
  std::string result;
  result.reserve(name.size() + 1 + value.size());
  result += name;
  result += '=';
  result += value;
  return result;
}

std::string entry(std::string_view name, int value) {
  return entry(name, std::to_string(value));
}

std::string_view variable_of(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

// The variables that are the same for every worker of this node.
std::vector<std::string> alike(const WorkerSpec& spec, const rendezvous::Assignment& assignment,
                               const FrameworkVariables& known) {
  const bool agent_store = spec.worker_store != WorkerStore::Rank0;
  const Endpoint store = store_of(assignment);
  std::vector<std::string> result{
      entry("GROUP_RANK", assignment.group_rank),
      entry("ROLE_NAME", spec.role),
      entry("LOCAL_WORLD_SIZE", spec.nproc_per_node),
      entry("WORLD_SIZE", assignment.world_size),
      entry("GROUP_WORLD_SIZE", assignment.group_world_size),
      entry("ROLE_WORLD_SIZE", assignment.role_world_size),
      entry("MASTER_ADDR", store.host),
      entry("MASTER_PORT", store.port),
      entry("TORCHELASTIC_RESTART_COUNT", assignment.restart_count),
      entry("DRUN_ROUND", assignment.round),
      entry("TORCHELASTIC_MAX_RESTARTS", spec.max_restarts),
      entry("TORCHELASTIC_RUN_ID", spec.run_id),
      entry("TORCHELASTIC_USE_AGENT_STORE", agent_store ? "True" : "False"),
      entry("TORCHELASTIC_SIGNALS_TO_HANDLE", spec.signals_to_handle_text),
  };
  if (spec.worker_store == WorkerStore::Local)
    result.push_back(entry("DRUN_MASTER_ADDR", assignment.master_address));
  if (assignment.ends_ms != 0)
    result.push_back(entry("DRUN_JOB_END_TIME", std::to_string(assignment.ends_ms / 1'000)));
  if (!environment_variable(spec.inherited, "TORCH_NCCL_ASYNC_ERROR_HANDLING")) {
    result.push_back(entry("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"));
  }
  if (spec.omp_threads) {
    result.push_back(entry("OMP_NUM_THREADS", *spec.omp_threads));
  } else if (!spec.placement.of(0, 0).threads && spec.nproc_per_node > 1 &&
             !environment_variable(spec.inherited, "OMP_NUM_THREADS")) {
    result.push_back(entry("OMP_NUM_THREADS", "1"));
  }
  if (spec.replica_groups > 0) {
    result.push_back(entry("REPLICA_GROUP_ID", std::max(0, spec.replica_group)));
    result.push_back(entry("NUM_REPLICA_GROUPS", spec.replica_groups));
  }
  const auto frameworks = known.alike();
  result.insert(result.end(), frameworks.begin(), frameworks.end());
  return result;
}

}  // namespace

WorkerEnvironments::WorkerEnvironments(const WorkerSpec& spec,
                                       const rendezvous::Assignment& assignment,
                                       const std::vector<std::string>& peers,
                                       const std::string& timer_file)
    : WorkerEnvironments(spec, assignment, FrameworkVariables(spec, assignment, peers),
                         timer_file) {}

WorkerEnvironments::WorkerEnvironments(const WorkerSpec& spec,
                                       const rendezvous::Assignment& assignment,
                                       const FrameworkVariables& frameworks,
                                       const std::string& timer_file)
    : first_rank_(assignment.first_rank),
      first_role_rank_(assignment.first_role_rank),
      virtual_local_rank_(spec.virtual_local_rank),
      local_node_(spec.local_node),
      placement_(spec.placement),
      alike_(alike(spec, assignment, frameworks)) {
  if (!timer_file.empty()) alike_.push_back(entry(hang::kTimerVariable, timer_file));
  for (int local_rank = 0; local_rank < spec.nproc_per_node; ++local_rank)
    frameworks_.push_back(frameworks.own(local_rank));
  const std::vector<std::string> own_of_first = own(0, "");
  std::unordered_set<std::string_view> taken;
  for (const std::string& each : own_of_first)
    taken.insert(variable_of(each));
  for (const std::string& each : alike_)
    taken.insert(variable_of(each));
  shared_.reserve(spec.inherited.size() + alike_.size());
  for (const std::string& each : spec.inherited) {
    if (taken.insert(variable_of(each)).second && !frameworks.withheld(variable_of(each)))
      shared_.push_back(each);
  }
  shared_.insert(shared_.end(), alike_.begin(), alike_.end());
}

std::vector<std::string> WorkerEnvironments::own(int local_rank,
                                                 const std::string& error_file) const {
  std::vector<std::string> result{
      entry("LOCAL_RANK", virtual_local_rank_ ? 0 : local_rank),
      entry("RANK", first_rank_ + local_rank),
      entry("ROLE_RANK", first_role_rank_ + local_rank),
      entry("TORCHELASTIC_ERROR_FILE", error_file),
      entry(hang::kHeartbeatVariable, heartbeat_file(error_file)),
  };
  const WorkerPlacement& place = placement_.of(local_node_, local_rank);
  result.insert(result.end(), place.environment.begin(), place.environment.end());
  if (place.threads) result.push_back(entry("OMP_NUM_THREADS", *place.threads));
  const auto& frameworks = frameworks_[static_cast<std::size_t>(local_rank)];
  result.insert(result.end(), frameworks.begin(), frameworks.end());
  return result;
}

std::vector<std::string> WorkerEnvironments::set_by_drun(int local_rank,
                                                         const std::string& error_file) const {
  std::vector<std::string> result = own(local_rank, error_file);
  result.insert(result.end(), alike_.begin(), alike_.end());
  return result;
}

std::string substitute_local_rank(std::string_view text, int local_rank) {
  return fill_template(text, {{"local_rank", std::to_string(local_rank)}});
}

std::vector<std::string> worker_command(const Program& program, int local_rank) {
  std::vector<std::string> result = program.command;
  for (std::size_t i = program.substitute_from; i < result.size(); ++i) {
    if (result[i].find('$') != std::string::npos) {
      result[i] = substitute_local_rank(result[i], local_rank);
    }
  }
  return result;
}

}  // namespace drun::launcher
