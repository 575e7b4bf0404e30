#include "launcher/job_stacks/last_look.hpp"

#include <chrono>
#include <cstddef>
#include <system_error>
#include <utility>

#include "base/duration_text.hpp"
#include "stacks/job_look.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// What was found in time is said, on a busy machine, too.
constexpr std::chrono::seconds kToSayIt{5};

void call(const std::function<void()>& function) {
  if (function) function();
}

}  // namespace

LastLook::LastLook(Parts parts)
    : parts_(std::move(parts)), limit_(parts_.io, [this] { on_limit(); }) {}

std::optional<LastLook::Time> LastLook::begin(bool hangs, Time now, std::function<void()> over) {
  if ((!hangs && !parts_.policy.stacks_after_failure) || !look()) return std::nullopt;
  own_ = std::move(over);
  return now + parts_.policy.stacks_limit + kToSayIt;
}

bool LastLook::hold(const rendezvous::StopAction& action, std::function<void()> go_on) {
  held_ = nullptr;
  if (!wanted(action) || !look()) return false;
  held_ = std::move(go_on);
  return true;
}

// Who stops drun by a signal, or because the store is lost, does not wait; nor do nodes that come
// and go, of which those that are gone would not answer.
bool LastLook::wanted(const rendezvous::StopAction& action) const {
  if (action.immediately || action.signal != 0 || action.reason.empty()) return false;
  if (action.time_limit || action.hang) return true;
  return action.failure && parts_.policy.stacks_after_failure;
}

// Once a round. False: nobody is to wait for it.
bool LastLook::look() {
  const WorkerGroup& group = parts_.group();
  if (parts_.policy.stacks_limit.count() == 0 || !group.running()) return false;
  const rendezvous::Assignment& place = group.assignment();
  if (round_ == place.round) return looking_;
  round_ = place.round;
  looking_ = true;
  limit_.set(Clock::now() + parts_.policy.stacks_limit);
  StackWish wish;
  // The rest is for the way to the others and back; and then to say it.
  wish.limit = parts_.policy.stacks_limit * 4 / 5;
  wish.job_limit = parts_.policy.stacks_limit * 9 / 10;
  // Another node may ask for it only when its workers are gone. What was found for a hang will do.
  shows_ = place.group_rank == 0;
  wish.last = true;
  wish.keep = !shows_;
  wish.longest = stacks::longest_answer(static_cast<std::size_t>(place.group_world_size));
  const auto done = [this, round = round_](const Result<std::string>& report) {
    take(round, report);
  };
  begins_ = true;
  if (shows_)
    parts_.take_all(wish, place.group_world_size, done);
  else
    parts_.take_own(wish, done);
  begins_ = false;
  return looking_;
}

void LastLook::take(int round, const Result<std::string>& report) {
  if (!looking_ || round != round_) return;
  if (!std::exchange(shows_, false)) return end();
  // Not before it is said: a job whose workers are gone ends at once.
  limit_.set(Clock::now() + kToSayIt);
  parts_.show(report, [this, round] {
    if (round == round_) end();
  });
}

void LastLook::on_limit() {
  if (looking_ && std::exchange(shows_, false))
    parts_.show(
        Error(std::make_error_code(std::errc::timed_out),
              "nothing was found within " + describe_duration(parts_.policy.stacks_limit.count())),
        nullptr);
  end();
}

void LastLook::end() {
  if (!std::exchange(looking_, false)) return;
  limit_.set(std::nullopt);
  if (begins_) return;  // it was there already: nobody waits
  call(std::exchange(own_, nullptr));
  call(std::exchange(held_, nullptr));
  parts_.resumed();
}

void LastLook::cancel() {
  looking_ = false;
  limit_.set(std::nullopt);
  own_ = nullptr;
  held_ = nullptr;
}

}  // namespace drun::launcher
