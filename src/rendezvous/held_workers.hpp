// The workers of one round that a node holds: how they stand. Pure.
#pragma once

namespace drun::rendezvous {

class HeldWorkers {
 public:
  enum class State {
    None,
    Running,
    Succeeded,
    Failed,    // one has, and the rest of them still run
    Stopping,  // were asked to stop
    Killing
  };

  // Precondition: there are none.
  void start(int round);
  // Of workers of this round. True if that is news: they ran.
  [[nodiscard]] bool on_succeeded(int round);
  [[nodiscard]] bool on_failed(int round);
  // Nothing is left of them. Their round; 0: there were none.
  [[nodiscard]] int on_stopped();
  // They have to stop. True if they must be told: they were not yet, or not to do it at once.
  [[nodiscard]] bool stop(bool immediately);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool any() const { return state_ != State::None; }
  [[nodiscard]] int round() const { return round_; }  // 0: there are none
  [[nodiscard]] bool run(int round) const { return state_ == State::Running && round == round_; }
  [[nodiscard]] bool succeeded() const { return state_ == State::Succeeded; }
  [[nodiscard]] bool stop_asked() const {
    return state_ == State::Stopping || state_ == State::Killing;
  }
  // They may be killed by the guardian before they have told how they ended.
  [[nodiscard]] bool need_a_lease() const {
    return state_ == State::Running || state_ == State::Stopping;
  }

 private:
  State state_ = State::None;
  int round_ = 0;
};

}  // namespace drun::rendezvous
