// How long to wait for the end of killed processes.
#pragma once

#include <chrono>

namespace drun::process {

// For a job's processes: one that SIGKILL does not end within this time hangs inside the kernel;
// waiting longer would only hang the job too.
inline constexpr std::chrono::milliseconds kKillLimit{5000};

// For a cgroup: processes that were just killed may take a moment to leave it.
inline constexpr std::chrono::milliseconds kRemoveLimit{1000};

// A limit that doubles while processes still die: a deep family on a slow machine takes longer.
class KillLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // After so many sweeps in a row without a death, what is left is taken to hang.
  static constexpr int kIdleSweeps = 20;

  KillLimit(Time now, std::chrono::milliseconds limit) : limit_(limit), until_(now + limit) {}

  void on_death() { idle_ = 0; }
  // A sweep has looked for processes and killed them.
  void on_sweep() { ++idle_; }
  [[nodiscard]] bool is_over(Time now) const {
    return now >= (idle_ < kIdleSweeps ? until_ + limit_ : until_);
  }

 private:
  std::chrono::milliseconds limit_;
  Time until_;
  int idle_ = 0;  // sweeps since the last death
};

// The longest that kill_job() takes: twice the limit, and the removal of the group.
inline constexpr std::chrono::milliseconds kLongestKilling = 2 * kKillLimit + kRemoveLimit;

// A helper that was told to end kills what is left first, and is waited for as long as that may
// take. If it is still there afterwards, it hangs or somebody has stopped it.
inline constexpr std::chrono::milliseconds kEndLimit =
    kLongestKilling + std::chrono::milliseconds(1000);

// How long the guardian, and after it the watchdog, may still take when drun was told to end
// whatever hangs.
inline constexpr std::chrono::milliseconds kGiveUpLimit{1000};

// For ever, but safe to add to a time.
inline constexpr std::chrono::milliseconds kLongestGrace = std::chrono::hours(24 * 365);

}  // namespace drun::process
