#include "launcher/workers/failure_summary.hpp"

#include <chrono>
#include <filesystem>
#include <system_error>

#include "launcher/report/core_file.hpp"
#include "launcher/report/error_file.hpp"
#include "launcher/report/failure_report.hpp"
#include "rendezvous/failure_merge.hpp"

namespace drun::launcher {
namespace {

constexpr std::chrono::milliseconds kTailLimit{200};
constexpr std::chrono::milliseconds kOtherTailLimit{20};  // for each of perhaps hundreds

// What the program itself wrote about its end, if it did.
std::string traceback_of(const Worker& worker) {
  const auto error = read_error_file(worker.error_file);
  return error ? error->text() : "";
}

std::string core_file_of(const Worker& worker, const FailedRound& round) {
  if (!worker.end.status.core_dumped) return {};
  CoreNames names;
  names.pid = worker.pid;
  names.signal = worker.end.status.signal;
  names.executable = round.spec.command.front();
  std::error_code gone;
  names.directory = std::filesystem::current_path(gone).string();
  names.host = round.host;
  return find_core(names);
}

std::int64_t uptime_ms(const Worker& worker) {
  // If its start and its end were reported together, it began some time after it was asked for.
  const bool at_once = worker.started == worker.ended;
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             worker.ended - (at_once ? worker.requested : worker.started))
      .count();
}

void add_other(rendezvous::FailureSummary& summary, const Worker& worker, int rank,
               const std::vector<std::string>& tail) {
  const int code = worker.end.status.shell_code();
  summary.highest_code = std::max(summary.highest_code, code);
  if (rank < summary.lowest_rank) {
    summary.lowest_rank = rank;
    summary.lowest_code = code;
  }
  rendezvous::add_failed(summary.others, {rank, rank}, worker.cause,
                         headline(traceback_of(worker), tail));
}

}  // namespace

rendezvous::FailureSummary summarize(const FailedRound& round, WorkerOutput& output) {
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
  summary.restartable = may_restart(round.spec, worker.end);
  summary.highest_code = summary.lowest_code = worker.end.status.shell_code();
  summary.lowest_rank = summary.rank;
  summary.traceback = traceback_of(worker);
  summary.tail = output.tail(first, kTailLimit);
  summary.last_words = headline(summary.traceback, summary.tail);
  summary.log_file = output.log_file(first);
  summary.core_file = core_file_of(worker, round);
  if (round.one_reason) return summary;
  for (const auto id : round.failures.others()) {
    const Worker& other = round.workers.at(id);
    add_other(summary, other, round.assignment.first_rank + other.local_rank,
              output.tail(id, kOtherTailLimit));
  }
  return summary;
}

}  // namespace drun::launcher
