#include "launcher/backend/own_endpoint_fsm.hpp"

#include <utility>

namespace drun::launcher {

OwnEndpointFsm::Step OwnEndpointFsm::start(Time now) {
  state_ = State::Asking;
  deadline_ = now + pause_;
  asked_ = own_.size();
  return {unknown(), false};
}

OwnEndpointFsm::Step OwnEndpointFsm::on_answer(std::size_t endpoint, Own own, Time now) {
  own_[endpoint] = own;
  --asked_;
  Step step;
  // A late answer that shows an own endpoint begins the search anew: from then on this agent waits
  // there for the others.
  step.begin = !listed_ && own == Own::Yes;
  if (asked_ == 0) {
    if (state_ == State::Asking) step.begin = true;
    const bool known = listed_ || unknown().empty();
    state_ = known ? State::Known : State::Pausing;
    deadline_ = known ? std::nullopt : std::optional(now + pause_);
  } else if (step.begin) {
    state_ = State::Late;
    deadline_.reset();
  }
  return step;
}

void OwnEndpointFsm::on_listed() {
  listed_ = true;
  if (state_ != State::Pausing) return;
  state_ = State::Known;
  deadline_.reset();
}

OwnEndpointFsm::Step OwnEndpointFsm::on_time(Time now) {
  if (!deadline_ || now < *deadline_) return {};
  deadline_.reset();
  const bool first = state_ == State::Asking;
  state_ = State::Late;
  if (first) return {{}, true};
  auto again = unknown();
  asked_ = again.size();
  return {std::move(again), false};
}

std::vector<std::size_t> OwnEndpointFsm::unknown() const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < own_.size(); ++i)
    if (own_[i] == Own::Unknown) result.push_back(i);
  return result;
}

}  // namespace drun::launcher
