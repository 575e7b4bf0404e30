#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <system_error>

#include "base/json.hpp"
#include "stacks/stack_report.hpp"

namespace drun::stacks {
namespace {

using nlohmann::ordered_json;

constexpr std::array kKinds{Kind::Worker, Kind::Thread, Kind::Child};
// Ranks beyond it are no ranks.
constexpr std::int64_t kHighestRank = 10'000'000;
constexpr std::size_t kLongestJsonText = kLongestText + 16;

// Thrown by the readers below, and caught by parse_report().
struct NotAReport {};

ordered_json json_of(const std::vector<NumberRange>& ranges) {
  ordered_json result = ordered_json::array();
  for (const NumberRange range : ranges)
    result.push_back({range.first, range.last});
  return result;
}

const ordered_json& list(const ordered_json& object, const char* name, std::size_t most) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array() || found->size() > most) throw NotAReport();
  return *found;
}

std::string text(const ordered_json& value) {
  if (!value.is_string()) throw NotAReport();
  auto result = value.get<std::string>();
  if (result.size() > kLongestJsonText) throw NotAReport();
  return result;
}

std::string text(const ordered_json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) throw NotAReport();
  return text(*found);
}

std::int64_t number(const ordered_json& value, std::int64_t most) {
  if (!value.is_number_integer()) throw NotAReport();
  const auto result = value.get<std::int64_t>();
  if (result < 0 || result > most) throw NotAReport();
  return result;
}

std::int64_t number(const ordered_json& object, const char* name, std::int64_t most) {
  const auto found = object.find(name);
  if (found == object.end()) throw NotAReport();
  return number(*found, most);
}

NumberRange range(const ordered_json& value) {
  if (!value.is_array() || value.size() != 2) throw NotAReport();
  const NumberRange result{static_cast<int>(number(value[0], kHighestRank)),
                           static_cast<int>(number(value[1], kHighestRank))};
  if (result.last < result.first) throw NotAReport();
  return result;
}

std::vector<NumberRange> ranks(const ordered_json& object) {
  std::vector<NumberRange> result;
  for (const ordered_json& each : list(object, "ranks", kMostRanges))
    result.push_back(range(each));
  return result;
}

bool is_set(const ordered_json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

StateRow row_of(const ordered_json& object) {
  StateRow row;
  const std::string state = text(object, "state");
  if (state.size() != 1) throw NotAReport();
  row.state = state.front();
  row.wait = text(object, "wait");
  row.call = text(object, "call");
  row.ranks = ranks(object);
  if (object.contains("silence_ms")) {
    const ordered_json& silence = list(object, "silence_ms", 2);
    if (silence.size() != 2) throw NotAReport();
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    row.silence = SilenceRange{std::chrono::milliseconds(number(silence[0], kMost)),
                               std::chrono::milliseconds(number(silence[1], kMost))};
  }
  row.never_printed = is_set(object, "never_printed");
  return row;
}

StackGroup group_of(const ordered_json& object) {
  StackGroup group;
  const std::string kind = text(object, "kind");
  bool known = false;
  for (const Kind each : kKinds) {
    if (kind != name_of(each)) continue;
    group.kind = each;
    known = true;
  }
  if (!known) throw NotAReport();
  group.name = text(object, "name");
  for (const ordered_json& frame : list(object, "frames", kMostFrames + 1))
    group.frames.push_back(text(frame));
  group.problem = text(object, "problem");
  group.awaited = is_set(object, "awaited");
  group.ranks = ranks(object);
  constexpr std::int64_t kMostThreads = 1'000'000'000;
  group.threads = static_cast<std::size_t>(number(object, "threads", kMostThreads));
  return group;
}

StackReport report_of(const ordered_json& object) {
  if (!object.is_object()) throw NotAReport();
  StackReport report;
  for (const ordered_json& each : list(object, "nodes", kMostNodes))
    report.nodes.push_back({text(each, "host"), range(each.value("ranks", ordered_json()))});
  for (const ordered_json& each : list(object, "states", kMostRanges))
    report.states.push_back(row_of(each));
  for (const ordered_json& each : list(object, "groups", kMostGroups))
    report.groups.push_back(group_of(each));
  for (const ordered_json& each : list(object, "notes", kMostRanges))
    report.notes.push_back({text(each, "text"), ranks(each)});
  report.left_out =
      static_cast<std::size_t>(number(object, "left_out", std::numeric_limits<int>::max()));
  return report;
}

}  // namespace

std::string to_json(const StackReport& report, bool ascii, std::string_view job) {
  ordered_json nodes = ordered_json::array();
  for (const NodeRanks& node : report.nodes)
    nodes.push_back({{"host", node.host}, {"ranks", {node.ranks.first, node.ranks.last}}});
  ordered_json states = ordered_json::array();
  for (const StateRow& row : report.states) {
    ordered_json entry{{"state", std::string(1, row.state)},
                       {"wait", row.wait},
                       {"call", row.call},
                       {"ranks", json_of(row.ranks)}};
    if (row.never_printed) entry["never_printed"] = true;
    if (row.silence)
      entry["silence_ms"] = {row.silence->shortest.count(), row.silence->longest.count()};
    states.push_back(std::move(entry));
  }
  ordered_json groups = ordered_json::array();
  for (const StackGroup& group : report.groups) {
    ordered_json entry{{"kind", name_of(group.kind)},   {"name", group.name},
                       {"ranks", json_of(group.ranks)}, {"threads", group.threads},
                       {"problem", group.problem},      {"frames", group.frames}};
    if (group.awaited) entry["awaited"] = true;
    groups.push_back(std::move(entry));
  }
  ordered_json notes = ordered_json::array();
  for (const StackNote& note : report.notes)
    notes.push_back({{"text", note.text}, {"ranks", json_of(note.ranks)}});
  ordered_json object;
  if (!job.empty()) object["id"] = std::string(job);
  object["nodes"] = std::move(nodes);
  object["states"] = std::move(states);
  object["groups"] = std::move(groups);
  object["notes"] = std::move(notes);
  object["left_out"] = report.left_out;
  return json_text(object, ascii);
}

std::string to_json_within(StackReport report, std::size_t bytes) {
  for (;;) {
    std::string json = to_json(report);
    if (json.size() <= bytes || report.groups.empty()) return json;
    // Children and threads go first, and of all the stacks of many ranks, which say the least.
    const std::size_t dropped = std::max<std::size_t>(report.groups.size() / 8, 1);
    report.groups.resize(report.groups.size() - dropped);
    report.left_out += dropped;
  }
}

Result<StackReport> parse_report(std::string_view json) {
  try {
    return report_of(parse_ordered_json(json));
  } catch (const NotAReport&) {
    return Error(std::make_error_code(std::errc::bad_message), "not a report of stacks");
  }
}

}  // namespace drun::stacks
