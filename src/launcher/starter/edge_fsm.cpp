#include "launcher/starter/edge_fsm.hpp"

namespace drun::launcher {

EdgeFsm::Step EdgeFsm::tell() {
  state_ = State::Told;
  return Step::Tell;
}

EdgeFsm::Step EdgeFsm::on_exit() {
  if (state_ == State::Silent) return tell();
  if (state_ != State::Running) return Step::Nothing;
  state_ = State::Exited;
  return Step::Wait;
}

EdgeFsm::Step EdgeFsm::on_silence(const std::string& given_up) {
  if (state_ == State::Told || state_ == State::Silent) return Step::Nothing;
  given_up_ = given_up;
  if (state_ == State::Exited) return tell();
  state_ = State::Silent;
  return Step::Wait;
}

EdgeFsm::Step EdgeFsm::on_input_closed() const {
  return state_ == State::Told ? Step::Nothing : Step::Wait;
}

EdgeFsm::Step EdgeFsm::on_limit() {
  if (state_ == State::Told) return Step::Nothing;
  if (state_ == State::Exited) return tell();
  if (given_up_.empty()) given_up_ = "its connection was closed, and did not end";
  return Step::Kill;
}

}  // namespace drun::launcher
