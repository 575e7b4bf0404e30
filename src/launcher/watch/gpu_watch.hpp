// Takes samples of what the workers of this node have of GPUs: soon after they run, and then every
// few seconds. A helper asks the driver; where it cannot tell, or does not answer, it is not asked
// again. One thread: the agent's loop, which it never blocks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "base/file_desk.hpp"
#include "launcher/devices/gpu_ledger.hpp"
#include "launcher/devices/gpu_usage.hpp"
#include "launcher/look/child_talk.hpp"
#include "launcher/workers/worker_group.hpp"

namespace drun::launcher {

class GpuWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Most jobs that fail at once have done so by then, and a start has its processors to itself.
  static constexpr std::chrono::milliseconds kFirst{1'000};
  static constexpr std::chrono::milliseconds kPeriod{5'000};
  // How long sample() waits: shorter than drunctl.
  static constexpr std::chrono::milliseconds kSampleLimit{1'000};

  struct Parts {
    asio::io_context& io;
    std::function<const WorkerGroup&()> group;
    GpuLedger& ledger;  // of what is told
  };
  // `wanted`: somebody will want to know. Otherwise nothing happens before sample(). What `parts`
  // has must outlive this.
  GpuWatch(Parts parts, bool wanted, const ChildProgram& helper = own_helper());

  void on_workers(const GroupNews& news);
  // From here on the samples are wanted. `done` is called, once, when there is one of this round,
  // or there will be none in time: perhaps at once.
  void sample(std::function<void()> done);
  // Nobody is told anything any more, and the helper is killed; who ends this waits for it, for
  // half a second at most.
  void cancel();

 private:
  [[nodiscard]] static ChildProgram own_helper();
  void on_time();
  void on_sample(int round, const Result<GpuSample>& sample);
  void answer();

  const Parts parts_;
  bool wanted_;
  bool over_ = false;    // nobody is asked again
  bool asking_ = false;  // a sample is being taken
  bool answered_ = false;
  int sampled_ = 0;                          // the last round of which there is one
  const std::shared_ptr<ChildTalk> helper_;  // with the thread that asks
  std::optional<FileDesk> desk_;
  DeadlineTimer next_;
  DeadlineTimer limit_;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace drun::launcher
