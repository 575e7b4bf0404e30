#include "launcher/command_line/flags.hpp"

#include <array>

#include "launcher/cluster/cluster.hpp"
#include "launcher/command_line/conf_keys.hpp"
#include "launcher/command_line/manual.hpp"

namespace drun::launcher {
namespace {

using cli::Flag;

constexpr auto kTorch = cli::Origin::Torchrun;
constexpr auto kDrun = cli::Origin::Own;

constexpr std::string_view kJob = "The job";
constexpr std::string_view kGroups = "Replica groups";
constexpr std::string_view kHostsGroup = "Other hosts";
constexpr std::string_view kFitness = "Nodes that are not fit";
constexpr std::string_view kProgram = "The program";
constexpr std::string_view kStopping = "Stopping, restarting and exit codes";
constexpr std::string_view kLimits = "Time limits";
constexpr std::string_view kHangs = "Hangs";
constexpr std::string_view kOutput = "Output and reports";
constexpr std::string_view kWatching = "Watching the job";
constexpr std::string_view kLogs = "Log files";
constexpr std::string_view kDevices = "Devices, CPUs and threads";
constexpr std::string_view kInspect = "Looking before running";
constexpr std::string_view kCompatibility = "Accepted because torchrun has them";

// Offered by completions; others work as well.
constexpr std::string_view kSignal = "SIGTERM SIGINT SIGHUP SIGQUIT SIGUSR1 SIGUSR2";
constexpr std::string_view kSignals = ",SIGTERM SIGINT SIGHUP SIGQUIT SIGUSR1 SIGUSR2";
constexpr std::string_view kEnds = ",SIGKILL SIGSEGV SIGABRT SIGBUS SIGTERM";
constexpr std::string_view kStreams = "0 1 2 3";

// clang-format off
constexpr std::array kFlags{
    Flag{"nnodes", 0, "N|MIN:MAX[:STEP]", "1", kTorch, kJob, "",
         "nodes that take part; with MIN:MAX the job starts with MIN and grows to MAX, by STEP"},
    Flag{"nproc-per-node", 0, "N|auto|cpu|gpu|xpu", "1", kTorch, kJob, "auto cpu gpu xpu",
         "workers on this node; auto: one per GPU, else one per usable CPU; -n: only in a job of one node"},
    Flag{"local-nodes", 0, "N", "", kDrun, kJob, "",
         "start N agents on this machine as if they were N nodes"},
    Flag{"cluster", 0, "NAME", "auto", kDrun, kJob, cluster::kSchedulerChoices,
         "the scheduler that says which nodes take part: slurm, openmpi and so on; or none"},
    Flag{"max-restarts", 0, "N", "0", kTorch, kJob, "",
         "restart the whole job up to N times after a failure"},
    Flag{"max-losses", 0, "N", "", kDrun, kJob, "",
         "end the job when nodes are lost in more than N rounds; a loss spends no restart"},
    Flag{"min-runtime", 0, "TIME", "", kDrun, kJob, "",
         "a round that is stopped sooner spends a restart"},
    Flag{"role", 0, "NAME", "default", kTorch, kJob, "",
         "the ROLE_NAME of this node's workers", false, false, true},
    Flag{"resize", 0, "now|restart", "now", kDrun, kJob, "now restart",
         "a node that joins a running MIN:MAX job is taken in now, or at the next restart"},
    Flag{"rank-order", 0, "keep|host|join|topology", "keep", kDrun, kJob, "keep host join topology",
         "how the nodes without --node-rank are ordered; topology: by the network's switches"},
    Flag{"topology-file", 0, "FILE", "", kDrun, kJob, "FILE",
         "the switches, in a file like Slurm's topology.conf"},

    Flag{"replica-groups", 0, "G", "", kDrun, kGroups, "",
         "run G independent worlds (for torchft); --nnodes, --local-nodes and restarts count for each"},
    Flag{"replica-group-id", 0, "N", "", kDrun, kGroups, "",
         "the group that this node belongs to, from 0; otherwise --node-rank says it"},
    Flag{"lighthouse", 0, "COMMAND", "", kDrun, kGroups, "",
         "start this beside the groups, as in 'torchft_lighthouse --min_replicas 1'; it ends with them"},

    Flag{"host", 'H', "HOSTS", "", kDrun, kHostsGroup, "",
         "start the agents on these hosts over ssh, as in node1:4,gpu[0-3]:8; the number is the workers there; "
         "may be given several times", false, true},
    Flag{"hostfile", 0, "FILE", "", kDrun, kHostsGroup, "FILE",
         "the same from a file of DeepSpeed's, Open MPI's or MPICH's: a host a line"},
    Flag{"export", 'x', "NAME[=VALUE]", "", kDrun, kHostsGroup, "",
         "pass this variable on to the hosts, or set it there; may be given several times", false, true},
    Flag{"env-file", 0, "FILE", "", kDrun, kHostsGroup, "FILE",
         "the same for each line of a file"},
    Flag{"launcher", 0, "COMMAND", "ssh", kDrun, kHostsGroup, "ssh srun",
         "the command that runs drun on a host: 'ssh -p 2222', 'kubectl exec -i {host} --'; srun: on all nodes of the allocation"},
    Flag{"copy-self", 0, "", "", kDrun, kHostsGroup, "",
         "copy drun itself to hosts that have none of this version, into the user's cache there"},
    Flag{"fan-out", 0, "N", "32", kDrun, kHostsGroup, "",
         "how many hosts are started from here, and by each of those in turn"},

    Flag{"preflight", 0, "off|warn|strict", "warn", kDrun, kFitness, "off warn strict",
         "compare the nodes, and name those that differ; strict: they do not start (exit code 94)"},
    Flag{"exclude-after", 0, "N", "2", kDrun, kFitness, "",
         "a node that cost N restarts by itself gives its place to a spare; 0: never"},
    Flag{"exclude-file", 0, "FILE", "", kDrun, kFitness, "FILE",
         "keep such hosts in this file for later jobs; an entry counts for a day"},

    Flag{"rdzv-endpoint", 0, "HOST[:PORT]", "", kTorch, kRendezvousGroup, "",
         "where the nodes meet; the node with this address runs the store (port 29400); or several: "
         "HOST,HOST"},
    Flag{"rdzv-id", 0, "ID", "none", kTorch, kRendezvousGroup, "",
         "the job's name; give each job at one endpoint its own"},
    Flag{"rdzv-backend", 0, "c10d|static|etcd", "", kTorch, kRendezvousGroup, "c10d static etcd",
         "how nodes meet; c10d with --rdzv-endpoint, static with --master-addr; etcd: at a cluster"},
    Flag{"rdzv-conf", 0, "KEY=VALUE,...", "", kTorch, kRendezvousGroup, kConfChoices,
         "time limits, as in join_timeout=5m, and others: see the manual page"},
    Flag{"standalone", 0, "", "", kTorch, kRendezvousGroup, "",
         "one node with a private store on a free port; the default if nothing says where nodes meet"},
    Flag{"node-rank", 0, "RANK", "", kTorch, kRendezvousGroup, "",
         "the group rank that this node asks for, from 0"},
    Flag{"master-addr", 0, "HOST", "", kTorch, kRendezvousGroup, "",
         "static: address of the node of rank 0 (127.0.0.1)"},
    Flag{"master-port", 0, "PORT", "", kTorch, kRendezvousGroup, "",
         "static: the port at --master-addr (29500); otherwise the workers' MASTER_PORT"},
    Flag{"local-addr", 0, "ADDRESS", "", kTorch, kRendezvousGroup, "",
         "how the other nodes reach this one: an address, a name or an interface"},
    Flag{"worker-store", 0, "agent|local|rank0", "", kDrun, kRendezvousGroup, "agent local rank0",
         "who serves MASTER_PORT: agent: drun at rank 0; local (with a token): drun on each node; rank0: its worker"},

    Flag{"framework", 0, "NAMES", "", kDrun, kProgram, ",jax mpi oneccl tensorflow",
         "set what programs of these expect: jax, mpi (of MPICH's family), oneccl, tensorflow"},
    Flag{"module", 'm', "", "", kTorch, kProgram, "",
         "the program is a Python module: python3 -u -m MODULE"},
    Flag{"no-python", 0, "", "", kTorch, kProgram, "",
         "run a file that ends in .py itself instead of through Python"},
    Flag{"run-path", 0, "", "", kTorch, kProgram, "",
         "the program is a Python script, whatever its name ends in"},
    Flag{"use-env", 0, "", "", cli::Origin::Launch, kProgram, "",
         "drun-launch only: do not add --local-rank=N to the program's arguments"},

    Flag{"shutdown-timeout", 0, "TIME", "30", kTorch, kStopping, "",
         "time between the stop signal and SIGKILL"},
    Flag{"signals-to-handle", 0, "SIGNALS", "SIGTERM,SIGINT,SIGHUP", kTorch, kStopping, kSignals,
         "signals to drun that stop the job; SIGQUIT shows stacks unless named"},
    Flag{"on-sigterm", 0, "leave|stop", "", kDrun, kStopping, "leave stop",
         "on SIGTERM, leave the job (as with MIN:MAX) or stop it"},
    Flag{"stop-signal", 0, "SIGNAL", "", kDrun, kStopping, kSignal,
         "what workers get first (what stopped drun, or SIGTERM)"},
    Flag{"forward-signals", 0, "SIGNALS", "SIGUSR1,SIGUSR2", kDrun, kStopping, kSignals,
         "passed on to the workers"},
    Flag{"exit-code-from", 0, "first-failure|lowest-rank|highest", "first-failure", kDrun, kStopping,
         "first-failure lowest-rank highest",
         "whose code drun gives: the first failure's, the lowest failed rank's or the highest"},
    Flag{"restart-on", 0, "LIST", "", kDrun, kStopping, kEnds,
         "restart only after these: codes, ranges and signals, as in 1-9,137,SIGKILL"},
    Flag{"no-restart-on", 0, "LIST", "", kDrun, kStopping, kEnds,
         "never restart after these"},
    Flag{"keep-shm", 0, "PATTERN", "", kDrun, kStopping, "",
         "never remove files in /dev/shm that match, as in 'psm_*'; may be given several times", false, true},
    Flag{"no-requeue-on", 0, "LIST", "", kDrun, kStopping, kEnds,
         "after these exit with 93, \"do not requeue\", and do not restart"},

    Flag{"timeout", 0, "TIME", "", kDrun, kLimits, "",
         "end the job after this long, as in 90, 5m or 1h30m; exit code 124"},
    Flag{"start-timeout", 0, "TIME", "", kDrun, kLimits, "",
         "end the job if not all workers run after this long; exit code 124"},
    Flag{"warn-before", 0, "SIGNAL@TIME", "", kDrun, kLimits, "",
         "send the workers a signal so long before the job ends, as in USR1@120"},

    Flag{"stacks-on-failure", 0, "TIME|off", "", kDrun, kHangs, "off",
         "show where the other workers are before a failure ends them, for up to TIME; time limits and hangs do so for 10 s"},
    Flag{"hang-timeout", 0, "TIME", "", kDrun, kHangs, "",
         "the job hangs if no rank of it makes progress for so long, by what the kernel says of them"},
    Flag{"on-hang", 0, "restart|stop|report", "restart", kDrun, kHangs, "restart stop report",
         "treat a hang as any failure, as one without a restart, or only warn"},
    Flag{"heartbeat-timeout", 0, "TIME", "", kDrun, kHangs, "",
         "a worker has failed if it gives no further heartbeat (drunctl heartbeat) for so long"},
    Flag{"heartbeat-start-timeout", 0, "TIME", "", kDrun, kHangs, "",
         "the same for its first heartbeat, counted from its start"},
    Flag{"heartbeat-end-timeout", 0, "TIME", "", kDrun, kHangs, "",
         "the same for its exit, counted from its last heartbeat (drunctl heartbeat end)"},

    Flag{"local-ranks-filter", 0, "RANKS", "", kTorch, kOutput, "",
         "show only the output of these local ranks"},
    Flag{"log-line-prefix-template", 0, "TEXT", "[${role_name}${local_rank}]:", kTorch, kOutput, "",
         "prefix of --tee; may use ${role_name} ${local_rank} ${rank} ${hostname}"},
    Flag{"label", 'l', "", "", kDrun, kOutput, "",
         "show each line with the rank that printed it, as in \"3: hello\"; otherwise as --tee 3"},
    Flag{"timestamps", 0, "", "", kDrun, kOutput, "",
         "put the time before each line shown, drun's own too"},
    Flag{"color", 0, "auto|always|never", "auto", kDrun, kOutput, "auto always never",
         "colour drun's own lines on stderr; auto: on a terminal, unless NO_COLOR is set"},
    Flag{"fold", 0, "", "", kDrun, kOutput, "",
         "show a line only once, however many ranks print it"},
    Flag{"tail-lines", 0, "N", "20", kDrun, kOutput, "",
         "how many last lines of stderr the failure report shows"},
    Flag{"report", 0, "FILE", "", kDrun, kOutput, "FILE",
         "write the failure report as JSON"},
    Flag{"events", 0, "FILE|fd:N|exec:COMMAND", "", kDrun, kOutput, "FILE",
         "write what happens, an event a line as JSON; a file may name ${hostname} and ${run_id}"},
    Flag{"on-event", 0, "NAMES:COMMAND", "", kDrun, kOutput, "",
         "run a command at these events, as in failure,end:./tell; may be given several times", false, true},
    Flag{"stdin", 0, "RANK|none", "0", kDrun, kOutput, "none",
         "the rank that reads drun's standard input"},

    Flag{"status-listen", 0, "[ADDRESS:]PORT|unix:PATH", "", kDrun, kWatching, "",
         "serve the job's status here: a page, JSON, metrics, probes; a PORT alone is one of 127.0.0.1"},
    Flag{"token-file", 0, "FILE|none", "", kDrun, kWatching, "FILE",
         "the job's token is in this file, unless it is in DRUN_TOKEN: agents speak TLS, only with who has it too; none: drun makes none either"},
    Flag{"tls-cert", 0, "FILE", "", kDrun, kWatching, "FILE",
         "instead of a token: a certificate in PEM, with its chain; agents speak TLS, only with who has one of the same authorities"},
    Flag{"tls-key", 0, "FILE", "", kDrun, kWatching, "FILE",
         "the key of --tls-cert"},
    Flag{"tls-ca", 0, "FILE", "", kDrun, kWatching, "FILE",
         "the authorities whose certificates are trusted, in PEM"},
    Flag{"metrics-file", 0, "DIR/NAME.prom", "", kDrun, kWatching, "FILE",
         "write metrics for node_exporter's textfile collector, every 10 seconds"},
    Flag{"summary", 0, "", "", kDrun, kWatching, "",
         "say at the end what the ranks have used, and which of them differ"},

    Flag{"redirects", 'r', "STREAMS", "0", kTorch, kLogs, kStreams,
         "write to files instead: 1 stdout, 2 stderr, 3 both; or per local rank, 0:3,1:1"},
    Flag{"tee", 't', "STREAMS", "0", kTorch, kLogs, kStreams,
         "write to files as well, and prefix the lines shown; values as --redirects"},
    Flag{"log-dir", 0, "DIR", "", kTorch, kLogs, "DIR",
         "the folder of the log files of --redirects and --tee"},
    Flag{"duplicate-stdout-filters", 0, "TEXTS", "", kTorch, kLogs, "",
         "copy --tee lines with any of these texts to filtered_stdout.log"},
    Flag{"duplicate-stderr-filters", 0, "TEXTS", "", kTorch, kLogs, "",
         "copy --tee lines with any of these texts to filtered_stderr.log"},
    Flag{"log-max-size", 0, "SIZE", "", kDrun, kLogs, "",
         "start a new log file at this size, as in 500K, 100M or 2G"},
    Flag{"gpu-ids", 0, "LIST|all", "", kDrun, kDevices, "all",
         "use these of the visible GPUs, as in 1,3,5, or all; one worker each"},
    Flag{"include", 0, "HOST:LIST", "", kDrun, kDevices, "",
         "as --gpu-ids, in DeepSpeed's spelling: localhost:1,3"},
    Flag{"exclude", 0, "HOST:LIST", "", kDrun, kDevices, "",
         "use all visible GPUs but these: localhost:0"},
    Flag{"virtual-local-rank", 0, "", "", kTorch, kDevices, "",
         "each worker sees its own GPU only, as LOCAL_RANK 0"},
    Flag{"numa-binding", 0, "KIND", "", kTorch, kDevices, "node socket exclusive core-complex",
         "bind each worker to CPUs: node, socket, exclusive or core-complex"},
    Flag{"report-bindings", 0, "", "", kDrun, kDevices, "",
         "say which CPUs each worker is bound to"},
    Flag{"omp-threads", 0, "N|auto", "", kDrun, kDevices, "auto",
         "OMP_NUM_THREADS of each worker; auto: usable cores divided by workers"},

    Flag{"dry-run", 0, "", "", kDrun, kInspect, "",
         "print who would run where, with which environment and command; start nothing"},
    Flag{"explain", 0, "", "", kDrun, kInspect, "",
         "print what was given and where it came from, then the defaults; start nothing"},
    Flag{"verbose", 'v', "", "", kDrun, kInspect, "",
         "log more"},
    Flag{"quiet", 'q', "", "", kDrun, kInspect, "",
         "log errors only"},
    Flag{"help", 'h', "", "", kTorch, kInspect, "",
         "this help; -h shows only the flags used most", true},
    Flag{"help-all", 0, "", "", kDrun, kInspect, "",
         "all flags, also those of no effect", true},
    cli::version_flag(kInspect),
    cli::completion_flag(kInspect),
    cli::manual_flag(kInspect),

    Flag{"monitor-interval", 0, "TIME", "", kTorch, kCompatibility, "",
         "no effect: drun hears of a worker's end at once"},
    Flag{"start-method", 0, "METHOD", "spawn", kTorch, kCompatibility, "spawn fork forkserver",
         "no effect: every worker is a program of its own"},
    Flag{"event-log-handler", 0, "NAME", "null", kTorch, kCompatibility, "null console",
         "no effect: drun writes its own log"},
    Flag{"logs-specs", 0, "NAME", "default", kTorch, kCompatibility, "default",
         "only default: drun loads no Python plug-in"},
};
// clang-format on

constexpr std::string_view kCounts =
    "--nproc-per-node is the number of workers on each node, --nnodes that of the nodes";
constexpr std::string_view kPlaces =
    "ranks follow the nodes, in the order that --rank-order says; --numa-binding binds the workers "
    "to CPUs";
constexpr std::string_view kFolder = "workers start in drun's own folder: change to it before";
constexpr std::string_view kNotNeeded = "drun needs no flag for it: leave it out";
constexpr std::string_view kInherited =
    "workers inherit drun's environment: set the variable for drun; for other hosts it is -x";

// What users of other launchers type: mpirun, srun, deepspeed, accelerate.
constexpr auto kHabits = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"--token", "a token is no argument, which others can list: DRUN_TOKEN, or --token-file FILE"},
    {"-np", "--nproc-per-node"},
    {"--np", "--nproc-per-node"},
    {"-ppn", "--nproc-per-node"},
    {"--ppn", "--nproc-per-node"},
    {"--ntasks-per-node", "--nproc-per-node"},
    {"--npernode", "--nproc-per-node"},
    {"-npernode", "--nproc-per-node"},
    {"--ntasks", kCounts},
    {"--world-size", kCounts},
    {"--num-gpus", "--nproc-per-node"},
    {"--ngpus", "--nproc-per-node"},
    {"--num-processes", "--nproc-per-node"},
    {"-N", "--nnodes"},
    {"--nodes", "--nnodes"},
    {"--num-nodes", "--nnodes"},
    {"--num-machines", "--nnodes"},
    {"--machine-rank", "--node-rank"},
    {"--main-process-ip", "--master-addr"},
    {"--main-process-port", "--master-port"},
    {"-host", "--host"},
    {"--hosts", "--host"},
    {"-hosts", "--host"},
    {"-hostfile", "--hostfile"},
    {"--machinefile", "--hostfile"},
    {"-machinefile", "--hostfile"},
    {"--nodelist", "--host"},
    {"--env", kInherited},
    {"-env", kInherited},
    {"-genv", kInherited},
    {"--map-by", kPlaces},
    {"-map-by", kPlaces},
    {"--rank-by", kPlaces},
    {"--oversubscribe", kNotNeeded},
    {"-oversubscribe", kNotNeeded},
    {"--allow-run-as-root", kNotNeeded},
    {"-allow-run-as-root", kNotNeeded},
    {"--use-env", "LOCAL_RANK is always set, and no argument is added: leave it out"},
    {"--wdir", kFolder},
    {"-wdir", kFolder},
    {"--chdir", kFolder},
    {"--bind-to", "--numa-binding"},
    {"--bind-cores-to-rank", "--numa-binding"},
    {"--tag-output", "--label"},
    {"--prefix-output", "--label"},
    {"--prepend-rank", "--label"},
    {"-prepend-rank", "--label"},
    {"--output", "--log-dir"},
    {"--output-filename", "--log-dir"},
    {"--output-dir", "--log-dir"},
    {"--enable-each-rank-log", "--log-dir"},
    {"-V", "--version"},
});

// What -h shows.
constexpr auto kBrief = std::to_array<std::string_view>(
    {"nnodes", "nproc-per-node", "local-nodes", "max-restarts", "host", "rdzv-endpoint",
     "node-rank", "module", "timeout", "label", "report", "log-dir", "tee", "dry-run"});

// Spellings of before. --exit-code took root, first and max.
constexpr auto kAliases = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"gpus", "gpu-ids"},
    {"gpu", "gpu-ids"},
    {"exit-code", "exit-code-from"},
});

constexpr auto kWords = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"-n", "nproc-per-node"},
});

// Variables that are not named after their flags: DRUN_CLUSTER, and torchrun's.
constexpr std::array<cli::Variable, 4> kVariables{{
    {"cluster", "DRUN_CLUSTER", "", ""},
    {"shutdown-timeout", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "", ""},
    {"log-line-prefix-template", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "", ""},
    {"worker-store", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1", "rank0"},
}};

constexpr cli::Program kDrunProgram{
    .name = "drun",
    .purpose = "start the workers of a distributed job on this node",
    .usage =
        "drun [flags] PROGRAM [args...]\n"
        "       drun [flags] -m PYTHON_MODULE [args...]\n",
    .about =
        "Starts the workers of a distributed job on this node, together with the drun of\n"
        "every other node: torchrun's flags and environment for any program. A PROGRAM\n"
        "that ends in .py is run by python3 -u; everything after it is the program's.\n\n"
        "  drun --nproc-per-node 4 ./train           one node, four workers\n"
        "  drun --local-nodes 2 ./train              two nodes, tried on this machine\n"
        "  drun -H node1:4,node2:4 ./train           two hosts, over ssh\n"
        "  drun --nnodes 2 --rdzv-endpoint HOST:29500 ./train      on each of two nodes\n",
    .notes =
        "A flag may also be written with underscores, abbreviated as long as it is\n"
        "unique, and, if it sets something, be set by a variable, which it overrides:\n"
        "--max-restarts is also PET_MAX_RESTARTS.\n",
    .flags = kFlags,
    .runs_program = true,
    .launch_name = "drun-launch",
    .minor_group = kCompatibility,
    .variable_prefix = "PET_",
    .variables = kVariables,
    .habits = kHabits,
    .aliases = kAliases,
    .words = kWords,
    .brief = kBrief,
    .manual = manual_text,
};

}  // namespace

cli::Program drun_program(bool launch) {
  cli::Program program = kDrunProgram;
  program.launch = launch;
  return program;
}

}  // namespace drun::launcher
