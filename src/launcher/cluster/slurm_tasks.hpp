// Tasks of a job of Slurm, whose place drun's workers take: how many there are on its nodes, and
// which command lines start one drun on each of these. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/cluster/variables.hpp"

namespace drun::launcher::cluster {

// As many tasks on each of so many nodes, one after the other.
struct TaskRun {
  int tasks = 0;
  int nodes = 0;

  bool operator==(const TaskRun&) const = default;
};

// "2(x3),1", as SLURM_TASKS_PER_NODE has it. What cannot be read counts as nothing.
[[nodiscard]] std::vector<TaskRun> task_runs(std::string_view text);

// The most on a node; 0: nothing is known.
[[nodiscard]] int most_tasks(const std::vector<TaskRun>& runs);
// Nodes have different numbers.
[[nodiscard]] bool is_uneven(const std::vector<TaskRun>& runs);

// Of srun, for a step of one task on a node, if the job gives GPUs to each of its tasks; else
// empty.
[[nodiscard]] std::string option_for_all_gpus(const Variables& variables);

// What starts one drun on each of so many nodes, with all the CPUs that the tasks had, and as many
// workers. If the numbers differ, no number of CPUs fits all nodes: the step then gets all.
[[nodiscard]] StartCommand one_each(const Variables& variables, const std::string& nodes,
                                    const std::vector<TaskRun>& runs);
// The same for the user to type.
[[nodiscard]] std::string line_of(const StartCommand& start);
// "drun --launcher srun -H n[1-2]:2,n3:1 ...": as many workers on each host as it had tasks.
[[nodiscard]] std::string line_with_slots(const std::vector<std::string>& hosts,
                                          const std::vector<TaskRun>& runs);

// The parts of a heterogeneous job; each looks like a job of its own.
struct Components {
  std::vector<std::size_t> nodes;  // of each; empty: it is no such job
  bool several_tasks = false;      // on a node of one of them
  std::string line;                // starts one drun on each node of all, for the user to type
  std::string problem;             // why nothing of this is known
};
[[nodiscard]] Components components_of(const Variables& variables);

}  // namespace drun::launcher::cluster
