// Which of several endpoints are this agent's own. Their names are looked up side by side, because
// any of them may have no address yet, or a name server that does not answer. Says when the search
// for the job's store may begin with what is known. Pure: answers and the time go in, what to look
// up comes out.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace drun::launcher {

class OwnEndpointFsm {
 public:
  using Time = std::chrono::steady_clock::time_point;

  enum class State {
    Idle,     // not started
    Asking,   // the search has not begun: every name may still be answered for
    Late,     // it has begun, and some names are still being looked up
    Pausing,  // it has begun, and some names have no address: they are looked up again after a
              // pause
    Known     // every name is answered for, or this agent waits at one that is its own
  };
  enum class Own { Unknown, No, Yes };

  struct Step {
    std::vector<std::size_t> look_up;  // these endpoints
    bool begin = false;                // the search; again, if an answer shows more than was known
  };

  // Of so many endpoints; `pause` is also how long the first answers are waited for.
  OwnEndpointFsm(std::size_t endpoints, std::chrono::milliseconds pause)
      : own_(endpoints, Own::Unknown), pause_(pause) {}

  Step start(Time now);
  // One that was to be looked up. Unknown: its name has no address.
  Step on_answer(std::size_t endpoint, Own own, Time now);
  // The search has begun, and this agent waits for the others at one of its own.
  void on_listed();
  // At or after next_deadline().
  Step on_time(Time now);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool is_own(std::size_t endpoint) const { return own_[endpoint] == Own::Yes; }
  // No name is being looked up: what is not known to be its own now is not.
  [[nodiscard]] bool has_all_answers() const {
    return state_ == State::Pausing || state_ == State::Known;
  }
  [[nodiscard]] std::optional<Time> next_deadline() const { return deadline_; }

 private:
  [[nodiscard]] std::vector<std::size_t> unknown() const;

  std::vector<Own> own_;
  const std::chrono::milliseconds pause_;
  State state_ = State::Idle;
  std::size_t asked_ = 0;  // names that are being looked up
  bool listed_ = false;
  std::optional<Time> deadline_;
};

}  // namespace drun::launcher
