#include "jobs/job_view.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/duration_text.hpp"
#include "base/folded_names.hpp"
#include "base/printable.hpp"
#include "base/whole_number.hpp"
#include "jobs/history_view.hpp"
#include "rendezvous/keys.hpp"
#include "rendezvous/messages.hpp"

namespace drun::jobs {
namespace {

using rendezvous::AssignmentDocument;
using rendezvous::BeatDocument;
using rendezvous::MemberDocument;
using rendezvous::Phase;
using rendezvous::RoundDocument;

constexpr std::size_t kMostGroups = 12;  // of hosts in a line
constexpr std::size_t kMostStops = 3;    // of rounds before
constexpr std::size_t kMostNotes = 8;    // lines of single nodes
constexpr std::size_t kLongestNote = 300;

// The documents of one job, read.
struct Papers {
  std::map<std::string, std::optional<MemberDocument>> members;  // by ticket; null: malformed
  std::map<std::string, AssignmentDocument> assignments;
  std::map<std::string, BeatDocument> beats;
  std::string leader;  // its ticket
};

template <typename T>
T value_or_default(Result<T> result) {
  return result ? std::move(*result) : T();
}

bool has_place(const AssignmentDocument& document, const RoundDocument& round) {
  return document.refused.empty() && document.assignment.round == round.number &&
         (rendezvous::is_alive(round.phase) || round.phase == Phase::Preparing);
}

std::string state_in_round(const MemberDocument& member, const RoundDocument& round) {
  if (round.phase == Phase::Preparing) return "preparing";
  if (member.failed == round.number) return "failed";
  if (member.left >= round.number) return "stopped";
  if (round.phase == Phase::Stopping) return "stopping";
  return member.succeeded == round.number ? "succeeded" : "running";
}

NodeView node_of(const std::string& ticket, const std::optional<MemberDocument>& document,
                 const Papers& papers, const RoundDocument& round) {
  NodeView node;
  node.ticket = ticket;
  node.state = "unknown";
  if (!document) return node;
  const MemberDocument& member = *document;
  node.host = member.host;
  node.address = member.address;
  node.role = member.role;
  node.hosts = member.is_host;
  node.leads = ticket == papers.leader;
  const auto found = papers.assignments.find(ticket);
  if (found != papers.assignments.end() && !found->second.refused.empty()) {
    node.state = "refused";
    node.note = found->second.refused;
    return node;
  }
  if (found != papers.assignments.end() && has_place(found->second, round)) {
    const rendezvous::Assignment& place = found->second.assignment;
    node.state = state_in_round(member, round);
    node.group_rank = place.group_rank;
    node.ranks = NumberRange{place.first_rank, place.first_rank + member.local_world_size - 1};
    if (node.state == "failed" && member.failure) node.note = failure_text(*member.failure);
    if (node.state == "running" && member.stalled == round.number)
      node.note = "none of its ranks gets on any more";
  } else {
    node.state = rendezvous::is_alive(round.phase) ? "spare" : "waiting";
  }
  if (member.leave) {
    node.state = "leaving";
    node.note = member.leave->reason;
  }
  return node;
}

// Of all nodes of the round; of equal steps the oldest, and so if not all say steps.
std::optional<BeatView> furthest_behind(const Papers& papers, const RoundDocument& round) {
  if (round.phase != Phase::Running) return std::nullopt;
  std::optional<BeatView> last;
  bool all_say_steps = true;
  const auto is_behind = [&](const BeatDocument& beat) {
    if (!last) return true;
    if (all_say_steps && beat.step != last->step) return beat.step < last->step;
    return beat.time_ms < last->time_ms;
  };
  for (const auto& [ticket, beat] : papers.beats)
    all_say_steps = all_say_steps && (beat.step >= 0 || beat.round != round.number);
  for (const auto& [ticket, beat] : papers.beats) {
    const auto member = papers.members.find(ticket);
    if (beat.round != round.number || member == papers.members.end() || !is_behind(beat)) continue;
    last = {member->second ? member->second->host : "", beat.rank, beat.step, beat.time_ms};
  }
  return last;
}

JobState state_of(const JobView& job, bool has_agents) {
  if (job.outcome) return job.outcome->exit_code == 0 ? JobState::Succeeded : JobState::Failed;
  if (!has_agents) return JobState::Abandoned;
  if (job.round.phase == Phase::Running) return JobState::Running;
  return job.round.phase == Phase::Stopping ? JobState::Stopping : JobState::Gathering;
}

void take_agreement(JobView& job, std::string_view text) {
  const auto document = rendezvous::decode_job(text);
  if (!document) return;
  const auto value = [&](const char* name) {
    const auto found = document->agreement.find(name);
    return found == document->agreement.end() ? std::string() : found->second;
  };
  job.nnodes = value("nnodes");
  job.max_restarts = whole_number<int>(value("max-restarts")).value_or(0);
}

// Adds up what the documents of one job say, in the order of their keys.
class Reader {
 public:
  explicit Reader(std::string id) { job_.id = std::move(id); }

  void take(std::string_view name, std::string_view text) {
    if (name.starts_with("member/")) {
      auto member = rendezvous::decode_member(text);
      papers_.members.emplace(name.substr(7),
                              member ? std::optional(std::move(*member)) : std::nullopt);
    } else if (name.starts_with("assign/")) {
      if (auto assignment = rendezvous::decode_assignment(text))
        papers_.assignments.emplace(name.substr(7), std::move(*assignment));
    } else if (name.starts_with("beat/")) {
      if (const auto beat = rendezvous::decode_beat(text))
        papers_.beats.emplace(name.substr(5), *beat);
    } else if (name == "round") {
      job_.round = value_or_default(rendezvous::decode_round(text));
    } else if (name == "history") {
      job_.history = value_or_default(rendezvous::decode_history(text));
    } else if (name == "leader") {
      papers_.leader = value_or_default(rendezvous::decode_leader(text)).ticket;
    } else if (name == "job") {
      take_agreement(job_, text);
    } else if (name == "outcome") {
      if (auto outcome = rendezvous::decode_outcome(text)) job_.outcome = std::move(*outcome);
    }
  }

  JobView finish() {
    for (const auto& [ticket, member] : papers_.members)
      job_.nodes.push_back(node_of(ticket, member, papers_, job_.round));
    std::sort(job_.nodes.begin(), job_.nodes.end(), [](const NodeView& a, const NodeView& b) {
      return std::tuple(!a.group_rank, a.group_rank.value_or(0), std::string_view(a.host),
                        std::string_view(a.ticket)) <
             std::tuple(!b.group_rank, b.group_rank.value_or(0), std::string_view(b.host),
                        std::string_view(b.ticket));
    });
    job_.behind = furthest_behind(papers_, job_.round);
    job_.state = state_of(job_, !papers_.members.empty());
    // The agreement goes with the job's end.
    if (job_.max_restarts == 0) job_.max_restarts = job_.history.max_restarts;
    return std::move(job_);
  }

 private:
  JobView job_;
  Papers papers_;
};

// ---- text ----

std::string plural(int count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string head(const JobView& job) {
  std::string text = "job " + escaped(job.id) + ": " + std::string(name_of(job.state));
  if (job.outcome) {
    text += ", exit code " + std::to_string(job.outcome->exit_code);
  } else if (rendezvous::is_alive(job.round.phase) && job.state != JobState::Abandoned) {
    text += ", round " + std::to_string(job.round.number) + ": " + plural(job.round.nodes, "node") +
            ", " + plural(job.round.world_size, "rank");
  } else if (!job.nnodes.empty()) {
    text += ", --nnodes " + escaped(job.nnodes);
  }
  return text + "\n";
}

std::string line(std::string_view name, const std::string& text) {
  std::string result = "  " + std::string(name) + ": ";
  return result + text + "\n";
}

std::string host_of(const NodeView& node) {
  return escaped(node.host.substr(0, rendezvous::kMaxName));
}

std::string beat_text(const BeatView& beat, std::int64_t now_ms) {
  return "rank " + std::to_string(beat.rank) + " on " +
         escaped(beat.host.substr(0, rendezvous::kMaxName)) + " " +
         behind_text(beat.step, std::max<std::int64_t>(now_ms - beat.time_ms, 0));
}

// Where the store is and who leads, unless one does both and is alone.
std::string offices(const JobView& job) {
  std::string text;
  for (const NodeView& node : job.nodes) {
    if (node.hosts) text += line("store", host_of(node));
    if (node.leads && (!node.hosts || job.nodes.size() > 1)) text += line("leader", host_of(node));
  }
  return text;
}

// "running: node[0-3] (ranks 0-31)"
std::string groups(const JobView& job) {
  std::vector<std::string_view> states;
  for (const NodeView& node : job.nodes)
    if (std::find(states.begin(), states.end(), node.state) == states.end())
      states.push_back(node.state);
  std::string text;
  for (const std::string_view state : states) {
    std::vector<std::string> hosts;
    std::vector<NumberRange> ranks;
    for (const NodeView& node : job.nodes) {
      if (node.state != state) continue;
      hosts.push_back(host_of(node));
      if (!node.ranks) continue;
      if (!ranks.empty() && ranks.back().last + 1 == node.ranks->first)
        ranks.back().last = node.ranks->last;
      else
        ranks.push_back(*node.ranks);
    }
    std::string entry = folded_names({hosts.begin(), hosts.end()}, kMostGroups);
    if (!ranks.empty()) {
      const bool cut = ranks.size() > kMostGroups;
      if (cut) ranks.resize(kMostGroups);
      entry += " (" + ranks_text(ranks) + (cut ? ", ..." : "") + ")";
    }
    text += line(state, entry);
  }
  return text;
}

std::string notes(const JobView& job) {
  std::string text;
  std::size_t shown = 0;
  std::size_t more = 0;
  for (const NodeView& node : job.nodes) {
    if (node.note.empty()) continue;
    if (shown++ < kMostNotes)
      text += line(host_of(node), escaped(node.note.substr(0, kLongestNote)));
    else
      ++more;
  }
  if (more > 0) text += "  and " + plural(static_cast<int>(more), "other") + "\n";
  return text;
}

}  // namespace

std::string behind_text(std::int64_t step, std::int64_t age_ms) {
  return "is furthest behind: " + (step >= 0 ? "step " + std::to_string(step) + ", " : "") +
         describe_duration(age_ms) + " ago";
}

std::string_view name_of(JobState state) {
  switch (state) {
    case JobState::Running:
      return "running";
    case JobState::Gathering:
      return "gathering";
    case JobState::Stopping:
      return "stopping";
    case JobState::Succeeded:
      return "succeeded";
    case JobState::Failed:
      return "failed";
    case JobState::Abandoned:
      break;
  }
  return "abandoned";
}

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::Gathering:
      return "gathering";
    case Phase::Preparing:
      return "preparing";
    case Phase::Running:
      return "running";
    case Phase::Stopping:
      return "stopping";
    case Phase::Closed:
      break;
  }
  return "closed";
}

std::vector<JobView> jobs_in(const Documents& documents) {
  std::vector<JobView> jobs;
  std::optional<Reader> reader;
  std::string_view id;
  for (const auto& [key, text] : documents) {
    if (!key.starts_with(rendezvous::kAllJobs)) continue;
    const std::string_view rest = std::string_view(key).substr(rendezvous::kAllJobs.size());
    const auto slash = rest.find('/');
    if (slash == std::string_view::npos) continue;
    if (!reader || rest.substr(0, slash) != id) {
      if (reader) jobs.push_back(reader->finish());
      id = rest.substr(0, slash);
      reader.emplace(rendezvous::unescape_id(id));
    }
    reader->take(rest.substr(slash + 1), text);
  }
  if (reader) jobs.push_back(reader->finish());
  return jobs;
}

std::string text_of(const JobView& job, std::int64_t now_ms) {
  std::string text = head(job);
  const RoundDocument& round = job.round;
  if (job.outcome && !job.outcome->text.empty())
    text += line("end", escaped(job.outcome->text.substr(0, kLongestNote)));
  if (round.restart_count > 0 || job.max_restarts > 0)
    text += line("restarts",
                 std::to_string(round.restart_count) + " of " + std::to_string(job.max_restarts));
  text += stops_text(job, kMostStops);
  if (round.losses > 0) text += line("nodes lost", plural(round.losses, "round"));
  if (job.outcome || job.state == JobState::Abandoned) return text;
  if (round.since_ms > 0 && now_ms > 0)
    text += line("since", time_text(round.since_ms, true) + " (" +
                              describe_duration(now_ms - round.since_ms) + ", " +
                              std::string(name_of(round.phase)) + ")");
  if (round.hung && round.phase == Phase::Running)
    text += line("hangs", "no rank gets on any more");
  if (job.behind && now_ms > 0) text += line("heartbeats", beat_text(*job.behind, now_ms));
  if (!round.waiting.empty() && !rendezvous::is_alive(round.phase))
    text += line("waits", escaped(round.waiting.substr(0, kLongestNote)));
  if (!round.reason.empty() && (round.phase == Phase::Stopping || job.history.rounds.empty()))
    text += line(round.phase == Phase::Stopping ? "stops" : "last stop",
                 escaped(round.reason.substr(0, kLongestNote)));
  return text + offices(job) + groups(job) + notes(job);
}

std::string to_json(const JobView& job, bool ascii) {
  using nlohmann::ordered_json;
  const RoundDocument& round = job.round;
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
                        {"hung", round.hung && round.phase == Phase::Running}}},
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
    object["nodes"].push_back(std::move(entry));
  }
  if (job.behind)
    object["behind"] = {{"host", job.behind->host},
                        {"rank", job.behind->rank},
                        {"step", job.behind->step},
                        {"heartbeat_ms", job.behind->time_ms}};
  if (job.outcome)
    object["outcome"] = {{"exit_code", job.outcome->exit_code}, {"text", job.outcome->text}};
  return object.dump(-1, ' ', ascii, ordered_json::error_handler_t::replace);
}

}  // namespace drun::jobs
