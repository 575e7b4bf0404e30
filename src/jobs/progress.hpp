// What the heartbeats of a job's ranks say of its progress. Pure.
//
// The nodes note the heartbeats of their ranks at different times, and seldom: a lower step in an
// older note proves nothing. Only a rank that is certainly behind another one is named.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/documents.hpp"

namespace drun::jobs {

// What a node has noted.
struct NodeBeats {
  std::string host;
  rendezvous::BeatDocument beats;
};

struct BeatView {
  std::string host;
  int rank = 0;
  std::int64_t step = -1;    // -1: it does not say
  std::int64_t time_ms = 0;  // of its last heartbeat: Unix milliseconds, of the host's clock
};

struct Progress {
  std::int64_t least_step = -1;    // of all ranks; -1: not all say steps
  std::int64_t most_step = -1;     // likewise
  std::optional<BeatView> behind;  // the furthest of those that are
};

// `nodes`: those of one round, at least one. `now_ms`: Unix milliseconds.
[[nodiscard]] Progress progress_of(const std::vector<NodeBeats>& nodes, std::int64_t now_ms);

}  // namespace drun::jobs
