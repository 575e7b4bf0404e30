// When jobs that are watched are shown again. Pure.
#pragma once

#include <chrono>

namespace drun::ctl {

class Redraw {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class State {
    Same,    // as it was shown last
    Changed  // something is to be shown that has come since
  };
  // A start changes a document for each node: what came meanwhile is shown at once.
  static constexpr std::chrono::milliseconds kBetween{200};
  // How long it has been so is shown anew on a terminal.
  static constexpr std::chrono::milliseconds kTick{1'000};
  static constexpr std::chrono::milliseconds kLongTick{86'400'000};

  // `in_place`: on a terminal, where times go on.
  explicit Redraw(bool in_place) : in_place_(in_place) {}

  void on_change() { state_ = State::Changed; }
  void on_shown(Time now) {
    state_ = State::Same;
    shown_ = now;
  }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool in_place() const { return in_place_; }
  [[nodiscard]] bool is_due(Time now) const {
    return (state_ == State::Changed || in_place_) && now >= shown_ + kBetween;
  }
  // So long at most changes are waited for before is_due() is asked again.
  [[nodiscard]] Time wait_until(Time now) const {
    if (state_ == State::Changed) return shown_ + kBetween;
    return now + (in_place_ ? kTick : kLongTick);
  }

 private:
  const bool in_place_;
  State state_ = State::Same;
  Time shown_;
};

}  // namespace drun::ctl
