#include "launcher/starter/link_fsm.hpp"

namespace drun::launcher {

void LinkFsm::on_frame() {
  if (state_ != State::Awaited) return;
  state_ = State::Greeted;
  was_greeted_ = true;
}

std::optional<std::string> LinkFsm::give_up(std::string why) {
  if (state_ == State::Over) return std::nullopt;
  state_ = State::Over;
  return why;
}

std::optional<std::string> LinkFsm::on_end() {
  return give_up("");
}

std::optional<std::string> LinkFsm::on_broken() {
  return give_up(was_greeted_ ? "what it sent is not drun's" : "what answers there is no drun");
}

std::optional<std::string> LinkFsm::on_time(Time now) {
  if (state_ != State::Greeted || now - heard_ <= silence_limit_) return std::nullopt;
  return give_up("nothing was heard of it for " + std::to_string(silence_limit_.count()) + " s");
}

}  // namespace drun::launcher
