#include "timeline/stops.hpp"

#include <algorithm>

namespace drun::timeline {
namespace {

using events::Kind;
using LogEntries = std::vector<const LogEntry*>;

const LogEntry* first_of(const LogEntries& story, auto condition) {
  const auto found = std::find_if(story.begin(), story.end(),
                                  [&](const LogEntry* entry) { return condition(*entry); });
  return found == story.end() ? nullptr : *found;
}

const LogEntry* first_of_kind(const LogEntries& story, Kind kind) {
  return first_of(story, [kind](const LogEntry& entry) { return entry.kind == kind; });
}

// The end of the worker, which is a little older than the leader's word of it.
const LogEntry* failed_worker(const LogEntries& story, const LogEntry* word) {
  return first_of(story, [word](const LogEntry& entry) {
    return entry.kind == Kind::WorkerExited && entry.end == LoggedEnd::Failed &&
           (word == nullptr || (entry.rank == word->rank && entry.pid == word->pid));
  });
}

// The round was stopped for it: who says so stops for it, too, and is not the one.
const LogEntry* who_joined(const LogEntries& story, const LogEntry* word) {
  if (word == nullptr || !word->resize) return nullptr;
  return first_of_kind(story, Kind::NodeJoined);
}

Stop stop_of(const LogEntries& story) {
  Stop stop;
  stop.word = first_of_kind(story, Kind::RoundStopping);
  const LogEntry* failure = first_of_kind(story, Kind::Failure);
  stop.cause = failed_worker(story, failure);
  if (stop.cause == nullptr) stop.cause = failure;
  // A spare may go without a stop.
  if (stop.cause == nullptr && stop.word != nullptr)
    stop.cause = first_of_kind(story, Kind::NodeGone);
  if (stop.cause == nullptr) stop.cause = first_of_kind(story, Kind::Limit);
  if (stop.cause == nullptr) stop.cause = who_joined(story, stop.word);
  if (stop.cause == nullptr) stop.cause = stop.word;
  return stop;
}

}  // namespace

std::map<RunRound, Stop> stops_of(const Log& log, const std::vector<std::size_t>& runs) {
  std::map<RunRound, LogEntries> stories;
  for (const LogEntry& entry : log.entries)
    stories[{runs[entry.agent], entry.round}].push_back(&entry);
  std::map<RunRound, Stop> stops;
  for (auto& [round, story] : stories) {
    std::stable_sort(story.begin(), story.end(),
                     [](const auto* a, const auto* b) { return a->at_ns < b->at_ns; });
    stops.emplace(round, stop_of(story));
  }
  return stops;
}

}  // namespace drun::timeline
