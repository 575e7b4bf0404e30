// The words of the rendezvous: what an agent brings, its place in a round, how workers failed and
// how the job ended. Plain data, no behaviour.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_codes.hpp"
#include "base/number_ranges.hpp"
#include "drun/base/endpoint.hpp"

namespace drun::rendezvous {

using Time = std::chrono::steady_clock::time_point;
using Milliseconds = std::chrono::milliseconds;

// How group ranks are given out; a rank that was asked for always wins.
enum class RankOrder {
  Keep,  // survivors keep theirs, a newcomer takes a free one (the host agent's first, then by
         // name)
  Host,  // natural order of host names (node7 before node66) in every round
  Join,  // order of arrival; survivors close up, newcomers follow
  // Nodes that are close in the network are neighbours, in every round; there by host name, and
  // those of whom nobody knows last.
  Topology
};
// What a node that joins a running job with room for it leads to.
enum class Resize { Now, Restart };
// Which exit code every agent gives when workers failed.
enum class ExitCodePolicy {
  FirstFailure,  // the root cause's
  LowestRank,    // that of the lowest rank that failed by itself
  Highest        // the highest of all that failed by themselves
};

inline constexpr std::string_view kNoRunId = "none";  // what torchrun calls a job without a name

// What a node says of itself.
struct NodeFacts {
  std::string ticket;
  std::string host;
  int group_rank = -1;  // in the round, or in the last one; -1: in none
  std::string sheet;    // what it has told, or whatever the store holds
};

// What this agent brings and asks for. Constant after construction.
struct Config {
  std::string run_id{kNoRunId};
  int min_nodes = 1;
  int max_nodes = 1;
  int node_step = 1;  // only multiples of it run; it divides min_nodes and max_nodes
  int local_world_size = 1;
  int max_restarts = 0;
  std::optional<int> max_losses;  // rounds that nodes may end by being lost; nullopt: any number
  // A round that is stopped sooner after its start spends a restart, whatever stopped it but
  // newcomers; zero: none does for that.
  Milliseconds min_runtime{0};
  // A node gives its place to a spare, if there is one, after so many restarts that it cost by
  // itself, or losses of its host; 0: none does.
  int exclude_after = 0;
  // Hosts whose nodes do from the start, and why.
  std::map<std::string, std::string> excluded_hosts;
  // Why nodes must not run, by ticket, from what they say of themselves; the first are those of the
  // last round. Each tells its facts before it joins then. Pure. Empty: all may.
  std::function<std::map<std::string, std::string>(const std::vector<NodeFacts>&)> unfit;
  std::string role = "default";
  std::optional<int> node_rank;  // asked for (--node-rank, static, Slurm)
  // If another node has that rank already: true, any other will do; false, this one is refused.
  bool node_rank_is_wish = false;

  std::string host;     // for people and for natural order: gethostname()
  std::string address;  // how others reach this node; becomes MASTER_ADDR for group rank 0
  std::string network;  // the switches above it, from the top: "spine1/leaf4"; empty: not known
  // Of this agent's workers' store; becomes MASTER_PORT for group rank 0.
  std::uint16_t worker_store_port = 0;
  bool is_host = false;  // hosts the rendezvous store: leads first, rank 0 first, leaves last
  // No agent hosts the store, and this is the first of the nodes: leads if nobody does yet.
  bool stands_at_once = false;
  // An agent of the job leaves last and hears what the others did: the store's host, or a sibling.
  bool ends_are_heard = true;
  std::string ticket;  // unique per agent process
  // When the job ends, as far as this agent knows: Unix milliseconds; 0: it does not.
  std::int64_t ends_ms = 0;
  // What added to a Time's milliseconds gives Unix milliseconds: for what is told to people.
  std::int64_t unix_offset_ms = 0;
  // Where the nodes meet, for people: "node0:29400"; empty: nobody has to look for it.
  std::string endpoint;
  std::string job_flags;           // that say which job there it is; empty: --rdzv-id does
  bool endpoint_is_local = false;  // agents on other machines do not get there (127.0.0.1)

  // What all agents must agree on, by name: "program", ... -> value (a digest where it may be
  // secret). "protocol", "nnodes", "max-restarts", "max-losses", "rank-order" and "resize" are
  // added if they are missing; and "min-runtime" and "hang-timeout", if there is one.
  std::map<std::string, std::string> agreement;

  RankOrder rank_order = RankOrder::Keep;
  Resize resize = Resize::Now;
  ExitCodePolicy exit_code = ExitCodePolicy::FirstFailure;

  // A round in which no worker makes progress hangs only so long after a node of it has succeeded:
  // what has waited for that one may go on since.
  Milliseconds hang_timeout{0};
  Milliseconds join_timeout{600'000};  // from the first wait for members until Outcome::Timeout
  // What the user gave, of which join_timeout may be the rest: for messages. 0: as join_timeout.
  Milliseconds given_join_timeout{0};
  Milliseconds last_call_timeout{30'000};  // upper bound of the wait between min and max
  Milliseconds quiet_period{2'000};        // min..max starts this long after the last join
  Milliseconds close_timeout{30'000};      // the host waits this long for the others to leave
  // After this long without the store, an agent stops its workers and gives up. The store's
  // sessions should live about two seconds longer: then a node that was cut off has no workers any
  // more when the others go on without it.
  Milliseconds keep_alive{6'000};
  // How many nodes may begin a store in turn when the present one is lost; 0: none may.
  int successors = 0;
  // Where this agent would; 0: nowhere.
  std::uint16_t successor_port = 0;
  // Which of the job's several endpoints that is; -1: none. They come first: others look there.
  int listed = -1;
  // An agent that has lost a store with successors leaves after so long, if the link has not given
  // up by then. Its workers end by their lease meanwhile.
  Milliseconds search_timeout{60'000};
  // False: a session that it does not know any more is over, and its workers are gone.
  bool store_can_be_lost = true;
  // It forgets none, but may end many before their time, at once: old versions of etcd do, when the
  // member that led them has stood still. An agent whose own session has ended so waits for the
  // others as if the store had been lost.
  bool sessions_can_end_early = false;
  // A node that has not stopped its workers after this long is left behind. Must exceed the grace
  // that workers get between the stop signal and SIGKILL.
  Milliseconds stop_timeout{60'000};
};

// A node's place in a round.
struct Assignment {
  int round = 0;  // from 1, ever growing
  int group_rank = 0;
  int group_world_size = 1;
  int first_rank = 0;
  int world_size = 1;
  int first_role_rank = 0;
  int role_world_size = 1;
  int restart_count = 0;
  std::string master_address;
  std::uint16_t master_port = 0;
  std::int64_t ends_ms = 0;  // as Config's: the earliest that any node of the round knows
  // Where this node's workers reach what the master address and port are for the others. Never
  // written: only this node knows it.
  std::optional<Endpoint> store_here{};

  bool operator==(const Assignment&) const = default;
};

// Where this node's workers find the store of the round.
[[nodiscard]] inline Endpoint store_of(const Assignment& place) {
  return place.store_here.value_or(Endpoint{place.master_address, place.master_port});
}

using RankRange = NumberRange;

// After a failure that was a time-out the others get so long to run into it, too: what is stopped
// before cannot be told from the rank that hangs.
inline constexpr Milliseconds kOthersTimeOut{1'000};

// From the word that a worker has failed to the report of how, which waits a moment for the other
// ranks of the node and reads what they have left behind.
inline constexpr Milliseconds kReportFollows{1'000};

// Where a rank hangs, to be compared with others: two that are in the same function hang alike, in
// whatever system call each waits.
struct HangPlace {
  std::string frame;  // what its stack says; empty: nobody knows it
  std::string call;   // the system call; empty: not known, or something else says more
  bool operator==(const HangPlace&) const = default;
};

// Ranks that failed by themselves in the same way.
struct FailedRanks {
  std::vector<RankRange> ranks;  // in order, apart
  std::string cause;             // as FailureSummary's
  std::string last_words;
  std::int64_t pid = 0;  // of the first of them, if it hangs and where is known; 0: it does not
  HangPlace place{};     // the first's
  bool operator==(const FailedRanks&) const = default;
};

// What is known of a rank that hangs, for a job whose ranks wait for one another: who is to blame?
struct HangClue {
  bool behind = false;               // something says that the others wait for it
  std::optional<std::int64_t> step;  // the last that it has told
  int alike = 0;  // so many ranks of its node, it included, hang alike; 0: not known
  // Other nodes whose ranks hang with it say so within this time; zero: there are none.
  Milliseconds others_within{0};
  // It waits for a process that it has started itself; or, rather, for another rank.
  bool for_own_child = false;
  bool for_others = false;
  HangPlace place{};

  bool operator==(const HangClue&) const = default;
};
// Longer nobody waits for other nodes.
inline constexpr Milliseconds kOthersHang{60'000};

// Why a node's workers failed, small enough (a few KiB) to travel to every node.
struct FailureSummary {
  int rank = 0;
  int local_rank = 0;
  int group_rank = 0;
  std::string host;
  std::int64_t pid = 0;
  int exit_code = 0;  // 0..255; meaningless when signal != 0
  int signal = 0;
  std::string
      cause;  // "exit code 7", "killed by SIGSEGV", "killed: out of memory", "cannot run ..."
  std::int64_t time_ms = 0;         // Unix milliseconds, of the failing node's clock; for people
  std::int64_t uptime_ms = 0;       // since the worker's start
  std::string traceback;            // from the error file, may be empty
  std::string core_file;            // where a crashed worker's memory is, may be empty
  std::vector<std::string> tail;    // last lines of stderr
  std::string log_file;             // on the failing host, may be empty
  std::string last_words;           // the line of traceback or tail that says most, may be empty
  std::vector<FailedRanks> others;  // the other ranks that failed by themselves, the lowest first
  int unlisted = 0;                 // and how many more did that `others` has no room for
  bool timed_out = false;           // its last words are those of a wait that took too long
  bool hung = false;                // it runs, and drun has found that it makes no more progress
  HangClue clue;                    // if it is hung
  bool restartable = true;          // false: the restart policy (--restart-on) forbids another try
  std::string why_no_restart;       // "--restart-on does not list exit code 8", may be empty
  bool requeue = true;              // false: neither does another job help (--no-requeue-on)
  // Of all ranks that failed by themselves: the highest exit code (0: only this rank's counts), and
  // the lowest rank with its code (-1: only this rank's counts). A signal n is 128+n.
  int highest_code = 0;
  int lowest_rank = -1;
  int lowest_code = 0;

  // As a shell gives it: the code, or 128 + signal.
  [[nodiscard]] int shell_code() const {
    return signal != 0 ? exit_code_of_signal(signal) : exit_code;
  }
  bool operator==(const FailureSummary&) const = default;
};

// For the record: what the leader has seen or decided. Each once, by one agent of the job.
struct News {
  enum class What {
    Leads,     // this agent does from now on
    Joined,    // `host` has come
    Gone,      // it is gone, for `reason`, and the job has not ended
    Refused,   // it may not take part, for `reason`
    Hung,      // no rank of the round makes progress, for `reason`
    Failed,    // the round is stopped for `failure`, of `host`
    Restarted  // one more restart is spent, for `reason`: these are `restarts` by now
  };
  What what = What::Leads;
  std::string ticket;  // of `host`
  std::string host;
  std::string reason;
  int restarts = 0;
  std::optional<FailureSummary> failure{};
};

enum class End {
  Success,
  Failure,    // a worker's; `failure` says which
  Stopped,    // an agent was asked to stop (by a signal: `exit_code` is 128+n)
  Timeout,    // not enough nodes in time; `text` names who is missing
  NodesLost,  // more often than max_losses, or with no restart left for a short round
  Refused,    // this agent only: duplicate rank, disagreement, closed job ...; harms nobody else
  StoreLost   // this agent lost the store for good
};

// How the job ended for this agent, and the exit code that every agent of the job gives.
struct Outcome {
  End end = End::Success;
  int exit_code = 0;
  std::string text;  // one line for the user; empty on success
  std::optional<FailureSummary> failure{};
  std::vector<std::string> notes{};  // what else is worth saying about the failure: a crash loop
  bool leaves = false;               // this agent only, which was told to go: the job goes on
  bool all_heard = false;            // of the round, or gone: only spares may be on the way here

  bool operator==(const Outcome&) const = default;
};

// A limit that the user set (--timeout) is over, on this node or another.
[[nodiscard]] inline bool is_time_limit(const Outcome& outcome) {
  return outcome.end == End::Stopped && outcome.exit_code == kTimeLimit;
}

}  // namespace drun::rendezvous
