#include "drun/status/job_status.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/json.hpp"

namespace drun::status {
namespace {

using nlohmann::ordered_json;

constexpr auto kStates =
    std::to_array<std::pair<JobState, std::string_view>>({{JobState::Running, "running"},
                                                          {JobState::Gathering, "gathering"},
                                                          {JobState::Stopping, "stopping"},
                                                          {JobState::Succeeded, "succeeded"},
                                                          {JobState::Failed, "failed"},
                                                          {JobState::Abandoned, "abandoned"}});

// What is left out if it is empty.
template <typename List>
struct IfAny {
  List& list;
};
template <typename List>
IfAny(List&) -> IfAny<List>;

// The members of each object, in the order of the line: told once, for the writer and the reader.

template <typename Visitor>
void members(RoundStatus& round, Visitor& visit) {
  visit("number", round.number);
  visit("phase", round.phase);
  visit("nodes", round.nodes);
  visit("world_size", round.world_size);
  visit("waiting", round.waiting);
  visit("reason", round.reason);
  visit("since_ms", round.since_ms);
  visit("hung", round.hung);
}

template <typename Visitor>
void members(NodeStatus& node, Visitor& visit) {
  visit("host", node.host);
  visit("address", node.address);
  visit("role", node.role);
  visit("state", node.state);
  visit("note", node.note);
  visit("hosts_store", node.hosts_store);
  visit("leads", node.leads);
  visit("group_rank", node.group_rank);
  visit("ranks", node.ranks);
  visit("failed_ranks", IfAny(node.failed_ranks));
  visit("word_age_ms", node.word_age_ms);
  visit("lease_ms", node.lease_ms);
  visit("node", IfAny(node.node));
}

template <typename Visitor>
void members(AbsentStatus& node, Visitor& visit) {
  visit("host", node.host);
  visit("state", node.state);
  visit("note", node.note);
  visit("group_rank", node.group_rank);
  visit("ranks", node.ranks);
  visit("node", IfAny(node.node));
}

template <typename Visitor>
void members(RankBehind& behind, Visitor& visit) {
  visit("host", behind.host);
  visit("rank", behind.rank);
  visit("step", behind.step);
  visit("heartbeat_ms", behind.heartbeat_ms);
}

template <typename Visitor>
void members(RankUsage& usage, Visitor& visit) {
  visit("rank", usage.rank);
  visit("cpu_ms", usage.cpu_ms);
  visit("peak_kib", usage.peak_kib);
  visit("read_kib", usage.read_kib);
  visit("written_kib", usage.written_kib);
  visit("switches", usage.switches);
  visit("gpu_peak_kib", usage.gpu_peak_kib);
  visit("gpu_percent", usage.gpu_percent);
}

template <typename Visitor>
void members(PastRoundStatus& round, Visitor& visit) {
  visit("number", round.number);
  visit("nodes", round.nodes);
  visit("world_size", round.world_size);
  visit("waited_ms", round.waited_ms);
  visit("began_ms", round.began_ms);
  visit("stopping_ms", round.stopping_ms);
  visit("ended_ms", round.ended_ms);
  visit("cause", round.cause);
  visit("reason", round.reason);
  visit("restart", round.restart);
}

template <typename Visitor>
void members(JobOutcome& outcome, Visitor& visit) {
  visit("exit_code", outcome.exit_code);
  visit("text", outcome.text);
}

template <typename Visitor>
void members(JobStatus& job, Visitor& visit) {
  visit("id", job.id);
  visit("state", job.state);
  visit("nnodes", job.nnodes);
  visit("round", job.round);
  visit("restarts", job.restarts);
  visit("max_restarts", job.max_restarts);
  visit("losses", job.losses);
  visit("nodes", job.nodes);
  visit("absent", job.absent);
  visit("steps", job.steps);
  visit("behind", job.behind);
  visit("collective", IfAny(job.collective));
  visit("usage", IfAny(job.usage));
  visit("rounds", job.rounds);
  visit("outcome", job.outcome);
}

class Writer {
 public:
  template <typename Value>
  void operator()(const char* name, const Value& value) {
    object_[name] = json_of(value);
  }
  template <typename Value>
  void operator()(const char* name, const std::optional<Value>& value) {
    if (value) object_[name] = json_of(*value);
  }
  template <typename List>
  void operator()(const char* name, const IfAny<List>& value) {
    if (!value.list.empty()) object_[name] = json_of(value.list);
  }

  template <typename Object>
  static ordered_json object_of(Object value) {
    Writer writer;
    members(value, writer);
    return std::move(writer.object_);
  }

 private:
  static ordered_json json_of(const std::string& text) { return text; }
  static ordered_json json_of(JobState state) { return name_of(state); }
  static ordered_json json_of(RankRange ranks) { return {ranks.first, ranks.last}; }
  static ordered_json json_of(StepRange steps) { return {steps.least, steps.most}; }
  template <typename Item>
  static ordered_json json_of(const std::vector<Item>& items) {
    ordered_json list = ordered_json::array();
    for (const Item& item : items)
      list.push_back(json_of(item));
    return list;
  }
  template <typename Value>
  static ordered_json json_of(const Value& value) {
    if constexpr (std::is_arithmetic_v<Value>)
      return value;
    else
      return object_of(value);
  }

  ordered_json object_ = ordered_json::object();
};

class Reader {
 public:
  // `wrong`: the first member that makes no sense.
  Reader(const ordered_json& object, std::string& wrong) : object_(object), wrong_(wrong) {}

  template <typename Value>
  void operator()(const char* name, Value& value) {
    if (const ordered_json* found = find(name); found != nullptr && !take(*found, value))
      refuse(name);
  }
  template <typename Value>
  void operator()(const char* name, std::optional<Value>& value) {
    if (const ordered_json* found = find(name); found != nullptr && !take(*found, value.emplace()))
      refuse(name);
  }
  template <typename List>
  void operator()(const char* name, IfAny<List> value) {
    (*this)(name, value.list);
  }

 private:
  [[nodiscard]] const ordered_json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  void refuse(const char* name) {
    if (wrong_.empty()) wrong_ = name;
  }
  static bool take(const ordered_json& json, std::string& into) {
    if (!json.is_string()) return false;
    into = json.get<std::string>();
    return true;
  }
  static bool take(const ordered_json& json, JobState& into) {
    const auto* found = std::find_if(kStates.begin(), kStates.end(), [&json](const auto& each) {
      return json.is_string() && json.get_ref<const std::string&>() == each.second;
    });
    if (found == kStates.end()) return false;
    into = found->first;
    return true;
  }
  template <typename Number>
  static bool take_pair(const ordered_json& json, Number& first, Number& second) {
    return json.is_array() && json.size() == 2 && take_number(json[0], first) &&
           take_number(json[1], second);
  }
  bool take(const ordered_json& json, RankRange& into) {
    return take_pair(json, into.first, into.last);
  }
  bool take(const ordered_json& json, StepRange& into) {
    return take_pair(json, into.least, into.most);
  }
  template <typename Item>
  bool take(const ordered_json& json, std::vector<Item>& into) {
    if (!json.is_array()) return false;
    return std::all_of(json.begin(), json.end(), [this, &into](const ordered_json& item) {
      return take(item, into.emplace_back());
    });
  }
  template <typename Number>
  static bool take_number(const ordered_json& json, Number& into) {
    // A number above those of std::int64_t would be turned into a negative one.
    if (!json.is_number_integer() ||
        (json.is_number_unsigned() &&
         json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}))
      return false;
    const auto number = json.get<std::int64_t>();
    into = static_cast<Number>(number);
    return into == number;
  }
  template <typename Value>
  bool take(const ordered_json& json, Value& into) {
    if constexpr (std::is_same_v<Value, bool>) {
      if (json.is_boolean()) into = json.get<bool>();
      return json.is_boolean();
    } else if constexpr (std::is_arithmetic_v<Value>) {
      return take_number(json, into);
    } else {
      if (!json.is_object()) return false;
      Reader reader(json, wrong_);
      members(into, reader);
      return true;
    }
  }

  const ordered_json& object_;
  std::string& wrong_;
};

}  // namespace

std::string_view name_of(JobState state) {
  const auto* found = std::find_if(kStates.begin(), kStates.end(),
                                   [state](const auto& each) { return each.first == state; });
  return found->second;
}

std::string to_json(const JobStatus& job, bool ascii) {
  return json_text(Writer::object_of(job), ascii);
}

std::string history_json(const JobStatus& job, bool ascii) {
  const auto whole = Writer::object_of(job);
  ordered_json object;
  for (const char* name : {"id", "state", "max_restarts", "rounds", "outcome"})
    if (const auto found = whole.find(name); found != whole.end()) object[name] = *found;
  return json_text(object, ascii);
}

Result<JobStatus> parse_job_status(std::string_view line) {
  const auto object = parse_ordered_json(line);
  const auto refused = [](const std::string& why) {
    return Error(std::make_error_code(std::errc::bad_message), "not the status of a job: " + why);
  };
  if (!object.is_object()) return refused("no object of JSON");
  if (!object.contains("id")) return refused("it has no id");
  JobStatus job;
  std::string wrong;
  Reader reader(object, wrong);
  members(job, reader);
  if (!wrong.empty()) return refused("its '" + wrong + "' makes no sense");
  return job;
}

}  // namespace drun::status
