#include "launcher/report/outcome_report.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/environment_variable.hpp"
#include "base/exit_codes.hpp"
#include "base/file_worker.hpp"
#include "base/log.hpp"
#include "base/log_name.hpp"
#include "base/small_file.hpp"
#include "launcher/report/error_file.hpp"
#include "launcher/report/failure_report.hpp"
#include "launcher/report/gathered_ranks.hpp"
#include "launcher/report/hang_suspicion.hpp"
#include "rendezvous/stop_signal.hpp"

namespace drun::launcher {
namespace {

void say_failure(const rendezvous::Outcome& outcome, const std::vector<Suspicion>& suspicions,
                 std::size_t tail_lines, Reader reader,
                 const std::function<void(std::string)>& say) {
  ReportOptions report;
  report.program = log::own_name();
  if (outcome.end == rendezvous::End::Stopped) report.title = "failed before";
  report.lines = report_lines(tail_lines);
  report.color = log::uses_color();
  for (const Suspicion& suspicion : suspicions)
    say(render_suspicion(suspicion.text, report));
  std::string block = render_failure(*outcome.failure, outcome.notes, report);
  // Another host may have a rank that hangs, and tell of it later: that is to come first.
  const bool waits = reader == Reader::Starter &&
                     speaks_of_timeout(outcome.failure->last_words, outcome.failure->tail);
  say(waits ? kept_for_last(block) : std::move(block));
}

// Empty: there is nothing to say of them. `told`: those that ran have been told of. `not_told`:
// what each rank did has not.
std::string ranks_to_gather(StoppedRanks ranks, bool told, bool not_told) {
  if (!not_told) {
    ranks.running.clear();
    ranks.succeeded.clear();
  }
  if (told) {
    ranks.running.clear();
    ranks.killed.clear();
    ranks.others_killed = 0;
  }
  if (describe_stopped(ranks).empty() && describe_succeeded(ranks).empty()) return "";
  return packed_ranks(ranks);
}

}  // namespace

rendezvous::Outcome ended_early(rendezvous::End end, int exit_code, std::string text) {
  rendezvous::Outcome outcome;
  outcome.end = end;
  outcome.exit_code = exit_code;
  outcome.text = std::move(text);
  return outcome;
}

void report_outcome(std::size_t tail_lines, const rendezvous::Outcome& outcome, const NodeEnd& node,
                    const std::string& lost_logs, Reader reader,
                    const std::function<void(std::string)>& say) {
  // What each rank did has been said when a time limit was reached; and the job had not begun if
  // one could not be started.
  const bool never_began = outcome.failure && outcome.failure->pid == 0;
  const bool not_told = node.at_limit.empty() && !never_began;
  const std::string stopped =
      not_told ? describe_stopped(node.stopped) : describe_killed(node.stopped);
  const std::string succeeded = not_told ? describe_succeeded(node.stopped) : "";
  const auto suspicion =
      outcome.failure ? suspect_hang(*outcome.failure, node.stopped) : std::nullopt;
  const bool asked_for = outcome.end == rendezvous::End::Stopped;
  if (asked_for && rendezvous::requested_signal(outcome.exit_code) != 0) {
    log::info("stopped: {}", outcome.text);  // a signal asked for it: no failure
  } else if (outcome.end != rendezvous::End::Success && (asked_for || !outcome.failure)) {
    log::error("{}", outcome.text);
  }
  if (outcome.failure)
    say_failure(outcome, suspect_hangs(*outcome.failure, node.stopped, node.others), tail_lines,
                reader, say);
  // That the workers are killed when the store is lost is a rule.
  const bool news =
      outcome.end != rendezvous::End::Success && outcome.end != rendezvous::End::StoreLost;
  // Of a rank that was killed the suspicion tells, and its children are no news.
  const bool all_told = !node.stopped.killed.empty() || node.stopped.others_killed == 0;
  const bool said =
      suspicion && suspicion->ranks == node.stopped.running && all_told && !node.stopped.at_once;
  // A rank that stands out for its silence does so on its own node.
  const bool gathers = reader == Reader::Starter && node.stopped.silence.empty();
  if (news && gathers) {
    if (const std::string ranks = ranks_to_gather(node.stopped, said, not_told); !ranks.empty())
      say(ranks);
  } else if (news) {
    if (!stopped.empty() && !said)
      log::write(log::Level::Info, node.stopped.silence.empty() ? Ink::Plain : Ink::Silence, "{}",
                 stopped);
    if (!succeeded.empty()) log::info("{}", succeeded);
  }
  if (!lost_logs.empty()) log::warning("{}", lost_logs);
}

WriteFile report_file(const std::string& file, const rendezvous::Outcome& outcome,
                      const NodeEnd& node, bool knows) {
  if (file.empty()) return nullptr;
  return [file, json = render_report_json(outcome, node), knows]() -> Status {
    if (!knows && !is_written_in_place(file)) {
      const auto present = read_small_file(file);
      if (present && tells_the_end(*present)) return Done{};
    }
    return write_whole_file(file, json);
  };
}

WriteFile running_report(const std::string& file) {
  if (file.empty()) return nullptr;
  return [file]() -> Status {
    about_to("write " + file);
    std::error_code unknown;
    if (std::filesystem::is_directory(file, unknown))
      return Error::from_errno(EISDIR, "write " + file);
    if (is_written_in_place(file)) return Done{};
    return write_whole_file(file, render_running_json());
  };
}

void report_early(const std::string& file, int exit_code, const std::string& text) {
  const auto work =
      report_file(file, ended_early(rendezvous::End::Failure, exit_code, text), {}, true);
  if (!work) return;
  const auto written = ask_files<Status>(kFilesLimit, work);
  if (!written) return log::error("--report: {}", written.error().what());
  if (!*written) log::error("--report: {}", written->error().what());
}

WriteFile forwarded_error_file(const std::vector<std::string>& inherited,
                               const rendezvous::FailureSummary& failure,
                               const std::string& workers_file) {
  const auto own = environment_variable(inherited, "TORCHELASTIC_ERROR_FILE").value_or("");
  if (own.empty() || workers_file.empty()) return nullptr;
  const int code = failure.signal != 0 ? -failure.signal : failure.exit_code;  // as Python has it
  return [own, workers_file, code]() -> Status {
    if (!read_error_file(workers_file)) return Done{};
    return copy_error_file(workers_file, own, code);
  };
}

}  // namespace drun::launcher
