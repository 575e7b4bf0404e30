// The user's time limits: for the job, for the start of the workers, and the grace of a stop that
// is under way. Pure: time comes in as an argument.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launcher/options/options.hpp"

namespace drun::launcher {

class TimeLimits {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using WallTime = std::chrono::system_clock::time_point;

  TimeLimits(const StopPolicy& policy, Time now);

  void workers_run() { start_deadline_.reset(); }
  void grace_begins(Time now) { kill_at_ = now + grace_; }
  void grace_ends() { kill_at_.reset(); }
  [[nodiscard]] bool in_grace() const { return kill_at_.has_value(); }

  // Which limit is over, as a reason to end the job; each is reported once.
  [[nodiscard]] std::optional<std::string> expired(Time now);
  // The countdown to SIGKILL; `interactive`: somebody told this drun to stop, and may do it
  // again. `reason` may be empty. Nothing outside the grace, or when it is over.
  [[nodiscard]] std::optional<std::string> countdown(Time now, bool interactive,
                                                     const std::string& reason) const;
  // When the job ends by --timeout, or because somebody else ends it; `wall` is now.
  [[nodiscard]] std::optional<WallTime> job_end(Time now, WallTime wall) const;
  // When to ask again.
  [[nodiscard]] std::optional<Time> next_deadline(Time now) const;

 private:
  std::chrono::milliseconds grace_;
  std::optional<Time> job_deadline_;
  std::optional<Time> start_deadline_;
  std::optional<Time> kill_at_;
  std::optional<WallTime> job_end_;
};

}  // namespace drun::launcher
