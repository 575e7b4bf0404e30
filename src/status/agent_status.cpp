#include "status/agent_status.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>
#include <utility>

#include "base/json.hpp"

namespace drun::status {
namespace {

using nlohmann::ordered_json;

constexpr auto kPhases =
    std::to_array<std::pair<Phase, std::string_view>>({{Phase::Searching, "searching"},
                                                       {Phase::Gathering, "gathering"},
                                                       {Phase::Spare, "spare"},
                                                       {Phase::Starting, "starting"},
                                                       {Phase::Running, "running"},
                                                       {Phase::Stopping, "stopping"},
                                                       {Phase::Leaving, "leaving"}});

Error malformed() {
  return {std::make_error_code(std::errc::bad_message), "not the answer of a drun"};
}

bool take_text(const ordered_json& object, const char* name, std::string& into) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return false;
  into = found->get<std::string>();
  return true;
}

template <typename Number>
bool take_number(const ordered_json& object, const char* name, Number& into) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return false;
  const auto number = found->template get<std::int64_t>();
  if (number < 0 || number > std::numeric_limits<Number>::max()) return false;
  into = static_cast<Number>(number);
  return true;
}

std::optional<RankBeat> beat_in(const ordered_json& object) {
  const auto found = object.find("behind");
  RankBeat beat;
  if (found == object.end() || !found->is_object() || !take_number(*found, "rank", beat.rank) ||
      !take_number(*found, "age_ms", beat.age_ms))
    return std::nullopt;
  (void)take_number(*found, "step", beat.step);
  return beat;
}

}  // namespace

std::string_view name_of(Phase phase) {
  const auto* found = std::find_if(kPhases.begin(), kPhases.end(),
                                   [phase](const auto& each) { return each.first == phase; });
  return found->second;
}

std::optional<Phase> phase_of(std::string_view name) {
  const auto* found = std::find_if(kPhases.begin(), kPhases.end(),
                                   [name](const auto& each) { return each.second == name; });
  return found == kPhases.end() ? std::nullopt : std::optional(found->first);
}

std::string to_json(const AgentStatus& status, bool ascii) {
  ordered_json object{{"job", status.job},         {"host", status.host},
                      {"pid", status.pid},         {"phase", name_of(status.phase)},
                      {"waiting", status.waiting}, {"endpoint", status.endpoint}};
  if (!status.store.empty()) object["store"] = status.store;
  object["round"] = status.round;
  if (status.round > 0) {
    object["nodes"] = status.nodes;
    object["group_rank"] = status.group_rank;
    object["first_rank"] = status.first_rank;
    object["workers"] = status.workers;
    object["world_size"] = status.world_size;
    object["restart_count"] = status.restart_count;
    if (status.behind) {
      object["behind"] = {{"rank", status.behind->rank}, {"age_ms", status.behind->age_ms}};
      if (status.behind->step >= 0) object["behind"]["step"] = status.behind->step;
    }
    if (!status.collective.empty()) object["collective"] = status.collective;
  }
  return json_text(object, ascii);
}

Result<AgentStatus> parse_status(std::string_view json) {
  const auto object = parse_ordered_json(json);
  if (!object.is_object()) return malformed();
  AgentStatus result;
  std::string phase;
  int pid = 0;
  if (!take_text(object, "job", result.job) || !take_text(object, "host", result.host) ||
      !take_text(object, "phase", phase) || !take_text(object, "waiting", result.waiting) ||
      !take_text(object, "endpoint", result.endpoint) || !take_number(object, "pid", pid) ||
      !take_number(object, "round", result.round))
    return malformed();
  result.pid = pid;
  (void)take_text(object, "store", result.store);
  const auto known = phase_of(phase);
  if (!known) return malformed();
  result.phase = *known;
  if (result.round == 0) return result;
  if (!take_number(object, "nodes", result.nodes) ||
      !take_number(object, "group_rank", result.group_rank) ||
      !take_number(object, "first_rank", result.first_rank) ||
      !take_number(object, "workers", result.workers) ||
      !take_number(object, "world_size", result.world_size) ||
      !take_number(object, "restart_count", result.restart_count))
    return malformed();
  result.behind = beat_in(object);
  (void)take_text(object, "collective", result.collective);
  return result;
}

}  // namespace drun::status
