// A timer for work that is due at the earliest of several moments, which change.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

namespace drun {

class DeadlineTimer {
 public:
  using Time = asio::steady_timer::time_point;

  // `due` is called from the loop of `io`, which must outlive this, as this must the last of its
  // handlers.
  DeadlineTimer(asio::io_context& io, std::function<void()> due)
      : timer_(io), due_(std::move(due)) {}
  DeadlineTimer(const DeadlineTimer&) = delete;
  DeadlineTimer& operator=(const DeadlineTimer&) = delete;

  // Instead of what was set before, even if that is due already: once at `time`; never at nullopt.
  void set(std::optional<Time> time) {
    timer_.cancel();
    ++times_set_;
    if (!time) return;
    timer_.expires_at(*time);
    timer_.async_wait([this, number = times_set_](asio::error_code cancelled) {
      if (!cancelled && number == times_set_) due_();
    });
  }

 private:
  asio::steady_timer timer_;
  std::uint64_t times_set_ = 0;
  const std::function<void()> due_;
};

}  // namespace drun
