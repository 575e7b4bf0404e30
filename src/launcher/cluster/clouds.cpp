// Training services of clouds: SageMaker, Azure ML, Vertex AI, DGX Cloud Lepton.
#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "launcher/cluster/hostlist.hpp"
#include "launcher/cluster/variables.hpp"

namespace drun::launcher::cluster {
namespace {

using Json = nlohmann::json;

constexpr const char* kResources = "/opt/ml/input/config/resourceconfig.json";

// Nullopt: it is no list of names.
std::optional<std::vector<std::string>> names_in(const Json& json) {
  if (!json.is_array() || json.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (const Json& each : json) {
    if (!each.is_string()) return std::nullopt;
    names.push_back(each.get<std::string>());
  }
  return names;
}

struct SageMakerHosts {
  std::optional<std::vector<std::string>> hosts;
  std::string own;
  std::string from;
  std::string shown;
};

SageMakerHosts sagemaker_hosts(const Variables& variables) {
  if (const auto list = variables.find("SM_HOSTS"))
    return {names_in(parse_json(*list)), variables.find("SM_CURRENT_HOST").value_or(""), "SM_HOSTS",
            variables.shown("SM_HOSTS")};
  const auto& read = variables.around().read_file;
  const auto text = read ? read(kResources) : Result<std::string>();
  const Json json = text ? parse_json(*text) : Json();
  SageMakerHosts result{std::nullopt, "", kResources,
                        std::string("SM_HOSTS is not set, and ") + kResources};
  if (!json.is_object() || !json.contains("hosts")) return result;
  result.hosts = names_in(json["hosts"]);
  if (json.contains("current_host") && json["current_host"].is_string())
    result.own = json["current_host"].get<std::string>();
  return result;
}

// "host:port", whose port the service keeps free for the job.
struct Vertex {
  std::vector<std::string> hosts;
  std::optional<std::size_t> rank;
};

// {"cluster": {"workerpool0": ["h:p"], "workerpool1": [...]}, "task": {"type": ..., "index": 0}}:
// pool by pool, in the order of their names. TensorFlow's TF_CONFIG has "chief" before all others.
std::optional<Vertex> vertex_hosts(const Json& json) {
  if (!json.is_object() || !json.contains("cluster") || !json["cluster"].is_object())
    return std::nullopt;
  const Json task = json.value("task", Json());
  Vertex result;
  std::vector<std::string> pools;
  for (const auto& [pool, hosts] : json["cluster"].items())
    pools.push_back(pool);
  std::sort(pools.begin(), pools.end(), [](const std::string& a, const std::string& b) {
    const auto first = [](const std::string& pool) { return pool == "chief" || pool == "master"; };
    return first(a) != first(b) ? first(a) : a < b;
  });
  for (const std::string& pool : pools) {
    const auto hosts = names_in(json["cluster"][pool]);
    if (!hosts) return std::nullopt;
    if (task.is_object() && task.contains("type") && task["type"] == pool &&
        task.contains("index") && task["index"].is_number_unsigned() &&
        task["index"].get<std::size_t>() < hosts->size())
      result.rank = result.hosts.size() + task["index"].get<std::size_t>();
    result.hosts.insert(result.hosts.end(), hosts->begin(), hosts->end());
  }
  if (result.hosts.empty()) return std::nullopt;
  return result;
}

// One drun for each node, or an MPI launcher's or a process's place: then the counts differ.
void count_azure_nodes(const Variables& variables, Allocation& allocation) {
  const char* const size =
      variables.has("AZUREML_NODE_COUNT") ? "AZUREML_NODE_COUNT" : "WORLD_SIZE";
  allocation.nodes = variables.number(size, 1);
  allocation.rank = variables.number(variables.has("NODE_RANK") ? "NODE_RANK" : "RANK", 0);
  const int nodes = variables.plain_number(size).value_or(0);
  const int processes = variables.plain_number("WORLD_SIZE").value_or(nodes);
  if (nodes > 0 && (processes > nodes || variables.plain_number("LOCAL_RANK").value_or(0) > 0))
    allocation.refusal =
        "Azure ML starts several processes on a node (" +
        (processes > nodes ? variables.shown("WORLD_SIZE") + " on " + variables.shown(size)
                           : variables.shown("LOCAL_RANK")) +
        "), but one drun starts all workers of a node: set "
        "process_count_per_instance to 1";
}

}  // namespace

std::optional<Allocation> sagemaker(const Variables& variables) {
  // The name of the job alone may be anybody's.
  const auto& read = variables.around().read_file;
  if (!variables.has("SM_HOSTS") && !variables.has("SM_CURRENT_HOST") &&
      !(variables.has("TRAINING_JOB_NAME") && read && read(kResources)))
    return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "SageMaker";
  const SageMakerHosts found = sagemaker_hosts(variables);
  if (!found.hosts) {
    allocation.nodes = allocation.endpoint =
        problem(found.shown + ": expected a JSON list of host names");
    return allocation;
  }
  const auto mine = std::find(found.hosts->begin(), found.hosts->end(), found.own);
  allocation.nodes = value(std::to_string(found.hosts->size()), found.from);
  allocation.rank = mine == found.hosts->end()
                        ? problem(variables.shown("SM_CURRENT_HOST") + " is not in " + found.from)
                        : value(std::to_string(mine - found.hosts->begin()), "SM_CURRENT_HOST");
  allocation.endpoint = meet_at(variables, found.hosts->front(), kPortOfPods, found.from);
  allocation.id = variables.text("TRAINING_JOB_NAME");
  return allocation;
}

std::optional<Allocation> azure_ml(const Variables& variables) {
  if (!variables.has("AZUREML_RUN_ID") && !variables.has("AZUREML_EXPERIMENT_ID"))
    return std::nullopt;
  if (!variables.has("AZUREML_NODE_COUNT") && !variables.has("NODE_RANK")) return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "Azure ML";
  count_azure_nodes(variables, allocation);
  const auto run = variables.find("AZUREML_RUN_ID");
  for (const char* name : {"MASTER_ADDR", "AZ_BATCH_MASTER_NODE"}) {
    const auto host = variables.find(name);
    if (!host) continue;
    allocation.endpoint =
        meet_at(variables, host_of(*host), port_of(std::string_view(run ? *run : *host)), name);
    break;
  }
  if (allocation.endpoint.text.empty())
    allocation.endpoint = problem("neither MASTER_ADDR nor AZ_BATCH_MASTER_NODE is set");
  if (run) allocation.id = variables.text("AZUREML_RUN_ID");
  return allocation;
}

std::optional<Allocation> vertex(const Variables& variables) {
  const bool job = variables.has("CLOUD_ML_JOB_ID");
  const auto spec = variables.find("CLUSTER_SPEC");
  const bool pools = spec && spec->find("workerpool") != std::string::npos;
  const char* const name = pools || (job && spec) ? "CLUSTER_SPEC" : "TF_CONFIG";
  // Programs for TensorFlow have their TF_CONFIG elsewhere, too.
  if (!pools && !(job && variables.has(name))) return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "Vertex AI";
  const auto found = vertex_hosts(parse_json(*variables.find(name)));
  if (!found) {
    allocation.nodes = allocation.endpoint =
        problem(variables.shown(name) + ": expected JSON with the hosts of a cluster");
    return allocation;
  }
  allocation.nodes = value(std::to_string(found->hosts.size()), name);
  allocation.rank = found->rank
                        ? value(std::to_string(*found->rank), name)
                        : problem(variables.shown(name) + ": its task is none of its cluster");
  allocation.endpoint = value(found->hosts.front(), name);
  if (job) allocation.id = variables.text("CLOUD_ML_JOB_ID");
  return allocation;
}

std::optional<Allocation> lepton(const Variables& variables) {
  if (!variables.has("LEPTON_JOB_WORKER_INDEX") && !variables.has("LEPTON_JOB_TOTAL_WORKERS"))
    return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "Lepton";
  allocation.nodes = variables.number("LEPTON_JOB_TOTAL_WORKERS", 1);
  allocation.rank = variables.number("LEPTON_JOB_WORKER_INDEX", 0);
  const auto prefix = variables.find("LEPTON_JOB_WORKER_PREFIX");
  const auto domain = variables.find("LEPTON_SUBDOMAIN");
  if (!prefix || !domain) {
    allocation.endpoint = problem(
        std::string(prefix ? "LEPTON_SUBDOMAIN" : "LEPTON_JOB_WORKER_PREFIX") + " is not set");
  } else {
    allocation.endpoint =
        meet_at(variables, *prefix + "-0." + *domain, kPortOfPods, "LEPTON_JOB_WORKER_PREFIX");
    allocation.id = value(*prefix, "LEPTON_JOB_WORKER_PREFIX");
  }
  return allocation;
}

}  // namespace drun::launcher::cluster
