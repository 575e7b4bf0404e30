#include "timeline/event_log.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/fnv1a.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"

namespace drun::timeline {
namespace {

using events::Event;
using events::Kind;

// More than a line of any later drun: a file without ends of lines must not fill the memory.
constexpr std::size_t kMostOfLine = 65'536;

struct Told {
  Event event;
  std::string unknown;
};

// Texts of a file that somebody may have edited.
std::string clean(const std::string& text) {
  return std::string(cut_utf8(printable(text), events::kLongestText));
}

// Of a later drun's: what every event has is read.
std::optional<Told> parse_unknown(std::string_view line) {
  auto object = parse_ordered_json(line);
  if (!object.is_object()) return std::nullopt;
  const auto name = object.find("event");
  if (name == object.end() || !name->is_string() || !object.contains("time")) return std::nullopt;
  const auto text = name->get<std::string>();
  if (events::kind_of(text)) return std::nullopt;
  *name = events::info_of(Kind::Warning).name;
  auto event = events::parse_event(json_text(object));
  if (!event) return std::nullopt;
  return Told{*std::move(event), clean(text)};
}

std::optional<Told> parse(std::string_view line) {
  if (auto event = events::parse_event(line)) return Told{*std::move(event), ""};
  return parse_unknown(line);
}

LoggedEnd end_of(const Event& event) {
  if (event.state == "SUCCEEDED") return LoggedEnd::Succeeded;
  if (event.state == "FAILED") return LoggedEnd::Failed;
  return event.state == "TERMINATED" ? LoggedEnd::Terminated : LoggedEnd::None;
}

bool about_worker(Kind kind) {
  return kind == Kind::WorkerStarted || kind == Kind::WorkerExited || kind == Kind::Failure;
}

// Of an edited file: sums and differences of these fit 64 bits.
constexpr std::int64_t kLatest = 4'000'000'000'000'000'000;         // in the year 2096
constexpr std::int64_t kLongestUptime = 1'000'000'000'000'000'000;  // 31 years

std::int64_t sane(std::int64_t number) {
  return std::clamp<std::int64_t>(number, -1, std::numeric_limits<std::int32_t>::max());
}

bool has_time(const Event& event) {
  return event.time_ns > 0 && event.time_ns < kLatest && event.monotonic_ns >= 0 &&
         event.monotonic_ns < kLongestUptime;
}

// An agent's clock may be set while it runs: what tells how much time passed is the other one.
void use_monotonic_time(Log& log) {
  std::vector<std::int64_t> first(log.agents.size(), kLongestUptime);
  for (const LogEntry& entry : log.entries)
    if (entry.monotonic_ns != 0 && entry.monotonic_ns < first[entry.agent]) {
      first[entry.agent] = entry.monotonic_ns;
      log.agents[entry.agent].boot_ns = entry.at_ns - entry.monotonic_ns;
    }
  for (LogEntry& entry : log.entries)
    if (entry.monotonic_ns != 0) entry.at_ns = log.agents[entry.agent].boot_ns + entry.monotonic_ns;
}

LogEntry entry_of(const Told& told) {
  const Event& event = told.event;
  LogEntry entry;
  entry.kind = event.kind;
  entry.unknown = told.unknown;
  entry.at_ns = event.time_ns;
  entry.monotonic_ns = event.monotonic_ns;
  entry.round = sane(event.round);
  entry.restarts = sane(event.agent_restarts);
  entry.group_rank = sane(event.group_rank);
  if (about_worker(event.kind)) entry.rank = sane(event.global_rank);
  entry.pid = sane(event.pid);
  entry.exit_code = sane(event.exit_code);
  entry.signal = sane(event.signal);
  entry.nodes = sane(event.group_world_size);
  entry.first_rank = sane(event.first_rank);
  entry.workers = sane(event.local_world_size);
  entry.world_size = sane(event.world_size);
  entry.end = end_of(event);
  entry.resize = event.cause == "resize";
  entry.text = clean(event.raw_error.empty() ? event.reason : event.raw_error);
  entry.peer = clean(event.peer);
  entry.peer_host = clean(event.peer_host);
  return entry;
}

}  // namespace

void LogReader::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    too_long_ |= line_.size() + piece.size() > kMostOfLine;
    if (!too_long_) line_ += piece;
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    if (too_long_ || (!line_.empty() && !take_line(line_))) ++count_.foreign;
    too_long_ = false;
    line_.clear();
  }
}

FileCount LogReader::end_file() {
  if (too_long_) {
    ++count_.foreign;
  } else if (!line_.empty()) {
    count_.torn = !take_line(line_);
  }
  too_long_ = false;
  line_.clear();
  return std::exchange(count_, {});
}

bool LogReader::take_line(std::string_view line) {
  const auto told = parse(line);
  if (!told || !has_time(told->event)) return false;
  ++count_.events;
  // Lines hold the process and its monotonic clock: no two are alike by chance.
  if (!seen_.insert(fnv1a(line)).second) {
    ++count_.repeated;
    return true;
  }
  LogEntry entry = entry_of(*told);
  entry.agent = agent_of(told->event);
  log_.entries.push_back(std::move(entry));
  return true;
}

// An agent has no name before it has joined; its process may have the pid of an earlier one.
std::size_t LogReader::agent_of(const Event& event) {
  const std::string process =
      event.run_id + '\n' + event.hostname + '\n' + std::to_string(event.agent_pid);
  if (event.kind == Kind::AgentStarted) return by_process_[process] = new_agent(event);
  const auto current = by_process_.find(process);
  if (event.node.empty()) {
    if (current != by_process_.end()) return current->second;
    return by_process_[process] = new_agent(event);
  }
  const bool nameless = current != by_process_.end() && log_.agents[current->second].node.empty();
  const auto [named, is_new] = by_node_.try_emplace(event.run_id + '\n' + event.node, 0);
  if (is_new) {
    named->second = nameless ? current->second : new_agent(event);
    log_.agents[named->second].node = clean(event.node);
  } else if (nameless && current->second != named->second) {
    same_as_[current->second] = named->second;  // its beginning stood in another file
  }
  return by_process_[process] = named->second;
}

std::size_t LogReader::new_agent(const Event& event) {
  LoggedAgent agent;
  agent.run_id = clean(event.run_id);
  agent.hostname = clean(event.hostname);
  agent.pid = event.agent_pid;
  log_.agents.push_back(std::move(agent));
  return log_.agents.size() - 1;
}

Log LogReader::finish() && {
  std::vector<std::size_t> place(log_.agents.size());
  Log result;
  for (std::size_t i = 0; i < log_.agents.size(); ++i) {
    if (same_as_.contains(i)) continue;
    place[i] = result.agents.size();
    result.agents.push_back(std::move(log_.agents[i]));
  }
  result.entries = std::move(log_.entries);
  for (LogEntry& entry : result.entries) {
    const auto same = same_as_.find(entry.agent);
    entry.agent = place[same == same_as_.end() ? entry.agent : same->second];
  }
  use_monotonic_time(result);
  std::stable_sort(result.entries.begin(), result.entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.agent, a.at_ns) < std::pair(b.agent, b.at_ns);
  });
  return result;
}

}  // namespace drun::timeline
