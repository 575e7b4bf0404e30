// How the end of a job on a host stands: with its agent, and with the starter that it works for.
// Pure: events go in, what follows comes out.
#pragma once

namespace drun::launcher {

class RemoteEndFsm {
 public:
  enum class State {
    Idle,      // no agent was started
    Running,   // its agent does
    Draining,  // the agent has ended; what it printed last is still read
    Told,      // how it ended has been told
    // The same after the starter has gone.
    OrphanIdle,
    OrphanRunning,
    OrphanDraining,
    OrphanTold
  };

  void on_agent_started();
  void on_agent_ended();
  // All of what it printed has been read, or is given up. True if its end is to be told now.
  [[nodiscard]] bool on_output_read();
  // True if that is news.
  [[nodiscard]] bool on_starter_gone();

  [[nodiscard]] State state() const { return state_; }
  // An order to start an agent is followed.
  [[nodiscard]] bool takes_order() const {
    return state_ == State::Idle || state_ == State::OrphanIdle;
  }
  [[nodiscard]] bool running() const {
    return state_ == State::Running || state_ == State::OrphanRunning;
  }
  // The agent is not read faster than the starter takes it. What it leaves behind is little, and
  // its end is to be heard of also if nobody takes anything.
  [[nodiscard]] bool holds_output_back() const { return state_ == State::Running; }
  // It ends itself, unless hosts that it has started still hang on it.
  [[nodiscard]] bool over() const {
    return state_ == State::OrphanIdle || state_ == State::OrphanTold;
  }

 private:
  State state_ = State::Idle;
};

}  // namespace drun::launcher
