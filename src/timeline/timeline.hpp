// The picture of a job: who was in which state from when to when, and what went wrong. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/event_log.hpp"

namespace drun::timeline {

enum class SpanState {
  Waiting,    // for other nodes
  Starting,   // the round has begun, the worker does not run yet
  Running,    // of a node: all of its workers do
  Stopping,   // drun ends the worker, or those of the node
  Succeeded,  // the worker has ended; others of the round still run
  Failed,
  Stopped
};
inline constexpr std::size_t kStates = 7;
[[nodiscard]] std::string_view name_of(SpanState state);

// Nanoseconds since the beginning of the timeline.
struct Span {
  SpanState state = SpanState::Waiting;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t round = 0;  // that it belongs to, or waits for; 0: none came
  bool cut = false;        // its end is not in the files: a lost node, or a job that still runs
  std::string text;        // how the worker ended
};

struct RankRow {
  std::int64_t rank = 0;
  std::vector<Span> spans;
};

// An agent and its workers.
struct NodeRow {
  std::string name;      // of its host; with the pid of its drun where that alone is not unique
  std::string hostname;  // of several nodes maybe the same
  std::string id;        // as the events name it
  std::string job;       // its id
  std::size_t run = 0;
  std::int64_t group_rank = -1;  // the last one; -1: it never had a place
  std::vector<Span> spans;
  std::vector<RankRow> workers;  // by rank
};

struct Round {
  std::size_t run = 0;
  std::int64_t number = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t nodes = 0;
  std::int64_t ranks = 0;
  std::int64_t restarts = 0;  // of the job, when it began
  std::string reason;         // why it was stopped; empty: it was not
};

// What happened at a moment.
struct Mark {
  std::int64_t at = 0;
  std::size_t node = 0;
  std::int64_t rank = -1;  // -1: it is about none
  std::string name;        // of the event
  std::string text;
  bool bad = false;    // a failure or a loss, once
  bool placed = true;  // false: `node` only tells it, of the job or of a node without a file
};

// Why a round was stopped: the first thing that went wrong in it.
struct StopCause {
  std::size_t run = 0;
  std::int64_t round = 0;
  std::int64_t at = 0;
  std::size_t node = 0;
  std::int64_t rank = -1;  // -1: the node as a whole
  std::string text;
  bool placed = true;  // as of a Mark
};

// How a run of a job ended, as the last of its nodes has told it.
struct Ending {
  std::size_t run = 0;
  std::int64_t at = 0;
  LoggedEnd end = LoggedEnd::None;
  std::int64_t exit_code = 0;
  std::string text;
};

struct Timeline {
  std::vector<std::string> jobs;       // ids, each once
  std::vector<std::string> run_names;  // of each run: "" if there is one, else "train, run 2"
  std::int64_t begin_ns = 0;           // Unix time
  std::int64_t length = 0;             // ns
  std::vector<NodeRow> nodes;          // in the order of their ranks
  std::vector<Round> rounds;           // in the order of their beginnings
  std::vector<Mark> marks;             // by time
  std::vector<StopCause> causes;       // by time; one for each round that was stopped
  std::vector<Ending> endings;         // by run; of those that have ended
  bool live = false;                   // it ends now: what is cut goes on
  std::vector<std::string> notes;      // sentences about the files and clocks

  [[nodiscard]] std::size_t ranks() const;  // workers of the largest round
};

// `log`: of set_clocks_right(). `runs`: of runs_of(). `now_ns`: Unix time, of events that are all
// from agents that still run or have told their end; 0: of files, which end with their last event.
[[nodiscard]] Timeline make_timeline(const Log& log, const std::vector<std::size_t>& runs,
                                     std::int64_t now_ns = 0);

}  // namespace drun::timeline
