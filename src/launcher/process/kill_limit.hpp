// How long what was killed is waited for.
#pragma once

#include <chrono>

namespace drun::process {

// Of a job's processes: one that SIGKILL does not end within this time hangs inside the kernel;
// waiting longer would only hang the job too.
inline constexpr std::chrono::milliseconds kKillLimit{5000};

// What was just killed may take a moment to leave its cgroup.
inline constexpr std::chrono::milliseconds kRemoveLimit{1000};

// A limit, and as long again while some of it still dies: a deep family on a slow machine.
class KillLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // So many looks in a row without a death, and what is left is taken for something that hangs.
  static constexpr int kIdleSweeps = 20;

  KillLimit(Time now, std::chrono::milliseconds limit) : limit_(limit), until_(now + limit) {}

  void on_death() { idle_ = 0; }
  // Looked, and killed what was there.
  void on_sweep() { ++idle_; }
  [[nodiscard]] bool is_over(Time now) const {
    return now >= (idle_ < kIdleSweeps ? until_ + limit_ : until_);
  }

 private:
  std::chrono::milliseconds limit_;
  Time until_;
  int idle_ = 0;  // sweeps since the last death
};

// The longest that kill_job() takes: the limit twice, and the group's end.
inline constexpr std::chrono::milliseconds kLongestKilling = 2 * kKillLimit + kRemoveLimit;

}  // namespace drun::process
