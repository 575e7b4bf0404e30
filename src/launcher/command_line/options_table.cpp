#include "launcher/command_line/options_table.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace drun::launcher {
namespace {

using enum Arity;
using enum Group;
using enum Readiness;

constexpr auto kTorch = Origin::Torchrun;
constexpr auto kDrun = Origin::Drun;

// A flag that starts to work changes Later to Ready here; nothing else.
// clang-format off
constexpr std::array kFlags{
    Flag{"nnodes", 0, Value, "N|MIN:MAX", "1", kTorch, Job, Ready, "",
         "nodes that take part; with MIN:MAX the job starts with MIN and grows to MAX"},
    Flag{"nproc-per-node", 0, Value, "N|auto|cpu|gpu|xpu", "1", kTorch, Job, Ready, "auto cpu gpu xpu",
         "workers on this node; auto: one per GPU, else one per usable CPU"},
    Flag{"local-nodes", 0, Value, "N", "", kDrun, Job, Ready, "",
         "start N agents on this machine as if they were N nodes"},
    Flag{"max-restarts", 0, Value, "N", "0", kTorch, Job, Ready, "",
         "restart the whole job up to N times after a failure"},
    Flag{"role", 0, Value, "NAME", "default", kTorch, Job, Ready, "",
         "what this node's workers are called in ROLE_NAME"},
    Flag{"resize", 0, Value, "now|restart", "now", kDrun, Job, Ready, "now restart",
         "a node that joins a running MIN:MAX job is taken in now, or at the next restart"},
    Flag{"rank-order", 0, Value, "keep|host|join", "keep", kDrun, Job, Ready, "keep host join",
         "order of the nodes that asked for no rank"},

    Flag{"rdzv-endpoint", 0, Value, "HOST[:PORT]", "", kTorch, Rendezvous, Ready, "",
         "where the nodes meet; the node that has this address carries the store (port 29400)"},
    Flag{"rdzv-id", 0, Value, "ID", "none", kTorch, Rendezvous, Ready, "",
         "the job's name at the endpoint: two jobs need two"},
    Flag{"rdzv-backend", 0, Value, "c10d|static", "", kTorch, Rendezvous, Ready, "c10d static",
         "how nodes meet; c10d with --rdzv-endpoint, static with --master-addr"},
    Flag{"rdzv-conf", 0, Value, "KEY=VALUE,...", "", kTorch, Rendezvous, Ready, "",
         "time limits in seconds: join_timeout=600, last_call_timeout=30 and others"},
    Flag{"standalone", 0, Switch, "", "", kTorch, Rendezvous, Ready, "",
         "one node with a private store on a free port; the default without an endpoint"},
    Flag{"node-rank", 0, Value, "RANK", "", kTorch, Rendezvous, Ready, "",
         "the rank that this node asks for"},
    Flag{"master-addr", 0, Value, "HOST", "", kTorch, Rendezvous, Ready, "",
         "static: address of the node of rank 0 (127.0.0.1)"},
    Flag{"master-port", 0, Value, "PORT", "", kTorch, Rendezvous, Ready, "",
         "static: port at --master-addr (29500); else: fixes MASTER_PORT"},
    Flag{"local-addr", 0, Value, "ADDRESS", "", kTorch, Rendezvous, Ready, "",
         "how the other nodes reach this one: an address, a name or an interface"},
    Flag{"worker-store", 0, Value, "agent|rank0", "agent", kDrun, Rendezvous, Ready, "agent rank0",
         "who serves MASTER_PORT: drun, or the worker of rank 0"},

    Flag{"module", 'm', Switch, "", "", kTorch, Program, Ready, "",
         "the program is a Python module: python3 -u -m MODULE"},
    Flag{"no-python", 0, Switch, "", "", kTorch, Program, Ready, "",
         "run a file that ends in .py itself instead of through Python"},
    Flag{"run-path", 0, Switch, "", "", kTorch, Program, Ready, "",
         "the program is a Python script, whatever its name ends in"},
    Flag{"use-env", 0, Switch, "", "", Origin::Launch, Program, Ready, "",
         "drun-launch only: do not add --local-rank=N to the program's arguments"},

    Flag{"shutdown-timeout", 0, Value, "TIME", "30", kTorch, Stopping, Ready, "",
         "time between the stop signal and SIGKILL"},
    Flag{"signals-to-handle", 0, Value, "SIGNALS", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", kTorch, Stopping, Ready, "",
         "signals to drun that stop the job"},
    Flag{"stop-signal", 0, Value, "SIGNAL", "", kDrun, Stopping, Ready, "",
         "what workers get first; unset: what stopped drun, or SIGTERM"},
    Flag{"forward-signals", 0, Value, "SIGNALS", "", kDrun, Stopping, Ready, "",
         "signals passed on to the workers while the job runs on"},
    Flag{"exit-code", 0, Value, "root|first|max", "root", kDrun, Stopping, Ready, "root first max",
         "whose code drun gives: the first failure's, the lowest rank's or the highest"},
    Flag{"restart-on", 0, Value, "LIST", "", kDrun, Stopping, Ready, "",
         "restart only after these: codes, ranges and signals, as in 1-9,137,SIGKILL"},
    Flag{"no-restart-on", 0, Value, "LIST", "", kDrun, Stopping, Ready, "",
         "never restart after these"},
    Flag{"timeout", 0, Value, "TIME", "", kDrun, Stopping, Ready, "",
         "end the job after this long, as in 90, 5m or 1h30m; exit code 124"},
    Flag{"start-timeout", 0, Value, "TIME", "", kDrun, Stopping, Ready, "",
         "end the job unless all workers run after this long; exit code 124"},

    Flag{"local-ranks-filter", 0, Value, "RANKS", "", kTorch, Output, Ready, "",
         "show only the output of these local ranks"},
    Flag{"log-line-prefix-template", 0, Value, "TEXT", "[${role_name}${local_rank}]:", kTorch, Output, Ready, "",
         "prefix of --tee; may use ${role_name} ${local_rank} ${rank} ${hostname}"},
    Flag{"timestamps", 0, Switch, "", "", kDrun, Output, Ready, "",
         "put the time before each line shown"},
    Flag{"fold", 0, Switch, "", "", kDrun, Output, Ready, "",
         "show a line that many ranks print once"},
    Flag{"tail-lines", 0, Value, "N", "20", kDrun, Output, Ready, "",
         "last lines of stderr in the failure report"},
    Flag{"report", 0, Value, "FILE", "", kDrun, Output, Ready, "FILE",
         "write the failure report as JSON"},
    Flag{"stdin", 0, Value, "RANK|none", "0", kDrun, Output, Ready, "none",
         "the rank that reads drun's standard input"},

    Flag{"redirects", 'r', Value, "STREAMS", "0", kTorch, Logs, Ready, "",
         "write to files instead: 1 stdout, 2 stderr, 3 both; or per local rank, 0:3,1:1"},
    Flag{"tee", 't', Value, "STREAMS", "0", kTorch, Logs, Ready, "",
         "write to files as well, and prefix the lines shown; values as --redirects"},
    Flag{"log-dir", 0, Value, "DIR", "", kTorch, Logs, Ready, "DIR",
         "where those files go"},
    Flag{"duplicate-stdout-filters", 0, Value, "TEXTS", "", kTorch, Logs, Ready, "",
         "copy --tee lines with any of these texts to filtered_stdout.log"},
    Flag{"duplicate-stderr-filters", 0, Value, "TEXTS", "", kTorch, Logs, Ready, "",
         "copy --tee lines with any of these texts to filtered_stderr.log"},
    Flag{"log-max-size", 0, Value, "SIZE", "", kDrun, Logs, Ready, "",
         "start a new log file at this size, as in 500K, 100M or 2G"},
    Flag{"gpus", 0, Value, "LIST", "", kDrun, Devices, Ready, "",
         "use these of the visible GPUs, as in 1,3,5; one worker each"},
    Flag{"include", 0, Value, "HOST:LIST", "", kDrun, Devices, Ready, "",
         "as --gpus, in DeepSpeed's spelling: localhost:1,3"},
    Flag{"exclude", 0, Value, "HOST:LIST", "", kDrun, Devices, Ready, "",
         "use all visible GPUs but these: localhost:0"},
    Flag{"virtual-local-rank", 0, Switch, "", "", kTorch, Devices, Ready, "",
         "each worker sees its own GPU only, as LOCAL_RANK 0"},
    Flag{"numa-binding", 0, Value, "KIND", "", kTorch, Devices, Ready, "node socket exclusive core-complex",
         "bind each worker to CPUs: node, socket, exclusive or core-complex"},
    Flag{"report-bindings", 0, Switch, "", "", kDrun, Devices, Ready, "",
         "say which CPUs each worker is bound to"},
    Flag{"omp-threads", 0, Value, "N|auto", "", kDrun, Devices, Ready, "auto",
         "OMP_NUM_THREADS of each worker; auto: usable cores divided by workers"},

    Flag{"dry-run", 0, Switch, "", "", kDrun, Inspect, Ready, "",
         "print who would run where, with which environment and command; start nothing"},
    Flag{"explain", 0, Switch, "", "", kDrun, Inspect, Ready, "",
         "print every setting, its value and where it came from; start nothing"},
    Flag{"verbose", 'v', Switch, "", "", kDrun, Inspect, Ready, "",
         "log more"},
    Flag{"quiet", 0, Switch, "", "", kDrun, Inspect, Ready, "",
         "log errors only"},
    Flag{"help", 'h', Switch, "", "", kTorch, Inspect, Ready, "",
         "this help"},
    Flag{"help-all", 0, Switch, "", "", kDrun, Inspect, Ready, "",
         "all flags, also those of no effect"},
    Flag{"version", 0, Switch, "", "", kDrun, Inspect, Ready, "",
         "print the version"},
    Flag{"print-completion", 0, Value, "SHELL", "", kTorch, Inspect, Ready, "bash zsh fish",
         "print a completion script for bash, zsh or fish"},
    Flag{"print-man", 0, Switch, "", "", kDrun, Inspect, Ready, "",
         "print the manual page"},

    Flag{"monitor-interval", 0, Value, "SECONDS", "", kTorch, Compatibility, Ready, "",
         "no effect: drun hears of a worker's end at once"},
    Flag{"start-method", 0, Value, "METHOD", "spawn", kTorch, Compatibility, Ready, "spawn fork forkserver",
         "no effect: every worker is a program of its own"},
    Flag{"event-log-handler", 0, Value, "NAME", "null", kTorch, Compatibility, Ready, "null console",
         "no effect: drun writes its own log"},
    Flag{"logs-specs", 0, Value, "NAME", "default", kTorch, Compatibility, Ready, "default",
         "only default: drun loads no Python plug-in"},
};
// clang-format on

}  // namespace

std::span<const Flag> all_flags() {
  return kFlags;
}

const Flag* find_flag(std::string_view name) {
  const auto* found = std::find_if(kFlags.begin(), kFlags.end(),
                                   [&](const Flag& flag) { return flag.name == name; });
  return found == kFlags.end() ? nullptr : found;
}

bool has_variable(const Flag& flag) {
  return flag.name != "help" && flag.name != "help-all" && flag.name != "version" &&
         flag.name != "print-completion" && flag.name != "print-man" && flag.name != "use-env";
}

std::string variable_of(const Flag& flag) {
  std::string result = "PET_";
  for (const char c : flag.name) {
    result += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return result;
}

std::string_view title_of(Group group) {
  switch (group) {
    case Job:
      return "The job";
    case Rendezvous:
      return "How nodes find one another";
    case Program:
      return "The program";
    case Stopping:
      return "Stopping, restarting and exit codes";
    case Output:
      return "Output and reports";
    case Logs:
      return "Log files";
    case Devices:
      return "Devices, CPUs and threads";
    case Inspect:
      return "Looking before running";
    case Compatibility:
      return "Accepted because torchrun has them";
  }
  return "";
}

}  // namespace drun::launcher
