#include "launcher/starter/remote_end_fsm.hpp"

namespace drun::launcher {

void RemoteEndFsm::on_agent_started() {
  if (state_ == State::Idle) state_ = State::Running;
  if (state_ == State::OrphanIdle) state_ = State::OrphanRunning;
}

void RemoteEndFsm::on_agent_ended() {
  if (state_ == State::Running) state_ = State::Draining;
  if (state_ == State::OrphanRunning) state_ = State::OrphanDraining;
}

bool RemoteEndFsm::on_output_read() {
  if (state_ != State::Draining && state_ != State::OrphanDraining) return false;
  state_ = state_ == State::Draining ? State::Told : State::OrphanTold;
  return true;
}

bool RemoteEndFsm::on_starter_gone() {
  switch (state_) {
    case State::Idle:
      state_ = State::OrphanIdle;
      return true;
    case State::Running:
      state_ = State::OrphanRunning;
      return true;
    case State::Draining:
      state_ = State::OrphanDraining;
      return true;
    case State::Told:
      state_ = State::OrphanTold;
      return true;
    case State::OrphanIdle:
    case State::OrphanRunning:
    case State::OrphanDraining:
    case State::OrphanTold:
      return false;
  }
  return false;
}

}  // namespace drun::launcher
