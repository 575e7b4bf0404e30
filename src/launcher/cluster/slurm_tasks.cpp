#include "launcher/cluster/slurm_tasks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "base/folded_names.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"
#include "launcher/cluster/hostlist.hpp"

namespace drun::launcher::cluster {
namespace {

constexpr int kMostComponents = 1'000;  // Slurm itself has 128 at most
constexpr std::size_t kMostFolded = 8;

std::size_t nodes_of(const std::vector<TaskRun>& runs) {
  return std::accumulate(runs.begin(), runs.end(), std::size_t{0},
                         [](std::size_t sum, const TaskRun& run) {
                           return sum + static_cast<std::size_t>(run.nodes);
                         });
}

// "n[1-3]:2", "a:2,b:2".
std::string with_slots(const std::vector<std::string_view>& hosts, int slots) {
  const std::string behind = ":" + std::to_string(slots);
  std::string text = folded_names(hosts, kMostFolded);
  for (auto at = text.find(", "); at != std::string::npos; at = text.find(", ", at))
    text.replace(at, 2, behind + ",");
  return text + behind;
}

std::string in_group(const char* name, int component) {
  return std::string(name) + "_HET_GROUP_" + std::to_string(component);
}

}  // namespace

std::vector<TaskRun> task_runs(std::string_view text) {
  std::vector<TaskRun> runs;
  while (!text.empty()) {
    std::string_view word = take_until(text, ',');
    const auto tasks = whole_number<int>(take_until(word, '('));
    int nodes = 1;
    if (!word.empty()) {
      if (!word.starts_with('x') || !word.ends_with(')')) return {};
      nodes = whole_number<int>(word.substr(1, word.size() - 2)).value_or(0);
    }
    if (!tasks || *tasks < 1 || nodes < 1 || static_cast<std::size_t>(nodes) > kMostHosts)
      return {};
    runs.push_back({*tasks, nodes});
  }
  return runs;
}

int most_tasks(const std::vector<TaskRun>& runs) {
  int most = 0;
  for (const TaskRun& run : runs)
    most = std::max(most, run.tasks);
  return most;
}

bool is_uneven(const std::vector<TaskRun>& runs) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const TaskRun& run) { return run.tasks != runs.front().tasks; });
}

namespace {

// The one task of a node would get the GPUs of one of the job's.
bool gives_gpus_by_task(const Variables& variables) {
  return variables.has("SLURM_GPUS_PER_TASK") ||
         variables.find("SLURM_TRES_PER_TASK").value_or("").find("gpu") != std::string::npos;
}

// What the job has asked for, and srun would take from the environment.
std::vector<std::string> not_for_one_each(const Variables& variables) {
  // srun takes no number of tasks for a node beside that for a GPU.
  std::vector<std::string> names{"SLURM_NTASKS_PER_GPU"};
  if (gives_gpus_by_task(variables))
    names.insert(names.end(), {"SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK"});
  // A list of a host for each task of the job.
  if (variables.find("SLURM_DISTRIBUTION").value_or("").starts_with("arbitrary"))
    names.insert(names.end(), {"SLURM_DISTRIBUTION", "SLURM_HOSTFILE"});
  return names;
}

std::vector<std::string> without(const Variables& variables,
                                 const std::vector<std::string>& names) {
  std::vector<std::string> words;
  for (const std::string& name : names)
    if (variables.has(name)) words.insert(words.end(), {"-u", name});
  if (!words.empty()) words.insert(words.begin(), "env");
  return words;
}

// All that the tasks of a node have; nullopt: what srun gives by itself.
std::optional<std::int64_t> cpus_of_all(const Variables& variables, int tasks) {
  const auto cpus = variables.plain_number("SLURM_CPUS_PER_TASK");
  if (!cpus && variables.has("SLURM_CPUS_PER_GPU")) {
    const auto runs = task_runs(variables.find("SLURM_JOB_CPUS_PER_NODE").value_or(""));
    if (runs.empty() || is_uneven(runs)) return std::nullopt;
    return most_tasks(runs);
  }
  if (!cpus && tasks < 2) return std::nullopt;
  return std::int64_t{cpus.value_or(1)} * std::max(tasks, 1);
}

}  // namespace

std::string option_for_all_gpus(const Variables& variables) {
  const auto gpus = variables.plain_number("SLURM_GPUS_ON_NODE");
  const auto tasks = task_runs(variables.find("SLURM_TASKS_PER_NODE").value_or(""));
  if (!gpus || !gives_gpus_by_task(variables) || is_uneven(tasks)) return "";
  return "--gpus-per-node=" + std::to_string(*gpus);
}

StartCommand one_each(const Variables& variables, const std::string& nodes,
                      const std::vector<TaskRun>& runs) {
  StartCommand start;
  start.words = without(variables, not_for_one_each(variables));
  start.words.insert(start.words.end(),
                     {"srun", "--nodes=" + nodes, "--ntasks=" + nodes, "--ntasks-per-node=1"});
  if (is_uneven(runs)) {
    start.uneven = "the nodes have different numbers of tasks";
    return start;
  }
  const int tasks = most_tasks(runs);
  if (const auto cpus = cpus_of_all(variables, tasks))
    start.words.push_back("--cpus-per-task=" + std::to_string(*cpus));
  if (tasks > 1) start.workers = tasks;
  if (std::string option = option_for_all_gpus(variables); tasks > 1 && !option.empty())
    start.words.push_back(std::move(option));
  return start;
}

std::string line_of(const StartCommand& start) {
  std::string line;
  for (const std::string& word : start.words)
    line += word + " ";
  line += "drun ";
  if (!start.uneven.empty()) return line + "--nproc-per-node N ...";
  if (start.workers > 0) line += "--nproc-per-node " + std::to_string(start.workers) + " ";
  return line + "...";
}

std::string line_with_slots(const std::vector<std::string>& hosts,
                            const std::vector<TaskRun>& runs) {
  std::string list;
  if (hosts.size() == nodes_of(runs)) {
    auto host = hosts.begin();
    for (const TaskRun& run : runs) {
      const std::vector<std::string_view> names(host, host + run.nodes);
      host += run.nodes;
      list += (list.empty() ? "" : ",") + with_slots(names, run.tasks);
    }
  }
  if (list.empty() || list.find("...") != std::string::npos) list = "NODE:TASKS,...";
  return "drun --launcher srun -H " + list + " ...";
}

Components components_of(const Variables& variables) {
  Components result;
  if (!variables.has("SLURM_HET_SIZE")) return result;
  const auto count = variables.plain_number("SLURM_HET_SIZE");
  if (!count || *count < 0 || *count > kMostComponents) {
    result.problem = variables.shown("SLURM_HET_SIZE") + ": expected a whole number up to " +
                     std::to_string(kMostComponents);
    return result;
  }
  for (int each = 0; *count > 1 && each < *count; ++each) {
    const auto hosts = hosts_in(variables, in_group("SLURM_JOB_NODELIST", each), expand_hostlist);
    if (!hosts) return {{}, false, "", hosts.error().what()};
    result.nodes.push_back(hosts->size());
    const std::string nodes = std::to_string(hosts->size());
    const bool asked = variables.has(in_group("SLURM_NTASKS", each));
    const auto tasks = variables.find(in_group("SLURM_TASKS_PER_NODE", each));
    StartCommand start =
        one_each(variables, nodes, asked && tasks ? task_runs(*tasks) : std::vector<TaskRun>());
    result.several_tasks |= start.workers > 0 || !start.uneven.empty();
    // SLURM_CPUS_PER_TASK is of the first one; each step has its component's CPUs without it.
    std::erase_if(start.words, [](const std::string& word) { return word.starts_with("--cpus"); });
    start.words.erase(start.words.begin(),
                      std::find(start.words.begin(), start.words.end(), "srun"));
    start.words.front() = each == 0 ? "srun" : ":";
    start.words.insert(start.words.begin() + 1, "--het-group=" + std::to_string(each));
    result.line += (each == 0 ? "" : " ") + line_of(start);
  }
  return result;
}

}  // namespace drun::launcher::cluster
