// Starts many programs at once. A spawner sleeps until its child has its program, which is mostly
// the kernel's work; so a large batch is shared among several, each in a thread of its own.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "launcher/process/spawn.hpp"

namespace drun::process {

class SpawnPool {
 public:
  // The threads start with the first batch that is worth it, and stay: the kernel kills a worker
  // when the *thread* that started it ends.
  SpawnPool() = default;
  SpawnPool(const SpawnPool&) = delete;
  SpawnPool& operator=(const SpawnPool&) = delete;
  ~SpawnPool();  // kills what its threads have started, see above

  // As Spawner::use_cgroup().
  bool use_cgroup(int directory);

  // Returns when each program runs, or cannot; the results are in the order of the plans. The
  // borrowed pointers must live until then.
  std::vector<SpawnResult> spawn(std::vector<SpawnPlan> plans);

 private:
  struct Helper {
    Spawner spawner;
    std::thread thread;
  };

  void grow(std::size_t batch);
  void help(Spawner& spawner);
  void take_plans(Spawner& spawner, std::unique_lock<std::mutex>& lock);

  Spawner own_;
  int cgroup_ = -1;
  std::vector<std::unique_ptr<Helper>> helpers_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable work_;
  std::condition_variable done_;
  std::vector<SpawnPlan> plans_;
  std::vector<SpawnResult> results_;
  std::size_t next_ = 0;      // the first plan that nobody has taken
  std::size_t finished_ = 0;  // plans with a result
  bool ending_ = false;
};

}  // namespace drun::process
