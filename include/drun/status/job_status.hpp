// What a job does, as drun tells it to programs: drunctl status --json prints it, an object a line,
// and a status page has it at /status.json. Needs C++20. Plain data and functions without state:
// any thread.
//
//   std::string line;
//   while (std::getline(std::cin, line))  // drunctl status --watch --json | program
//     if (const auto job = drun::status::parse_job_status(line))
//       std::cout << job->id << ": " << drun::status::name_of(job->state) << '\n';
#pragma once

#if __cplusplus < 202002L
#error "drun needs C++20: compile with -std=c++20"
#endif

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::status {

enum class JobState {
  Running,    // the workers of a round run
  Gathering,  // nodes are waited for, or a round is being prepared
  Stopping,   // a round's workers are being ended
  Succeeded,  // ended with exit code 0
  Failed,     // ended with another
  Abandoned   // all agents have gone without an end
};
// "running"
[[nodiscard]] std::string_view name_of(JobState state);

// First to last, both of them in it.
struct RankRange {
  int first = 0;
  int last = 0;

  bool operator==(const RankRange&) const = default;
};

// Times are Unix milliseconds by the clock of the node that leads the job, 0 if it is not so far;
// texts for people are UTF-8, one line, and may be empty.

// The round that runs, or the last that did.
struct RoundStatus {
  int number = 0;     // 0: there was none yet
  std::string phase;  // "gathering", "preparing", "running", "stopping", "closed"
  int nodes = 0;
  int world_size = 0;         // workers
  std::string waiting;        // for people: who is waited for
  std::string reason;         // for people: why the last round was stopped
  std::int64_t since_ms = 0;  // when the phase began
  bool hung = false;          // none of its workers makes progress, on any node

  bool operator==(const RoundStatus&) const = default;
};

struct NodeStatus {
  std::string host;
  std::string address;
  std::string role;
  // "running", "succeeded", "failed", "stopping", "stopped", "preparing", "waiting", "spare",
  // "leaving", "refused"; "unknown" if its agent is of another version
  std::string state;
  std::string note;  // for people: why it was refused, or leaves, or what failed
  bool hosts_store = false;
  bool leads = false;
  // Of a node that has a place in the round.
  std::optional<int> group_rank;
  std::optional<RankRange> ranks;
  std::vector<RankRange> failed_ranks;  // in order; of many, some
  // How long ago the store heard from its agent, and at what age the node is lost; not always
  // known.
  std::optional<std::int64_t> word_age_ms;
  std::optional<std::int64_t> lease_ms;
  std::string node;  // as events name it (events::Event::node)

  bool operator==(const NodeStatus&) const = default;
};

// A node that the job knows of, and that is not there.
struct AbsentStatus {
  std::string host;  // empty: not known any more
  // "missing" (it has a place in the round, or is waited for), "lost", "set-aside"
  std::string state;
  std::string note;  // for people
  // Of one that is missing.
  std::optional<int> group_rank;
  std::optional<RankRange> ranks;
  std::string node;  // as events name it; empty: not known any more

  bool operator==(const AbsentStatus&) const = default;
};

// The rank that is furthest behind the others, by its heartbeats.
struct RankBehind {
  std::string host;
  int rank = 0;
  std::int64_t step = -1;         // -1: it does not say
  std::int64_t heartbeat_ms = 0;  // when the last one came

  bool operator==(const RankBehind&) const = default;
};

// The steps that the ranks tell; -1: not all of them do.
struct StepRange {
  std::int64_t least = -1;
  std::int64_t most = -1;

  bool operator==(const StepRange&) const = default;
};

// Of a worker and of those of its descendants that it has waited for.
struct RankUsage {
  int rank = 0;
  std::int64_t cpu_ms = 0;
  std::int64_t peak_kib = 0;     // resident, of the largest process
  std::int64_t read_kib = 0;     // from storage
  std::int64_t written_kib = 0;  // to storage
  std::int64_t switches = 0;     // of context
  // Of GPUs, by samples of the worker and all its descendants, where NVIDIA's library tells.
  std::optional<std::int64_t> gpu_peak_kib = std::nullopt;
  std::optional<std::int64_t> gpu_percent = std::nullopt;  // of the time they were busy

  bool operator==(const RankUsage&) const = default;
};

// One of the last rounds.
struct PastRoundStatus {
  int number = 0;
  int nodes = 0;
  int world_size = 0;
  std::int64_t waited_ms = 0;    // since when its nodes were waited for
  std::int64_t began_ms = 0;     // its workers were told to start
  std::int64_t stopping_ms = 0;  // they were told to stop
  std::int64_t ended_ms = 0;     // the job has gone on, or has ended
  // Why it was stopped: "none" (it was not), "failure", "membership", "resize", "time-limit".
  std::string cause;
  std::string reason;  // for people
  int restart = 0;     // the restart that it led to; 0: none was spent

  bool operator==(const PastRoundStatus&) const = default;
};

struct JobOutcome {
  int exit_code = 0;
  std::string text;  // for people

  bool operator==(const JobOutcome&) const = default;
};

struct JobStatus {
  std::string id;
  JobState state = JobState::Gathering;
  std::string nnodes;  // "4", "2:8"
  RoundStatus round;
  int restarts = 0;
  int max_restarts = 0;
  int losses = 0;                 // rounds that ended because a node was lost
  std::vector<NodeStatus> nodes;  // by group rank, then those without one by host
  std::vector<AbsentStatus> absent;
  std::optional<StepRange> steps;       // if heartbeats are looked at
  std::optional<RankBehind> behind;     // likewise, if a rank certainly is
  std::string collective;               // for people: who has not come to one of NCCL's
  std::vector<RankUsage> usage;         // by rank: those of the host that was asked
  std::vector<PastRoundStatus> rounds;  // the youngest last
  std::optional<JobOutcome> outcome;    // when the job has ended

  bool operator==(const JobStatus&) const = default;
};

// One line of JSON without its end, as docs/drunctl.md has it. `ascii`: nothing in it can act on a
// terminal.
[[nodiscard]] std::string to_json(const JobStatus& job, bool ascii = false);

// Only id, state, max_restarts, rounds and outcome: what drunctl history --json prints.
[[nodiscard]] std::string history_json(const JobStatus& job, bool ascii = false);

// The other way, from either. What the line has beside these members is passed over, as a later
// version may add some; what it lacks stays as it is above. An error names the member that makes no
// sense.
[[nodiscard]] Result<JobStatus> parse_job_status(std::string_view line);

}  // namespace drun::status
