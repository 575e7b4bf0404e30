// The jobs that a store carries, from the documents that their agents keep there.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "drun/base/result.hpp"
#include "store/client/control_query.hpp"

namespace drun::ctl {

struct Job {
  std::string id;
  std::string state = "abandoned";  // of its round; "ended"; without agents that could end it so
  int round = 0;                    // the last one
  std::size_t agents = 0;
  std::optional<int> exit_code;  // ended
};

using Deadline = std::chrono::steady_clock::time_point;

// In the order of their names as keys.
[[nodiscard]] Result<std::vector<Job>> read_jobs(store::ControlQuery& query, Deadline deadline);

enum class Deletion { Done, NoSuchJob, HasAgents };
// All keys of the job, unless an agent of it is there, or comes meanwhile.
[[nodiscard]] Result<Deletion> delete_job(store::ControlQuery& query, const std::string& id,
                                          Deadline deadline);

}  // namespace drun::ctl
