// What an agent says of itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"

namespace drun::status {

enum class Phase {
  Searching,  // it has not reached the store yet, or has lost it
  Gathering,  // nodes are waited for
  Spare,      // it waits to be needed
  Starting,   // the workers are
  Running,    // all of its workers have been started
  Stopping,   // its workers are being ended, or those of other nodes
  Leaving     // its workers are gone, and so will it be
};

// "running"
[[nodiscard]] std::string_view name_of(Phase phase);
[[nodiscard]] std::optional<Phase> phase_of(std::string_view name);

// The last heartbeat of the rank of the node that is furthest behind.
struct RankBeat {
  int rank = 0;
  std::int64_t step = -1;  // -1: it does not say
  std::int64_t age_ms = 0;

  bool operator==(const RankBeat&) const = default;
};

// Of an agent that has no place in a round yet, `round` is 0 and the numbers below it say nothing.
struct AgentStatus {
  std::string job;
  std::string host;
  std::int64_t pid = 0;
  Phase phase = Phase::Searching;
  std::string waiting;   // what for, for people; may be empty
  std::string endpoint;  // where the nodes meet; empty: nowhere, the job has one node
  std::string store;     // where the store is now, if it has moved from there
  int round = 0;
  int nodes = 0;  // of the round
  int group_rank = 0;
  int first_rank = 0;  // of this node
  int workers = 0;     // of this node
  int world_size = 0;
  int restart_count = 0;
  std::optional<RankBeat> behind;  // nullopt: nobody looks at heartbeats, or none has come
  // Who has not come to a collective of others, of the whole job; empty: nobody asked, or all have.
  std::string collective;

  bool operator==(const AgentStatus&) const = default;
};

// A line of JSON without its end; bytes that are no UTF-8 are replaced. `ascii`: nothing in it can
// act on a terminal.
[[nodiscard]] std::string to_json(const AgentStatus& status, bool ascii = false);
// Ignores members that it does not know.
[[nodiscard]] Result<AgentStatus> parse_status(std::string_view json);

}  // namespace drun::status
