#include "launcher/agent/reader_wait.hpp"

#include <chrono>
#include <utility>

#include "drun/base/log.hpp"

namespace drun::launcher {

using Clock = std::chrono::steady_clock;

void ReaderWait::start(int exit_code, bool told_to_stop, std::function<void(bool)> over) {
  if (started()) return;
  over_ = std::move(over);
  output_.drain(Delivery::kInterval);
  delivery_.emplace(exit_code, told_to_stop, Clock::now());
  look();
}

void ReaderWait::look() {
  const auto now = Clock::now();
  const Delivered delivered = output_.delivered();
  switch (delivery_->look(delivered, now)) {
    case Delivery::Step::Done:
      return end(false);
    case Delivery::Step::GiveUp:
      return give_up(delivery_->reason());
    case Delivery::Step::Tell:
      log::warning(waiting_for_reader(delivered));
      break;
    case Delivery::Step::Wait:
      break;
  }
  timer_.expires_at(now + Delivery::kInterval);
  timer_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled && over_) look();
  });
}

void ReaderWait::give_up(const std::string& why) {
  if (!over_) return;
  const Delivered delivered = output_.delivered();
  if (!delivered.all) log::error(lost_at_reader(delivered, why));
  end(!delivered.all);
}

void ReaderWait::end(bool lost) {
  timer_.cancel();
  output_.give_up();
  std::exchange(over_, nullptr)(lost);
}

}  // namespace drun::launcher
