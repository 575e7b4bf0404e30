#include "jobs/history_view.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/counted.hpp"
#include "base/duration_text.hpp"
#include "base/printable.hpp"
#include "base/utc_text.hpp"

namespace drun::jobs {
namespace {

using rendezvous::PastRound;

std::string name_of_round(const PastRound& round) {
  return "  round " + std::to_string(round.number) + ": ";
}

// ", restart 1", if one was spent.
std::string restart_of(const PastRound& round) {
  return round.restart > 0 ? ", restart " + std::to_string(round.restart) : "";
}

// `abandoned`: its job has nobody any more who would say what becomes of it.
std::string line_of(const PastRound& round, bool abandoned, std::int64_t now_ms) {
  std::string text = name_of_round(round) + counted(round.nodes, "node") + ", " +
                     counted(round.world_size, "rank") + ", from " +
                     utc_clock_text(round.began_ms, true);
  if (round.waited_ms > 0) text += " after " + describe_duration(round.began_ms - round.waited_ms);
  const std::int64_t stopped = round.stopping_ms > 0 ? round.stopping_ms : round.ended_ms;
  if (stopped == 0)
    return text +
           (abandoned ? "; nobody knows its end"
                      : "; runs for " + describe_duration(now_ms - round.began_ms)) +
           "\n";
  text += "; ran " + describe_duration(stopped - round.began_ms);
  if (round.stopping_ms > 0) {
    text += "; " + escaped(round.reason);
    if (round.ended_ms > 0)
      text += "; stopped in " + describe_duration(round.ended_ms - round.stopping_ms) +
              restart_of(round);
    else if (!abandoned)
      text += "; stops for " + describe_duration(now_ms - round.stopping_ms);
  }
  return text + "\n";
}

}  // namespace

std::string stops_text(const JobView& job, std::size_t most) {
  std::vector<const PastRound*> stops;  // the youngest first
  const auto& rounds = job.history.rounds;
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round)
    if (round->stopping_ms > 0 && round->ended_ms > 0) stops.push_back(&*round);
  // The last one is news; what cost a restart is asked for most, and joins of nodes would hide it.
  std::vector<bool> shown(stops.size());
  std::size_t count = 0;
  const auto show_where = [&](auto condition) {
    for (std::size_t i = 0; i < stops.size() && count < most; ++i)
      if (!shown[i] && condition(i)) {
        shown[i] = true;
        ++count;
      }
  };
  show_where([](std::size_t i) { return i == 0; });
  show_where([&](std::size_t i) { return stops[i]->restart > 0; });
  show_where([](std::size_t) { return true; });
  std::string text;
  for (std::size_t i = 0; i < stops.size(); ++i)
    if (shown[i])
      text += name_of_round(*stops[i]) + "stopped at " +
              utc_clock_text(stops[i]->stopping_ms, true) + " after " +
              describe_duration(stops[i]->stopping_ms - stops[i]->began_ms) +
              restart_of(*stops[i]) + ": " + escaped(stops[i]->reason) + "\n";
  if (count < stops.size())
    text += "  and " + counted(stops.size() - count, "stop") + " more: drunctl history\n";
  return text;
}

std::string history_text(const JobView& job, std::int64_t now_ms) {
  std::string text = "job " + escaped(job.id) + ": " + std::string(name_of(job.state));
  if (job.outcome) text += ", exit code " + std::to_string(job.outcome->exit_code);
  text += "\n";
  for (const PastRound& round : job.history.rounds)
    text += line_of(round, job.state == JobState::Abandoned, now_ms);
  if (job.history.rounds.empty()) text += "  no round has begun, or its history is lost\n";
  return text;
}

}  // namespace drun::jobs
