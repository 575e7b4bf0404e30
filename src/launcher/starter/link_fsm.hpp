// Whether the other side of a link is there, and why it is given up. Pure: events and the time go
// in.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace drun::launcher {

class LinkFsm {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class State {
    Awaited,  // the mark is; whatever comes instead may take as long as it likes
    Greeted,  // a frame has come, or without a mark nobody waits for one
    Over
  };

  LinkFsm(bool marked, std::chrono::seconds silence_limit)
      : silence_limit_(silence_limit), state_(marked ? State::Awaited : State::Greeted) {}

  void on_bytes(Time now) { heard_ = now; }
  void on_frame();
  // These two end it, once. The text is why this side does; empty: the other one has.
  [[nodiscard]] std::optional<std::string> on_end();
  [[nodiscard]] std::optional<std::string> on_broken();
  // Every so often. As above, if it was silent for too long.
  [[nodiscard]] std::optional<std::string> on_time(Time now);
  // Nothing of it matters any more.
  void end() { state_ = State::Over; }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool over() const { return state_ == State::Over; }
  // At any time, also afterwards.
  [[nodiscard]] bool greeted() const { return was_greeted_; }
  // It is to be told every so often that this side is there.
  [[nodiscard]] bool speaks() const { return state_ == State::Greeted; }

 private:
  std::optional<std::string> give_up(std::string why);

  std::chrono::seconds silence_limit_;
  State state_;
  bool was_greeted_ = state_ == State::Greeted;
  Time heard_{};
};

}  // namespace drun::launcher
