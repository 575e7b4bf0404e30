#include "launcher/hosts/host_roll.hpp"

#include <algorithm>
#include <csignal>

namespace drun::launcher::hosts {

std::size_t HostRoll::count(Phase phase) const {
  return static_cast<std::size_t>(std::count(phases_.begin(), phases_.end(), phase));
}

bool HostRoll::over() const {
  return state_ == State::GivenUp || (begun() && count(Phase::Running) == 0);
}

HostRoll::Step HostRoll::on_ready(std::size_t host) {
  if (phases_[host] != Phase::Starting) return Step::None;
  phases_[host] = begun() ? Phase::Running : Phase::Ready;
  return begun() ? Step::Join : settle();
}

// The job begins once, when the last host has answered.
HostRoll::Step HostRoll::settle() {
  if (state_ != State::Gathering || count(Phase::Starting) > 0) return Step::None;
  if (static_cast<int>(count(Phase::Ready)) < min_nodes_) {
    state_ = State::GivenUp;
    return Step::GiveUp;
  }
  state_ = State::Begun;
  std::replace(phases_.begin(), phases_.end(), Phase::Ready, Phase::Running);
  return Step::Begin;
}

HostRoll::Step HostRoll::on_failed(std::size_t host) {
  if (phases_[host] == Phase::Gone) return Step::None;
  phases_[host] = Phase::Gone;
  if (!begun()) return settle();
  const std::size_t left = count(Phase::Running);
  // An agent that loses its starter is told to end, and may tell the others before this is heard
  // of.
  const bool by_its_end = outcome_ == exit_code_of_signal(SIGTERM);
  const bool known = (outcome_ && !by_its_end) || stopped_by_ != 0 || state_ == State::TooFew;
  if (known || left >= static_cast<std::size_t>(min_nodes_)) return Step::None;
  state_ = State::TooFew;
  return left > 0 ? Step::StopOthers : Step::None;
}

HostRoll::Step HostRoll::on_ended(std::size_t host, int code) {
  if (phases_[host] == Phase::Gone) return Step::None;
  phases_[host] = Phase::Gone;
  ended_[host] = true;
  const bool done = code == 0 && ++successes_ == min_nodes_;
  const bool first = outcome_.value_or(0) == 0;
  if (first) outcome_ = code;
  const std::size_t left = count(Phase::Running);
  const bool few = left < static_cast<std::size_t>(min_nodes_);
  if (done && left > 0) return Step::Outlast;
  return first && code != 0 && left > 0 && few ? Step::Hurry : Step::None;
}

bool HostRoll::may_return(std::size_t host) const {
  return state_ == State::Begun && stopped_by_ == 0 && !outcome_ && phases_[host] == Phase::Gone &&
         !ended_[host] && count(Phase::Running) >= static_cast<std::size_t>(min_nodes_);
}

HostRoll::Step HostRoll::on_stop(int signal) {
  stopped_by_ = signal;
  if (state_ != State::Gathering) return Step::None;
  state_ = State::GivenUp;
  return Step::GiveUp;
}

int HostRoll::exit_code() const {
  if (succeeded()) return 0;
  // One that has only been stopped, because others were lost, does not know the job's.
  const bool knows =
      outcome_ && (state_ != State::TooFew || *outcome_ != exit_code_of_signal(SIGTERM));
  if (knows) return *outcome_;
  if (stopped_by_ != 0) return exit_code_of_signal(stopped_by_);
  return kDrunFailed;
}

}  // namespace drun::launcher::hosts
