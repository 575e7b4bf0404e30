#include "timeline/node_story.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace drun::timeline {
namespace {

using events::Kind;

// The most that --nproc-per-node takes. A number in an edited file must not fill the memory.
constexpr std::int64_t kMostWorkers = 10'000;

SpanState state_after(LoggedEnd end) {
  if (end == LoggedEnd::Succeeded) return SpanState::Succeeded;
  return end == LoggedEnd::Failed ? SpanState::Failed : SpanState::Stopped;
}

}  // namespace

void NodeStory::take(const LogEntry& entry, std::int64_t time) {
  const std::int64_t at = std::max(time, last_);  // an edited file may lack its second clock
  if (!std::exchange(any_, true)) own_ = {SpanState::Waiting, at, ""};
  last_ = at;
  if (entry.kind == Kind::RoundBegun) return begin_round(entry, at);
  if (entry.kind == Kind::Outcome || entry.kind == Kind::AgentEnded) {
    if (waits_ && !over_) close_node(at);
    if (!waits_) end_round(at);
    over_ = true;
    return;
  }
  if (waits_) return;
  switch (entry.kind) {
    case Kind::WorkerStarted:
      enter(entry.rank, SpanState::Running, at);
      break;
    case Kind::WorkersRunning:
      if (own_.state == SpanState::Starting) enter_node(SpanState::Running, at);
      break;
    case Kind::WorkerExited:
      enter(entry.rank, state_after(entry.end), at, entry.text);
      break;
    case Kind::RoundStopping:
      enter_node(SpanState::Stopping, at);
      for (const auto& [rank, open] : ranks_)
        if (open.state == SpanState::Starting || open.state == SpanState::Running)
          enter(rank, SpanState::Stopping, at);
      break;
    case Kind::RoundEnded:
      end_round(at);
      break;
    default:
      break;
  }
}

void NodeStory::begin_round(const LogEntry& entry, std::int64_t at) {
  if (!waits_) end_round(at);  // events were lost
  round_ = entry.round;
  node_.group_rank = entry.group_rank;
  const std::int64_t waited_since = own_.since;
  close_node(at);
  waits_ = false;
  own_ = {SpanState::Starting, at, ""};
  const std::int64_t workers = std::min(entry.workers, kMostWorkers);
  for (std::int64_t i = 0; i < workers; ++i) {
    const std::int64_t rank = entry.first_rank + i;
    spans_[rank].push_back({SpanState::Waiting, waited_since, at, round_, false, ""});
    ranks_[rank] = {SpanState::Starting, at, ""};
  }
}

void NodeStory::enter(std::int64_t rank, SpanState state, std::int64_t at, std::string text) {
  close(rank, at);
  ranks_[rank] = {state, at, std::move(text)};
}

void NodeStory::close(std::int64_t rank, std::int64_t at, bool cut) {
  const auto open = ranks_.find(rank);
  if (open == ranks_.end()) return;
  spans_[rank].push_back(
      {open->second.state, open->second.since, at, round_, cut, std::move(open->second.text)});
}

void NodeStory::enter_node(SpanState state, std::int64_t at) {
  close_node(at);
  own_ = {state, at, ""};
}

void NodeStory::close_node(std::int64_t at, bool cut) {
  node_.spans.push_back({own_.state, own_.since, at, round_, cut, ""});
}

void NodeStory::end_round(std::int64_t at) {
  for (const auto& [rank, open] : ranks_)
    close(rank, at);
  ranks_.clear();
  enter_node(SpanState::Waiting, at);
  waits_ = true;
}

void NodeStory::finish(std::int64_t known_until) {
  if (any_ && !over_) {
    const std::int64_t end = std::max(known_until, last_);
    for (const auto& [rank, open] : ranks_)
      close(rank, end, true);
    close_node(end, true);
  }
  // A wait belongs to the round that it was for.
  for (std::size_t i = 0; i < node_.spans.size(); ++i)
    if (node_.spans[i].state == SpanState::Waiting)
      node_.spans[i].round = i + 1 < node_.spans.size() ? node_.spans[i + 1].round : 0;
  for (auto& [rank, spans] : spans_)
    node_.workers.push_back({rank, std::move(spans)});
}

}  // namespace drun::timeline
