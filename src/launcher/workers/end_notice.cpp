#include "launcher/workers/end_notice.hpp"

#include <algorithm>

#include "base/number_ranges.hpp"
#include "launcher/process/exit_status.hpp"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// For a worker that has not prepared yet.
constexpr seconds kBetweenLooks{1};
// A clock that is set must not make this agent sleep through the time.
constexpr seconds kLongestSleep{60};

}  // namespace

void EndNotices::begin(std::int64_t ends_ms, int first_rank) {
  end_.reset();
  if (ends_ms != 0) end_ = WallTime(milliseconds(ends_ms));
  first_rank_ = first_rank;
  told_.clear();
  said_ = warned_ = false;
}

EndNotices::Step EndNotices::on_time(WallTime now, const Workers& workers,
                                     const std::function<bool(const Worker&)>& prepared) {
  Step step;
  next_.reset();
  if (!notice_ || !end_) return step;
  if (now < *end_ - notice_->before) {
    next_ = std::min<WallTime>(*end_ - notice_->before, now + kLongestSleep);
    return step;
  }
  if (!said_) {
    due_ = now;
    step.say = announcement(now);
  }
  said_ = true;
  if (now >= *end_) return step;
  bool any_left = false;
  for (const auto& [id, worker] : workers) {
    if (worker.stage == Worker::Stage::Ended || told_.contains(id)) continue;
    if (worker.stage == Worker::Stage::Running && prepared(worker)) {
      told_.insert(id);
      step.signal.push_back(id);
    } else {
      any_left = true;
    }
  }
  if (!any_left) return step;
  if (!warned_ && now >= due_ + kPatience) {
    warned_ = true;
    step.warning = unprepared(workers);
  }
  next_ = std::min<WallTime>(now + kBetweenLooks, *end_);
  return step;
}

std::string EndNotices::announcement(WallTime now) const {
  const std::string signal = process::signal_name(notice_->signal);
  if (now >= *end_) return "the time at which the job ends has passed: no worker gets " + signal;
  return "the job ends in " + std::to_string(std::chrono::round<seconds>(*end_ - now).count()) +
         " s: " + signal + " to all workers";
}

std::string EndNotices::unprepared(const Workers& workers) const {
  std::vector<int> ranks;
  for (const auto& [id, worker] : workers)
    if (worker.stage == Worker::Stage::Running && !told_.contains(id))
      ranks.push_back(first_rank_ + worker.local_rank);
  if (ranks.empty()) return "";
  return ranks_text(ranks) + " would die of " + process::signal_name(notice_->signal) +
         ": no handler is set there, so it is not sent";
}

}  // namespace drun::launcher
