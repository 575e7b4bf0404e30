// The one table of all events and their fields. docs/events.md is compared with it by a test.
#include <algorithm>
#include <array>
#include <cstddef>

#include "drun/events/event.hpp"

namespace drun::events {
namespace {

using E = Event;

// ---- fields, each once ----

constexpr Field kRunId{"run_id", &E::run_id, "the job's id"};
constexpr Field kRestarts{"agent_restarts", &E::agent_restarts, "restarts of the job so far"};
constexpr Field kRound{"round", &E::round, "the round; 0: none has begun here"};
constexpr Field kNode{"node", &E::node, "this agent, unique; empty until it has joined"};
constexpr Field kHostname{"hostname", &E::hostname, "its host"};
constexpr Field kAgentPid{"agent_pid", &E::agent_pid, "its process"};
constexpr Field kGroupRank{"group_rank", &E::group_rank, "its rank in the round; -1: none"};
constexpr Field kMonotonic{"monotonic_ns", &E::monotonic_ns, "CLOCK_MONOTONIC of its host"};

constexpr Field kName{"name", &E::name, "torchelastic's name of the event"};
constexpr Field kSource{"source", &E::source, "torchelastic's: AGENT or WORKER"};
constexpr Field kTimestamp{"timestamp", &E::timestamp, "Unix time in milliseconds"};
constexpr Field kRole{"role", &E::role, "of the workers (--role)"};
constexpr Field kState{"state", &E::state, "SUCCEEDED, FAILED or TERMINATED"};
constexpr Field kRank{"global_rank", &E::global_rank, "the worker's rank"};
constexpr Field kLocalRank{"local_rank", &E::local_rank, "its rank on this node"};
constexpr Field kPid{"pid", &E::pid, "its process; 0: it never began"};
constexpr Field kExitCode{"exit_code", &E::exit_code, "0 to 255; 0 beside a signal"};
constexpr Field kSignal{"signal", &E::signal, "the signal's number; 0: none"};
constexpr Field kRawError{"raw_error", &E::raw_error, "how it failed; empty: it did not"};
constexpr Field kDuration{"duration_ms", &E::duration_ms, "how long, in milliseconds"};
constexpr Field kCpu{"cpu_ms", &E::cpu_ms, "CPU time of the worker and what it has waited for"};
constexpr Field kPeak{"peak_kib", &E::peak_kib, "most memory that one of these processes had"};
constexpr Field kRead{"read_kib", &E::read_kib, "what they read from storage"};
constexpr Field kWritten{"written_kib", &E::written_kib, "what they wrote to storage"};
constexpr Field kSwitches{"switches", &E::switches, "their context switches"};
constexpr Field kGpuPeak{"gpu_peak_kib", &E::gpu_peak_kib,
                         "most memory of GPUs that it and all below it had; -1: not known"};
constexpr Field kGpuPercent{"gpu_percent", &E::gpu_percent,
                            "of the time they kept their GPUs busy; -1: not known"};
constexpr Field kTotal{"total_run_time", &E::total_run_time, "of this agent, in seconds"};
constexpr Field kNodes{"group_world_size", &E::group_world_size, "nodes of the round"};
constexpr Field kFirstRank{"first_rank", &E::first_rank, "the lowest rank on this node"};
constexpr Field kLocalWorld{"local_world_size", &E::local_world_size, "workers of this node"};
constexpr Field kWorld{"world_size", &E::world_size, "workers of the round"};
constexpr Field kMaster{"master_endpoint", &E::master_endpoint, "MASTER_ADDR:MASTER_PORT"};
constexpr Field kBackend{"rdzv_backend", &E::rdzv_backend, "c10d, static, etcd or standalone"};
constexpr Field kEndpoint{"endpoint", &E::endpoint, "of the store; empty: nobody else needs it"};
constexpr Field kNnodes{"nnodes", &E::nnodes, "as --nnodes: 4, 2:4"};
constexpr Field kMaxRestarts{"max_restarts", &E::max_restarts, "as --max-restarts"};
constexpr Field kVersion{"version", &E::version, "of drun"};
constexpr Field kPeer{"peer", &E::peer, "the other node's `node`"};
constexpr Field kPeerHost{"peer_host", &E::peer_host, "its host"};
constexpr Field kReason{"reason", &E::reason, "a line for people"};
constexpr Field kCause{"cause", &E::cause,
                       "failure, time-limit, or resize: it takes nodes in that have joined; empty: "
                       "another"};
constexpr Field kLost{"lost", &E::lost, "events that were not written"};

// ---- which event has which ----

constexpr std::array kCommon{kMonotonic, kRunId,    kRestarts, kRound,
                             kNode,      kHostname, kAgentPid, kGroupRank};

constexpr std::array kOfAgentStarted{kVersion,    kBackend,     kEndpoint, kNnodes,
                                     kLocalWorld, kMaxRestarts, kRole};
constexpr std::array kOfStore{kEndpoint};
constexpr std::array kOfReason{kReason};
constexpr std::array kOfPeer{kPeer, kPeerHost, kReason};
constexpr std::array kOfRoundBegun{kNodes, kFirstRank, kLocalWorld, kWorld, kMaster, kRole};
constexpr std::array kOfWorkerStarted{kRank, kLocalRank, kPid, kRole};
constexpr std::array kOfRunning{kDuration};
constexpr std::array kOfWorkerExited{kName,     kSource,   kTimestamp, kRank,      kLocalRank,
                                     kPid,      kRole,     kState,     kExitCode,  kSignal,
                                     kRawError, kDuration, kCpu,       kPeak,      kRead,
                                     kWritten,  kSwitches, kGpuPeak,   kGpuPercent};
constexpr std::array kOfFailure{kRank,   kLocalRank, kPid,  kExitCode,
                                kSignal, kRawError,  kPeer, kPeerHost};
constexpr std::array kOfStopping{kReason, kCause};
constexpr std::array kOfRestart{kMaxRestarts, kReason};
constexpr std::array kOfSignal{kSignal, kReason};
constexpr std::array kOfHang{kRank, kLocalRank, kPid, kReason};
constexpr std::array kOfLost{kLost, kReason};
constexpr std::array kOfOutcome{kName,  kSource,   kTimestamp, kRole, kBackend,
                                kState, kExitCode, kRawError,  kTotal};
constexpr std::array kOfAgentEnded{kExitCode, kTotal, kLost};

constexpr std::array kKinds{
    KindInfo{Kind::AgentStarted, "agent_started", kOfAgentStarted,
             "drun begins its work on this node"},
    KindInfo{Kind::StoreHosted, "store_hosted", kOfStore,
             "the node has joined at a store in its own process"},
    KindInfo{Kind::StoreFound, "store_found", kOfStore,
             "it has joined at a store elsewhere, or reached one again"},
    KindInfo{Kind::StoreLost, "store_lost", kOfReason,
             "the connection to the store broke; it is sought"},
    KindInfo{Kind::LeaderElected, "leader_elected", {}, "this node decides from now on"},
    KindInfo{Kind::NodeJoined, "node_joined", kOfPeer, "a node has come; the leader tells it"},
    KindInfo{Kind::NodeGone, "node_gone", kOfPeer,
             "a node is gone without an end of the job; the leader tells it"},
    KindInfo{Kind::NodeRefused, "node_refused", kOfPeer,
             "a node may not take part; the leader tells it"},
    KindInfo{Kind::RoundBegun, "round_begun", kOfRoundBegun, "the node starts its workers"},
    KindInfo{Kind::WorkerStarted, "worker_started", kOfWorkerStarted, "a worker runs"},
    KindInfo{Kind::WorkersRunning, "workers_running", kOfRunning,
             "all workers of the node run; how long that took"},
    KindInfo{Kind::WorkerExited, "worker_exited", kOfWorkerExited,
             "a worker has ended; TERMINATED: drun was stopping it"},
    KindInfo{Kind::Failure, "failure", kOfFailure,
             "a round is stopped because a worker of the node `peer` failed; the leader tells it"},
    KindInfo{Kind::RoundStopping, "round_stopping", kOfStopping, "the node stops its workers"},
    KindInfo{Kind::RoundEnded, "round_ended", kOfRunning,
             "nothing of the round's workers is left on the node; how long it took"},
    KindInfo{Kind::Restart, "restart", kOfRestart,
             "a restart was spent, `agent_restarts` with it; the leader tells it"},
    KindInfo{Kind::Signal, "signal", kOfSignal,
             "drun got a signal; what it does about it: stops, forwards, suspends"},
    KindInfo{Kind::Limit, "limit", kOfReason, "a time limit of the user's is over"},
    KindInfo{Kind::Hang, "hang", kOfHang,
             "a rank makes no more progress, as its node tells; with `global_rank` -1 none of the "
             "job, as "
             "the leader tells"},
    KindInfo{Kind::Warning, "warning", kOfReason, "what drun warned of"},
    KindInfo{Kind::EventsLost, "events_lost", kOfLost,
             "so many events before this one could not be written"},
    KindInfo{Kind::Outcome, "outcome", kOfOutcome, "how the job ended, as this node knows it"},
    KindInfo{Kind::AgentEnded, "agent_ended", kOfAgentEnded, "drun's last word on this node"},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (static_cast<std::size_t>(kKinds[i].kind) != i) return false;
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const KindInfo> every_kind() {
  return kKinds;
}

std::span<const Field> common_fields() {
  return kCommon;
}

const KindInfo& info_of(Kind kind) {
  return kKinds.at(static_cast<std::size_t>(kind));
}

std::optional<Kind> kind_of(std::string_view name) {
  const auto* found = std::find_if(kKinds.begin(), kKinds.end(),
                                   [name](const auto& each) { return each.name == name; });
  return found == kKinds.end() ? std::nullopt : std::optional(found->kind);
}

}  // namespace drun::events
