#include "timeline/clocks.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace drun::timeline {
namespace {

using events::Kind;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
// Agents of one host whose ideas of its boot differ by less have the same clock.
constexpr std::int64_t kSameBoot = 1'000'000'000;
// A smaller difference may be the way of a message, or a node that is slow.
constexpr std::int64_t kLeastOffset = 50'000'000;
// No real clock: what is wrong by years must not make sums overflow.
constexpr std::int64_t kMostOffset = 100'000'000'000'000'000;

// What an agent did in a round, by its clock; kMost: nothing.
struct Times {
  std::int64_t ready = kMost;  // it had left the round before, or had come
  std::int64_t begun = kMost;
  std::int64_t failed = kMost;   // a worker of its own
  std::int64_t stopped = kMost;  // it stopped its workers
};
using RoundKey = std::pair<std::size_t, std::int64_t>;  // run, number

// Of an agent.
struct Story {
  std::map<RoundKey, Times> rounds;
  std::int64_t outcome = kMost;
};

std::vector<Story> stories_of(const Log& log, const std::vector<std::size_t>& runs) {
  std::vector<Story> stories(log.agents.size());
  std::vector<std::int64_t> ready(log.agents.size(), kMost);
  for (const LogEntry& entry : log.entries) {
    Story& story = stories[entry.agent];
    const auto times = [&]() -> Times& { return story.rounds[{runs[entry.agent], entry.round}]; };
    switch (entry.kind) {
      case Kind::StoreHosted:
      case Kind::StoreFound:
        if (entry.round == 0) ready[entry.agent] = entry.at_ns;
        break;
      case Kind::RoundBegun:
        times().begun = entry.at_ns;
        times().ready = std::exchange(ready[entry.agent], kMost);
        break;
      case Kind::WorkerExited:
        if (entry.end == LoggedEnd::Failed) times().failed = std::min(times().failed, entry.at_ns);
        break;
      case Kind::RoundStopping:
        times().stopped = entry.at_ns;
        break;
      case Kind::RoundEnded:
        ready[entry.agent] = entry.at_ns;
        break;
      case Kind::Outcome:
        story.outcome = entry.at_ns;
        break;
      default:
        break;
    }
  }
  return stories;
}

// What is known of how far a clock is behind another.
struct Evidence {
  std::vector<std::int64_t> samples;
  std::int64_t least = -kMostOffset;
  std::int64_t most = kMostOffset;

  void same(std::int64_t theirs, std::int64_t mine) {
    if (theirs == kMost || mine == kMost) return;
    if (const auto sample = theirs - mine; sample > -kMostOffset && sample < kMostOffset)
      samples.push_back(sample);
  }
  // It saw `mine` after the other saw `theirs`.
  void after(std::int64_t theirs, std::int64_t mine) {
    if (theirs != kMost && mine != kMost) least = std::max(least, theirs - mine);
  }
  void before(std::int64_t theirs, std::int64_t mine) {
    if (theirs != kMost && mine != kMost) most = std::min(most, theirs - mine);
  }
};

// A node that stops for a failure of its own does not do so for that of another.
void compare(const Times& theirs, const Times& mine, Evidence& evidence) {
  const bool both = theirs.begun != kMost && mine.begun != kMost;
  if (!both) return;
  evidence.same(theirs.begun, mine.begun);
  evidence.after(theirs.ready, mine.begun);
  evidence.before(theirs.begun, mine.ready);
  if (theirs.failed == kMost && mine.failed == kMost) evidence.same(theirs.stopped, mine.stopped);
  if (mine.failed == kMost) evidence.after(theirs.failed, mine.stopped);
  if (theirs.failed == kMost) evidence.before(theirs.stopped, mine.failed);
}

// nullopt: there is none.
std::optional<std::int64_t> offset_from(Evidence evidence) {
  if (evidence.samples.empty()) return std::nullopt;
  const auto middle = evidence.samples.begin() + std::ptrdiff_t(evidence.samples.size() / 2);
  std::nth_element(evidence.samples.begin(), middle, evidence.samples.end());
  const bool small = *middle > -kLeastOffset && *middle < kLeastOffset;
  const std::int64_t offset = small ? 0 : *middle;
  // What contradicts itself binds nobody.
  if (evidence.least > evidence.most) return offset;
  return std::clamp(offset, evidence.least, evidence.most);
}

// The clock of each agent.
std::vector<std::size_t> clocks_of(const std::vector<LoggedAgent>& agents) {
  std::map<std::string, std::vector<std::size_t>> hosts;  // an agent for each clock
  std::vector<std::size_t> clocks;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    auto& known = hosts[agents[i].hostname];
    const auto same = std::find_if(known.begin(), known.end(), [&](std::size_t other) {
      const auto difference = agents[other].boot_ns - agents[i].boot_ns;
      return difference > -kSameBoot && difference < kSameBoot;
    });
    clocks.push_back(same == known.end() ? i : *same);
    if (same == known.end()) known.push_back(i);
  }
  return clocks;
}

std::size_t first_leader(const Log& log) {
  const LogEntry* first = nullptr;
  for (const LogEntry& entry : log.entries)
    if (entry.kind == Kind::LeaderElected && (first == nullptr || entry.at_ns < first->at_ns))
      first = &entry;
  return first == nullptr ? 0 : first->agent;
}

}  // namespace

std::vector<ClockNote> set_clocks_right(Log& log, const std::vector<std::size_t>& runs) {
  if (log.agents.empty()) return {};
  const auto clocks = clocks_of(log.agents);
  for (LogEntry& entry : log.entries)  // of one clock: the same boot, to the nanosecond
    if (entry.monotonic_ns != 0)
      entry.at_ns = log.agents[clocks[entry.agent]].boot_ns + entry.monotonic_ns;
  const auto stories = stories_of(log, runs);
  const std::size_t right = clocks[first_leader(log)];
  std::map<std::size_t, Evidence> evidence;  // by clock
  for (std::size_t mine = 0; mine < clocks.size(); ++mine) {
    if (clocks[mine] == right) continue;
    Evidence& found = evidence[clocks[mine]];
    for (std::size_t theirs = 0; theirs < clocks.size(); ++theirs) {
      if (clocks[theirs] != right || runs[theirs] != runs[mine]) continue;
      for (const auto& [round, times] : stories[mine].rounds)
        if (const auto other = stories[theirs].rounds.find(round);
            other != stories[theirs].rounds.end())
          compare(other->second, times, found);
      found.same(stories[theirs].outcome, stories[mine].outcome);
    }
  }
  std::vector<ClockNote> notes;
  std::map<std::size_t, std::int64_t> offsets;
  for (const auto& [clock, found] : evidence) {
    const auto offset = offset_from(found);
    offsets[clock] = offset.value_or(0);
    if (!offset || *offset != 0)
      notes.push_back({log.agents[clock].hostname, offset.value_or(0), offset.has_value()});
  }
  for (LogEntry& entry : log.entries)
    if (const auto offset = offsets.find(clocks[entry.agent]); offset != offsets.end())
      entry.at_ns += offset->second;
  return notes;
}

}  // namespace drun::timeline
