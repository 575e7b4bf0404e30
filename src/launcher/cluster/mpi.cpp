// Launchers of MPI programs. They say who is who, and nothing of where the others are: that comes
// from the batch system around them, or from the host of mpirun itself.
#include <algorithm>
#include <utility>

#include "base/split.hpp"
#include "launcher/cluster/hostlist.hpp"
#include "launcher/cluster/variables.hpp"

namespace drun::launcher::cluster {
namespace {

struct Names {
  std::string_view scheduler;
  std::string_view size;
  std::string_view rank;
  std::string_view local_size;  // "": `local_rank` must do
  std::string_view local_rank;
  std::string_view one_each;  // the command line that starts one drun on each node
};

constexpr Names kOpenMpi{"Open MPI",
                         "OMPI_COMM_WORLD_SIZE",
                         "OMPI_COMM_WORLD_RANK",
                         "OMPI_COMM_WORLD_LOCAL_SIZE",
                         "OMPI_COMM_WORLD_LOCAL_RANK",
                         "mpirun --map-by ppr:1:node --bind-to none drun ..."};
constexpr Names kHydra{"Hydra",           "PMI_SIZE",        "PMI_RANK",
                       "MPI_LOCALNRANKS", "MPI_LOCALRANKID", "mpiexec -ppn 1 -n NODES drun ..."};
constexpr Names kMvapich{"MVAPICH2",
                         "MV2_COMM_WORLD_SIZE",
                         "MV2_COMM_WORLD_RANK",
                         "MV2_COMM_WORLD_LOCAL_SIZE",
                         "MV2_COMM_WORLD_LOCAL_RANK",
                         "mpirun_rsh -np NODES -hostfile FILE drun ..."};
constexpr Names kPals{"PALS",
                      "PMI_SIZE",
                      "PALS_RANKID",
                      "PALS_LOCAL_SIZE",
                      "PALS_LOCAL_RANKID",
                      "mpiexec --ppn 1 -n NODES drun ..."};
constexpr Names kJsrun{"jsrun",
                       "JSM_NAMESPACE_SIZE",
                       "JSM_NAMESPACE_RANK",
                       "JSM_NAMESPACE_LOCAL_SIZE",
                       "JSM_NAMESPACE_LOCAL_RANK",
                       "jsrun -r 1 -a 1 -c ALL_CPUS -g ALL_GPUS drun ..."};

Allocation allocation_of(const Variables& variables, const Names& names) {
  Allocation allocation;
  allocation.scheduler = names.scheduler;
  allocation.nodes = variables.number(names.size, 1);
  allocation.rank = variables.number(names.rank, 0);
  const int size = variables.plain_number(names.size).value_or(0);
  if (allocation.nodes.problem.empty() && allocation.rank.problem.empty() &&
      *variables.plain_number(names.rank) >= size)
    allocation.rank = problem(variables.shown(names.rank) + ": the ranks are 0 to " +
                              std::to_string(size - 1) + " (" + std::string(names.size) + ")");
  const int local = std::max(variables.plain_number(names.local_size).value_or(0),
                             variables.plain_number(names.local_rank).value_or(0) + 1);
  if (local > 1)
    allocation.refusal = std::string(names.scheduler) + " started " + std::to_string(local) +
                         " tasks on this node (" + std::string(names.local_size) +
                         "), but one drun starts all workers of a node; start one on each: " +
                         std::string(names.one_each);
  return allocation;
}

// The list is only as good as its length: with another one than that of the job, its first host may
// be one where no drun runs.
bool take_hosts(Allocation& allocation, const std::optional<HostsOfJob>& job) {
  if (!job || !job->hosts || !allocation.nodes.problem.empty()) return false;
  const auto hosts = each_once(*job->hosts);
  if (std::to_string(hosts.size()) != allocation.nodes.text) return false;
  allocation.endpoint = value(at_port(hosts.front(), job->port), job->from);
  allocation.id = job->id;
  return true;
}

Value no_hosts(const Variables& variables) {
  const auto job = hosts_of_batch_job(variables);
  return problem(std::string("it does not say where the nodes are, and ") +
                 (!job               ? "no batch system around it does"
                  : !job->hosts.ok() ? job->hosts.error().what()
                                     : job->from + " has another number of hosts"));
}

Value mpirun_elsewhere(const std::string& variable) {
  return problem("mpirun runs on another host than rank 0 (" + variable +
                 "), so that the nodes cannot meet there");
}

// "...://10.0.0.1,192.168.1.1:39877" or "...://[fd00::1,fd00::2]:39877"
std::vector<std::string> addresses_of(std::string_view uri) {
  const auto begin = uri.find("://");
  if (begin == std::string_view::npos) return {};
  uri.remove_prefix(begin + 3);
  const bool brackets = uri.starts_with('[');
  if (brackets) uri.remove_prefix(1);
  std::string_view list = uri.substr(0, uri.find(brackets ? ']' : ':'));
  std::vector<std::string> addresses;
  while (!list.empty())
    addresses.emplace_back(take_until(list, ','));
  return addresses;
}

// All nodes must take the same, because the store listens there alone. Bridges of virtual machines
// and containers have these addresses, on each host the same.
std::string reachable(const std::vector<std::string>& addresses) {
  const auto other = [](const std::string& address) {
    const auto begins = [&](const char* prefix) { return address.starts_with(prefix); };
    return !(begins("127.") || begins("169.254.") || begins("172.17.") || begins("192.168.122.") ||
             begins("fe80:"));
  };
  const auto found = std::find_if(addresses.begin(), addresses.end(), other);
  if (found != addresses.end()) return *found;
  return addresses.empty() ? "" : addresses.front();
}

// Open MPI 4: "2189492224.0;tcp://10.0.0.1,192.168.1.1:39877" is mpirun, where rank 0 is as a rule.
// There both of its addresses are the same.
void meet_at_orte(const Variables& variables, const std::string& uri, Allocation& allocation) {
  constexpr std::string_view kName = "OMPI_MCA_orte_hnp_uri";
  const auto begin = uri.find("://");
  const std::string job = uri.substr(0, uri.find('.'));
  if (begin == std::string::npos || job.find_first_not_of("0123456789") != std::string::npos) {
    allocation.endpoint = problem(variables.shown(kName) + ": expected JOB.0;tcp://ADDRESS:PORT");
    return;
  }
  const auto daemon = variables.find("OMPI_MCA_orte_local_daemon_uri");
  if (allocation.rank.text == "0" && daemon && *daemon != uri) {
    allocation.endpoint = mpirun_elsewhere(variables.shown(kName));
    return;
  }
  const std::string host = reachable(addresses_of(uri));
  const auto own = addresses_of(daemon.value_or(""));
  if (daemon && *daemon != uri && std::find(own.begin(), own.end(), host) != own.end()) {
    allocation.endpoint =
        problem(variables.shown(kName) + ": this host has the address " + host + " as well");
    return;
  }
  allocation.endpoint = meet_at(variables, host, port_of(std::string_view(job)), kName);
  allocation.id = value(job, kName);
}

// Open MPI 5: the name space is "prterun-HOST-PID@1", of the host of mpirun.
bool meet_at_prrte(const Variables& variables, const std::string& space, Allocation& allocation) {
  constexpr std::string_view kName = "PMIX_NAMESPACE";
  std::string_view rest = space;
  const std::string_view name = take_until(rest, '@');
  const auto first = name.find('-');
  const auto last = name.rfind('-');
  if (first == std::string_view::npos || last == first || !name.starts_with("prte")) return false;
  const std::string host(name.substr(first + 1, last - first - 1));
  if (allocation.rank.text == "0" && !same_host(host, variables.around().host_name)) {
    allocation.endpoint = mpirun_elsewhere(variables.shown(kName));
    return true;
  }
  allocation.endpoint = meet_at(variables, host, port_of(space), kName);
  allocation.id = value(space, kName);
  return true;
}

// Azure ML's node of rank 0: "10.0.0.4:6000".
bool meet_at_azure(const Variables& variables, Allocation& allocation) {
  for (const char* name :
       {"AZ_BATCH_MASTER_NODE", "AZ_BATCHAI_JOB_MASTER_NODE_IP", "AZ_BATCHAI_MPI_MASTER_NODE"}) {
    const auto node = variables.find(name);
    if (!node || *node == "localhost" || node->starts_with(':')) continue;
    const auto run = variables.find("AZUREML_RUN_ID");
    const std::string host = host_of(*node);
    allocation.endpoint =
        meet_at(variables, host, port_of(std::string_view(run ? *run : host)), name);
    allocation.id = run ? value(*run, "AZUREML_RUN_ID") : value(host, name);
    return true;
  }
  return false;
}

// All nodes must find the same place. The batch system's variables may be known where mpirun was
// started alone, but Slurm's are everywhere.
std::optional<Allocation> mpi(const Variables& variables, const Names& names) {
  Allocation allocation = allocation_of(variables, names);
  const auto uri = variables.find("OMPI_MCA_orte_hnp_uri");
  const auto space = variables.find("PMIX_NAMESPACE");
  const bool open = names.size == kOpenMpi.size;
  if (meet_at_azure(variables, allocation)) return allocation;
  if (names.size == kHydra.size && offers_pmi(variables, allocation)) {
    allocation.endpoint = problem("PMI_FD did not tell it");
    return allocation;
  }
  if (take_hosts(allocation, hosts_of_slurm_job(variables))) return allocation;
  if (open && uri) {
    meet_at_orte(variables, *uri, allocation);
    return allocation;
  }
  if (open && space && meet_at_prrte(variables, *space, allocation)) return allocation;
  if (!take_hosts(allocation, hosts_of_batch_job(variables)))
    allocation.endpoint = no_hosts(variables);
  return allocation;
}

}  // namespace

// prterun alone says less: its tasks ask the daemon. Slurm's PMIx sets PMIX_NAMESPACE, too.
std::optional<Allocation> open_mpi(const Variables& variables) {
  if (!variables.has(kOpenMpi.size) && !variables.has(kOpenMpi.rank) &&
      !variables.has("PRTE_LAUNCHED") &&
      !variables.find("PMIX_NAMESPACE").value_or("").starts_with("prte"))
    return std::nullopt;
  return mpi(variables, kOpenMpi);
}

// srun and Flux set PMI_RANK and PMI_SIZE, too; only Hydra says who is who on this node.
std::optional<Allocation> hydra(const Variables& variables) {
  if (!variables.has(kHydra.local_size) && !variables.has(kHydra.local_rank)) return std::nullopt;
  return mpi(variables, kHydra);
}

std::optional<Allocation> mvapich(const Variables& variables) {
  if (!variables.has(kMvapich.size) && !variables.has(kMvapich.rank)) return std::nullopt;
  return mpi(variables, kMvapich);
}

std::optional<Allocation> pals(const Variables& variables) {
  if (!variables.has(kPals.rank)) return std::nullopt;
  return mpi(variables, kPals);
}

// The first host of LSF's list is the one with the batch script, where jsrun starts nothing.
std::optional<Allocation> jsrun(const Variables& variables) {
  if (!variables.has(kJsrun.rank) && !variables.has(kJsrun.size)) return std::nullopt;
  Allocation allocation = allocation_of(variables, kJsrun);
  auto job = hosts_of_batch_job(variables);
  if (job && job->hosts) {
    auto hosts = each_once(*job->hosts);
    if (std::to_string(hosts.size() - 1) == allocation.nodes.text) hosts.erase(hosts.begin());
    job->hosts = std::move(hosts);
  }
  if (!take_hosts(allocation, job)) allocation.endpoint = no_hosts(variables);
  return allocation;
}

}  // namespace drun::launcher::cluster
