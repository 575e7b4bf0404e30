// An interface for what must know of each worker of a node when it starts and ends.
#pragma once

#include "launcher/workers/worker.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

// Called from the loop; must not block.
class WorkerWatch {
 public:
  WorkerWatch() = default;
  WorkerWatch(const WorkerWatch&) = delete;
  WorkerWatch& operator=(const WorkerWatch&) = delete;
  virtual ~WorkerWatch() = default;

  // It runs.
  virtual void on_started(const rendezvous::Assignment& place, const Worker& worker) = 0;
  // It has ended, or could not be started. `stopping`: drun was ending the workers.
  virtual void on_ended(const rendezvous::Assignment& place, const Worker& worker,
                        bool stopping) = 0;
};

}  // namespace drun::launcher
