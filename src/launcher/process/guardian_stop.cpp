// GuardianLoop: how workers and all that they have started are stopped.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "launcher/process/descendants.hpp"
#include "launcher/process/guardian_loop.hpp"

namespace drun::process {
namespace {

using std::chrono::milliseconds;

// What start_of() leaves out.
constexpr milliseconds kTick{10};

}  // namespace

void GuardianLoop::handle_stop(int signal, milliseconds grace) {
  begin_stop(signal, grace, true);
}

void GuardianLoop::begin_stop(int signal, milliseconds grace, bool asked_for) {
  const auto deadline = Clock::now() + std::clamp(grace, milliseconds(0), kLongestGrace);
  if (!stop_) {
    stop_.emplace();
    stop_->deadline = deadline;
  } else if (!stop_->killing) {
    // A second stop may shorten the grace and never lengthens it.
    stop_->deadline = std::min(stop_->deadline, deadline);
  }
  stop_->asked_for |= asked_for;
  cancel_spawns();
  take_started();
  reap();
  if ((any_child_ || is_starting()) && !stop_->killing) {
    // SIGKILL leaves nobody a grace.
    if (signal == SIGKILL) stop_->deadline = Clock::now();
    if (stop_->deadline > Clock::now()) {
      stop_->signal = signal;
      stop_->signalled = boot_now();
      signal_everything(signal);
    }
  }
  advance_stop();
}

// Before the leader of a group gets the stop's signal. One that catches it and dies of it later
// wanted that: it has reset the signal and sent it to itself.
void GuardianLoop::note_answer(pid_t leader) {
  if (acts_by_default(leader, stop_->signal)) {
    stop_->unprepared.insert(leader);
  } else {
    stop_->unprepared.erase(leader);
  }
}

// Signals each group of a living worker as a whole; then, one by one, the processes that have left
// these groups or have outlived their worker. SIGCONT wakes stopped ones, so that they can act on
// the signal.
void GuardianLoop::signal_everything(int signal) {
  for (const int each : {signal, SIGCONT})
    signal_groups(each);
  const auto all = descendants();
  // A worker that is being started is among these, or gets the signal when it has a process; not
  // both, because what it starts upon the first would get the second.
  const std::unordered_set<pid_t> found(all.begin(), all.end());
  for (auto& [id, starting] : starting_)
    if (!found.contains(spawners_.child_of(id)))
      starting.signals.insert(starting.signals.end(), {signal, SIGCONT});
  for (const int each : {signal, SIGCONT})
    signal_descendants(all, each, [this, each, signal](pid_t pid) {
      const pid_t group = ::getpgid(pid);
      if (ids_.contains(group)) return false;
      if (group == pid && each == signal) note_answer(pid);
      return true;
    });
}

bool GuardianLoop::killed_here(pid_t pid, const ExitStatus& status) const {
  return stop_ && status.signal == SIGKILL && stop_->killed.contains(pid);
}

// A signal came while a worker had no process yet.
bool GuardianLoop::is_owing() const {
  return std::any_of(starting_.begin(), starting_.end(), [](const auto& each) {
    return !each.second.signals.empty() && !each.second.end && !each.second.forgotten;
  });
}

// Its process may hang before it becomes the program, and before it has a group of its own.
void GuardianLoop::signal_late_children() {
  for (auto& [id, starting] : starting_) {
    if (starting.end || starting.forgotten) continue;
    const pid_t child = spawners_.child_of(id);
    if (child == 0) continue;
    for (const int signal : std::exchange(starting.signals, {}))
      if (::kill(-child, signal) != 0) ::kill(child, signal);
  }
}

// A shell blocks signals while it forks. If a stop's signal waits for that, the kernel gives it to
// the shell alone, whose new child then outlives it without having been told. What a worker starts
// in its handler of the signal is left alone: see note_answer().
void GuardianLoop::signal_missed() {
  const auto groups = std::exchange(stop_->orphaned, {});
  if (groups.empty() || stop_->killing) return;
  for (const pid_t child : children()) {
    if (!groups.contains(::getpgid(child))) continue;
    const auto start = start_of(child);
    if (!start || *start + kTick < stop_->signalled) continue;
    for (const int each : {stop_->signal, SIGCONT})
      signal_descendants({child}, each);
  }
}

void GuardianLoop::advance_stop() {
  if (!stop_) return;
  signal_late_children();
  signal_missed();
  if ((any_child_ || is_starting()) && !stop_->killing && Clock::now() >= stop_->deadline)
    stop_->killing.emplace(Clock::now(), kKillLimit);
  if (any_child_ && stop_->killing) {
    stop_->killing->on_sweep();
    excuse_itself();
    kill_pass();
  }
  if (!any_child_ && !is_starting()) return finish_stop({});
  if (stop_->killing && stop_->killing->is_over(Clock::now())) finish_stop(descendants());
}

void GuardianLoop::kill_pass() {
  const auto targets = descendants();
  excuse_itself();  // of many it takes a while to read them
  // What dies of SIGKILL from here on counts as killed by this stop.
  stop_->killed.insert(targets.begin(), targets.end());
  if (group_) group_->kill();
  signal_descendants(targets, SIGKILL);
  for (const auto& [id, pid] : workers_)
    ::kill(-pid, SIGKILL);  // with what it has forked since `targets` was read
  reap();
}

void GuardianLoop::finish_stop(const std::vector<pid_t>& remaining) {
  Stopped stopped;
  stopped.killed = stop_->count;
  // A child is left even if the list of descendants does not show it.
  const std::uint32_t least = any_child_ ? 1 : 0;
  stopped.remaining = std::max(least, static_cast<std::uint32_t>(remaining.size()));
  if (!remaining.empty()) stopped.first = remaining.front();
  // What has not become a program by now hangs, and is killed if it ever does.
  for (auto& [id, starting] : starting_) {
    starting.forgotten = true;
    starting.signals = {SIGKILL};
  }
  if (!starting_.empty()) spawners_.replace_hanging();
  only_hanging_ = stopped.remaining > 0;
  // The kernel may kill at once what is started into a group that was killed (cgroup.hpp).
  if (stop_->killing && stopped.remaining == 0) enter_next_group();
  const bool asked_for = stop_->asked_for;
  stop_.reset();
  out_of_memory_.forget();
  if (asked_for) emit(stopped);
}

}  // namespace drun::process
