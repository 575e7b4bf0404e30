#include "launcher/workers/frameworks.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/environment_variable.hpp"
#include "base/json.hpp"
#include "launcher/process/guardian.hpp"

namespace drun::launcher {
namespace {

using Value = FrameworkVariables::Value;
using Known = FrameworkVariables::Known;

// What launchers around drun say of a task. Whoever believes them takes all workers of a node for
// one task: accelerate asks for PMI_SIZE and OMPI_COMM_WORLD_SIZE before WORLD_SIZE, JAX and
// idr_torch for SLURM_PROCID. Set only where it is set already.
constexpr auto kOfTasks = std::to_array<Known>({
    {"PMI_RANK", Value::Rank},
    {"PMI_SIZE", Value::WorldSize},
    {"MPI_LOCALRANKID", Value::LocalRank},
    {"MPI_LOCALNRANKS", Value::LocalSize},
    {"OMPI_COMM_WORLD_RANK", Value::Rank},
    {"OMPI_COMM_WORLD_SIZE", Value::WorldSize},
    {"OMPI_COMM_WORLD_LOCAL_RANK", Value::LocalRank},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", Value::LocalSize},
    {"OMPI_COMM_WORLD_NODE_RANK", Value::LocalRank},
    {"OMPI_UNIVERSE_SIZE", Value::WorldSize},
    {"MV2_COMM_WORLD_RANK", Value::Rank},
    {"MV2_COMM_WORLD_SIZE", Value::WorldSize},
    {"MV2_COMM_WORLD_LOCAL_RANK", Value::LocalRank},
    {"MV2_COMM_WORLD_LOCAL_SIZE", Value::LocalSize},
    {"PALS_RANKID", Value::Rank},
    {"PALS_LOCAL_RANKID", Value::LocalRank},
    {"JSM_NAMESPACE_RANK", Value::Rank},
    {"JSM_NAMESPACE_SIZE", Value::WorldSize},
    {"JSM_NAMESPACE_LOCAL_RANK", Value::LocalRank},
    {"FLUX_TASK_RANK", Value::Rank},
    {"FLUX_TASK_LOCAL_ID", Value::LocalRank},
    {"FLUX_JOB_SIZE", Value::WorldSize},
    {"SLURM_PROCID", Value::Rank},
    {"SLURM_LOCALID", Value::LocalRank},
    {"SLURM_NTASKS", Value::WorldSize},
    {"SLURM_NPROCS", Value::WorldSize},
    {"SLURM_STEP_NUM_TASKS", Value::WorldSize},
    {"SLURM_NTASKS_PER_NODE", Value::LocalSize},
    {"SLURM_TASKS_PER_NODE", Value::PerNode},
    {"SLURM_STEP_TASKS_PER_NODE", Value::PerNode},
    {"SLURM_GTIDS", Value::Ranks},
});

// The way to an outer launcher's server: of a descriptor that no worker has, of drun's own task.
constexpr auto kWayToServer =
    std::to_array<std::string_view>({"PMI_FD", "PMI_PORT", "PMI_ID", "PMI_SPAWNED",
                                     "PMI_CONTROL_FD", "PMI_CONTROL_PORT", "HYDI_CONTROL_FD"});
// Likewise: one task of several workers. Without these an Open MPI program is a world of its own.
constexpr auto kWayOfOneTask =
    std::to_array<std::string_view>({"PMIX_RANK", "PMIX_NAMESPACE", "PMIX_VERSION"});

constexpr auto kAlways = std::to_array<Known>({
    {"NODE_RANK", Value::GroupRank},
    {"CROSS_RANK", Value::GroupRank},
    {"CROSS_SIZE", Value::Nodes},
    {"JAX_NUM_PROCESSES", Value::WorldSize},
    {"JAX_PROCESS_ID", Value::Rank},
});
constexpr auto kMpi =
    std::to_array<std::string_view>({"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"});
// JAX asks Open MPI's variables before all others.
constexpr auto kJax =
    std::to_array<std::string_view>({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"});
constexpr auto kOneCcl = std::to_array<Known>({
    {"CCL_LOCAL_RANK", Value::LocalRank},
    {"CCL_LOCAL_SIZE", Value::LocalSize},
});
constexpr std::string_view kTfConfig = "TF_CONFIG";
constexpr std::string_view kJaxPresence = "OMPI_MCA_orte_hnp_uri";

template <typename List>
bool has(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_own(Value value) {
  return value == Value::Rank || value == Value::LocalRank;
}

// Not one number for each node if nodes have different numbers of workers.
bool is_even(const WorkerSpec& spec, const rendezvous::Assignment& assignment) {
  return assignment.world_size == assignment.group_world_size * spec.nproc_per_node;
}

std::string text_of(Value value, const WorkerSpec& spec, const rendezvous::Assignment& assignment,
                    int local_rank) {
  const auto number = [](int count) { return std::to_string(count); };
  switch (value) {
    case Value::Rank:
      return number(assignment.first_rank + local_rank);
    case Value::WorldSize:
      return number(assignment.world_size);
    case Value::LocalRank:
      return number(local_rank);
    case Value::LocalSize:
      return number(spec.nproc_per_node);
    case Value::GroupRank:
      return number(assignment.group_rank);
    case Value::Nodes:
      return number(assignment.group_world_size);
    case Value::PerNode:
      return number(spec.nproc_per_node) + (assignment.group_world_size > 1
                                                ? "(x" + number(assignment.group_world_size) + ")"
                                                : "");
    case Value::Ranks:
      break;
  }
  std::string list;
  for (int each = 0; each < spec.nproc_per_node; ++each)
    list += (each > 0 ? "," : "") + number(assignment.first_rank + each);
  return list;
}

// One worker of TensorFlow's for each rank: the first is the chief.
std::string tensorflow_cluster(const std::vector<std::string>& peers, int rank) {
  using nlohmann::ordered_json;
  const ordered_json config{{"cluster", {{"worker", peers}}},
                            {"task", {{"type", "worker"}, {"index", rank}}}};
  // What a name that is no UTF-8 has in it no resolver would find.
  return json_text(config);
}

std::string with_value(std::string_view name, std::string_view value) {
  return std::string(name) + "=" + std::string(value);
}

}  // namespace

FrameworkVariables::FrameworkVariables(const WorkerSpec& spec,
                                       const rendezvous::Assignment& assignment,
                                       const std::vector<std::string>& peers)
    : spec_(spec), assignment_(assignment), peers_(peers), wanted_(kAlways.begin(), kAlways.end()) {
  // Once through the environment, which may be large.
  std::unordered_set<std::string_view> inherited;
  for (const std::string_view each : spec.inherited)
    inherited.insert(each.substr(0, each.find('=')));
  for (const Known& each : kOfTasks) {
    const bool asked = (spec.frameworks.mpi && has(kMpi, each.name)) ||
                       (spec.frameworks.jax && has(kJax, each.name));
    const bool uneven = each.value == Value::PerNode && !is_even(spec, assignment);
    if (asked || (!uneven && inherited.contains(each.name))) wanted_.push_back(each);
  }
  if (spec.frameworks.oneccl) wanted_.insert(wanted_.end(), kOneCcl.begin(), kOneCcl.end());
}

std::vector<std::string> FrameworkVariables::alike() const {
  std::vector<std::string> result;
  for (const Known& each : wanted_)
    if (!is_own(each.value))
      result.push_back(with_value(each.name, text_of(each.value, spec_, assignment_, 0)));
  const auto unset = [this](std::string_view name) {
    return !environment_variable(spec_.inherited, name);
  };
  if (spec_.frameworks.mpi)
    result.push_back(with_value("PMI_FD", std::to_string(process::kServiceDescriptor)));
  // The worker of rank 0 binds that port only if drun has not.
  if (spec_.worker_store == WorkerStore::Rank0)
    result.push_back(
        with_value("JAX_COORDINATOR_ADDRESS",
                   to_string(Endpoint{assignment_.master_address, assignment_.master_port})));
  if (spec_.frameworks.jax) {
    // Any text: JAX looks for the coordinator there only if it is not told.
    if (unset(kJaxPresence)) result.push_back(with_value(kJaxPresence, "0.0;tcp://127.0.0.1:1"));
    if (spec_.virtual_local_rank && unset("JAX_LOCAL_DEVICE_IDS"))
      result.push_back(with_value("JAX_LOCAL_DEVICE_IDS", "0"));
  }
  if (spec_.frameworks.oneccl && unset("CCL_PROCESS_LAUNCHER"))
    result.push_back(with_value("CCL_PROCESS_LAUNCHER", "none"));
  return result;
}

std::vector<std::string> FrameworkVariables::own(int local_rank) const {
  std::vector<std::string> result;
  for (const Known& each : wanted_)
    if (is_own(each.value))
      result.push_back(with_value(each.name, text_of(each.value, spec_, assignment_, local_rank)));
  if (spec_.frameworks.tensorflow && !peers_.empty())
    result.push_back(
        with_value(kTfConfig, tensorflow_cluster(peers_, assignment_.first_rank + local_rank)));
  return result;
}

std::string_view FrameworkVariables::torchrun_name(std::string_view name) {
  const auto same = [name](const Known& known) { return known.name == name; };
  const auto* found = std::find_if(kAlways.begin(), kAlways.end(), same);
  if (found == kAlways.end()) {
    found = std::find_if(kOfTasks.begin(), kOfTasks.end(), same);
    if (found == kOfTasks.end()) return name;
  }
  switch (found->value) {
    case Value::Rank:
      return "RANK";
    case Value::WorldSize:
      return "WORLD_SIZE";
    case Value::GroupRank:
      return "GROUP_RANK";
    case Value::Nodes:
      return "GROUP_WORLD_SIZE";
    default:
      return name;
  }
}

bool FrameworkVariables::withheld(std::string_view name) const {
  if (has(kWayToServer, name)) return true;
  const bool several = spec_.nproc_per_node > 1 || spec_.frameworks.mpi;
  if (several &&
      (has(kWayOfOneTask, name) || name == "PRTE_LAUNCHED" || name.starts_with("PMIX_SERVER_URI")))
    return true;
  return name.ends_with("TASKS_PER_NODE") && !is_even(spec_, assignment_) &&
         (name == "SLURM_TASKS_PER_NODE" || name == "SLURM_STEP_TASKS_PER_NODE");
}

}  // namespace drun::launcher
