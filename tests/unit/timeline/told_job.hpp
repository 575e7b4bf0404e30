// Event files of jobs that never ran.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "drun/events/event.hpp"
#include "timeline/clocks.hpp"
#include "timeline/event_log.hpp"
#include "timeline/runs.hpp"
#include "timeline/timeline.hpp"

namespace drun::timeline::test {

using events::Event;
using events::Kind;

inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kDay = 1'795'900'000'000'000'000;  // in November 2026

// The file of an agent. Times are milliseconds since kDay by the job's clock.
class ToldNode {
 public:
  ToldNode(std::string host, std::int64_t pid, std::int64_t clock_ahead_ms = 0)
      : ahead_(clock_ahead_ms) {
    place_.run_id = "train";
    place_.hostname = std::move(host);
    place_.agent_pid = pid;
  }

  ToldNode& id(std::string run_id) {
    place_.run_id = std::move(run_id);
    return *this;
  }
  [[nodiscard]] std::string ticket() const {
    return place_.hostname + "-" + std::to_string(place_.agent_pid);
  }

  // Every field can be set before it is told.
  Event event(Kind kind, std::int64_t ms) const {
    Event event = place_;
    event.kind = kind;
    event.time_ns = kDay + (ms + ahead_) * kMs;
    event.monotonic_ns = (1'000'000 + ms) * kMs;
    return event;
  }
  ToldNode& tell(const Event& event) {
    lines_ += to_json(event) + "\n";
    return *this;
  }
  ToldNode& tell(Kind kind, std::int64_t ms) { return tell(event(kind, ms)); }

  ToldNode& joins(std::int64_t ms) {
    tell(Kind::AgentStarted, ms - 1);
    place_.node = ticket();
    return tell(Kind::StoreFound, ms);
  }
  ToldNode& begins(std::int64_t ms, std::int64_t round, std::int64_t first_rank,
                   std::int64_t workers = 1, std::int64_t world = 2, std::int64_t restarts = 0) {
    place_.round = round;
    place_.group_rank = first_rank / workers;
    place_.agent_restarts = restarts;
    Event begun = event(Kind::RoundBegun, ms);
    begun.first_rank = first_rank;
    begun.local_world_size = workers;
    begun.world_size = world;
    begun.group_world_size = world / workers;
    return tell(begun);
  }
  // For nodes that have joined.
  ToldNode& makes_room(std::int64_t ms, const std::string& reason) {
    Event stopping = event(Kind::RoundStopping, ms);
    stopping.reason = reason;
    stopping.cause = "resize";
    return tell(stopping);
  }
  ToldNode& starts(std::int64_t ms, std::int64_t rank) {
    Event started = event(Kind::WorkerStarted, ms);
    started.global_rank = rank;
    started.pid = 100 + rank;
    return tell(started);
  }
  ToldNode& exits(std::int64_t ms, std::int64_t rank, const std::string& state,
                  const std::string& error = "") {
    Event exited = event(Kind::WorkerExited, ms);
    exited.global_rank = rank;
    exited.pid = 100 + rank;
    exited.state = state;
    exited.raw_error = error;
    return tell(exited);
  }
  ToldNode& says(Kind kind, std::int64_t ms, const std::string& reason,
                 const std::string& peer = "") {
    Event said = event(kind, ms);
    said.reason = reason;
    said.peer = peer;
    return tell(said);
  }
  ToldNode& ends(std::int64_t ms, std::int64_t exit_code, const std::string& text = "") {
    Event outcome = event(Kind::Outcome, ms);
    outcome.state = exit_code == 0 ? "SUCCEEDED" : "FAILED";
    outcome.exit_code = exit_code;
    outcome.raw_error = text;
    return tell(outcome);
  }
  ToldNode& fails(std::int64_t ms, std::int64_t rank, const std::string& error,
                  const std::string& peer) {
    Event failure = event(Kind::Failure, ms);
    failure.global_rank = rank;
    failure.pid = 100 + rank;
    failure.raw_error = error;
    failure.peer = peer;
    return tell(failure);
  }
  [[nodiscard]] const std::string& lines() const { return lines_; }

 private:
  Event place_;
  std::int64_t ahead_;
  std::string lines_;
};

inline Log log_of(const std::vector<ToldNode>& nodes) {
  LogReader reader;
  for (const ToldNode& node : nodes) {
    reader.add(node.lines());
    (void)reader.end_file();
  }
  return std::move(reader).finish();
}

inline Timeline timeline_of(const std::vector<ToldNode>& nodes) {
  Log log = log_of(nodes);
  const auto runs = runs_of(log);
  (void)set_clocks_right(log, runs);
  return make_timeline(log, runs);
}

// Two nodes of one rank each: rank 1, on node1, fails in round 1; round 2 succeeds. node1's clock
// is ahead.
inline std::vector<ToldNode> job_with_a_restart(std::int64_t ahead_ms = 0,
                                                const std::string& error = "exit code 7") {
  ToldNode node0("node0", 10);
  ToldNode node1("node1", 11, ahead_ms);
  node0.joins(0).tell(Kind::LeaderElected, 5).says(Kind::NodeJoined, 60, "", node1.ticket());
  node1.joins(50);
  node0.begins(100, 1, 0).starts(110, 0).tell(Kind::WorkersRunning, 111);
  node1.begins(101, 1, 1).starts(120, 1).tell(Kind::WorkersRunning, 121);
  node1.exits(500, 1, "FAILED", error).says(Kind::RoundStopping, 501, "rank 1: " + error);
  node1.tell(Kind::RoundEnded, 502);
  node0.fails(504, 1, error, node1.ticket()).says(Kind::RoundStopping, 505, "rank 1: " + error);
  node0.exits(550, 0, "TERMINATED", "killed by SIGTERM").tell(Kind::RoundEnded, 551);
  node0.begins(600, 2, 0, 1, 2, 1).starts(610, 0).tell(Kind::WorkersRunning, 611);
  node1.begins(601, 2, 1, 1, 2, 1).starts(610, 1).tell(Kind::WorkersRunning, 612);
  node0.exits(900, 0, "SUCCEEDED").tell(Kind::RoundEnded, 901);
  node1.exits(1000, 1, "SUCCEEDED").tell(Kind::RoundEnded, 1001);
  node0.tell(Kind::Outcome, 1002).tell(Kind::AgentEnded, 1003);
  node1.tell(Kind::Outcome, 1002).tell(Kind::AgentEnded, 1003);
  return {node0, node1};
}

}  // namespace drun::timeline::test
