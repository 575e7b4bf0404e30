#include "launcher/workers/supervision.hpp"

#include <csignal>
#include <utility>

#include "base/deadline.hpp"
#include "base/log.hpp"
#include "launcher/report/failure_report.hpp"
#include "rendezvous/messages.hpp"

namespace drun::launcher {
namespace {

// The watchdog ends what a stopped guardian does not, a little after the lease.
constexpr std::chrono::milliseconds kWakeAfter{300};

}  // namespace

Supervision::Supervision(const WorkerSpec& spec, std::string host,
                         process::ProcessRunner& processes, WorkerOutput& output,
                         FileWork& file_work, Time now, RoundServices services)
    : spec_(spec),
      processes_(processes),
      group_(spec, std::move(host), processes, output, file_work, std::move(services)),
      limits_(spec, now),
      notices_(spec.warn_before) {}

void Supervision::start(const rendezvous::Assignment& assignment, Time now) {
  // Processes that had to be killed have held up this round.
  if (const auto killed = describe_killed(group_.stopped_ranks()); !killed.empty())
    log::info("{}", killed);
  // With several nodes the leader says it, for all of them.
  if (restart_count_ < assignment.restart_count && spec_.max_nodes == 1) {
    log::info("{}", rendezvous::restart_text(assignment.restart_count, spec_.max_restarts,
                                             last_failure_));
  }
  restart_count_ = assignment.restart_count;
  last_failure_.clear();
  notices_.begin(assignment.ends_ms, assignment.first_rank);
  notice_due_.reset();
  leads_ = assignment.group_rank == 0;
  group_.start(assignment, now);
}

void Supervision::warn_of_end(Time now, EndNotices::WallTime wall) {
  notice_due_.reset();
  if (!spec_.warn_before || leaving() || !group_.running()) return;
  const auto step = notices_.on_time(wall, group_.workers(), [this](const Worker& worker) {
    return !processes_.acts_by_default(worker.pid, spec_.warn_before->signal);
  });
  if (!step.say.empty()) log::write(leads_ ? log::Level::Info : log::Level::Debug, "{}", step.say);
  for (const auto worker : step.signal)
    processes_.signal(worker, spec_.warn_before->signal);
  if (!step.warning.empty()) log::warning("{}", step.warning);
  if (const auto next = notices_.next())
    notice_due_ = now + std::chrono::duration_cast<Time::duration>(*next - wall);
}

WorkerNews Supervision::stop(const rendezvous::StopAction& action, Time now) {
  if (leaving()) return {};  // the workers are being ended already
  if (!action.reason.empty()) stop_reason_ = action.reason;
  signalled_ = action.signal != 0;
  if (action.signal != 0) group_.stop_with(action.signal);
  // A second stop does not lengthen the grace of the first.
  const bool begins = !group_.idle() && !action.immediately && !limits_.in_grace();
  if (begins) limits_.grace_begins(now);
  WorkerNews news = heard(group_.stop(action.immediately, now));
  news.grace_begins = begins;
  return news;
}

WorkerNews Supervision::on_event(const process::GuardianEvent& event, Time now) {
  WorkerNews news;
  const auto* stopped = std::get_if<process::Stopped>(&event);
  nothing_left_ = stopped != nullptr && stopped->remaining == 0;
  if (const auto* lost = std::get_if<process::GuardianLost>(&event)) {
    news = heard(group_.abandon(now));
    news.guardian_ended = process::describe(*lost);
    // What killed the guardian (the kernel out of memory, for example) may have killed a worker
    // first.
    if (!last_failure_.empty()) news.guardian_ended += ", after " + last_failure_;
    phase_ = Phase::Lost;
    return news;
  }
  if (std::holds_alternative<process::LeaseOver>(event)) {
    wake_due_.reset();
    news = heard(group_.on_event(event, now));
    news.lease_over = true;
    return news;
  }
  if (stopped == nullptr || phase_ == Phase::Keeping) news = heard(group_.on_event(event, now));
  if (stopped == nullptr) return news;
  // Though the group may still look for what they have left behind.
  news.grace_over = news.grace_over || limits_.in_grace();
  limits_.grace_ends();
  news.left_behind = process::describe(*stopped);
  // A stop that the round began may end first: the sweep is complete with it, for it ends
  // everything that the guardian has.
  news.swept = phase_ == Phase::Sweeping;
  if (news.swept) phase_ = Phase::Swept;
  return news;
}

void Supervision::renew_lease(Time since, std::chrono::milliseconds length) {
  processes_.renew_lease(since, length);
  wake_due_ = since + length + kWakeAfter;
}

WorkerNews Supervision::on_time(Time now) {
  if (wake_due_ && now >= *wake_due_) {
    wake_due_.reset();
    processes_.wake();
  }
  return heard(group_.on_time(now));
}

std::optional<Supervision::Time> Supervision::next_deadline(Time now) const {
  EarliestDeadline next;
  next.include(group_.next_deadline());
  next.include(limits_.next_deadline(now));
  if (group_.running()) next.include(notice_due_);
  next.include(wake_due_);
  return next.time();
}

std::optional<std::string> Supervision::countdown(Time now, bool interactive) const {
  // With several nodes each says why it stops in a line of its own; and who asked for it knows.
  const bool known = spec_.max_nodes > 1 || (interactive && signalled_);
  return limits_.countdown(now, interactive, known ? "" : stop_reason_);
}

WorkerNews Supervision::sweep() {
  WorkerNews news;
  if (over()) return news;
  // Usually the round's own stop was the last: the guardian need not look again.
  news.swept = nothing_left_ && group_.idle();
  phase_ = news.swept ? Phase::Swept : Phase::Sweeping;
  if (news.swept) return news;
  group_.call_off();
  // Each process gets the signal once.
  processes_.stop(group_.stopping() ? 0 : group_.stop_signal(), spec_.shutdown_timeout);
  return news;
}

void Supervision::kill() {
  group_.hurry();
  if (phase_ != Phase::Lost) processes_.stop(SIGKILL, std::chrono::milliseconds(0));
}

// The news for the rendezvous, and its effect on the limits.
WorkerNews Supervision::heard(GroupNews group) {
  WorkerNews news;
  if (leaving()) return news;
  if (group.started) limits_.workers_run();
  if (group.failure) last_failure_ = describe(*group.failure);
  if (group.stopped) {
    news.grace_over = limits_.in_grace();
    limits_.grace_ends();
  }
  news.group = std::move(group);
  return news;
}

}  // namespace drun::launcher
