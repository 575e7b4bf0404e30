// --cluster: what the scheduler that started this process knows becomes settings, below all flags
// and variables of drun's own.
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/environment_variable.hpp"
#include "base/whole_number.hpp"
#include "cli/usage_error.hpp"
#include "launcher/cluster/cluster.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/flags.hpp"
#include "launcher/command_line/rdzv_conf.hpp"
#include "launcher/command_line/values.hpp"

namespace drun::launcher {
namespace {

bool is_given(const cli::GivenFlags& flags, std::string_view name) {
  const cli::Setting* setting = flags.find(name);
  return setting != nullptr && !setting->value.empty();
}

// A launcher's worker inherits the variables of the scheduler, and is none of its tasks.
bool in_a_worker(const std::vector<std::string>& environment) {
  return environment_variable(environment, "DRUN_ROUND") ||
         environment_variable(environment, "TORCHELASTIC_RUN_ID");
}

// What the user has said himself.
struct Said {
  bool alone = false;  // this node is the job
  bool nodes = false;
  bool endpoint = false;
  bool rank = false;
  bool id = false;
  int min_nodes = 1;
};

Said what_is_said(const cli::GivenFlags& flags) {
  Said said;
  const cli::Setting* nodes = flags.find("nnodes");
  said.nodes = nodes != nullptr;
  int max_nodes = 0;
  if (nodes != nullptr) {
    const NodeNumbers numbers = parse_nodes(*nodes);
    said.min_nodes = numbers.least;
    max_nodes = numbers.most;
  }
  said.alone = flags.on("standalone") || flags.find("local-nodes") != nullptr ||
               is_private(flags) || (max_nodes == 1 && replica_groups(flags) == 0);
  // A cluster of etcd is no node of the job.
  const cli::Setting* backend = filled(flags, "rdzv-backend");
  said.endpoint = is_given(flags, "rdzv-endpoint") || is_given(flags, "master-addr") ||
                  (backend != nullptr && backend->value.starts_with("etcd"));
  const cli::Setting* conf = flags.find("rdzv-conf");
  said.rank = is_given(flags, "node-rank") || (conf != nullptr && parse_conf(*conf).rank);
  said.id = is_given(flags, "rdzv-id");
  return said;
}

// Present and unreadable: what follows from a guess is a job of one node on each of them.
void require(const cluster::Allocation& allocation, const cluster::Value& value,
             const std::string& flag) {
  if (value.problem.empty()) return;
  throw cli::UsageError(std::string(allocation.scheduler) + ": " + value.problem + "; give " +
                        flag + ", or --cluster none for a job of this node alone");
}

// Its nodes are those of all groups, which have equally many.
void share_nodes(const cli::GivenFlags& flags, cluster::Allocation& allocation) {
  const int groups = replica_groups(flags);
  const int nodes = whole_number<int>(allocation.nodes.text).value_or(0);
  if (nodes <= 1) return;  // all groups are on this one
  if (nodes % groups != 0)
    refuse(*flags.find("replica-groups"),
           std::string(allocation.scheduler) + " has " + allocation.nodes.text +
               " nodes for this job (" + allocation.nodes.from + "), which do not make " +
               std::to_string(groups) +
               " groups of the same size; --nnodes says how many each group has");
  allocation.nodes.text = std::to_string(nodes / groups);
}

void refuse_too_many_groups(const cli::GivenFlags& flags, const cluster::Allocation& allocation) {
  const cli::Setting& asked = *flags.find("nnodes");
  const int groups = replica_groups(flags);
  const int nodes = whole_number<int>(allocation.nodes.text).value_or(0);
  if (nodes > 1 && static_cast<std::int64_t>(parse_nodes(asked).most) * groups > nodes)
    refuse(asked, std::string(allocation.scheduler) + " has " + allocation.nodes.text +
                      " nodes for this job (" + allocation.nodes.from + "), too few for " +
                      std::to_string(groups) + " groups of so many");
}

// Set for what drun starts outside of steps: if the step cannot be told from its environment, it
// would start another, and so on without end.
constexpr std::string_view kStartedFor = "DRUN_STARTED_FOR";

std::string own_job(const std::vector<std::string>& environment) {
  return environment_variable(environment, "SLURM_JOB_ID").value_or("");
}
std::string start_mark(const std::vector<std::string>& environment) {
  return std::string(kStartedFor) + "=" + own_job(environment);
}
bool started_already(const std::vector<std::string>& environment) {
  const auto job = environment_variable(environment, kStartedFor);
  return job && *job == own_job(environment);
}

// drun-launch is a link beside drun.
std::string own_file(const Host& host, bool launch) {
  std::string file = host.program_file ? host.program_file() : "drun";
  if (launch) file = file.substr(0, file.rfind('/') + 1) + "drun-launch";
  return file;
}

// Outside of the steps of its scheduler this drun starts one on each node, and is none of them.
Inferred start_instead(cli::GivenFlags& flags, const cluster::Allocation& allocation,
                       const Said& said, const std::string& program) {
  const cluster::StartCommand& start = *allocation.start;
  const std::string scheduler(allocation.scheduler);
  const int nodes = whole_number<int>(allocation.nodes.text).value_or(0);
  const cli::Setting* const asked = flags.find("nnodes");
  if (said.min_nodes > nodes)
    refuse(*asked, scheduler + " has " + allocation.nodes.text + " nodes for this job (" +
                       allocation.nodes.from + "); to meet others, give --rdzv-endpoint");
  if (said.rank) {
    const cli::Setting* const rank = filled(flags, "node-rank");
    refuse(rank != nullptr ? *rank : *flags.find("rdzv-conf"),
           "drun is started on " + allocation.nodes.text + " nodes; each has its own rank");
  }
  const bool counted = workers_are_counted(flags);
  if (!start.uneven.empty() && !counted)
    throw cli::UsageError(start.uneven + "; --nnodes 1 is a job of this one alone");
  Inferred result;
  result.instead = start.words;
  const NodeNumbers numbers = asked != nullptr ? parse_nodes(*asked) : NodeNumbers{nodes, nodes, 1};
  if (numbers.least != nodes || numbers.most != nodes)
    result.instead.insert(result.instead.end(), start.elastic_words.begin(),
                          start.elastic_words.end());
  std::string shown;
  for (const std::string& word : result.instead)
    shown += " " + word;
  result.line = scheduler + ": " + allocation.nodes.text + " nodes (" + allocation.nodes.from +
                "), and this is no step; starting drun on each:" + shown + " drun ...";
  result.instead.push_back(program);
  if (start.workers > 0 && !counted) {
    const std::string workers = std::to_string(start.workers);
    result.instead.insert(result.instead.end(), {"--nproc-per-node", workers});
    flags.set({drun_program(false).find("nproc-per-node"), cli::Source::Inferred,
               "SLURM_TASKS_PER_NODE", workers});
  }
  if (asked == nullptr)
    flags.set({drun_program(false).find("nnodes"), cli::Source::Inferred, allocation.nodes.from,
               allocation.nodes.text});
  return result;
}

// Hydra and Flux list no hosts, but pass on a word from one task to all.
void ask_rank_zero(const Host& host, cluster::Allocation& allocation) {
  if (!allocation.pmi_fd || !host.by_pmi || !allocation.rank.problem.empty()) return;
  const auto answer =
      host.by_pmi(*allocation.pmi_fd, allocation.rank.text == "0", allocation.pmi_host);
  if (!answer) {
    allocation.endpoint.problem = answer.error().what();
    return;
  }
  allocation.endpoint = {cluster::endpoint_of(answer->text, answer->space), "PMI_FD", ""};
  allocation.id = {answer->space, "PMI_FD", ""};
}

class Inference {
 public:
  Inference(cli::GivenFlags& flags, std::string_view scheduler)
      : flags_(flags), line_(std::string(scheduler) + ":") {}

  // `words` of the line, with the value between them.
  void set(std::string_view flag, const cluster::Value& value, std::string_view before,
           std::string_view after = "") {
    flags_.set({drun_program(false).find(flag), cli::Source::Inferred, value.from, value.text});
    line_ += (any_ ? ", " : " ") + std::string(before) + value.text + std::string(after) + " (" +
             value.from + ")";
    any_ = true;
  }
  [[nodiscard]] std::string line() const { return any_ ? line_ : ""; }

 private:
  cli::GivenFlags& flags_;
  std::string line_;
  bool any_ = false;
};

}  // namespace

bool workers_are_counted(const cli::GivenFlags& flags) {
  for (const char* flag : {"nproc-per-node", "gpu-ids", "include", "exclude"})
    if (flags.find(flag) != nullptr) return true;
  return false;
}

Inferred infer_place(cli::GivenFlags& flags, bool launch,
                     const std::vector<std::string>& environment, const Host& host) {
  const cli::Setting* choice = flags.find("cluster");
  const std::string which = choice != nullptr ? choice->value : "auto";
  if (choice != nullptr) (void)parse_choice(*choice);
  const Said said = what_is_said(flags);
  if (which == "none" || said.alone) return {};
  const bool named = which != "auto";
  if (!named && ((said.nodes && said.endpoint) || in_a_worker(environment))) return {};
  auto allocation = cluster::find_allocation(
      which,
      {environment, host.read_file, host.host_name ? host.host_name() : "", said.nodes, named});
  if (!allocation) {
    if (named) refuse(*choice, "nothing in the environment tells of it");
    return {};
  }
  const bool in_groups = replica_groups(flags) > 0;
  const bool again = started_already(environment);
  if (allocation->start && !again && !in_groups) {
    Inferred result = start_instead(flags, *allocation, said, own_file(host, launch));
    result.mark = start_mark(environment);
    return result;
  }
  if (allocation->start && !again) {
    const cli::Setting& groups = *flags.find("replica-groups");
    throw cli::UsageError(groups.shown + ": started by no srun, on one of the job's " +
                          allocation->nodes.text + " nodes (" + allocation->nodes.from +
                          "); this starts the groups on all of them: drun --launcher srun "
                          "--replica-groups " +
                          groups.value + " ...");
  }
  if (!allocation->refusal.empty())
    throw cli::UsageError(allocation->refusal +
                          (again && allocation->start
                               ? "; drun has done so, and in what was started the variables "
                                 "of the step (SLURM_STEP_ID) are missing"
                           : again ? "; drun itself has started this step"
                                   : "; --nnodes 1 is a job of this one alone"));
  Inferred result;
  if (!allocation->note.empty()) result.notes.push_back(allocation->note);
  if (!said.nodes) require(*allocation, allocation->nodes, "--nnodes");
  const bool one = allocation->nodes.text == "1";
  if (one && !said.nodes) {
    Inference inference(flags, allocation->scheduler);
    if (!allocation->workers.text.empty() && !in_groups && !workers_are_counted(flags))
      inference.set("nproc-per-node", allocation->workers, "", " workers");
    result.line = inference.line();
    return result;
  }
  if (one && !said.endpoint && said.min_nodes > 1)
    refuse(*flags.find("nnodes"), std::string(allocation->scheduler) +
                                      " has one node for this job (" + allocation->nodes.from +
                                      "); to meet others, give --rdzv-endpoint");
  Inference inference(flags, allocation->scheduler);
  if (!said.nodes && in_groups) share_nodes(flags, *allocation);
  if (said.nodes && in_groups && !said.endpoint) refuse_too_many_groups(flags, *allocation);
  if (!said.nodes)
    inference.set("nnodes", allocation->nodes, "", in_groups ? " nodes in each group" : " nodes");
  if (!said.endpoint) {
    ask_rank_zero(host, *allocation);
    require(*allocation, allocation->endpoint, "--rdzv-endpoint");
  }
  if (!said.rank && !said.endpoint) require(*allocation, allocation->rank, "--node-rank");
  if (!said.rank && allocation->rank.problem.empty()) {
    inference.set("node-rank", allocation->rank, "this is node ");
    result.one_rank_a_host = allocation->one_rank_a_host;
  }
  if (!said.endpoint) inference.set("rdzv-endpoint", allocation->endpoint, "meeting at ");
  if (!said.id && !allocation->id.text.empty()) inference.set("rdzv-id", allocation->id, "job ");
  result.line = inference.line();
  return result;
}

Options build_instead(const BuildInput& given, Inferred allocation,
                      const std::vector<std::string>& arguments) {
  cli::GivenFlags flags = given.flags;
  const bool nobody_says =
      filled(flags, "rdzv-endpoint") == nullptr && filled(flags, "master-addr") == nullptr;
  if (nobody_says)
    flags.set({drun_program(false).find("rdzv-endpoint"), cli::Source::Inferred, "",
               "first-node:29400"});  // each node finds out which
  if (filled(flags, "rdzv-id") == nullptr)
    flags.set({drun_program(false).find("rdzv-id"), cli::Source::Inferred, "", "job"});
  Options options =
      build_elsewhere({flags, given.program, given.environment, given.host, given.launch});
  options.makes_token = nobody_says && options.backend != Backend::Etcd;
  options.instead = std::move(allocation.instead);
  options.instead_mark = std::move(allocation.mark);
  options.instead.insert(options.instead.end(), arguments.begin() + 1, arguments.end());
  return options;
}

}  // namespace drun::launcher
