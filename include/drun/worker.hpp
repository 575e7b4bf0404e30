// What a worker is told by its launcher: who it is, how many there are, and where they meet.
//
//   auto me = drun::worker();
//   if (!me) return fail(me.error().what());  // "RANK is not set: start this program with drun"
//   std::printf("rank %d of %d\n", me->rank, me->world_size);
//
// drun and torchrun set the same variables, so a program that uses this runs under both.
#pragma once

// In front of all that an older standard lacks, and of what a compiler says of that.
#if __cplusplus <= 201703L
#error "drun needs C++20: compile with -std=c++20"
#endif

#include <string>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"

namespace drun {

struct Worker {
  // Of all workers of the job.
  int rank = 0;  // from 0 to world_size - 1
  int world_size = 1;
  // Of those on this node. LOCAL_RANK usually picks the GPU; with --virtual-local-rank it is 0.
  int local_rank = 0;  // from 0 to local_world_size - 1
  int local_world_size = 1;
  // Of the nodes.
  int group_rank = 0;  // from 0 to group_world_size - 1
  int group_world_size = 1;
  // The workers' store: what Client::connect() without an endpoint connects to. drun empties it
  // before each start of the workers; torchrun does not.
  Endpoint store;
  // How often the workers were started again after a failure; 0 if the launcher does not say.
  int restart_count = 0;
  // --rdzv-id, or what the launcher chose; empty if it does not say.
  std::string job_id;

  bool operator==(const Worker&) const = default;
};

// From the environment: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK,
// GROUP_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, and, if they are set, TORCHELASTIC_RESTART_COUNT and
// TORCHELASTIC_RUN_ID. The error, of std::errc::invalid_argument, names the variable and what is
// wrong with it. Any thread, while none changes the environment.
[[nodiscard]] Result<Worker> worker();
// From "NAME=value" entries instead.
[[nodiscard]] Result<Worker> worker(const std::vector<std::string>& environment);

// Worker::store alone, which needs nothing but MASTER_ADDR and MASTER_PORT.
[[nodiscard]] Result<Endpoint> worker_store();
[[nodiscard]] Result<Endpoint> worker_store(const std::vector<std::string>& environment);

}  // namespace drun
