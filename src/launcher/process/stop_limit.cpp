#include "launcher/process/stop_limit.hpp"

namespace drun::process {

void StopLimit::set(std::chrono::milliseconds from_now) {
  const auto at = Clock::now() + from_now;
  if (at_ && *at_ <= at) return;
  at_ = at;
  arm();
}

void StopLimit::clear() {
  if (!at_) return;
  at_.reset();
  arm();
}

bool StopLimit::take_expired() {
  if (!at_ || Clock::now() < *at_) return false;
  clear();
  return true;
}

void StopLimit::arm() const {
  timer_.set(at_ ? std::optional(at_->time_since_epoch()) : std::nullopt);
}

}  // namespace drun::process
