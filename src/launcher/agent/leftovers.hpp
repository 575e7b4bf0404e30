// What the workers of a round leave behind on this node besides processes: their shared memory is
// looked for while they run, and removed when they are gone. One thread: the agent's loop, which it
// never blocks.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "launcher/agent/file_desk.hpp"
#include "launcher/process/shared_memory.hpp"
#include "launcher/workers/before_start.hpp"
#include "launcher/workers/supervision.hpp"

namespace drun::launcher {

class Leftovers final : public BeforeStart {
 public:
  // Called from the loop.
  struct Calls {
    std::function<void(const std::string&)> say;  // a line for the user
    std::function<void()> resumed;                // begin()'s `over` was called
  };
  // `files` must outlive this; what it is asked here is done before the workers are prepared, for
  // which it is asked later. `keep`: as SharedMemory's; with "*" nobody looks.
  Leftovers(asio::io_context& io, const std::vector<std::string>& keep, FileWork& files,
            Calls calls);

  // The next round waits until the last one is swept, for a second at most.
  [[nodiscard]] std::optional<Time> begin(Time now, std::function<void()> over) override;
  void on_workers(const WorkerNews& news);
  // Nobody is told anything any more.
  void cancel();
  // Waits until the last round is swept: for milliseconds, unless the kernel hangs.
  void finish();

 private:
  struct Shared;

  void look();
  void look_later();
  void sweep();
  void on_swept(const process::SharedMemory::Swept& swept) const;
  FileDesk& desk();

  asio::io_context& io_;
  FileWork& files_;
  const Calls calls_;
  std::shared_ptr<Shared> memory_;  // null: nobody looks
  bool begun_ = false;              // what was there before is asked for
  bool ready_ = false;              // and known
  bool running_ = false;
  bool looking_ = false;
  bool sweeping_ = false;
  bool told_ = true;
  std::size_t known_ = 0;
  std::chrono::seconds pause_{0};
  std::optional<FileDesk> desk_;
  DeadlineTimer timer_;
  std::function<void()> over_;  // of the round that waits
};

}  // namespace drun::launcher
