// The failure report for programs: --report FILE.
#include <algorithm>
#include <array>

#include "base/json.hpp"
#include "base/utc_text.hpp"
#include "launcher/process/exit_status.hpp"
#include "launcher/report/failure_report.hpp"
#include "launcher/report/gathered_ranks.hpp"
#include "launcher/report/hang_suspicion.hpp"

namespace drun::launcher {
namespace {

using Document = nlohmann::ordered_json;

const char* name_of(rendezvous::End end) {
  switch (end) {
    case rendezvous::End::Success:
      return "success";
    case rendezvous::End::Failure:
      return "failure";
    case rendezvous::End::Stopped:
      return "stopped";
    case rendezvous::End::Timeout:
      return "timeout";
    case rendezvous::End::NodesLost:
      return "nodes lost";
    case rendezvous::End::Refused:
      return "refused";
    case rendezvous::End::StoreLost:
      return "store lost";
  }
  return "unknown";
}

Document or_null(const std::string& text) {
  return text.empty() ? Document(nullptr) : Document(text);
}

Document failure_json(const rendezvous::FailureSummary& failure) {
  Document json;
  json["rank"] = failure.rank;
  json["local_rank"] = failure.local_rank;
  json["group_rank"] = failure.group_rank;
  json["host"] = failure.host;
  json["pid"] = failure.pid > 0 ? Document(failure.pid) : Document(nullptr);
  json["cause"] = failure.cause;
  json["exit_code"] = failure.signal != 0 ? Document(nullptr) : Document(failure.exit_code);
  json["signal"] =
      failure.signal != 0 ? Document(process::signal_name(failure.signal)) : Document(nullptr);
  json["time"] =
      failure.time_ms > 0 ? Document(utc_text(failure.time_ms * 1'000'000, 3)) : Document(nullptr);
  json["uptime_seconds"] = static_cast<double>(failure.uptime_ms) / 1000.0;
  json["error"] = or_null(failure.traceback);
  json["stderr"] = failure.tail;
  json["core"] = or_null(failure.core_file);
  json["log"] = or_null(failure.log_file);
  json["also_failed"] = describe_others(failure);
  return json;
}

Document silences_json(const StoppedRanks& stopped) {
  Document json = Document::array();
  for (std::size_t i = 0; i < stopped.running.size(); ++i) {
    const auto silence = i < stopped.silences.size() ? stopped.silences[i] : std::nullopt;
    json.push_back(silence ? Document(static_cast<double>(silence->count()) / 1000.0)
                           : Document(nullptr));
  }
  return json;
}

Document report_json(const rendezvous::Outcome& outcome, const NodeEnd& node) {
  Document json;
  json["result"] =
      rendezvous::is_time_limit(outcome) ? name_of(rendezvous::End::Timeout) : name_of(outcome.end);
  json["exit_code"] = outcome.exit_code;
  json["text"] = outcome.text;
  json["notes"] = outcome.notes;
  json["ranks_at_time_limit"] = node.at_limit;
  const StoppedRanks all = ranks_of_all(node.stopped, node.others);
  json["ranks_still_running"] = all.running;
  json["silence_seconds"] = silences_json(all);
  json["ranks_killed"] = all.killed;
  json["ranks_succeeded_before"] = all.succeeded;
  json["ranks_that_seem_to_hang"] =
      outcome.failure ? ranks_of(suspect_hangs(*outcome.failure, node.stopped, node.others))
                      : std::vector<int>{};
  json["stack_files"] = node.files.stacks;
  json["flight_recorder_files"] = node.files.dumps;
  json["failure"] = outcome.failure ? failure_json(*outcome.failure) : Document(nullptr);
  return json;
}

std::string text_of(const Document& json) {
  return json.dump(2, ' ', false, Document::error_handler_t::replace) + "\n";
}

}  // namespace

std::string render_report_json(const rendezvous::Outcome& outcome, const NodeEnd& node) {
  return text_of(report_json(outcome, node));
}

std::string render_running_json() {
  Document json = report_json({}, {});
  json["result"] = "running";
  json["exit_code"] = nullptr;
  return text_of(json);
}

bool tells_the_end(std::string_view report) {
  const auto json = parse_ordered_json(report);
  const auto result = json.is_object() ? json.find("result") : json.end();
  if (result == json.end()) return false;
  using enum rendezvous::End;
  constexpr std::array kOfTheJob{Success, Failure, Stopped, Timeout, NodesLost};
  return std::any_of(kOfTheJob.begin(), kOfTheJob.end(),
                     [&](rendezvous::End end) { return *result == name_of(end); });
}

}  // namespace drun::launcher
