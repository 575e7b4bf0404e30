// Slurm. Only the variables of a step are believed: in the batch script SLURM_NODEID is 0 beside
// the number of all nodes of the job, and drun would wait for nodes that nobody started.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/whole_number.hpp"
#include "launcher/cluster/hostlist.hpp"
#include "launcher/cluster/surroundings.hpp"

namespace drun::launcher::cluster {
namespace {

// Steps that are none of srun's: the batch script, an interactive one, a login by ssh, ...
constexpr std::uint32_t kFirstSpecialStep = 0xfffffff0;

std::optional<std::string> job_id(const Variables& variables) {
  const auto id = variables.find("SLURM_JOB_ID");
  return id ? id : variables.find("SLURM_JOBID");
}

// The most of "2(x3),1": tasks on a node, run by run.
int most_tasks(const std::string& text) {
  int most = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find_first_of("(,", at), text.size());
    most = std::max(most, whole_number<int>(text.substr(at, end - at)).value_or(0));
    const auto comma = text.find(',', at);
    if (comma == std::string::npos) break;
    at = comma + 1;
  }
  return most;
}

// What starts one drun on each node, with all the CPUs that the tasks had.
StartCommand one_each(const Variables& variables, const std::string& nodes, int tasks_per_node) {
  StartCommand start;
  start.words = {"srun", "--nodes=" + nodes, "--ntasks=" + nodes, "--ntasks-per-node=1"};
  const auto cpus = variables.plain_number("SLURM_CPUS_PER_TASK");
  const std::int64_t all = std::int64_t{cpus.value_or(1)} * std::max(tasks_per_node, 1);
  if (cpus || tasks_per_node > 1) start.words.push_back("--cpus-per-task=" + std::to_string(all));
  if (tasks_per_node > 1) start.workers = tasks_per_node;
  return start;
}

// The same for the user to type.
std::string line_of(const StartCommand& start) {
  std::string line;
  for (const std::string& word : start.words)
    line += word + " ";
  return line + "drun " +
         (start.workers > 0 ? "--nproc-per-node " + std::to_string(start.workers) + " " : "") +
         "...";
}

// For drun, which is to run there as here: what sbatch was told of the environment was said of this
// script. Who goes on without a node does not want the step to be ended with it.
StartCommand by_drun(StartCommand start) {
  start.words.emplace_back("--export=ALL");
  start.elastic_words = {"--no-kill", "--kill-on-bad-exit=0"};
  return start;
}

Value meeting_place(const Variables& variables, const std::string& host, std::uint64_t step) {
  const auto id = job_id(variables);
  const auto job = id ? whole_number<std::uint64_t>(*id) : std::nullopt;
  if (!job) return problem(variables.shown("SLURM_JOB_ID") + ": expected a whole number");
  return meet_at(variables, host, port_of(*job, step), "SLURM_STEP_NODELIST");
}

// JOB.STEP, and .RESTARTS once Slurm has started the job again.
Value step_id(const Variables& variables, std::uint64_t step) {
  const auto job = job_id(variables);
  if (!job) return problem("SLURM_JOB_ID is not set");
  std::string id = *job + "." + std::to_string(step);
  const int restarts = variables.plain_number("SLURM_RESTART_COUNT").value_or(0);
  if (restarts > 0) id += "." + std::to_string(restarts);
  return value(id, "SLURM_JOB_ID");
}

// Of all components of a heterogeneous job; 0: it is none, or they are not told.
std::size_t nodes_of_components(const Variables& variables, int components) {
  std::size_t all = 0;
  for (int each = 0; each < components && each < 1'000; ++each) {
    const auto list = variables.find("SLURM_JOB_NODELIST_HET_GROUP_" + std::to_string(each));
    const auto names = list ? expand_hostlist(*list) : Hosts();
    if (!names) return 0;
    all += names->size();
  }
  return all;
}

// One component looks like a job of its own.
std::string other_components(const Variables& variables, std::size_t hosts) {
  const int components = variables.plain_number("SLURM_HET_SIZE").value_or(1);
  const std::size_t all = nodes_of_components(variables, components);
  if (components < 2 || all <= hosts) return "";
  return std::to_string(hosts) + " of the " + std::to_string(all) +
         " nodes of a heterogeneous job (SLURM_HET_SIZE=" + std::to_string(components) +
         "); srun --het-group=0-" + std::to_string(components - 1);
}

// In a job but in no step: drun runs on one node, whatever the variables say.
Place outside_of_steps(const Variables& variables) {
  Place place;
  place.scheduler = "Slurm";
  const char* const name =
      variables.has("SLURM_JOB_NUM_NODES") ? "SLURM_JOB_NUM_NODES" : "SLURM_NNODES";
  place.nodes = variables.number(name, 1);
  if (!place.nodes.problem.empty()) {
    place.nodes.problem = "a job of Slurm whose size cannot be told: " + place.nodes.problem;
    return place;
  }
  if (const std::string more = other_components(variables, std::stoul(place.nodes.text));
      !more.empty()) {
    place.refusal = "drun was started by no srun, on one of the " +
                    more.substr(more.find("the ") + 4) +
                    " --ntasks-per-node=1 drun ... starts one on each";
    const int components = variables.plain_number("SLURM_HET_SIZE").value_or(1);
    StartCommand start;
    start.words = {"srun", "--het-group=0-" + std::to_string(components - 1),
                   "--ntasks-per-node=1"};
    place.start = by_drun(std::move(start));
    place.nodes =
        value(std::to_string(nodes_of_components(variables, components)), "SLURM_HET_SIZE");
    return place;
  }
  if (place.nodes.text == "1") return place;
  const auto per_node = variables.find("SLURM_TASKS_PER_NODE");
  StartCommand start = one_each(variables, place.nodes.text, per_node ? most_tasks(*per_node) : 1);
  place.refusal =
      "the job has " + place.nodes.text + " nodes (" + name +
      "), and drun was started on one of them, by no srun; start it on each: " + line_of(start);
  place.start = by_drun(std::move(start));
  return place;
}

// The list must be one that this node is in.
std::string why_not_ours(const Variables& variables, const std::vector<std::string>& hosts,
                         const std::string& nodes) {
  if (std::to_string(hosts.size()) != nodes)
    return variables.shown("SLURM_STEP_NODELIST") + " names " + std::to_string(hosts.size()) +
           (hosts.size() == 1 ? " node" : " nodes") + ", and SLURM_STEP_NUM_NODES is " + nodes;
  const auto own = variables.find("SLURMD_NODENAME");
  if (own && std::find(hosts.begin(), hosts.end(), *own) == hosts.end())
    return variables.shown("SLURM_STEP_NODELIST") + " lacks this node, " +
           variables.shown("SLURMD_NODENAME") + ": these are the variables of another step";
  return "";
}

std::string several_tasks(const Variables& variables, const std::string& nodes) {
  const auto per_node = variables.find("SLURM_STEP_TASKS_PER_NODE");
  const auto tasks = variables.plain_number("SLURM_STEP_NUM_TASKS");
  const int count = *whole_number<int>(nodes);
  int most = per_node ? most_tasks(*per_node) : 0;
  if (tasks && *tasks > count) most = std::max(most, (*tasks + count - 1) / count);
  const char* name = tasks && *tasks > count ? "SLURM_STEP_NUM_TASKS" : "SLURM_STEP_TASKS_PER_NODE";
  // Without a count of tasks: this one is not its node's first.
  if (const int local = variables.plain_number("SLURM_LOCALID").value_or(0);
      most < 2 && local > 0) {
    most = local + 1;
    name = "SLURM_LOCALID";
  }
  if (most < 2) return "";
  return "srun started several tasks on a node (" + variables.shown(name) + " on " + nodes +
         (count == 1 ? " node" : " nodes") +
         "), but one drun starts all workers of a node; start one on each: " +
         line_of(one_each(variables, nodes, most));
}

}  // namespace

std::optional<Place> slurm(const Variables& variables) {
  // Parts of a step are a step that cannot be read.
  const bool parts = variables.has("SLURM_STEP_NODELIST") || variables.has("SLURM_STEP_NUM_NODES");
  if (!job_id(variables) && !variables.has("SLURM_STEP_ID") && !parts) return std::nullopt;
  const auto step_text = variables.find("SLURM_STEP_ID");
  const auto step = step_text ? whole_number<std::uint32_t>(*step_text) : std::nullopt;
  if ((!step_text && !parts) || (step && *step >= kFirstSpecialStep))
    return outside_of_steps(variables);
  Place place;
  place.scheduler = "Slurm";
  place.nodes = variables.number("SLURM_STEP_NUM_NODES", 1);
  if (!step) place.nodes = problem(variables.shown("SLURM_STEP_ID") + ": expected a whole number");
  if (!place.nodes.problem.empty()) return place;
  const std::string& nodes = place.nodes.text;
  if (nodes == "1" && !variables.has("SLURM_STEP_NODELIST")) {
    place.refusal = several_tasks(variables, nodes);
    return place;
  }
  auto list = hosts_in(variables, "SLURM_STEP_NODELIST", expand_hostlist);
  if (!list) {
    place.nodes = place.endpoint = problem(list.error().what());
    return place;
  }
  const auto hosts = each_once(std::move(*list));
  if (std::string why = why_not_ours(variables, hosts, nodes); !why.empty()) {
    place.nodes = place.endpoint = problem(std::move(why));
    return place;
  }
  place.refusal = several_tasks(variables, nodes);
  // The place in the list is no rank: -m arbitrary orders the nodes otherwise.
  place.rank = variables.number("SLURM_NODEID", 0);
  if (place.rank.problem.empty() && std::stoi(place.rank.text) >= std::stoi(nodes))
    place.rank = problem(variables.shown("SLURM_NODEID") + ": there are " + nodes +
                         " nodes (SLURM_STEP_NUM_NODES)");
  place.endpoint = meeting_place(variables, hosts.front(), *step);
  place.id = step_id(variables, *step);
  if (const std::string more = other_components(variables, hosts.size()); !more.empty())
    place.note = "this step has " + more + " makes one job of all";
  return place;
}

Result<std::vector<std::string>> nodes_for_steps(const Surroundings& around) {
  const Variables variables(around);
  const auto missing = [](const std::string& what) {
    return Error(std::make_error_code(std::errc::invalid_argument), what);
  };
  if (!job_id(variables))
    return missing(
        "this is no job of Slurm (SLURM_JOB_ID is not set): begin one with salloc or sbatch");
  const auto step = variables.find("SLURM_STEP_ID");
  const auto number = step ? whole_number<std::uint32_t>(*step) : std::nullopt;
  if (number && *number < kFirstSpecialStep)
    return missing("an srun has started this drun already (" + variables.shown("SLURM_STEP_ID") +
                   "): leave out one of the two");
  if (variables.plain_number("SLURM_HET_SIZE").value_or(1) > 1)
    return missing("not in a heterogeneous job (" + variables.shown("SLURM_HET_SIZE") +
                   "), whose components srun starts at once: srun --het-group=0-" +
                   std::to_string(*variables.plain_number("SLURM_HET_SIZE") - 1) +
                   " --ntasks-per-node=1 drun ...");
  auto hosts = hosts_in(variables, "SLURM_JOB_NODELIST", expand_hostlist);
  if (!hosts) return hosts;
  return each_once(std::move(*hosts));
}

std::optional<HostsOfJob> hosts_of_slurm_job(const Variables& variables) {
  if (!job_id(variables) || !variables.has("SLURM_JOB_NODELIST")) return std::nullopt;
  HostsOfJob job;
  job.from = "SLURM_JOB_NODELIST";
  job.hosts = hosts_in(variables, job.from, expand_hostlist);
  job.id = value(*job_id(variables), "SLURM_JOB_ID");
  job.port = port_of(std::string_view(job.id.text));
  return job;
}

}  // namespace drun::launcher::cluster
