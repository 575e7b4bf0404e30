// A group of workers on faked processes, which a test starts and ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "launcher/workers/worker_group.hpp"
#include "support/fake_workers.hpp"

namespace drun::launcher::test {

// The place of the node with this rank, whose nodes have two workers each.
inline rendezvous::Assignment place_of(int group_rank, int nodes, int round = 1) {
  constexpr int kEach = 2;
  rendezvous::Assignment place;
  place.round = round;
  place.group_rank = group_rank;
  place.group_world_size = nodes;
  place.first_rank = kEach * group_rank;
  place.world_size = kEach * nodes;
  return place;
}

class GroupRig {
 public:
  GroupRig() = default;
  GroupRig(const GroupRig&) = delete;
  GroupRig& operator=(const GroupRig&) = delete;

  // A round, of workers with these processes; one that is left out does not run yet.
  GroupNews start(const rendezvous::Assignment& place, std::vector<pid_t> pids = {101, 102}) {
    runner.requests.clear();
    pids_ = std::move(pids);
    group.start(place, now);
    GroupNews news = group.on_time(now);
    for (std::size_t i = 0; i < pids_.size(); ++i)
      news = group.on_event(process::Spawned{runner.requests.at(i).id, pids_[i]}, now);
    return news;
  }
  // The worker with this local rank ends.
  GroupNews end(std::size_t local_rank, int code = 0, process::Usage usage = {}) {
    process::Exited exited;
    exited.id = id(local_rank);
    exited.pid = pids_.at(local_rank);
    exited.status.code = code;
    exited.usage = usage;
    return group.on_event(exited, now);
  }
  // The round is stopped, and nothing of its workers is left.
  GroupNews stop() {
    (void)group.stop(false, now);
    return group.on_event(process::Stopped{}, now);
  }
  [[nodiscard]] process::WorkerId id(std::size_t local_rank) const {
    return runner.requests.at(local_rank).id;
  }

  Options options = two_workers();
  FakeRunner runner;
  FakeOutput output;
  FakeFiles files;
  WorkerGroup::Time now = std::chrono::steady_clock::now();
  WorkerGroup group{options, "node7", runner, output, files};

 private:
  static Options two_workers() {
    Options options;
    options.nproc_per_node = 2;
    options.command = {"/bin/sh", "-c", "true"};
    return options;
  }

  std::vector<pid_t> pids_;
};

}  // namespace drun::launcher::test
