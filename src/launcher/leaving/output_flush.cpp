#include "launcher/leaving/output_flush.hpp"

#include "base/log.hpp"

namespace drun::launcher {

using Clock = std::chrono::steady_clock;

void OutputFlush::start(int exit_code, bool told_to_stop, std::function<void(bool)> over) {
  if (policy_) return;
  over_ = std::move(over);
  target_.drain(FlushPolicy::kInterval);
  policy_.emplace(exit_code, told_to_stop, Clock::now());
  look();
}

void OutputFlush::look() {
  const auto now = Clock::now();
  const FlushProgress progress = target_.progress();
  switch (policy_->look(progress, now)) {
    case FlushPolicy::Step::Done:
      return end(false);
    case FlushPolicy::Step::GiveUp:
      return give_up(policy_->reason());
    case FlushPolicy::Step::Tell:
      log::warning("{}", waiting_for_reader(progress));
      break;
    case FlushPolicy::Step::Wait:
      break;
  }
  timer_.expires_at(now + FlushPolicy::kInterval);
  timer_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled && over_) look();
  });
}

void OutputFlush::give_up(const std::string& why) {
  if (!over_) return;
  const FlushProgress progress = target_.progress();
  if (!progress.all) log::error("{}", lost_at_reader(progress, why));
  end(!progress.all);
}

void OutputFlush::end(bool lost) {
  timer_.cancel();
  target_.give_up();
  std::exchange(over_, nullptr)(lost);
}

}  // namespace drun::launcher
