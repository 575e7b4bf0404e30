// What the workers of a round leave behind on this node besides processes: their shared memory is
// looked for while they run, and removed when they are gone, unless all of them ended with 0; and
// GPUs may need a moment to give back the memory of those that were killed. Does what LeftoversFsm
// decides. One thread: the agent's loop, which it never blocks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "base/file_desk.hpp"
#include "launcher/devices/gpu_release.hpp"
#include "launcher/look/child_output.hpp"
#include "launcher/telling/status_reporter.hpp"
#include "launcher/watch/leftovers_fsm.hpp"
#include "launcher/workers/before_start.hpp"
#include "launcher/workers/supervision.hpp"

namespace drun::launcher {

class Leftovers final : public BeforeStart {
 public:
  // Called from the loop.
  struct Calls {
    std::function<const WorkerGroup&()> group;
    StatusReporter& status;
    std::function<void()> resumed;  // begin()'s `over` was called
  };
  // `files` must outlive this; what it is asked here is done before the workers are prepared, for
  // which it is asked later. `keep`: as SharedMemory's; with "*" nobody looks. `restarts`: there
  // may be a second round.
  Leftovers(asio::io_context& io, const std::vector<std::string>& keep, bool restarts,
            FileWork& files, Calls calls, const std::string& folder = "/dev/shm");

  // The next round waits until the last one is swept, for a second at most, and for GPUs that still
  // list its processes, for ten.
  [[nodiscard]] std::optional<Time> begin(Time now, std::function<void()> over) override;
  void on_workers(const WorkerNews& news);
  // Nobody is told anything any more, but for finish().
  void cancel();
  // Waits until the last round is swept, and says what was: for milliseconds, unless the kernel
  // hangs.
  void finish();

 private:
  struct Shared;

  void perform(const LeftoversFsm::Steps& steps);
  void note_files();
  void look();
  void sweep();
  void ask_about_gpus();
  void await_gpus();
  void on_gpus(const Result<GpuAnswer>& answer, std::chrono::milliseconds waited);
  FileDesk& desk();

  asio::io_context& io_;
  FileWork& files_;
  const Calls calls_;
  const std::shared_ptr<Shared> memory_;
  const std::shared_ptr<ChildStop> gpu_helper_ = std::make_shared<ChildStop>();
  LeftoversFsm fsm_;
  std::optional<FileDesk> desk_;
  DeadlineTimer timer_;
  std::function<void()> over_;  // of the round that waits
};

}  // namespace drun::launcher
