#include "launcher/services/exchange_fsm.hpp"

#include <utility>

namespace drun::launcher {

ExchangeFsm::Step ExchangeFsm::attempt(bool connected) {
  state_ = connected ? State::Exchanging : State::Connecting;
  return connected ? Step::TellAndHear : Step::Connect;
}

ExchangeFsm::Step ExchangeFsm::pause() {
  state_ = State::Pausing;
  return std::exchange(warned_, true) ? Step::Pause : Step::WarnAndPause;
}

ExchangeFsm::Step ExchangeFsm::begin(bool connected) {
  if (state_ != State::Resting) return Step::None;
  return nodes_ > 1 ? attempt(connected) : Step::Answer;
}

ExchangeFsm::Step ExchangeFsm::on_connected(bool success) {
  if (state_ != State::Connecting) return Step::None;
  return success ? attempt(true) : pause();
}

ExchangeFsm::Step ExchangeFsm::on_texts(bool success) {
  if (state_ != State::Exchanging) return Step::None;
  if (!success) return pause();
  state_ = State::Resting;
  warned_ = false;
  return Step::Deliver;
}

ExchangeFsm::Step ExchangeFsm::on_pause_over(bool connected) {
  return state_ == State::Pausing ? attempt(connected) : Step::None;
}

}  // namespace drun::launcher
