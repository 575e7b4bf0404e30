#include "launcher/agent/hang_desk.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
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
  went_on_ = !stalled;
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
  on_found(late);
}

// This node has found them, and no other one knows of it yet.
void HangDesk::on_found(std::vector<HungRank> hung) {
  const StopPolicy& policy = parts_.options;
  // Whatever ends the job before the round is stopped for it: this has been said.
  for (const HungRank& rank : hung)
    warn(rank);
  for (HungRank& rank : hung) {
    rank.fault.for_good = policy.on_hang == OnHang::Stop;
    rank.fault.clue.others_within += dump_limit();
  }
  ask_for_dumps(in_this_round([this, hung = std::move(hung)] {
    const StopPolicy& to_do = parts_.options;
    if (to_do.on_hang != OnHang::Report) return fail(hung);
    // Other nodes may show theirs in the same moment.
    if (to_do.stacks_limit.count() > 0) parts_.stacks.show(AgentStacks::Whose::OfNode);
  }));
}

void HangDesk::warn(const HungRank& rank, const std::string& more) {
  parts_.status.warn("rank " + std::to_string(group_.assignment().first_rank + rank.local_rank) +
                     ": " + rank.fault.cause + more);
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
    // Those of other nodes began theirs when this one did, more or less.
    rank.fault.clue.others_within = rendezvous::kOthersTimeOut;
    parts_.events.on_hang(group_.assignment(), rank);
    if (timer.pid == worker.pid && timer.signal == SIGKILL) return on_found({rank});
    warn(rank,
         ": process " + std::to_string(timer.pid) + " gets signal " + std::to_string(timer.signal));
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
  ask_for_dumps(in_this_round([this, waiting] { act_on(waiting); }));
}

// Does nothing once the round is over.
std::function<void()> HangDesk::in_this_round(std::function<void()> act) const {
  return [this, round = group_.round(), act = std::move(act)] {
    if (group_.round() == round && group_.running()) act();
  };
}

// `go_on` is called at once if there are none. While the ranks of the round write theirs, they are
// not asked again.
void HangDesk::ask_for_dumps(std::function<void()> go_on) {
  const auto recorder = hang::flight_recorder_of(parts_.options.inherited);
  if (!recorder) return go_on();
  const int round = group_.round();
  if (dumped_ != round) after_dumps_.clear();  // nobody waits for an ended round
  dumped_ = round;
  after_dumps_.push_back(std::move(go_on));
  if (after_dumps_.size() > 1) return;
  hangs_.ask_for_dumps(*recorder, [this, round](const auto& dumps) {
    const std::string text = dumps ? hang::dumps_text(*dumps) : dumps.error().what();
    if (!text.empty()) say(text);
    if (dumps) dumps_.insert(dumps->files.begin(), dumps->files.end());
    if (round != dumped_) return;
    for (const auto& each : std::exchange(after_dumps_, {}))
      each();
  });
}

// The ranks of another node hang: those here wait for them, and so tell of them.
bool HangDesk::hold(const rendezvous::StopAction& action, std::function<void()> go_on) {
  const int stop = ++held_;
  const bool wanted = action.hang && !action.immediately && action.signal == 0;
  const bool dumped = dumped_ == group_.round() && after_dumps_.empty();
  if (!wanted || dump_limit().count() == 0 || dumped || !group_.running())
    return parts_.stacks.hold(action, std::move(go_on));
  // Side by side: the other nodes wait for this one no longer than for the slower of the two.
  const auto over = [go_on = std::move(go_on), left = std::make_shared<int>(2)] {
    if (--*left == 0) go_on();
  };
  ask_for_dumps([this, stop, over] {
    if (stop == held_) over();  // another stop may have overtaken this one
  });
  if (!parts_.stacks.hold(action, over)) over();
  return true;
}

void HangDesk::act_on(const std::vector<WaitingRank>& waiting) {
  const StopPolicy& policy = parts_.options;
  if (policy.on_hang != OnHang::Report)
    return parts_.stacks.add_frames(
        waiting, [this, round = group_.round()](const std::vector<WaitingRank>& found) {
          if (group_.round() == round && group_.running()) fail_hanging(found);
        });
  if (is_first() && policy.stacks_limit.count() > 0) parts_.stacks.show();
}

void HangDesk::fail_hanging(const std::vector<WaitingRank>& waiting) {
  // Since the hang was found stacks were taken, which takes a while. Whoever writes a dump has made
  // progress by that alone.
  if (went_on_ && dumped_ != group_.round())
    return say("ranks seem to make progress again, so they are not taken for hanging");
  const StopPolicy& policy = parts_.options;
  const std::chrono::milliseconds others = HangWatch::kPlacesLimit + dump_limit() +
                                           parts_.stacks.frames_limit() +
                                           rendezvous::kOthersTimeOut;
  fail(hang_faults(waiting, *policy.hang_timeout, policy.on_hang == OnHang::Stop,
                   std::min<std::chrono::milliseconds>(others, rendezvous::kOthersHang)));
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
