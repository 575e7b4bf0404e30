// What a JobView says, for programs.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/json.hpp"
#include "jobs/job_view.hpp"

namespace drun::jobs {
namespace {

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

std::vector<status::RankRange> ranges(const std::vector<NumberRange>& ranks) {
  std::vector<status::RankRange> result;
  for (const NumberRange& range : ranks)
    result.push_back({range.first, range.last});
  return result;
}

std::optional<status::RankRange> range_of(const std::optional<NumberRange>& ranks) {
  return ranks ? std::optional(status::RankRange{ranks->first, ranks->last}) : std::nullopt;
}

status::RoundStatus status_of(const rendezvous::RoundDocument& round) {
  return {round.number,   std::string(name_of(round.phase)),
          round.nodes,    round.world_size,
          round.waiting,  round.reason,
          round.since_ms, round.hung && round.phase == rendezvous::Phase::Running};
}

status::NodeStatus status_of(const NodeView& node) {
  status::NodeStatus result{
      node.host,    node.address, node.role,       node.state,           node.note,
      node.hosts,   node.leads,   node.group_rank, range_of(node.ranks), ranges(node.failed),
      std::nullopt, std::nullopt, node.ticket};
  if (node.word) {
    result.word_age_ms = node.word->age_ms;
    result.lease_ms = node.word->lease_ms;
  }
  return result;
}

status::PastRoundStatus status_of(const rendezvous::PastRound& round) {
  return {
      round.number,   round.nodes,       round.world_size, round.waited_ms,
      round.began_ms, round.stopping_ms, round.ended_ms,   std::string(name_of_cause(round.cause)),
      round.reason,   round.restart};
}

// By rank: the agents of a host answer in any order.
std::vector<RankUsage> usage_of(const JobView& job) {
  std::map<int, RankUsage> by_rank;
  for (const NodeUsage& node : job.usage)
    for (const RankUsage& rank : node.ranks)
      by_rank[rank.rank] = rank;
  std::vector<RankUsage> result;
  for (const auto& [rank, usage] : by_rank)
    result.push_back(usage);
  return result;
}

}  // namespace

status::JobStatus status_of(const JobView& job, std::int64_t now_ms) {
  status::JobStatus result;
  result.id = job.id;
  result.state = job.state;
  result.nnodes = job.nnodes;
  result.round = status_of(job.round);
  result.restarts = job.round.restart_count;
  result.max_restarts = job.max_restarts;
  result.losses = job.round.losses;
  for (const NodeView& node : job.nodes)
    result.nodes.push_back(status_of(node));
  for (const AbsentNode& node : job.absent)
    result.absent.push_back(
        {node.host, node.state, node.note, node.group_rank, range_of(node.ranks), node.ticket});
  if (!job.beats.empty()) {
    const Progress progress = progress_of(job.beats, now_ms);
    result.steps = {progress.least_step, progress.most_step};
    if (const auto& behind = progress.behind)
      result.behind = {behind->host, behind->rank, behind->step, behind->time_ms};
  }
  result.collective = job.collective;
  result.usage = usage_of(job);
  for (const rendezvous::PastRound& round : job.history.rounds)
    result.rounds.push_back(status_of(round));
  if (job.outcome) result.outcome = {job.outcome->exit_code, job.outcome->text};
  return result;
}

std::string encode(const Documents& documents) {
  return json_text(nlohmann::ordered_json{{"documents", documents}});
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

}  // namespace drun::jobs
