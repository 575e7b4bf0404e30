// How the launcher's process for one host ends, and how long its end is waited for. Pure: events go
// in, what follows comes out.
#pragma once

#include <string>

namespace drun::launcher {

struct EdgeEnding {
  bool greeted = false;    // a drun there had answered
  int code = 0;            // the launcher's, as a shell gives it
  std::string stderr_end;  // what it said last, as it is
  std::string noise;       // and on its stdout, if no drun has answered
  std::string given_up;    // why it was not waited for; empty: it ended by itself
};

class EdgeFsm {
 public:
  enum class State {
    Running,
    Silent,  // its streams are closed, or read no more; it runs
    Exited,  // something that it has started may hold its streams open
    Told     // all of it is over
  };
  enum class Step {
    Nothing,
    Wait,  // for the rest of its end, for a limited time; then on_limit()
    Kill,
    Tell  // its end; once
  };

  [[nodiscard]] Step on_exit();
  // Nothing more comes from there. `given_up`: as FrameLink's.
  [[nodiscard]] Step on_silence(const std::string& given_up);
  // Its input has ended: so will it.
  [[nodiscard]] Step on_input_closed() const;
  [[nodiscard]] Step on_limit();

  [[nodiscard]] State state() const { return state_; }
  // There is a process to kill.
  [[nodiscard]] bool runs() const { return state_ == State::Running || state_ == State::Silent; }
  // As EdgeEnding's.
  [[nodiscard]] const std::string& given_up() const { return given_up_; }

 private:
  [[nodiscard]] Step tell();

  State state_ = State::Running;
  std::string given_up_;
};

}  // namespace drun::launcher
