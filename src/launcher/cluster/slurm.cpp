// Slurm. Only the variables of a step are believed: in the batch script SLURM_NODEID is 0 beside
// the number of all nodes of the job, and drun would wait for nodes that nobody started.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/counted.hpp"
#include "base/process_files.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"
#include "launcher/cluster/hostlist.hpp"
#include "launcher/cluster/slurm_tasks.hpp"
#include "launcher/cluster/variables.hpp"

namespace drun::launcher::cluster {
namespace {

// Steps that are none of srun's: the batch script, an interactive one, a login by ssh, ...
constexpr std::uint32_t kFirstSpecialStep = 0xfffffff0;

std::optional<std::string> job_id(const Variables& variables) {
  const auto id = variables.find("SLURM_JOB_ID");
  return id ? id : variables.find("SLURM_JOBID");
}

// For drun, which is to run there as here: what sbatch was told of the environment was said of this
// script. One Ctrl-C stops a job of drun's; srun itself would show its tasks, and wait for another.
// Who goes on without a node does not want the step to be ended with it.
StartCommand by_drun(StartCommand start) {
  start.words.insert(start.words.end(), {"--export=ALL", "--disable-status"});
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

// What `hosts` of them are part of; empty: of no heterogeneous job, or they are all of its nodes.
std::string other_components(const Components& parts, const Variables& variables,
                             std::size_t hosts) {
  const std::size_t all = std::accumulate(parts.nodes.begin(), parts.nodes.end(), std::size_t{0});
  if (all <= hosts) return "";
  return "the " + std::to_string(all) + " nodes of a heterogeneous job (SLURM_HET_SIZE=" +
         variables.find("SLURM_HET_SIZE").value_or("") + ")";
}

std::string all_groups(const Components& parts) {
  return "--het-group=0-" + std::to_string(parts.nodes.size() - 1);
}

// What the user of a step on so many nodes should know.
std::string what_is_missing(const Variables& variables, std::size_t hosts) {
  // Without an allocation around it srun asks for the components itself, and starts all of them.
  if (!variables.has("SLURM_JOB_NODELIST_HET_GROUP_0") &&
      !variables.has("SLURM_JOB_NODELIST_HET_GROUP_1"))
    return "";
  const Components parts = components_of(variables);
  if (!parts.problem.empty())
    return "whether this step has all nodes of its heterogeneous job cannot be told: " +
           parts.problem;
  const std::string more = other_components(parts, variables, hosts);
  if (more.empty()) return "";
  return "this step has " + std::to_string(hosts) + " of " + more + "; srun " + all_groups(parts) +
         " makes one job of all";
}

// The script of a heterogeneous job has the variables of its first component.
void outside_of_components(const Components& parts, const Variables& variables,
                           Allocation& allocation) {
  if (!parts.problem.empty()) {
    allocation.refusal =
        "drun was started by no srun, in a heterogeneous job of Slurm whose nodes "
        "cannot be told: " +
        parts.problem;
    return;
  }
  const std::string one =
      "drun was started by no srun, on one of " + other_components(parts, variables, 0);
  if (parts.several_tasks) {
    // srun gives each component the tasks that it has asked for, unless it is told for each.
    allocation.refusal =
        one + ", some of which have several tasks; this starts one on each: " + parts.line;
    return;
  }
  allocation.refusal =
      one + "; srun " + all_groups(parts) + " --ntasks-per-node=1 drun ... starts one on each";
  StartCommand start;
  start.words = {"srun", all_groups(parts), "--ntasks-per-node=1"};
  allocation.start = by_drun(std::move(start));
  allocation.nodes =
      value(std::to_string(std::accumulate(parts.nodes.begin(), parts.nodes.end(), std::size_t{0})),
            "SLURM_HET_SIZE");
}

// Without a number of tasks Slurm tells how many would have found a CPU.
std::vector<TaskRun> asked_tasks(const Variables& variables) {
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE"})
    if (variables.has(name)) return task_runs(variables.find("SLURM_TASKS_PER_NODE").value_or(""));
  return {};
}

// So that the user can say how many workers there are to be.
std::string why_uneven(const Variables& variables, const std::vector<TaskRun>& runs) {
  const auto listed = hosts_in(variables, "SLURM_JOB_NODELIST", expand_hostlist);
  return variables.shown("SLURM_TASKS_PER_NODE") +
         ": the nodes of the job have different numbers of tasks; say how many workers each node "
         "gets, with --nproc-per-node, or start as many as tasks: " +
         line_with_slots(listed ? *listed : std::vector<std::string>(), runs);
}

// In a job but in no step: drun runs on one node, whatever the variables say.
Allocation outside_of_steps(const Variables& variables) {
  Allocation allocation;
  allocation.scheduler = "Slurm";
  // First: salloc names the nodes of each component alone.
  const Components parts = components_of(variables);
  if (!parts.problem.empty() || !parts.nodes.empty()) {
    outside_of_components(parts, variables, allocation);
    return allocation;
  }
  const char* const name = variables.has("SLURM_NNODES") && !variables.has("SLURM_JOB_NUM_NODES")
                               ? "SLURM_NNODES"
                               : "SLURM_JOB_NUM_NODES";
  allocation.nodes = variables.number(name, 1);
  if (!variables.has(name) && !variables.has("SLURM_STEP_ID"))
    allocation.nodes.problem =
        "neither SLURM_STEP_ID, of a step, nor SLURM_JOB_NUM_NODES, of a script, is set";
  if (!allocation.nodes.problem.empty()) {
    allocation.nodes.problem =
        "a job of Slurm whose size cannot be told: " + allocation.nodes.problem;
    return allocation;
  }
  const auto tasks = asked_tasks(variables);
  if (allocation.nodes.text == "1") {
    if (const int most = most_tasks(tasks); most > 1)
      allocation.workers = value(std::to_string(most), "SLURM_TASKS_PER_NODE");
    return allocation;
  }
  StartCommand start = one_each(variables, allocation.nodes.text, tasks);
  allocation.refusal =
      "the job has " + allocation.nodes.text + " nodes (" + name +
      "), and drun was started on one of them, by no srun; start it on each: " + line_of(start);
  if (is_uneven(tasks)) start.uneven = why_uneven(variables, tasks);
  allocation.start = by_drun(std::move(start));
  return allocation;
}

// What the nearest slurmstepd among this process's ancestors serves, as its title says:
// "4711.batch" or "4711.0". Empty: none can be seen, as from within a container.
std::string nearest_step(const SchedulerInput& around) {
  constexpr std::string_view kTitle = "slurmstepd: [";
  constexpr int kMostAncestors = 100;
  if (!around.read_file) return "";
  std::string process = "self";
  for (int i = 0; i < kMostAncestors; ++i) {
    const auto stat = around.read_file("/proc/" + process + "/stat");
    if (!stat) return "";
    std::string_view fields = stat_from_state(*stat);
    (void)take_until(fields, ' ');  // its state; then its parent
    process = take_until(fields, ' ');
    const auto title = around.read_file("/proc/" + process + "/cmdline");
    if (!title) return "";
    if (!title->starts_with(kTitle)) continue;
    const auto end = title->find(']');
    return end == std::string::npos ? "" : title->substr(kTitle.size(), end - kTitle.size());
  }
  return "";
}

// `srun --pty bash` runs a shell for each task, and gives the terminal to the first alone: what is
// typed there is started once. A script, which runs in all of them, is not meant.
bool typed_in_a_task(const Variables& variables) {
  const auto& read = variables.around().read_file;
  if (!variables.has("SLURM_PTY_PORT") || !read) return false;
  const auto stat = read("/proc/self/stat");
  if (!stat) return false;
  std::string_view fields = stat_from_state(*stat);
  (void)take_until(fields, ' ');
  const auto title = read("/proc/" + std::string(take_until(fields, ' ')) + "/cmdline");
  std::string_view words = title ? std::string_view(*title) : std::string_view();
  const std::string_view program = take_until(words, '\0');
  if (!program.ends_with("sh")) return false;
  while (!words.empty())
    if (const auto word = take_until(words, '\0'); !word.starts_with('-') || word == "-c")
      return false;
  return true;
}

// sbatch and salloc hand on what they find: in a script that was submitted in a step there are the
// variables of that step, which is one of another job.
bool are_left_over(const Variables& variables) {
  const std::string step = nearest_step(variables.around());
  const auto dot = step.find('.');
  const auto job = whole_number<std::uint64_t>(std::string_view(step).substr(0, dot));
  if (dot == std::string::npos || !job) return false;
  const auto kind = std::string_view(step).substr(dot + 1);
  if (kind == "batch" || kind == "interactive" || kind == "extern") return true;
  const auto own = variables.find(variables.has("SLURM_JOB_ID") ? "SLURM_JOB_ID" : "SLURM_JOBID");
  return own && whole_number<std::uint64_t>(*own) != job && !variables.has("SLURM_HET_SIZE");
}

// The list must be one that this node is in.
std::string why_not_ours(const Variables& variables, const std::vector<std::string>& hosts,
                         const std::string& nodes) {
  if (std::to_string(hosts.size()) != nodes)
    return variables.shown("SLURM_STEP_NODELIST") + " names " + counted(hosts.size(), "node") +
           ", and SLURM_STEP_NUM_NODES is " + nodes;
  const auto own = variables.find("SLURMD_NODENAME");
  if (own && std::find(hosts.begin(), hosts.end(), *own) == hosts.end())
    return variables.shown("SLURM_STEP_NODELIST") + " lacks this node, " +
           variables.shown("SLURMD_NODENAME") + ": these are the variables of another step";
  return "";
}

// `hosts`: of the step; empty: they are not told.
std::string several_tasks(const Variables& variables, const std::string& nodes,
                          const std::vector<std::string>& hosts) {
  auto runs = task_runs(variables.find("SLURM_STEP_TASKS_PER_NODE").value_or(""));
  const auto tasks = variables.plain_number("SLURM_STEP_NUM_TASKS");
  const int count = *whole_number<int>(nodes);
  if (most_tasks(runs) < 2 && tasks && *tasks > count)
    runs = {{(*tasks + count - 1) / count, count}};
  const char* name = tasks && *tasks > count ? "SLURM_STEP_NUM_TASKS" : "SLURM_STEP_TASKS_PER_NODE";
  // Without a count of tasks: this one is not its node's first.
  if (const int local = variables.plain_number("SLURM_LOCALID").value_or(0);
      most_tasks(runs) < 2 && local > 0) {
    runs = {{local + 1, count}};
    name = "SLURM_LOCALID";
  }
  if (most_tasks(runs) < 2) return "";
  // One long line is enough.
  if (variables.plain_number("SLURM_PROCID").value_or(0) > 0)
    return "srun started several tasks on a node, and one drun starts all workers of a node: task "
           "0 "
           "says what to type";
  const std::string refusal = "srun started several tasks on a node (" + variables.shown(name) +
                              " on " + nodes + (count == 1 ? " node" : " nodes") +
                              "), but one drun starts all workers of a node; start one on each: ";
  if (const Components parts = components_of(variables); parts.several_tasks)
    return refusal + parts.line;
  const std::string line = line_of(one_each(variables, nodes, runs));
  if (!is_uneven(runs)) return refusal + line;
  return refusal + line +
         ", or, in a job of sbatch or salloc, with as many workers as tasks and without srun: " +
         line_with_slots(hosts, runs);
}

}  // namespace

std::optional<Allocation> slurm(const Variables& variables) {
  // Parts of a step are a step that cannot be read.
  const bool parts = variables.has("SLURM_STEP_NODELIST") || variables.has("SLURM_STEP_NUM_NODES");
  if (!job_id(variables) && !variables.has("SLURM_STEP_ID") && !parts) return std::nullopt;
  const auto step_text = variables.find("SLURM_STEP_ID");
  const auto step = step_text ? whole_number<std::uint32_t>(*step_text) : std::nullopt;
  if ((!step_text && !parts) || (step && *step >= kFirstSpecialStep) || are_left_over(variables))
    return outside_of_steps(variables);
  Allocation allocation;
  allocation.scheduler = "Slurm";
  allocation.nodes = variables.number("SLURM_STEP_NUM_NODES", 1);
  if (!step)
    allocation.nodes = problem(variables.shown("SLURM_STEP_ID") + ": expected a whole number");
  if (!allocation.nodes.problem.empty()) return allocation;
  const std::string& nodes = allocation.nodes.text;
  if (nodes == "1" && !variables.has("SLURM_STEP_NODELIST")) {
    allocation.refusal = several_tasks(variables, nodes, {});
    return allocation;
  }
  auto list = hosts_in(variables, "SLURM_STEP_NODELIST", expand_hostlist);
  if (!list) {
    allocation.nodes = allocation.endpoint = problem(list.error().what());
    return allocation;
  }
  const auto hosts = each_once(std::move(*list));
  if (std::string why = why_not_ours(variables, hosts, nodes); !why.empty()) {
    allocation.nodes = allocation.endpoint = problem(std::move(why));
    return allocation;
  }
  allocation.refusal = several_tasks(variables, nodes, hosts);
  // The place in the list is no rank: -m arbitrary orders the nodes otherwise.
  allocation.rank = variables.number("SLURM_NODEID", 0);
  if (allocation.rank.problem.empty() &&
      whole_number<std::size_t>(allocation.rank.text).value_or(0) >= hosts.size())
    allocation.rank = problem(variables.shown("SLURM_NODEID") + ": there are " + nodes +
                              " nodes (SLURM_STEP_NUM_NODES)");
  allocation.endpoint = meeting_place(variables, hosts.front(), *step);
  allocation.id = step_id(variables, *step);
  allocation.note = what_is_missing(variables, hosts.size());
  if (nodes != "1" && typed_in_a_task(variables))
    allocation.note = "this is the shell of one of the step's " + nodes +
                      " tasks (SLURM_PTY_PORT), and drun waits for one that nobody starts in the "
                      "others; type srun --overlap --nodes=" +
                      nodes + " --ntasks=" + nodes +
                      " drun ..., or begin with salloc instead of srun --pty";
  return allocation;
}

Result<StepNodes> nodes_for_steps(const SchedulerInput& around) {
  const Variables variables(around);
  const auto missing = [](const std::string& what) {
    return Error(std::make_error_code(std::errc::invalid_argument), what);
  };
  if (!job_id(variables))
    return missing(
        "this is no job of Slurm (SLURM_JOB_ID is not set): begin one with salloc or sbatch");
  const auto step = variables.find("SLURM_STEP_ID");
  const auto number = step ? whole_number<std::uint32_t>(*step) : std::nullopt;
  if (number && *number < kFirstSpecialStep && !are_left_over(variables))
    return missing("an srun has started this drun already (" + variables.shown("SLURM_STEP_ID") +
                   "): leave out one of the two");
  const Components parts = components_of(variables);
  if (!parts.problem.empty())
    return missing("not in a heterogeneous job, and this may be one: " + parts.problem);
  if (!parts.nodes.empty())
    return missing("not in a heterogeneous job (" + variables.shown("SLURM_HET_SIZE") +
                   "), whose components srun starts at once: " +
                   (parts.several_tasks
                        ? parts.line
                        : "srun " + all_groups(parts) + " --ntasks-per-node=1 drun ..."));
  auto hosts = hosts_in(variables, "SLURM_JOB_NODELIST", expand_hostlist);
  if (!hosts) return hosts.error();
  StepNodes nodes{each_once(std::move(*hosts)), {}, option_for_all_gpus(variables)};
  const auto runs = asked_tasks(variables);
  for (const TaskRun& run : runs)
    nodes.tasks.insert(nodes.tasks.end(), static_cast<std::size_t>(run.nodes), run.tasks);
  if (nodes.tasks.size() != nodes.hosts.size()) nodes.tasks.clear();
  return nodes;
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
