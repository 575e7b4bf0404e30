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

StartCommand one_each(const Variables& variables, const std::string& nodes,
                      const std::vector<TaskRun>& runs) {
  StartCommand start;
  // srun takes no number of tasks for a node beside that for a GPU, which the job may have asked
  // for.
  if (variables.has("SLURM_NTASKS_PER_GPU")) start.words = {"env", "-u", "SLURM_NTASKS_PER_GPU"};
  start.words.insert(start.words.end(),
                     {"srun", "--nodes=" + nodes, "--ntasks=" + nodes, "--ntasks-per-node=1"});
  if (is_uneven(runs)) {
    start.uneven = "the nodes have different numbers of tasks";
    return start;
  }
  const int tasks = most_tasks(runs);
  const auto cpus = variables.plain_number("SLURM_CPUS_PER_TASK");
  const std::int64_t all = std::int64_t{cpus.value_or(1)} * std::max(tasks, 1);
  if (cpus || tasks > 1) start.words.push_back("--cpus-per-task=" + std::to_string(all));
  if (tasks > 1) start.workers = tasks;
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
