// What a job was asked to be: drun's command line and environment, understood and checked.
#pragma once

#include <bitset>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ink.hpp"
#include "drun/base/endpoint.hpp"
#include "etcd/etcd_options.hpp"
#include "hang/heartbeats.hpp"
#include "launcher/devices/device_placement.hpp"
#include "launcher/event_sinks/event_choices.hpp"
#include "launcher/hosts/own_words.hpp"
#include "launcher/hosts/start_plan.hpp"
#include "launcher/process/exit_status.hpp"
#include "rendezvous/types.hpp"
#include "secure/certificate.hpp"
#include "secure/tls_context.hpp"
#include "secure/token.hpp"

namespace drun::launcher {

enum class Backend { Standalone, C10d, Static, Etcd };
// Who serves MASTER_PORT: the agent of rank 0 all workers; its worker of rank 0; or the agent of
// each node its own workers, as a relay to the first.
enum class WorkerStore { Agent, Rank0, Local };
// What becomes of a node whose facts differ from the others'.
enum class Preflight { Off, Warn, Strict };

// --rdzv-conf, with torchrun's names if it has them.
struct RendezvousConf {
  std::chrono::milliseconds join_timeout{600'000};  // static: `timeout`, 900 s by default
  std::chrono::milliseconds last_call_timeout{30'000};
  std::chrono::milliseconds close_timeout{30'000};
  std::chrono::milliseconds keep_alive_interval{2'000};
  int keep_alive_max_attempt = 3;
  std::chrono::milliseconds heartbeat_timeout{5'000};
  std::chrono::milliseconds read_timeout{60'000};
  std::optional<bool> is_host;
  // How many nodes may in turn succeed the one with the store; 0: none. See backend_settings.hpp
  // for what it is if it was not given.
  std::optional<int> successors;
  int quorum = 0;  // how many must be left to go on without it; 0: a majority

  bool operator==(const RendezvousConf&) const = default;
};

// Exit codes and signals, as in --restart-on "1-9,137,SIGKILL".
struct ExitSet {
  std::bitset<256> codes;
  std::bitset<65> signals;

  [[nodiscard]] bool contains(const process::ExitStatus& status) const {
    return status.signal != 0 ? signals.test(static_cast<std::size_t>(status.signal))
                              : codes.test(static_cast<std::size_t>(status.code));
  }
  bool operator==(const ExitSet&) const = default;
};

// Which standard streams of which local rank: --redirects and --tee, "3" or "0:3,1:1".
struct StreamChoice {
  static constexpr int kOut = 1;
  static constexpr int kErr = 2;
  int all = 0;  // bits for every local rank that is not in `by_local_rank`
  std::map<int, int> by_local_rank;

  [[nodiscard]] int of(int local_rank) const {
    const auto found = by_local_rank.find(local_rank);
    return found == by_local_rank.end() ? all : found->second;
  }
  [[nodiscard]] bool none() const {
    for (const auto& [rank, bits] : by_local_rank) {
      if (bits != 0) return false;
    }
    return all == 0;
  }
  bool operator==(const StreamChoice&) const = default;
};

struct OutputChoices {
  StreamChoice redirects;
  StreamChoice tee;
  std::string log_dir;  // empty: no log files; "/dev/null": none, and no error file either
  std::optional<std::vector<int>> local_ranks_filter;  // shown on the console; nullopt: all
  // ${role_name} ${local_rank} ${rank} ${hostname}; empty: "[role+local rank]:".
  std::string prefix_template;
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
  bool timestamps = false;
  std::uint64_t log_max_size = 0;  // bytes; 0: no rotation
  bool fold = false;
  std::size_t tail_lines = 20;
  ColorChoice color = ColorChoice::Auto;  // of drun's own words
  hosts::WordMarks own_words;             // around them, for the drun that has started this one
};

// How many take part, and what they are called.
struct JobShape {
  int min_nodes = 1;
  int max_nodes = 1;
  int node_step = 1;  // only multiples of it run; it divides min_nodes and max_nodes
  int nproc_per_node = 1;
  int max_restarts = 0;
  std::optional<int> max_losses;
  std::chrono::milliseconds min_runtime{0};  // of a round that costs nothing; 0: every round
  std::string run_id;
  bool fresh_run_id = false;  // made up for this job; nobody asked for it
  std::string role = "default";
  WorkerStore worker_store = WorkerStore::Agent;
  bool worker_store_chosen = false;  // false: with a token it is Local
  int local_nodes = 0;               // > 0: this many agents on this machine
  int local_node = -1;               // >= 0: this agent is one of them, counted from 0
  int replica_groups = 0;            // > 0: the job is so many worlds, each as the rest says
  int replica_group = -1;  // this drun's, counted from 0; -1: it starts them all, on this machine
};

// How the nodes find each other, and what they agree on.
struct MeetingChoices {
  Backend backend = Backend::Standalone;
  // For C10d, Static and, the first of several, Etcd. Port 0 only with local_nodes > 0: any free
  // port, told to the local agents.
  Endpoint endpoint;
  std::string endpoint_flag = "--rdzv-endpoint";  // that says where it is
  // C10d: all of them, if there are several; `endpoint` is the first.
  std::vector<Endpoint> endpoints;
  etcd::Cluster etcd;  // for Etcd
  RendezvousConf conf;
  std::optional<int> node_rank;              // asked for
  bool node_rank_is_wish = false;            // another will do if it is taken
  std::optional<std::string> local_addr;     // an address or a host name
  std::optional<std::uint16_t> master_port;  // fixes MASTER_PORT; unset: any free port
  rendezvous::Resize resize = rendezvous::Resize::Now;
  rendezvous::RankOrder rank_order = rendezvous::RankOrder::Keep;
  std::string network;    // where this node is in it, for RankOrder::Topology
  std::string job_flags;  // that say which job at the endpoint it is, if --rdzv-id alone does not
  Preflight preflight = Preflight::Warn;
  // A node that has cost this many restarts by itself gives its place to a spare; 0: never.
  int exclude_after = 2;
  std::string exclude_file;  // the list of hosts that are known to be bad; empty: there is none
  std::map<std::string, std::string> excluded_hosts;  // those on it, and why
  rendezvous::ExitCodePolicy exit_code = rendezvous::ExitCodePolicy::FirstFailure;
};

// What drun does with the signals that it is sent.
struct SignalChoices {
  // Signals that stop the job; the agent catches them (--signals-to-handle).
  std::vector<int> signals_to_handle;
  std::string signals_to_handle_text;  // as TORCHELASTIC_SIGNALS_TO_HANDLE gives it to the workers
  // SIGQUIT is one of them because the user said so; else it shows the workers' stacks.
  bool quit_stops = false;
  // SIGQUIT was ignored when drun began, as of "drun ... &" in a script: one from the terminal is
  // not for it, and may not stop the job. It shows stacks, whenever it comes.
  bool quit_ignored = false;
  std::vector<int> forward_signals;  // delivered to the workers; the job goes on
  bool leave_on_sigterm = false;     // it takes this node out of the job, which goes on
};

// --warn-before: this signal so long before the job ends.
struct EndNotice {
  int signal = 0;
  std::chrono::milliseconds before{};

  bool operator==(const EndNotice&) const = default;
};

// What becomes of a job that hangs.
enum class OnHang {
  Restart,  // it has failed, as after any failure
  Stop,     // the same, without a restart
  Report    // the user is told
};

// When the workers are stopped, and how.
struct StopPolicy {
  std::chrono::milliseconds shutdown_timeout{30'000};
  // What a stop sends to the workers first; nullopt: the signal that told drun to stop, else
  // SIGTERM.
  std::optional<int> stop_signal;
  std::optional<std::chrono::milliseconds> timeout;        // of the job
  std::optional<std::chrono::milliseconds> start_timeout;  // until all workers run
  std::optional<std::int64_t> job_end;  // when somebody else ends the job, in Unix seconds
  std::optional<EndNotice> warn_before;
  // How long workers may be looked at before they are stopped: at a time limit, and, if that was
  // asked for, after a failure. 0: never.
  std::chrono::milliseconds stacks_limit{10'000};
  bool stacks_after_failure = false;
  std::vector<std::string> keep_shm;  // patterns of names in /dev/shm that are never removed
  hang::HeartbeatLimits heartbeats;   // of each worker
  std::optional<std::chrono::milliseconds>
      hang_timeout;  // in which no rank of the job makes progress
  OnHang on_hang = OnHang::Restart;
  bool file_timers = false;  // TORCHELASTIC_ENABLE_FILE_TIMER: torch's timers are served

  [[nodiscard]] bool looks_for_hangs() const {
    return hang_timeout || heartbeats.any() || file_timers;
  }
};

// Which failures are worth another try.
struct RestartPolicy {
  std::optional<ExitSet> restart_on;  // nullopt: every failure
  ExitSet no_restart_on;              // wins over restart_on
  ExitSet no_requeue_on;              // likewise; the job ends with kDoNotRequeue
};

// Devices, CPUs and threads of the workers.
struct WorkerResources {
  std::optional<int> omp_threads;  // --omp-threads N; nullopt: torchrun's rule, or `placement`
  bool virtual_local_rank = false;
  // What each worker gets; nothing is filled in if the flags ask for nothing.
  Placement placement;
  bool report_bindings = false;
};

// Which programs find what they look for in the workers' environment (--framework), beyond what
// does no harm to any.
struct Frameworks {
  bool jax = false;
  bool mpi = false;  // PMI-1 is served
  bool oneccl = false;
  bool tensorflow = false;  // every rank is told where all can listen
  bool operator==(const Frameworks&) const = default;
};

// What a worker runs.
struct Program {
  std::vector<std::string> command;  // argv of a worker, interpreter included
  // ${local_rank} is replaced from this element on: the interpreter and a plain program are not
  // touched.
  std::size_t substitute_from = 1;
  bool python = false;                 // command.front() is a Python interpreter
  std::size_t script_at = 0;           // where in `command` the Python file is; 0: there is none
  std::vector<std::string> inherited;  // drun's own environment, "NAME=value"
};

// All that is needed to start, watch and stop the workers of this node.
struct WorkerSpec : JobShape, SignalChoices, StopPolicy, RestartPolicy, WorkerResources, Program {
  Frameworks frameworks;
  std::optional<int> stdin_rank = 0;  // the rank that reads drun's stdin; nullopt: none
};

// Everything, for the parts that wire the others; a part with one task takes the structs above that
// it needs.
struct Options : WorkerSpec, MeetingChoices {
  OutputChoices output;
  std::string report_file;  // failure report as JSON; empty: none
  EventChoices events;
  // Where the status page is; its host is numeric or "localhost". Or a socket in a folder; empty:
  // none.
  std::optional<Endpoint> status_endpoint;
  std::string status_socket;
  // The file with the job's token; empty: none. main() reads it, unless there is DRUN_TOKEN.
  std::string token_file;
  std::optional<secure::Token> token;
  secure::CertificateFiles certificate;  // in place of a token; main() reads it
  bool token_is_made = false;            // by drun: the user does not know it
  // Of a drun that starts agents elsewhere. It makes one if none is given: they meet at one of
  // theirs, so nobody else needs it.
  bool makes_token = false;
  std::shared_ptr<const secure::TlsContext> tls;  // of token or certificate; null: there is none
  std::string metrics_file;                       // for Prometheus; empty: none
  bool summary = false;                           // the end tells what the ranks have used
  bool verbose = false;
  bool quiet = false;
  bool dry_run = false;
  std::string lighthouse;     // of the replica groups: what is started beside them; empty: nothing
  bool tells_its_end = true;  // false: another process says how this job has ended
  // -H, --hostfile: drun starts the agents of other hosts; the rest of this is as the first of them
  // will read it. Nullopt: drun is the agent of this one.
  std::optional<hosts::StartPlan> start;
  // The command to exec instead, if drun must run in a step of the scheduler and this process is
  // not in one; the other options are then only what is known here. Empty: drun is where it should
  // be.
  std::vector<std::string> instead;
  std::string instead_mark;  // "NAME=value", for its environment
  // For drun's own log, at info: what the scheduler said. Empty: nothing.
  std::string inferred;
  // For drun's own log, at warning: what was accepted but has no effect here.
  std::vector<std::string> notes;
};

// Where the nodes meet, for the user: "node0:29400", "node0:29400,node1:29400", "etcd at
// e1:2379,e2:2379".
[[nodiscard]] inline std::string meeting_place(const MeetingChoices& choices) {
  if (choices.backend == Backend::Etcd) return describe(choices.etcd);
  std::string result = to_string(choices.endpoint);
  for (std::size_t i = 1; i < choices.endpoints.size(); ++i)
    result += "," + to_string(choices.endpoints[i]);
  return result;
}

[[nodiscard]] inline bool has_status_page(const Options& options) {
  return options.status_endpoint || !options.status_socket.empty();
}

// With a token the workers' store is closed to strangers, unless somebody wants it otherwise. Other
// replica groups are no strangers, and reach it by itself.
inline void choose_worker_store(Options& options, bool has_token) {
  if (has_token && !options.worker_store_chosen && options.replica_groups == 0)
    options.worker_store = WorkerStore::Local;
}

[[nodiscard]] inline std::string to_string(WorkerStore store) {
  return store == WorkerStore::Agent ? "agent" : store == WorkerStore::Rank0 ? "rank0" : "local";
}

// The job can change its size: it goes on without a node, as long as the fewest are left.
[[nodiscard]] inline bool is_elastic(const Options& options) {
  return options.min_nodes < options.max_nodes;
}

// Its nodes, on several machines, say what they are like, to be compared.
[[nodiscard]] inline bool compares_facts(const Options& options) {
  return options.preflight != Preflight::Off && options.max_nodes > 1 && options.local_nodes == 0 &&
         options.local_node < 0;
}

// This drun starts all replica groups of its job, as many druns.
[[nodiscard]] inline bool starts_groups(const Options& options) {
  return options.replica_groups > 0 && (options.start || options.replica_group < 0);
}

}  // namespace drun::launcher
