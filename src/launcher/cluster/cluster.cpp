#include "launcher/cluster/cluster.hpp"

#include <array>

#include "launcher/cluster/variables.hpp"

namespace drun::launcher::cluster {
namespace {

struct Scheduler {
  std::string_view name;
  Reader read;
};

// The innermost first, who started this very process: mpirun starts its daemons as a step of Slurm,
// whose variables tell of them; Flux runs inside of a step; batch systems are around all these.
constexpr std::array<Scheduler, 22> kSchedulers{{
    {"openmpi", open_mpi},
    {"hydra", hydra},
    {"mvapich", mvapich},
    {"pals", pals},
    {"jsrun", jsrun},
    {"flux", flux},
    {"slurm", slurm},
    {"lws", leader_worker_set},
    {"volcano", volcano},
    {"sagemaker", sagemaker},
    {"azureml", azure_ml},
    {"vertex", vertex},
    {"lepton", lepton},
    {"kubernetes", pytorch_job},
    {"kubernetes", jax_job},
    {"kubernetes", indexed_job},
    {"operator", ranked_pods},
    {"lsf", lsf},
    {"pbs", pbs},
    {"sge", sge},
    {"cobalt", cobalt},
    {"flux", flux_script},
}};

}  // namespace

std::string endpoint_of(const std::string& host, const std::string& id) {
  return at_port(host, port_of(std::string_view(id)));
}

std::optional<Allocation> find_allocation(std::string_view which, const SchedulerInput& around) {
  const Variables variables(around);
  for (const auto& [name, read] : kSchedulers) {
    if (which != "auto" && which != name) continue;
    if (auto allocation = read(variables)) return allocation;
  }
  return std::nullopt;
}

}  // namespace drun::launcher::cluster
