#include "rendezvous/held_workers.hpp"

#include <utility>

namespace drun::rendezvous {

void HeldWorkers::start(int round) {
  state_ = State::Running;
  round_ = round;
}

bool HeldWorkers::on_succeeded(int round) {
  if (!run(round)) return false;
  state_ = State::Succeeded;
  return true;
}

bool HeldWorkers::on_failed(int round) {
  if (!run(round)) return false;
  state_ = State::Failed;
  return true;
}

int HeldWorkers::on_stopped() {
  state_ = State::None;
  return std::exchange(round_, 0);
}

bool HeldWorkers::stop(bool immediately) {
  if (!any() || state_ == State::Killing || (stop_asked() && !immediately)) return false;
  state_ = immediately ? State::Killing : State::Stopping;
  return true;
}

}  // namespace drun::rendezvous
