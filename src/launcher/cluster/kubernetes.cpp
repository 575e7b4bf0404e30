// Pods of Kubernetes, as operators number them.
#include <algorithm>
#include <map>
#include <utility>

#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"
#include "launcher/cluster/hostlist.hpp"
#include "launcher/cluster/variables.hpp"

namespace drun::launcher::cluster {
namespace {

void check_rank(const Variables& variables, std::string_view rank, std::string_view size,
                Allocation& allocation) {
  const auto nodes = variables.plain_number(size);
  const auto own = variables.plain_number(rank);
  if (allocation.rank.problem.empty() && nodes && own && *own >= *nodes)
    allocation.rank = problem(variables.shown(rank) + ": the pods are 0 to " +
                              std::to_string(*nodes - 1) + " (" + std::string(size) + ")");
}

// Nodes as torch's operators number them: WORLD_SIZE and RANK count pods. The same names in a
// worker count processes, but beside LOCAL_RANK.
Allocation ranked(const Variables& variables, std::string_view scheduler) {
  Allocation allocation;
  allocation.scheduler = scheduler;
  allocation.nodes = variables.number("WORLD_SIZE", 1);
  allocation.rank = variables.number("RANK", 0);
  check_rank(variables, "RANK", "WORLD_SIZE", allocation);
  const auto host = variables.find("MASTER_ADDR");
  const auto port = variables.plain_number("MASTER_PORT");
  if (!host) {
    allocation.endpoint = problem("MASTER_ADDR is not set");
  } else if (!port || *port < 1 || *port > 65535) {
    allocation.endpoint = problem(variables.shown("MASTER_PORT") + ": expected a port");
  } else {
    allocation.endpoint =
        meet_at(variables, *host, static_cast<std::uint16_t>(*port), "MASTER_ADDR");
  }
  return allocation;
}

// With one of them missing, too: then it is named.
bool has_ranks(const Variables& variables) {
  int there = 0;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"})
    there += variables.has(name) ? 1 : 0;
  return there >= 3 && !variables.has("LOCAL_RANK");
}

// "VC_WORKER_HOSTS" -> the hosts of the tasks named worker, by the name of the variable.
std::map<std::string, Hosts> volcano_hosts(const Variables& variables) {
  constexpr std::string_view kPrefix = "VC_";
  constexpr std::string_view kSuffix = "_HOSTS";
  std::map<std::string, Hosts> found;
  for (const std::string& entry : variables.around().environment) {
    const std::string name = entry.substr(0, entry.find('='));
    if (name.size() > kPrefix.size() + kSuffix.size() && name.starts_with(kPrefix) &&
        name.ends_with(kSuffix))
      found.emplace(name, hosts_in(variables, name, comma_list));
  }
  return found;
}

// VC_WORKER_NUM and the like: several pods, whatever is known of them.
bool counts_pods(const Variables& variables) {
  const auto& all = variables.around().environment;
  return std::any_of(all.begin(), all.end(), [&](const std::string& entry) {
    const std::string name = entry.substr(0, entry.find('='));
    return name.starts_with("VC_") && name.ends_with("_NUM") &&
           variables.plain_number(name).value_or(0) > 1;
  });
}

// Every pod of the job, the master's first.
void count_volcano_hosts(const Variables& variables, Allocation& allocation) {
  const auto lists = volcano_hosts(variables);
  if (lists.empty()) {
    allocation.nodes = allocation.endpoint = problem(
        "Volcano's svc plugin is not there (VC_..._HOSTS is not set): the job needs "
        "plugins: {svc: [], env: []}");
    return;
  }
  constexpr const char* kMaster = "VC_MASTER_HOSTS";
  constexpr const char* kWorker = "VC_WORKER_HOSTS";
  std::vector<std::string> names;
  for (const auto& [name, hosts] : lists)
    names.push_back(name);
  if (names.size() > 1 && names != std::vector<std::string>{kMaster, kWorker}) {
    allocation.nodes = allocation.endpoint =
        problem("the job has tasks of several kinds (" + names[0] + ", " + names[1] +
                "), and drun cannot tell which of them are its nodes");
    return;
  }
  std::vector<std::string> all;
  for (const auto& [name, hosts] : lists) {
    if (!hosts) {
      allocation.nodes = allocation.endpoint = problem(hosts.error().what());
      return;
    }
    all.insert(all.end(), hosts->begin(), hosts->end());
  }
  allocation.nodes = value(std::to_string(all.size()), names.front());
  allocation.endpoint = meet_at(variables, all.front(), kPortOfPods, names.front());
  const auto mine = std::find_if(all.begin(), all.end(), [&](const std::string& host) {
    return same_host(host.substr(0, host.find('.')), variables.around().host_name);
  });
  if (mine != all.end()) {
    allocation.rank = value(std::to_string(mine - all.begin()), names.front());
  } else if (names.size() == 1) {
    const char* const index = variables.has("VC_TASK_INDEX") ? "VC_TASK_INDEX" : "VK_TASK_INDEX";
    allocation.rank = variables.number(index, 0);
    if (allocation.rank.problem.empty() &&
        whole_number<std::size_t>(allocation.rank.text).value_or(0) >= all.size())
      allocation.rank = problem(variables.shown(index) + ": the pods are 0 to " +
                                std::to_string(all.size() - 1) + " (" + names.front() + ")");
  } else {
    allocation.rank = problem(variables.shown(names.front()) + " and " + names.back() +
                              " do not list this host, " + variables.around().host_name);
  }
}

// What /etc/hosts says of this pod: "10.1.2.3 train-1.train.ns.svc.cluster.local train-1".
std::string own_full_name(const Variables& variables) {
  const auto& read = variables.around().read_file;
  const auto text = read ? read("/etc/hosts") : Result<std::string>();
  const std::string& own = variables.around().host_name;
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    std::string_view line = take_until(rest, '\n');
    line = trimmed(line.substr(0, line.find('#')));
    while (!line.empty()) {
      const auto end = std::min(line.find_first_of(" \t"), line.size());
      const std::string_view word = line.substr(0, end);
      if (word.size() > own.size() && word.starts_with(own) && word[own.size()] == '.')
        return std::string(word);
      line = trimmed(line.substr(end));
    }
  }
  return "";
}

}  // namespace

std::optional<Allocation> leader_worker_set(const Variables& variables) {
  if (!variables.has("LWS_LEADER_ADDRESS") && !variables.has("LWS_GROUP_SIZE") &&
      !variables.has("LWS_WORKER_INDEX"))
    return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "LeaderWorkerSet";
  allocation.nodes = variables.number("LWS_GROUP_SIZE", 1);
  allocation.rank = variables.number("LWS_WORKER_INDEX", 0);
  check_rank(variables, "LWS_WORKER_INDEX", "LWS_GROUP_SIZE", allocation);
  allocation.id = variables.text("LWS_LEADER_ADDRESS");
  allocation.endpoint = allocation.id;
  if (allocation.endpoint.problem.empty())
    allocation.endpoint.text = at_port(allocation.endpoint.text, kPortOfPods);
  return allocation;
}

std::optional<Allocation> volcano(const Variables& variables) {
  const bool indexed = variables.has("VC_TASK_INDEX") || variables.has("VK_TASK_INDEX");
  if (has_ranks(variables) && (indexed || !volcano_hosts(variables).empty()))
    return ranked(variables, "Volcano");
  // The index alone does not make several pods one job.
  if (volcano_hosts(variables).empty() && !counts_pods(variables) &&
      !(indexed && (variables.around().nodes_given || variables.around().named)))
    return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "Volcano";
  count_volcano_hosts(variables, allocation);
  return allocation;
}

std::optional<Allocation> pytorch_job(const Variables& variables) {
  if (!variables.has("KUBERNETES_SERVICE_HOST") || !has_ranks(variables)) return std::nullopt;
  return ranked(variables, "PyTorchJob");
}

std::optional<Allocation> ranked_pods(const Variables& variables) {
  if (!variables.around().named || !variables.has("WORLD_SIZE")) return std::nullopt;
  return ranked(variables, "the operator");
}

// A TrainJob's pods for JAX run one process each, and drun in its place is a node. The port of
// JAX_COORDINATOR_ADDRESS is left to JAX: the nodes meet beside it. A worker of drun's has the same
// names.
std::optional<Allocation> jax_job(const Variables& variables) {
  const bool coordinated = variables.has("JAX_COORDINATOR_ADDRESS");
  if (!variables.has("KUBERNETES_SERVICE_HOST") ||
      (coordinated ? 1 : 0) + (variables.has("JAX_NUM_PROCESSES") ? 1 : 0) +
              (variables.has("JAX_PROCESS_ID") ? 1 : 0) <
          2)
    return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "the TrainJob";
  allocation.nodes = variables.number("JAX_NUM_PROCESSES", 1);
  allocation.rank = variables.number("JAX_PROCESS_ID", 0);
  check_rank(variables, "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", allocation);
  allocation.endpoint =
      coordinated ? meet_at(variables, host_of(*variables.find("JAX_COORDINATOR_ADDRESS")),
                            kPortOfPods, "JAX_COORDINATOR_ADDRESS")
                  : problem("JAX_COORDINATOR_ADDRESS is not set");
  return allocation;
}

// "w-1-0" of the pod "set-w-1-0" in the service "set": the number of its job in the set, if that is
// not the first.
std::string later_job_of_set(const std::string& own, const std::string& full) {
  const std::string service = full.substr(std::min(own.size() + 1, full.size()));
  const std::string set = service.substr(0, service.find('.')) + "-";
  const auto pod = own.rfind('-');
  if (pod == std::string::npos || !own.starts_with(set) || pod < set.size()) return "";
  const auto job = own.rfind('-', pod - 1);
  if (job == std::string::npos || job < set.size()) return "";
  const std::string number = own.substr(job + 1, pod - job - 1);
  return whole_number<int>(number).value_or(0) > 0 ? number : "";
}

// The pods of an indexed Job are one job only if somebody says so: most such Jobs are many small
// ones. JobSet's are the same, with longer names.
std::optional<Allocation> indexed_job(const Variables& variables) {
  if (!variables.has("JOB_COMPLETION_INDEX")) return std::nullopt;
  if (!variables.around().nodes_given && !variables.around().named) return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "the indexed Job";
  allocation.nodes =
      problem("an indexed Job does not tell its pods how many there are (JOB_COMPLETION_INDEX)");
  allocation.rank = variables.number("JOB_COMPLETION_INDEX", 0);
  const std::string& own = variables.around().host_name;
  const std::string full = own_full_name(variables);
  if (!allocation.rank.problem.empty()) {
    allocation.endpoint = allocation.rank;
  } else if (!own.ends_with("-" + allocation.rank.text)) {
    allocation.endpoint =
        problem(variables.shown("JOB_COMPLETION_INDEX") + ": this pod's host name, " + own +
                ", does not end in it, so that pod 0 has no name that is known");
  } else if (full.empty()) {
    allocation.endpoint = problem(
        "/etc/hosts has no full name of this pod, " + own +
        ": JOB_COMPLETION_INDEX leads to pod 0 if the template has a subdomain, the name of a "
        "headless service");
  } else {
    const std::string first = own.substr(0, own.size() - allocation.rank.text.size()) + "0";
    allocation.endpoint =
        meet_at(variables, first + full.substr(own.size()), kPortOfPods, "JOB_COMPLETION_INDEX");
    allocation.id = value(first.substr(0, first.size() - 2), "JOB_COMPLETION_INDEX");
    // Of a set with replicas each job is one of its own, which may be meant.
    const std::string job = later_job_of_set(own, full);
    if (!job.empty() && allocation.rank.text == "0")
      allocation.note = "this is job " + job + " of its JobSet (" + own +
                        "), and its nodes are that job's pods alone; for one job of all, give the "
                        "set replicas: 1 "
                        "and parallelism: NODES, or each pod PET_NODE_RANK and PET_RDZV_ENDPOINT";
  }
  return allocation;
}

}  // namespace drun::launcher::cluster
