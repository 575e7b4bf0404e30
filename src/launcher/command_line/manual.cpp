#include "launcher/command_line/manual.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "cli/manual.hpp"
#include "launcher/command_line/conf_keys.hpp"
#include "launcher/command_line/flags.hpp"

namespace drun::launcher {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kExitCodes{{
    {"0", "All workers of all nodes succeeded."},
    {"1-255",
     "What the first worker that failed gave (or as --exit-code-from says), on every node; 128 and "
     "the signal's number if a signal ended it."},
    {"2", "The command line is wrong."},
    {"93", "A worker failed as --no-requeue-on lists it: another run would fail, too."},
    {"94", "This node is not like the others, with --preflight strict."},
    {"124", "A time limit of drun's passed."},
    {"125", "drun itself failed: the store, the rendezvous, the system."},
    {"126", "The program cannot be run."},
    {"127", "The program was not found."},
    {"128+n", "drun was told by signal n to stop the job, or to leave it."},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 25> kWorkerVariables{{
    {"RANK, WORLD_SIZE", "this worker's rank and the number of workers of the job"},
    {"LOCAL_RANK, LOCAL_WORLD_SIZE", "the same on this node"},
    {"GROUP_RANK, GROUP_WORLD_SIZE", "this node's rank and the number of nodes"},
    {"ROLE_NAME, ROLE_RANK, ROLE_WORLD_SIZE", "the same among workers of this --role"},
    {"MASTER_ADDR, MASTER_PORT", "where the workers' store is"},
    {"TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_MAX_RESTARTS", "restarts so far, and allowed"},
    {"TORCHELASTIC_RUN_ID", "the job's id"},
    {"DRUN_MASTER_ADDR",
     "--worker-store local: the address of the node of rank 0, where a program may "
     "open a port of its own"},
    {"DRUN_ROUND", "number of this start of all workers, from 1"},
    {"NODE_RANK, CROSS_RANK, CROSS_SIZE", "this node's rank, and the number of nodes, once more"},
    {"REPLICA_GROUP_ID, NUM_REPLICA_GROUPS", "with --replica-groups: this group, and how many"},
    {"JAX_PROCESS_ID, JAX_NUM_PROCESSES", "RANK and WORLD_SIZE once more"},
    {"TORCHELASTIC_ERROR_FILE", "where the worker may write why it fails; the report quotes it"},
    {"DRUN_HEARTBEAT_FILE", "what the worker may change to say that it makes progress"},
    {"TORCHELASTIC_USE_AGENT_STORE", "True if drun serves MASTER_PORT, False if rank 0 does"},
    {"TORCHELASTIC_SIGNALS_TO_HANDLE", "the signals that drun handles, as torchrun names them"},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1 unless it was set"},
    {"OMP_NUM_THREADS", "1 if several workers run on the node and it was not set"},
    {"DRUN_JOB_END_TIME", "when the job's time is over, in Unix seconds, if drun knows it"},
    {"TORCHELASTIC_TIMER_FILE", "where drun serves torch's file timers, if it was asked to"},
    {"JAX_COORDINATOR_ADDRESS", "MASTER_ADDR:MASTER_PORT, if the worker of rank 0 serves there"},
    {"OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_RANK, "
     "OMPI_COMM_WORLD_LOCAL_SIZE, OMPI_MCA_orte_hnp_uri",
     "with --framework jax: what jax.distributed.initialize() asks for"},
    {"PMI_FD, PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS",
     "with --framework mpi: what programs of MPICH ask for"},
    {"CCL_LOCAL_RANK, CCL_LOCAL_SIZE, CCL_PROCESS_LAUNCHER",
     "with --framework oneccl: what oneCCL asks for"},
    {"TF_CONFIG", "with --framework tensorflow: the workers' endpoints and this worker's index"},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kOwnVariables{{
    {"PET_*", "each sets the flag of that name"},
    {"DRUN_TOKEN", "the job's token, before --token-file: agents speak TLS; workers do not get it"},
    {"PYTHON_EXEC", "the Python for files that end in .py, for -m and --run-path (python3)"},
    {"CUDA_VISIBLE_DEVICES", "and its like: which GPUs there are for gpu, auto and --gpu-ids"},
    {"NO_COLOR, TERM",
     "no colour in drun's own lines if NO_COLOR is not empty, or TERM is dumb; --color wins"},
    {"TMPDIR, TEMP, TMP", "where the workers' error files lie without --log-dir (/tmp)"},
    {"TORCHELASTIC_ERROR_FILE",
     "if a launcher above drun has set it: the failed worker's error file is copied there"},
    {"TORCHELASTIC_ENABLE_FILE_TIMER", "1: serve torch's file timers"},
    {"DRUN_JOB_END_TIME", "when somebody else ends the job, in Unix seconds"},
    {"NCCL_RAS_ADDR", "where NCCL's RAS service listens, if NCCL was told"},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kFiles{{
    {"DIR/RUN/attempt_N/LOCAL_RANK/stdout.log, stderr.log",
     "a worker's output, with --log-dir DIR and --tee or --redirects; N is the restart count"},
    {"DIR/RUN/attempt_N/LOCAL_RANK/error.json", "what the worker wrote about its failure"},
    {"DIR/latest", "leads to the newest RUN"},
}};

template <std::size_t N>
std::string entries(const std::array<std::pair<std::string_view, std::string_view>, N>& list) {
  std::string result;
  for (const auto& [name, text] : list)
    result += cli::troff_entry(name, text);
  return result;
}

std::string conf_entries() {
  std::string result;
  for (const ConfKey& key : kConfKeys) {
    std::string text(key.help);
    if (!key.synonym.empty()) text += "; also " + std::string(key.synonym);
    if (!key.fallback.empty()) text += " (" + std::string(key.fallback) + ")";
    result += cli::troff_entry(key.name, text);
  }
  return result;
}

constexpr std::string_view kSynopsis =
    ".B drun\n[\\fIflags\\fR] \\fIprogram\\fR [\\fIargs\\fR...]\n.br\n"
    ".B drun\n[\\fIflags\\fR] \\fB\\-m\\fR \\fImodule\\fR [\\fIargs\\fR...]\n";

constexpr std::string_view kDescription =
    "drun is started on every node of a job, as torchrun is and with its flags. The nodes meet "
    "at\n"
    "the endpoint and agree on their ranks; each starts its workers with torchrun's variables "
    "in\n"
    "their environment, watches them, and restarts all of them together when one is lost.\n"
    ".PP\n"
    "The program is looked up in PATH. A file that ends in .py is run by\n"
    "\\fB${PYTHON_EXEC:\\-python3} \\-u\\fR. Everything after the program is the program's;\n"
    "\\fB${local_rank}\\fR in it becomes the worker's local rank.\n"
    ".PP\n"
    "A flag may be written with underscores and abbreviated as long as it is unique; the last "
    "of\n"
    "several wins. Each that sets something is also read from a variable, "
    "\\fB\\-\\-max\\-restarts\\fR from\n"
    "\\fBPET_MAX_RESTARTS\\fR; the flag wins.\n";

constexpr std::string_view kExamples =
    ".SH EXAMPLES\n"
    "One node, a worker per GPU:\n"
    ".PP\n.nf\n.RS\ndrun \\-\\-nproc\\-per\\-node gpu train.py\n.RE\n.fi\n.PP\n"
    "Two nodes, the same command on both:\n"
    ".PP\n.nf\n.RS\ndrun \\-\\-nnodes 2 \\-\\-nproc\\-per\\-node 4 \\-\\-rdzv\\-endpoint "
    "node0:29500 ./train\n.RE\n.fi\n.PP\n"
    "The same two nodes, tried on one machine:\n"
    ".PP\n.nf\n.RS\ndrun \\-\\-local\\-nodes 2 \\-\\-nproc\\-per\\-node 4 ./train\n.RE\n.fi\n";

}  // namespace

cli::ManualText manual_text() {
  cli::ManualText text;
  text.synopsis = kSynopsis;
  text.description = kDescription;
  text.group = kRendezvousGroup;
  text.below_group =
      ".PP\nThe keys of \\fB\\-\\-rdzv\\-conf\\fR; times as in 90 (seconds), 1.5, 5m or 1h30m:\n" +
      conf_entries();
  text.sections =
      ".SH \"EXIT STATUS\"\n" + entries(kExitCodes) +
      ".SH ENVIRONMENT\nEvery worker gets, beside what drun itself was started with:\n" +
      entries(kWorkerVariables) + ".PP\ndrun itself reads:\n" + entries(kOwnVariables) +
      cli::troff_variables(drun_program(false)) + ".SH FILES\n" + entries(kFiles) +
      std::string(kExamples);
  return text;
}

}  // namespace drun::launcher
