#include "launcher/watch/leftovers_fsm.hpp"

#include <algorithm>
#include <utility>

namespace drun::launcher {

using Steps = LeftoversFsm::Steps;

Steps LeftoversFsm::on_round() {
  Steps steps;
  if (files_ == Files::Unnoted) {
    files_ = Files::Noting;
    steps.push_back(Step::NoteFiles);
  }
  if (gpus_ == Gpus::Useful && !gone_.empty()) {
    gpus_ = Gpus::Awaited;
    steps.push_back(Step::AwaitGpus);
  }
  return steps;
}

std::optional<LeftoversFsm::Time> LeftoversFsm::held_until(Time now) const {
  if (gpus_ == Gpus::Awaited) return now + kGpuLimit + kHelperMargin;
  // Without a file that is known to be theirs, hardly anything is removed.
  if (sweeping() && known_ > 0) return now + kSweepLimit;
  return std::nullopt;
}

void LeftoversFsm::on_started(Time now) {
  running_ = true;
  gone_.clear();
  pause_ = kFirstPause;
  started_ = now;
  look_later(now);
}

Steps LeftoversFsm::on_doomed() {
  return look();
}

Steps LeftoversFsm::on_gone(const std::vector<pid_t>& workers, bool ended_well) {
  running_ = false;
  next_look_.reset();
  gone_.insert(workers.begin(), workers.end());
  return ended_well ? Steps() : sweep();
}

// Whether the driver tells is the same for the whole job.
Steps LeftoversFsm::on_time(Time now) {
  next_look_.reset();
  Steps steps = look();
  // What was asked for the last round may still be under way: its end begins no look of this one.
  if (steps.empty() && running_ && work_ != Work::None) look_later(now);
  if (gpus_ != Gpus::Unknown) return steps;
  if (now < started_ + kGpuQuestion) {
    if (files_ == Files::Ignored) next_look_ = started_ + kGpuQuestion;
    return steps;
  }
  gpus_ = Gpus::Asked;
  steps.insert(steps.begin(), Step::AskAboutGpus);
  return steps;
}

Steps LeftoversFsm::look() {
  if (files_ != Files::Noted || work_ != Work::None) return {};
  work_ = Work::Looking;
  return {Step::Look};
}

Steps LeftoversFsm::sweep() {
  if (files_ != Files::Noted || sweeping() || (known_ == 0 && work_ != Work::Looking)) return {};
  work_ = work_ == Work::Looking ? Work::LookingFirst : Work::Sweeping;
  return {Step::Sweep};
}

Steps LeftoversFsm::go_on() const {
  if (sweeping() || gpus_ == Gpus::Awaited) return {};
  return {Step::GoOn};
}

void LeftoversFsm::look_later(Time now) {
  next_look_ = now + pause_;
  pause_ = std::min<std::chrono::milliseconds>(pause_ * 2, kLongestPause);
}

void LeftoversFsm::on_noted(bool in_time) {
  files_ = in_time ? Files::Noted : Files::Ignored;
}

void LeftoversFsm::on_looked(const std::optional<Seen>& seen, Time now) {
  work_ = work_ == Work::LookingFirst ? Work::Sweeping : Work::None;
  if (!seen) {
    files_ = Files::Ignored;
    // The driver is asked all the same.
    if (running_ && gpus_ == Gpus::Unknown) next_look_ = std::max(now, started_ + kGpuQuestion);
    return;
  }
  known_ = seen->known;
  gone_.insert(seen->processes.begin(), seen->processes.end());
  if (running_) look_later(now);
}

Steps LeftoversFsm::on_swept(bool in_time) {
  work_ = Work::None;
  if (!in_time) files_ = Files::Ignored;
  return go_on();
}

void LeftoversFsm::on_gpus_known(bool tells) {
  gpus_ = tells ? Gpus::Useful : Gpus::Useless;
}

Steps LeftoversFsm::on_gpus_awaited(bool tells) {
  on_gpus_known(tells);
  return go_on();
}

std::vector<pid_t> LeftoversFsm::take_gone() {
  const auto gone = std::exchange(gone_, {});
  return {gone.begin(), gone.end()};
}

}  // namespace drun::launcher
