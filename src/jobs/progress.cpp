#include "jobs/progress.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>

namespace drun::jobs {
namespace {

using rendezvous::BeatDocument;
using std::chrono::milliseconds;

// What a rank did longer ago is in its node's note: until then its node has looked, and written.
constexpr std::int64_t kNoted =
    milliseconds(rendezvous::kBeatPeriod + std::chrono::seconds(5)).count();
// Ranks that say no steps may give their heartbeats so long one after the other.
constexpr std::int64_t kLongSilence = milliseconds(std::chrono::minutes(1)).count();
// Steps take different times.
constexpr std::int64_t kTimesStep = 2;

// Whether the rank of `a` that is furthest behind is certainly behind that of `b` which is furthest
// ahead.
bool is_behind(const BeatDocument& a, const BeatDocument& b, std::int64_t now_ms) {
  const std::int64_t seen_until = now_ms - kNoted;  // of `a`, whatever its note's age
  const std::int64_t lead_ms = b.most_time_ms - a.time_ms;
  if (a.step >= 0 && b.most_step > a.step) {
    // It said so later, or has had the time to say that it has come as far.
    if (lead_ms <= 0 || b.most_time_ms <= seen_until) return true;
    return seen_until - a.time_ms > kTimesStep * lead_ms / (b.most_step - a.step);
  }
  // Who came to a step first waits for the others there: age counts only if steps are not said.
  return (a.step < 0 || b.most_step < 0) && lead_ms > kLongSilence + kNoted;
}

}  // namespace

Progress progress_of(const std::vector<NodeBeats>& nodes, std::int64_t now_ms) {
  Progress result;
  const bool all_say_steps = std::all_of(nodes.begin(), nodes.end(),
                                         [](const auto& each) { return each.beats.step >= 0; });
  const auto key = [&](const NodeBeats& each) {
    return std::tuple(all_say_steps ? each.beats.step : 0, each.beats.time_ms, each.beats.rank);
  };
  const auto last = std::min_element(nodes.begin(), nodes.end(),
                                     [&](const auto& a, const auto& b) { return key(a) < key(b); });
  if (all_say_steps) {
    result.least_step = last->beats.step;
    for (const NodeBeats& each : nodes)
      result.most_step = std::max({result.most_step, each.beats.step, each.beats.most_step});
  }
  const bool behind = std::any_of(nodes.begin(), nodes.end(), [&](const NodeBeats& other) {
    return is_behind(last->beats, other.beats, now_ms);
  });
  if (behind) result.behind = {last->host, last->beats.rank, last->beats.step, last->beats.time_ms};
  return result;
}

}  // namespace drun::jobs
