// A timeline as Perfetto (ui.perfetto.dev) and Chrome (chrome://tracing) read it. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "timeline/timeline.hpp"

namespace drun::timeline {

// A JSON object in ASCII, an event of the trace a line, its times in microseconds since the first
// event. pid: the nodes from 1 on, in the order of their ranks, then one for the job as a whole;
// tid: the rank, and kNodeTrack for the node itself. docs/timeline.md says what is on which track.
[[nodiscard]] std::string trace_json(const Timeline& timeline);

inline constexpr std::int64_t kNodeTrack = 1'000'000'000;  // more than any rank

}  // namespace drun::timeline
