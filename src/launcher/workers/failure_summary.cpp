#include "launcher/workers/failure_summary.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/file_worker.hpp"
#include "launcher/report/error_file.hpp"
#include "launcher/report/failure_report.hpp"
#include "launcher/report/hang_suspicion.hpp"
#include "rendezvous/failure_merge.hpp"

namespace drun::launcher {
namespace {

constexpr std::chrono::milliseconds kTailLimit{200};
constexpr std::chrono::milliseconds kOtherTailLimit{20};  // for each of perhaps hundreds

// Signals that mean a mistake in the program: the report should name the core file.
bool crashed(int signal) {
  for (const int each : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP})
    if (signal == each) return true;
  return false;
}

std::optional<CoreNames> core_of(const Worker& worker, const FailedRound& round) {
  const bool dumped = worker.end.status.core_dumped;
  if (!dumped && !crashed(worker.end.status.signal)) return std::nullopt;
  CoreNames names;
  names.dumped = dumped;
  names.pid = worker.pid;
  names.signal = worker.end.status.signal;
  names.executable = round.spec.command.front();
  names.host = round.host;
  return names;
}

Remains left_by(process::WorkerId worker, const RemainsOf& remains) {
  const auto found = remains.find(worker);
  return found == remains.end() ? Remains{} : found->second;
}

std::int64_t uptime_ms(const Worker& worker) {
  // If its start and its end were reported together, it began some time after it was asked for.
  const bool at_once = worker.started == worker.ended;
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             worker.ended - (at_once ? worker.requested : worker.started))
      .count();
}

void add_other(rendezvous::FailureSummary& summary, const Worker& worker, int rank,
               std::string_view last_words) {
  const int code = worker.end.status.shell_code();
  summary.highest_code = std::max(summary.highest_code, code);
  if (rank < summary.lowest_rank) {
    summary.lowest_rank = rank;
    summary.lowest_code = code;
  }
  const bool known = worker.fault && worker.fault->hangs && worker.fault->clue.alike > 0;
  rendezvous::add_failed(summary.others, {rank, rank}, worker.cause, std::string(last_words),
                         known ? worker.pid : 0,
                         worker.fault ? worker.fault->clue.place : rendezvous::HangPlace());
}

}  // namespace

std::vector<Traces> traces_of(const FailedRound& round) {
  std::vector<Traces> traces;
  const auto add = [&](process::WorkerId id, std::optional<CoreNames> core) {
    const Worker& worker = round.workers.at(id);
    if (worker.pid != 0 && (core || !worker.error_file.empty()))
      traces.push_back({id, worker.error_file, std::move(core)});
  };
  const auto first = *round.failures.first();
  add(first, core_of(round.workers.at(first), round));  // the only core that is shown
  if (round.one_reason) return traces;
  for (const auto id : round.failures.others())
    add(id, std::nullopt);
  return traces;
}

RemainsOf find_remains(const std::vector<Traces>& traces) {
  RemainsOf remains;
  for (const Traces& each : traces) {
    Remains& found = remains[each.worker];
    about_to("read " + each.error_file);
    if (const auto error = read_error_file(each.error_file)) found.traceback = error->text();
    if (!each.core) continue;
    about_to("look for a core file");
    CoreNames names = *each.core;
    std::error_code gone;
    names.directory = std::filesystem::current_path(gone).string();
    found.core_file = find_core(names);
  }
  return remains;
}

rendezvous::FailureSummary summarize(const FailedRound& round, const RemainsOf& remains,
                                     WorkerOutput& output) {
  const auto first = *round.failures.first();
  const Worker& worker = round.workers.at(first);
  rendezvous::FailureSummary summary;
  summary.rank = round.assignment.first_rank + worker.local_rank;
  summary.local_rank = worker.local_rank;
  summary.group_rank = round.assignment.group_rank;
  summary.host = round.host;
  summary.pid = worker.pid;
  summary.exit_code = worker.end.status.code;
  summary.signal = worker.end.status.signal;
  summary.cause = worker.cause;
  summary.time_ms = round.time_ms;
  summary.uptime_ms = uptime_ms(worker);
  const bool for_good = worker.fault && worker.fault->for_good;
  summary.restartable = !for_good && may_restart(round.spec, worker.end);
  if (!for_good && worker.end.spawn_error == 0)
    summary.why_no_restart = why_no_restart(round.spec, worker.end);
  summary.requeue = may_requeue(round.spec, worker.end);
  summary.highest_code = summary.lowest_code = worker.end.status.shell_code();
  summary.lowest_rank = summary.rank;
  Remains left = left_by(first, remains);
  summary.traceback = std::move(left.traceback);
  summary.core_file = std::move(left.core_file);
  summary.tail = output.tail(first, kTailLimit);
  summary.last_words = headline(summary.traceback, summary.tail);
  summary.timed_out = speaks_of_timeout(summary.last_words, summary.tail) ||
                      (worker.fault && worker.fault->with_others);
  summary.hung = worker.fault && worker.fault->hangs;
  if (summary.hung) summary.clue = worker.fault->clue;
  summary.log_file = output.log_file(first);
  if (round.one_reason) return summary;
  for (const auto id : round.failures.others()) {
    const Worker& other = round.workers.at(id);
    add_other(summary, other, round.assignment.first_rank + other.local_rank,
              headline(left_by(id, remains).traceback, output.tail(id, kOtherTailLimit)));
  }
  return summary;
}

}  // namespace drun::launcher
