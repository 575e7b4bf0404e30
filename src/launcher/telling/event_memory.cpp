#include "launcher/telling/event_memory.hpp"

#include <utility>
#include <vector>

#include "timeline/clocks.hpp"
#include "timeline/event_log.hpp"
#include "timeline/runs.hpp"
#include "timeline/timeline.hpp"
#include "timeline/trace_json.hpp"

namespace drun::launcher {
namespace {

using events::Event;
using events::Kind;

constexpr std::size_t kMostShown = 100;

bool is_noise(const Event& event) {
  if (event.kind == Kind::WorkerStarted) return true;
  return event.kind == Kind::WorkerExited && event.state != "FAILED";
}

}  // namespace

void EventMemory::add(const Event& event) {
  if (list_.size() >= kMost) {
    list_.pop_front();
    ++forgotten_;
  }
  list_.push_back(std::make_shared<const Event>(event));
}

std::string events_json(const EventMemory& memory) {
  std::vector<const Event*> shown;
  const auto& list = memory.list();
  for (auto event = list.rbegin(); event != list.rend() && shown.size() < kMostShown; ++event)
    if (!is_noise(**event)) shown.push_back(event->get());
  std::string text = "{\"events\":[";
  for (auto event = shown.rbegin(); event != shown.rend(); ++event)
    text += (event == shown.rbegin() ? "\n" : ",\n") + to_json(**event);
  return text + "\n]}\n";
}

std::string events_trace(const EventMemory& memory, std::int64_t monotonic_ns) {
  timeline::LogReader reader;
  for (const auto& event : memory.list())
    reader.add(to_json(*event) + "\n");
  (void)reader.end_file();
  timeline::Log log = std::move(reader).finish();
  const auto runs = timeline::runs_of(log);
  (void)timeline::set_clocks_right(log, runs);  // it is one clock: there is nothing to note
  const std::int64_t now_ns = log.agents.empty() ? 0 : log.agents.front().boot_ns + monotonic_ns;
  timeline::Timeline picture = timeline::make_timeline(log, runs, now_ns);
  if (memory.forgotten() > 0)
    picture.notes.push_back("the " + std::to_string(memory.forgotten()) +
                            " events before these are forgotten: --events keeps all");
  return timeline::trace_json(picture);
}

}  // namespace drun::launcher
