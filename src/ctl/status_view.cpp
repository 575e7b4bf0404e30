#include "ctl/status_view.hpp"

#include <algorithm>

#include "base/exit_codes.hpp"
#include "base/split.hpp"
#include "ctl/drunctl_health.hpp"
#include "jobs/history_view.hpp"

namespace drun::ctl {

using jobs::JobState;

namespace {

std::string json_of(const jobs::JobView& job, bool past, const Shown& shown) {
  const status::JobStatus status = status_of(job, shown.now_ms);
  return past ? history_json(status, shown.on_terminal) : to_json(status, shown.on_terminal);
}

}  // namespace

int code_of(JobState state) {
  switch (state) {
    case JobState::Running:
    case JobState::Succeeded:
      return kOk;
    case JobState::Failed:
      return kNo;
    case JobState::Gathering:
    case JobState::Stopping:
      return kNotRunning;
    case JobState::Abandoned:
      break;
  }
  return kGone;
}

int code_of(const status::AgentStatus& status) {
  using enum status::Phase;
  return status.phase == Running || status.phase == Starting ? kOk : kNotRunning;
}

View view_of(const jobs::Documents& documents, const CtlOptions& options, const Shown& shown,
             const Asides& asides) {
  const bool past = options.command == "history";
  View view;
  for (jobs::JobView& job : jobs::jobs_in(documents, asides.words)) {
    if (!job.outcome) {
      job.usage = asides.usage;
      job.collective = asides.collective;
    }
    view.empty = false;
    view.ended = view.ended && job.outcome.has_value();
    view.code = std::max(view.code, code_of(job.state));
    if (options.json)
      view.text += json_of(job, past, shown) + "\n";
    else
      view.text += past ? history_text(job, shown.now_ms) : jobs::text_of(job, shown.now_ms);
  }
  // To ask what was is no question of how it is.
  if (past) view.code = kOk;
  return view;
}

View view_of(const status::AgentStatus& agent, const CtlOptions& options, const Shown& shown) {
  View view;
  view.empty = false;
  view.code = options.command == "history" ? kOk : code_of(agent);
  view.text = (options.json ? to_json(agent, shown.on_terminal) : health_line(agent)) + "\n";
  return view;
}

std::string load_line(const store::control::Counters& counters, const Endpoint& place) {
  std::string text;
  for (const std::string_view wanted : {"keys", "sessions", "connections", "bytes"})
    for (const auto& [name, value] : counters.counters)
      if (name == wanted)
        text += (text.empty() ? "" : ", ") + std::to_string(value) + " " + std::string(wanted);
  return "store " + to_string(place) + ": " + text + "\n";
}

std::vector<Endpoint> places_of(std::string_view meeting_place) {
  std::vector<Endpoint> result;
  if (meeting_place.find(' ') != std::string_view::npos) return result;
  while (!meeting_place.empty())
    if (const auto endpoint = parse_endpoint(take_until(meeting_place, ','), 0))
      result.push_back(*endpoint);
  return result;
}

}  // namespace drun::ctl
