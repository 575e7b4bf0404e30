// Ranks that hang: what is said of them, and how they fail. Pure.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "hang/node_stillness.hpp"
#include "hang/wait_place.hpp"
#include "launcher/workers/worker_group.hpp"

namespace drun::launcher {

// A worker that hangs, and why that is known.
struct HungRank {
  int local_rank = 0;
  pid_t pid = 0;
  RankFault fault;
};

// A worker of a job in which nobody makes progress, and where it waits.
struct WaitingRank {
  process::WorkerId worker = 0;
  int local_rank = 0;
  pid_t pid = 0;
  hang::WaitPlace place;
  bool behind = false;  // NCCL says that others have begun a collective, and it has not
  // Of its stack: the function or line that says most; empty: not known. `for_ranks`: there it
  // waits for other ranks. `for_gpu`: for a GPU, which may wait for others or work.
  std::string frame{};
  bool for_ranks = false;
  bool for_gpu = false;
};

// "none of the job's 8 ranks has made progress for 10 min 0 s: here ranks 0-2 wait in futex (...),
// rank 3 in recvfrom (...) from 10.0.0.1:4711"
[[nodiscard]] std::string hang_text(const std::vector<WaitingRank>& ranks, const WorkerGroup& group,
                                    std::chrono::milliseconds timeout);

// Each says who is behind, who waits for a process of its own, or how few others wait where it
// does: many wait for one. `for_good`: no restart. `others_within`: other nodes say so of their
// ranks.
[[nodiscard]] std::vector<HungRank> hang_faults(const std::vector<WaitingRank>& ranks,
                                                std::chrono::milliseconds timeout, bool for_good,
                                                std::chrono::milliseconds others_within);

// Why ranks of which nothing has come for long are not taken for hanging.
[[nodiscard]] std::string doubt_text(const hang::Doubt& doubt, const WorkerGroup& group);

}  // namespace drun::launcher
