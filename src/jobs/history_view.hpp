// What became of a job's rounds, for people and programs that ask from outside. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "jobs/job_view.hpp"

namespace drun::jobs {

// A line for each of the last `most` rounds that were stopped, the youngest first: "round 1:
// stopped at 14:30:05 UTC after 3 min 2 s, restart 1: rank 3 ...".
[[nodiscard]] std::string stops_text(const JobView& job, std::size_t most);

// All that is known, a line for each round, the oldest first. `now_ms`: Unix time.
[[nodiscard]] std::string history_text(const JobView& job, std::int64_t now_ms);

}  // namespace drun::jobs
