// Which agents took part in one job together. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "timeline/event_log.hpp"

namespace drun::timeline {

// The run of each agent, numbered from 0 in the order of their beginnings. A file may hold jobs
// with one id, one after the other: each is a run of its own.
[[nodiscard]] std::vector<std::size_t> runs_of(const Log& log);

}  // namespace drun::timeline
