// Starts programs without ever blocking its owner. A spawner sleeps until its child has its
// program: for a moment mostly, for ever if the program's file system hangs. So each works in a
// thread of its own, and several share a large batch.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/file_descriptor.hpp"
#include "launcher/process/spawn.hpp"

namespace drun::process {

// One thread uses it, the owner's, which also collects this process's children. The threads of the
// pool live until the process ends, because the kernel kills a worker when the *thread* that
// started it ends. So there is no destructor to wait for them: the process has to end by _exit().
class SpawnPool {
 public:
  using Ticket = std::uint32_t;  // chosen by the owner, unique among those without a result
  struct Result {
    Ticket ticket = 0;
    SpawnResult spawned;
  };

  // Throws std::system_error.
  SpawnPool();

  // Programs start inside this cgroup directory from now on; -1: where their parent is. False: the
  // kernel starts none there, and they do not either. Nothing is being started.
  bool use_cgroup(int directory);
  // The first thread, so that the first program need not wait for it.
  void warm_up();

  // The borrowed pointers must live until the result is taken.
  void spawn(Ticket ticket, SpawnPlan plan);
  // Readable when take() has something.
  [[nodiscard]] int fd() const { return ready_.get(); }
  [[nodiscard]] std::vector<Result> take();

  // Which spawn this child belongs to; nothing if its result was taken already, or if it is none of
  // theirs. A child may end before its result is there.
  [[nodiscard]] std::optional<Ticket> ticket_of(pid_t child);
  // The child of this spawn, whose result was not taken; 0 if there is none.
  [[nodiscard]] pid_t child_of(Ticket ticket);
  // No thread is about to make a process.
  [[nodiscard]] bool all_have_children();
  // Takes back what no thread has begun with.
  [[nodiscard]] std::vector<Ticket> cancel();
  // Threads that are at work now may never return: others are started in their place.
  void replace_hanging();

 private:
  struct Helper {
    Spawner spawner;
    std::thread thread;
    std::optional<Ticket> ticket;  // at work
    bool hangs = false;
  };
  struct Job {
    Ticket ticket = 0;
    SpawnPlan plan;
  };

  bool grow(std::size_t jobs);
  void help(Helper& helper);

  Spawner trial_;
  int cgroup_ = -1;
  FileDescriptor ready_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable work_;
  std::vector<std::unique_ptr<Helper>> helpers_;
  std::deque<Job> jobs_;
  std::vector<Result> results_;
};

}  // namespace drun::process
