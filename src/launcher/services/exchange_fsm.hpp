// What a node does to say its text to the others and to hear theirs: what comes next. Pure.
#pragma once

namespace drun::launcher {

class ExchangeFsm {
 public:
  enum class State {
    Resting,     // nothing is asked for
    Connecting,  // to the workers' store
    Exchanging,  // its text is there; those of the others are waited for
    Pausing      // the store could not be reached, or was lost
  };
  enum class Step {
    None,
    Answer,        // it is alone: its own text is all
    Connect,       // then on_connected()
    TellAndHear,   // nothing is lost by doing it again; then on_texts()
    Pause,         // then on_pause_over()
    WarnAndPause,  // the same, the first time in a row
    Deliver        // the texts of all
  };

  explicit ExchangeFsm(int nodes) : nodes_(nodes) {}

  // `connected`: the store is within reach still.
  [[nodiscard]] Step begin(bool connected);
  [[nodiscard]] Step on_connected(bool success);
  [[nodiscard]] Step on_texts(bool success);
  [[nodiscard]] Step on_pause_over(bool connected);

  [[nodiscard]] State state() const { return state_; }

 private:
  [[nodiscard]] Step attempt(bool connected);
  [[nodiscard]] Step pause();

  const int nodes_;
  State state_ = State::Resting;
  bool warned_ = false;  // that the store is not reached
};

}  // namespace drun::launcher
