#include "timeline/stops.hpp"

#include <algorithm>

namespace drun::timeline {
namespace {

using events::Kind;
using Entries = std::vector<const Entry*>;

const Entry* first_of(const Entries& story, auto condition) {
  const auto found = std::find_if(story.begin(), story.end(),
                                  [&](const Entry* entry) { return condition(*entry); });
  return found == story.end() ? nullptr : *found;
}

const Entry* first_of_kind(const Entries& story, Kind kind) {
  return first_of(story, [kind](const Entry& entry) { return entry.kind == kind; });
}

// The end of the worker, which is a little older than the leader's word of it.
const Entry* failed_worker(const Entries& story, const Entry* word) {
  return first_of(story, [word](const Entry& entry) {
    return entry.kind == Kind::WorkerExited && entry.end == End::Failed &&
           (word == nullptr || (entry.rank == word->rank && entry.pid == word->pid));
  });
}

// The round was stopped for it: who says so stops for it, too, and is not the one.
const Entry* who_joined(const Entries& story, const Entry* word) {
  if (word == nullptr || !word->resize) return nullptr;
  return first_of_kind(story, Kind::NodeJoined);
}

Stop stop_of(const Entries& story) {
  Stop stop;
  stop.word = first_of_kind(story, Kind::RoundStopping);
  const Entry* failure = first_of_kind(story, Kind::Failure);
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
  std::map<RunRound, Entries> stories;
  for (const Entry& entry : log.entries)
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
