// What a JobView says, as JSON: docs/drunctl.md has what each member means.
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/json.hpp"
#include "jobs/history_view.hpp"
#include "jobs/job_view.hpp"

namespace drun::jobs {
namespace {

using nlohmann::ordered_json;
using rendezvous::Cause;

std::string_view name_of_cause(Cause cause) {
  switch (cause) {
    case Cause::Failure:
      return "failure";
    case Cause::Membership:
      return "membership";
    case Cause::Resize:
      return "resize";
    case Cause::TimeLimit:
      return "time-limit";
    case Cause::None:
      break;
  }
  return "none";
}

ordered_json rounds_of(const JobView& job) {
  ordered_json list = ordered_json::array();
  for (const rendezvous::PastRound& round : job.history.rounds)
    list.push_back({{"number", round.number},
                    {"nodes", round.nodes},
                    {"world_size", round.world_size},
                    {"waited_ms", round.waited_ms},
                    {"began_ms", round.began_ms},
                    {"stopping_ms", round.stopping_ms},
                    {"ended_ms", round.ended_ms},
                    {"cause", name_of_cause(round.cause)},
                    {"reason", round.reason},
                    {"restart", round.restart}});
  return list;
}

// By rank: the agents of a host answer in any order.
ordered_json usage_of(const JobView& job) {
  std::map<int, ordered_json> by_rank;
  for (const NodeUsage& node : job.usage)
    for (const RankUsage& rank : node.ranks)
      by_rank[rank.rank] = {{"rank", rank.rank},
                            {"cpu_ms", rank.cpu_ms},
                            {"peak_kib", rank.peak_kib},
                            {"read_kib", rank.read_kib},
                            {"written_kib", rank.written_kib},
                            {"switches", rank.switches}};
  ordered_json list = ordered_json::array();
  for (auto& [rank, usage] : by_rank)
    list.push_back(std::move(usage));
  return list;
}

ordered_json outcome_of(const rendezvous::Outcome& outcome) {
  return {{"exit_code", outcome.exit_code}, {"text", outcome.text}};
}

std::string dumped(const ordered_json& object, bool ascii) {
  return json_text(object, ascii);
}

}  // namespace

std::string encode(const Documents& documents) {
  return dumped({{"documents", ordered_json(documents)}}, false);
}

Result<Documents> decode_documents(std::string_view text) {
  const Error malformed(std::make_error_code(std::errc::bad_message), "not a job's documents");
  // Not ordered_json: it looks for each name among all before it.
  const auto object = parse_json(text);
  if (!object.is_object()) return malformed;
  const auto found = object.find("documents");
  if (found == object.end() || !found->is_object()) return malformed;
  Documents documents;
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) return malformed;
    documents.emplace(key, value.get<std::string>());
  }
  return documents;
}

std::string to_json(const JobView& job, bool ascii, std::int64_t now_ms) {
  const rendezvous::RoundDocument& round = job.round;
  ordered_json object{{"id", job.id},
                      {"state", name_of(job.state)},
                      {"nnodes", job.nnodes},
                      {"round",
                       {{"number", round.number},
                        {"phase", name_of(round.phase)},
                        {"nodes", round.nodes},
                        {"world_size", round.world_size},
                        {"waiting", round.waiting},
                        {"reason", round.reason},
                        {"since_ms", round.since_ms},
                        {"hung", round.hung && round.phase == rendezvous::Phase::Running}}},
                      {"restarts", round.restart_count},
                      {"max_restarts", job.max_restarts},
                      {"losses", round.losses},
                      {"nodes", ordered_json::array()}};
  for (const NodeView& node : job.nodes) {
    ordered_json entry{{"host", node.host},  {"address", node.address},
                       {"role", node.role},  {"state", node.state},
                       {"note", node.note},  {"hosts_store", node.hosts},
                       {"leads", node.leads}};
    if (node.group_rank) entry["group_rank"] = *node.group_rank;
    if (node.ranks) entry["ranks"] = {node.ranks->first, node.ranks->last};
    for (const NumberRange& range : node.failed)
      entry["failed_ranks"].push_back({range.first, range.last});
    if (node.word) {
      entry["word_age_ms"] = node.word->age_ms;
      entry["lease_ms"] = node.word->lease_ms;
    }
    object["nodes"].push_back(std::move(entry));
  }
  object["absent"] = ordered_json::array();
  for (const AbsentNode& node : job.absent) {
    ordered_json entry{{"host", node.host}, {"state", node.state}, {"note", node.note}};
    if (node.group_rank) entry["group_rank"] = *node.group_rank;
    if (node.ranks) entry["ranks"] = {node.ranks->first, node.ranks->last};
    object["absent"].push_back(std::move(entry));
  }
  if (!job.beats.empty()) {
    const Progress progress = progress_of(job.beats, now_ms);
    object["steps"] = {progress.least_step, progress.most_step};
    if (const auto& behind = progress.behind)
      object["behind"] = {{"host", behind->host},
                          {"rank", behind->rank},
                          {"step", behind->step},
                          {"heartbeat_ms", behind->time_ms}};
  }
  if (!job.collective.empty()) object["collective"] = job.collective;
  if (!job.usage.empty()) object["usage"] = usage_of(job);
  object["rounds"] = rounds_of(job);
  if (job.outcome) object["outcome"] = outcome_of(*job.outcome);
  return dumped(object, ascii);
}

std::string history_json(const JobView& job, bool ascii) {
  ordered_json object{{"id", job.id},
                      {"state", name_of(job.state)},
                      {"max_restarts", job.max_restarts},
                      {"rounds", rounds_of(job)}};
  if (job.outcome) object["outcome"] = outcome_of(*job.outcome);
  return dumped(object, ascii);
}

}  // namespace drun::jobs
