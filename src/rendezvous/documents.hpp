// The documents under a job's keys and their JSON. What comes from the store is not trusted: a
// malformed document is an expected error that names the field, never a crash.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"
#include "rendezvous/key_value.hpp"
#include "rendezvous/types.hpp"

namespace drun::rendezvous {

// Agents of different versions do not form a job.
inline constexpr int kProtocolVersion = 1;
// More workers on a node are malformed; 100,000 such nodes still have an int's worth of ranks.
inline constexpr int kMaxLocalWorldSize = 16'384;

// A path of switches; a longer one is malformed.
inline constexpr std::size_t kMaxNetwork = 512;

// A longer word of the end is malformed.
inline constexpr std::size_t kMaxEnd = 4'096;

struct StopRequest {
  std::string reason;
  int exit_code = 0;
  bool operator==(const StopRequest&) const = default;
};

// member/<ticket>: what an agent brings, and how far it has come. Written by the agent alone.
struct MemberDocument {
  int version = kProtocolVersion;
  std::string host;
  std::string address;
  std::string network;  // see Config; at most kMaxNetwork bytes
  std::uint16_t worker_store_port = 0;
  int local_world_size = 1;
  std::string role;
  std::optional<int> node_rank;
  bool node_rank_is_wish = false;  // see Config
  bool is_host = false;
  std::uint16_t successor_port = 0;  // where it would begin a store; 0: nowhere
  int listed = -1;                   // which of the job's several endpoints that is; -1: none
  std::int64_t ends_ms = 0;          // see Config
  std::map<std::string, std::string> agreement;

  // No worker of this round or an earlier one runs on the node, and none will be started.
  int left = 0;
  // Its last place. The node holds its workers until it has left that round. Lets a leader rebuild
  // a round that the store forgot.
  std::optional<Assignment> claim;
  Place latest;      // the last nodes of the job that it knows of, as it tells the store
  int seen = 0;      // the last round that this agent has seen run, with or without it
  int restarts = 0;  // the highest count of restarts that it has seen
  int losses = 0;    // and of rounds that ended because a node was lost
  int prepared = 0;  // the round whose workers' store is ready on this node, at this port:
  std::uint16_t prepared_worker_store_port = 0;
  int succeeded = 0;  // the round in which all of its workers exited with 0
  int stalled = 0;    // the round in which none of those that run has made progress for a long time
  int failing = 0;    // the round in which one has failed, of which `failed` is going to tell
  int failed = 0;     // the round in which one failed:
  std::optional<FailureSummary> failure;
  std::optional<StopRequest> stop;   // the agent was asked to end the job
  std::optional<StopRequest> leave;  // it was asked to go; the job goes on without its node
  // When the job has ended: what its workers did then, for who reports it. Of it the agent around
  // this machine knows; at most kMaxEnd bytes.
  std::string end;

  bool operator==(const MemberDocument&) const = default;
};

enum class Phase {
  Gathering,  // waiting for members; `number` is the last round that ran or was tried
  Preparing,  // group rank 0's node makes the workers' store of round `number` ready
  Running,
  Stopping,  // all stop their workers of round `number`, then write that they have left it
  Closed     // the job has ended: see `outcome`
};

// The round's workers run, or are being stopped.
[[nodiscard]] constexpr bool is_alive(Phase phase) {
  return phase == Phase::Running || phase == Phase::Stopping;
}

// Why a round is being stopped, or was at the end of the job.
enum class Cause { None, Failure, Membership, Resize, TimeLimit };

// What a node has cost the job by itself.
struct NodeCost {
  int restarts = 0;
  int rank = -1;  // that failed last
  std::string cause;
  bool operator==(const NodeCost&) const = default;
};
// A node that gave its place to a spare.
struct SetAside {
  std::string ticket;
  std::string host;
  std::string why;
  int rank = -1;         // of its last failure; -1: it did not fail
  std::string cause;     // of that
  bool cleared = false;  // another node failed in the same way at its place: it was the program
  bool operator==(const SetAside&) const = default;
};
inline constexpr std::size_t kMaxCosts = 256;  // of each kind
inline constexpr int kMostAgentsOfHost = 10'000;

// round: the same for all, so it holds counts and never a list of members.
struct RoundDocument {
  int version = kProtocolVersion;
  std::int64_t epoch = 0;  // of the leader that wrote it
  int number = 0;
  Phase phase = Phase::Gathering;
  int ran = 0;  // the last round that was started; 0: none yet
  int restart_count = 0;
  int losses = 0;      // rounds that ended because a node was lost, so far
  int nodes = 0;       // in round `number` (running, stopping)
  int world_size = 0;  // workers in it
  // Where its workers' store is. Rounds that began without knowing of each other may have one
  // number, but not one store.
  std::string master;
  Cause cause = Cause::None;
  bool brief = false;   // it ran for less than the job's min_runtime, which spends a restart
  std::string root;     // ticket of the node whose failure is the root cause (stopping)
  std::string reason;   // one line for people
  std::string waiting;  // gathering: how many of how many, who is missing; bounded
  // Whose majority says which store is the right one: the nodes of round `ran`, since the first
  // round with the same ones; and those before: none, if there were none; the same again, if
  // nobody knows. None at all if stores do not succeed one another.
  Place latest;
  Place before;
  // The name of the node whose vote `latest` counts more, because it has the store: if it is lost,
  // nobody else can say how it is called. Empty: not known.
  std::string store_host;
  // Where a store begins when this one is lost, in this order.
  std::vector<Successor> successors;
  std::map<std::string, NodeCost> costs;  // by ticket
  std::map<std::string, int> lost_hosts;  // how often nodes of each were lost
  // Of those on which several agents ran when one of them was lost: the most that did.
  std::map<std::string, int> agents_of_lost;
  std::vector<SetAside> set_aside;  // in order
  // The store has lost a round or its nodes: some that are out of touch may have workers. For the
  // next leader, which cannot know since when.
  bool unsure = false;
  // When this phase began: Unix milliseconds by the leader's clock; 0: not known. For people, and
  // to know whether a round was brief.
  std::int64_t since_ms = 0;
  // None of its workers that run, on any node, has made progress for a long time (running); it is
  // stopped because some do not (stopping).
  bool hung = false;

  bool operator==(const RoundDocument&) const = default;
};

// assign/<ticket>: a place in a round, or the reason why there is none for this agent.
struct AssignmentDocument {
  Assignment assignment;
  bool go = false;  // false: only prepare the workers' store
  // This may overwrite the place in the last round that ran; then its group rank, else -1.
  int last_rank = -1;
  std::string refused;  // not empty: leave, for this reason
  bool unfit = false;   // which is what its machine is like
  // Of the place: for a reader that comes when the agent is gone, and its own document with it.
  // Empty: not known.
  std::string host{};

  bool operator==(const AssignmentDocument&) const = default;
};

// leader: who decides. Every leadership has its own value, which fences the leader's writes.
struct LeaderDocument {
  std::string ticket;
  std::int64_t epoch = 0;
  std::string host{};  // as in an assignment
  bool operator==(const LeaderDocument&) const = default;
};

// job: what was agreed on when the first leader opened it.
struct JobDocument {
  std::map<std::string, std::string> agreement;
  bool operator==(const JobDocument&) const = default;
};

// A node writes its BeatDocument so often at the most, if it has changed.
inline constexpr std::chrono::seconds kBeatPeriod{10};
// The last heartbeat of the rank of a node that is furthest behind, and of the one that is furthest
// ahead, as one look has found them. For people.
struct BeatDocument {
  int round = 0;
  int rank = 0;
  std::int64_t step = -1;    // -1: it does not say
  std::int64_t time_ms = 0;  // Unix milliseconds, of the node's clock
  std::int64_t most_step = -1;
  std::int64_t most_time_ms = 0;
  bool operator==(const BeatDocument&) const = default;
};

// Text that is not UTF-8 is made so; a failure's texts are cut to a few KiB.
[[nodiscard]] std::string encode(const MemberDocument& document);
[[nodiscard]] std::string encode(const RoundDocument& document);
[[nodiscard]] std::string encode(const AssignmentDocument& document);
[[nodiscard]] std::string encode(const LeaderDocument& document);
[[nodiscard]] std::string encode(const JobDocument& document);
[[nodiscard]] std::string encode(const Outcome& outcome);
[[nodiscard]] std::string encode(const BeatDocument& document);

// Unknown fields are ignored; missing ones, wrong types and numbers out of range are errors.
[[nodiscard]] Result<MemberDocument> decode_member(std::string_view text);
[[nodiscard]] Result<RoundDocument> decode_round(std::string_view text);
[[nodiscard]] Result<AssignmentDocument> decode_assignment(std::string_view text);
[[nodiscard]] Result<LeaderDocument> decode_leader(std::string_view text);
[[nodiscard]] Result<JobDocument> decode_job(std::string_view text);
[[nodiscard]] Result<Outcome> decode_outcome(std::string_view text);
[[nodiscard]] Result<BeatDocument> decode_beat(std::string_view text);

}  // namespace drun::rendezvous
