// Flux. It numbers the tasks, and has no list of nodes in the environment.
#include "base/counted.hpp"
#include "base/whole_number.hpp"
#include "launcher/cluster/variables.hpp"

namespace drun::launcher::cluster {

std::optional<Allocation> flux(const Variables& variables) {
  if (!variables.has("FLUX_JOB_ID") && !variables.has("FLUX_TASK_RANK")) return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "Flux";
  allocation.nodes = variables.number("FLUX_JOB_NNODES", 1);
  allocation.rank = variables.number("FLUX_TASK_RANK", 0);
  allocation.id = variables.text("FLUX_JOB_ID");
  const int nodes = variables.plain_number("FLUX_JOB_NNODES").value_or(0);
  const int tasks = variables.plain_number("FLUX_JOB_SIZE").value_or(nodes);
  const int local = variables.plain_number("FLUX_TASK_LOCAL_ID").value_or(0);
  if (nodes > 0 && (tasks > nodes || local > 0)) {
    const std::string number = std::to_string(nodes);
    allocation.refusal =
        "flux run started several tasks on a node (" + variables.shown("FLUX_JOB_SIZE") + " on " +
        counted(nodes, "node") +
        "), but one drun starts all workers of a node; start one on each: flux run -N " + number +
        " -n " + number + " --exclusive drun ...";
  }
  if (allocation.rank.problem.empty() && nodes > 0 &&
      whole_number<int>(allocation.rank.text).value_or(0) >= nodes)
    allocation.rank = problem(variables.shown("FLUX_TASK_RANK") + ": there are " +
                              std::to_string(nodes) + " nodes (FLUX_JOB_NNODES)");
  (void)offers_pmi(variables, allocation);
  allocation.endpoint = problem("no variable of Flux names the nodes of the job (FLUX_JOB_ID)");
  return allocation;
}

// The script of flux batch or flux alloc runs on one node, and nothing says how many there are.
std::optional<Allocation> flux_script(const Variables& variables) {
  if (!variables.has("FLUX_URI") || variables.around().nodes_given) return std::nullopt;
  Allocation allocation;
  allocation.scheduler = "Flux";
  allocation.nodes = value("1", "FLUX_URI");
  allocation.note =
      "this is a job of this node alone: in an instance of Flux (FLUX_URI), and started by no flux "
      "run; flux run -N NODES -n NODES --exclusive drun ... starts one on each node";
  return allocation;
}

}  // namespace drun::launcher::cluster
