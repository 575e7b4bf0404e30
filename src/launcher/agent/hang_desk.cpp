#include "launcher/agent/hang_desk.hpp"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/environment_variable.hpp"
#include "base/exit_codes.hpp"
#include "base/log.hpp"
#include "base/unix_time.hpp"
#include "launcher/process/descendants.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

HangDesk::HangDesk(Parts parts)
    : parts_(std::move(parts)),
      group_(parts_.workers.group()),
      note_(parts_.options.run_id),
      heartbeats_(parts_.io, parts_.options.heartbeats, group_,
                  {[this](const auto& late) { on_late(late); }, [this] { on_looked(); }}),
      hangs_(
          parts_.io, parts_.options.hang_timeout,
          hang::ras_endpoint(
              environment_variable(parts_.options.inherited, "NCCL_RAS_ADDR").value_or("")),
          group_, [this](bool stalled) { on_stalled(stalled); },
          [this](const std::string& text) { say(text); }) {}

void HangDesk::start() {
  heartbeats_.start();
  hangs_.start();
}

void HangDesk::cancel() {
  heartbeats_.cancel();
  hangs_.cancel();
}

std::string HangDesk::collective() const {
  const auto gap = hangs_.collectives().gap();
  return gap ? gap->text : "";
}

void HangDesk::on_stalled(bool stalled) {
  parts_.participant.on_workers_stalled(stalled, Clock::now());
  parts_.news();
}

void HangDesk::on_looked() {
  const auto note = heartbeats_.note(unix_ms());
  if (!note) return note_.erase();
  note_.write(*note, Clock::now());
}

void HangDesk::on_late(const std::vector<HungRank>& late) {
  if (!group_.running()) return;
  for (const HungRank& rank : late)
    parts_.events.on_hang(group_.assignment(), rank);
  fail(late);
}

// torch would send the signal at once. One that kills comes from the stop, after the stacks;
// another one may be for a handler that mends things.
void HangDesk::on_timer(const hang::FileTimers::Expired& timer) {
  const pid_t process_group = ::getpgid(timer.pid);
  for (const auto& [id, worker] : group_.workers()) {
    if (worker.stage != Worker::Stage::Running) continue;
    // Each worker has a process group of its own; an orphan still has it, a child may have another.
    if (worker.pid != process_group && !process::is_below(timer.pid, worker.pid)) continue;
    HungRank rank{worker.local_rank, worker.pid, {}};
    rank.fault.exit_code = exit_code_of_signal(timer.signal);
    rank.fault.cause = "its timer '" + timer.scope + "' is over (TORCHELASTIC_ENABLE_FILE_TIMER)";
    rank.fault.hangs = true;
    parts_.events.on_hang(group_.assignment(), rank);
    if (timer.pid == worker.pid && timer.signal == SIGKILL) return fail({rank});
    parts_.status.warn("rank " +
                       std::to_string(group_.assignment().first_rank + worker.local_rank) + ": " +
                       rank.fault.cause + ": process " + std::to_string(timer.pid) +
                       " gets signal " + std::to_string(timer.signal));
    ::kill(timer.pid, timer.signal);
    return;
  }
}

void HangDesk::on_hang() {
  hangs_.find_places([this, round = group_.round()](const auto& waiting) {
    if (group_.round() == round && group_.running()) on_waiting(waiting);
  });
}

void HangDesk::on_waiting(const std::vector<WaitingRank>& waiting) {
  const StopPolicy& policy = parts_.options;
  const std::string collectives = hangs_.collectives().text();
  say(hang_text(waiting, group_, *policy.hang_timeout) +
      (collectives.empty() ? "" : "; " + collectives));
  const auto recorder = hang::flight_recorder_of(parts_.options.inherited);
  if (!recorder) return act_on(waiting);
  hangs_.ask_for_dumps(*recorder, [this, waiting, round = group_.round()](const auto& dumps) {
    if (!dumps.empty()) say(dumps);
    if (group_.round() == round && group_.running()) act_on(waiting);
  });
}

void HangDesk::act_on(const std::vector<WaitingRank>& waiting) {
  const StopPolicy& policy = parts_.options;
  if (policy.on_hang != OnHang::Report)
    return fail(hang_faults(waiting, *policy.hang_timeout, policy.on_hang == OnHang::Stop,
                            HangWatch::kPlacesLimit + dump_limit() + rendezvous::kOthersTimeOut));
  if (is_first() && policy.stacks_limit.count() > 0) parts_.stacks.show();
}

// For the flight recorders, if there are any.
std::chrono::milliseconds HangDesk::dump_limit() const {
  const auto recorder = hang::flight_recorder_of(parts_.options.inherited);
  return recorder ? HangWatch::kDumpLimit : std::chrono::seconds(0);
}

// The round is stopped, as after any failure.
void HangDesk::fail(const std::vector<HungRank>& hung) {
  for (const HungRank& rank : hung)
    parts_.workers.on_fault(rank.local_rank, rank.fault);
  parts_.news();
}

// All nodes see it; what the user reads comes from the first.
void HangDesk::say(const std::string& text) {
  if (is_first()) return parts_.status.warn(text);
  log::info("{}", text);
}

}  // namespace drun::launcher
