#include "launcher/workers/time_limits.hpp"

#include <algorithm>

#include "base/deadline.hpp"

namespace drun::launcher {
namespace {

constexpr std::chrono::milliseconds kCountdownInterval{1'000};
constexpr const char* kJobLimit = "--timeout is over";
constexpr const char* kStartLimit = "the workers were not running when --start-timeout was over";

}  // namespace

TimeLimits::TimeLimits(const StopPolicy& policy, Time now) : grace_(policy.shutdown_timeout) {
  if (policy.timeout) job_deadline_ = now + *policy.timeout;
  if (policy.start_timeout) start_deadline_ = now + *policy.start_timeout;
  if (policy.job_end) job_end_ = WallTime(std::chrono::seconds(*policy.job_end));
}

std::optional<std::string> TimeLimits::expired(Time now) {
  if (job_deadline_ && now >= *job_deadline_) {
    job_deadline_.reset();
    start_deadline_.reset();
    return kJobLimit;
  }
  if (start_deadline_ && now >= *start_deadline_) {
    start_deadline_.reset();
    return kStartLimit;
  }
  return std::nullopt;
}

std::optional<std::string> TimeLimits::countdown(Time now, bool interactive,
                                                 const std::string& reason) const {
  if (!kill_at_) return std::nullopt;
  const auto left = std::chrono::ceil<std::chrono::seconds>(*kill_at_ - now).count();
  if (left <= 0) return std::nullopt;
  const std::string why = reason.empty() ? "" : ": " + reason;
  const std::string when = "; SIGKILL in " + std::to_string(left) + " s";
  // What a narrow terminal cuts is at the end.
  return "stopping the workers" + (interactive ? when + " (Ctrl-C again: now)" + why : why + when);
}

std::optional<TimeLimits::WallTime> TimeLimits::job_end(Time now, WallTime wall) const {
  if (!job_deadline_) return job_end_;
  const WallTime own = wall + std::chrono::duration_cast<WallTime::duration>(*job_deadline_ - now);
  return job_end_ ? std::min(own, *job_end_) : own;
}

std::optional<TimeLimits::Time> TimeLimits::next_deadline(Time now) const {
  EarliestDeadline next;
  next.include(job_deadline_);
  next.include(start_deadline_);
  if (kill_at_) next.include(now + kCountdownInterval);
  return next.time();
}

}  // namespace drun::launcher
