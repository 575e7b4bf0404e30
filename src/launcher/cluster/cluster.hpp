// Where a job runs, from the variables of the scheduler that started this process: how many nodes,
// which of them this is, where they can meet. A pure function of an environment and of the files
// that it reads; no name server, no network and no scheduler is asked.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::launcher::cluster {

// One value as the command line would have it, or why there is none.
struct Value {
  std::string text;
  std::string from;     // the variable that says so
  std::string problem;  // a sentence that names the variable; empty: `text` holds
};

// A command that starts one drun on each node of the job, if drun's file, these flags and its
// arguments are put behind it.
struct StartCommand {
  std::vector<std::string> words;
  std::vector<std::string> elastic_words;  // with a job that goes on without a node
  int workers = 0;     // on each node, that the job asks for; 0: it does not say
  std::string uneven;  // it asks for another number on each: why the user must say; else empty
};

struct Allocation {
  std::string_view scheduler;  // for people: "Slurm"
  Value nodes;                 // "4"
  Value workers;               // with one node: as many as the job asks for there; may be empty
  Value rank;                  // of this node, "0" to "3"
  Value endpoint;              // "node1:24711": an address that all nodes choose alike
  Value id;                    // the same on all nodes, another one in each run
  // The endpoint can be told by the task of rank 0 to all others: exchange_by_pmi() with this
  // descriptor and, in that task, this name of its host. `endpoint` says why it must be.
  std::optional<int> pmi_fd;
  std::string pmi_host;
  // `rank` is the place of this host in a list: who asks for it as well is another drun of one
  // host.
  bool one_rank_a_host = false;
  std::string refusal;  // why drun must not run here at all; which command line to use instead
  // With `refusal`: what drun may do instead, in place of itself. `nodes` says on how many.
  std::optional<StartCommand> start;
  std::string note;  // what the user should know beside that
};

struct SchedulerInput {
  std::vector<std::string> environment;  // "NAME=value"
  // The error says why the file cannot be read. It may be asked for files that the variables name,
  // and for what /proc says of this process's ancestors.
  std::function<Result<std::string>(const std::string& path)> read_file;
  std::string host_name;     // this machine's
  bool nodes_given = false;  // the user says how many nodes take part
  bool named = false;        // the user names the scheduler: drun was started on each node
};

// For --cluster, with blanks between: whichever there is, none, or one by name.
inline constexpr std::string_view kSchedulerChoices =
    "auto none slurm openmpi hydra mvapich pals jsrun flux kubernetes lws volcano operator "
    "sagemaker azureml vertex lepton lsf pbs sge cobalt";

// When somebody else ends the job, in Unix seconds: DRUN_JOB_END_TIME, which a drun around this
// process or the user has set, or SLURM_JOB_END_TIME. Empty: nobody says so.
inline constexpr std::string_view kJobEnd = "DRUN_JOB_END_TIME";
[[nodiscard]] Value find_job_end(const std::vector<std::string>& environment);

// Where nodes meet that know but a name in common.
[[nodiscard]] std::string endpoint_of(const std::string& host, const std::string& id);

// The allocation of Slurm that this process is in, by no srun.
struct StepNodes {
  std::vector<std::string> hosts;  // those that it may start steps on
  std::vector<int> tasks;          // that the job asks for on each; empty: it does not say
  std::string srun_option;         // for all GPUs of a node; empty: srun gives them by itself
};
// The error says, after the name of a flag, what is missing.
[[nodiscard]] Result<StepNodes> nodes_for_steps(const SchedulerInput& around);

// What `which` of them says; with "auto", the one that started this process itself. Nullopt: there
// is none. If an Allocation says that there is one node, nothing else of it matters.
[[nodiscard]] std::optional<Allocation> find_allocation(std::string_view which,
                                                        const SchedulerInput& around);

}  // namespace drun::launcher::cluster
