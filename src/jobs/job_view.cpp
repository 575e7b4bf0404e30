#include "jobs/job_view.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "base/counted.hpp"
#include "base/whole_number.hpp"
#include "rendezvous/keys.hpp"
#include "rendezvous/messages.hpp"

namespace drun::jobs {
namespace {

using rendezvous::AssignmentDocument;
using rendezvous::BeatDocument;
using rendezvous::MemberDocument;
using rendezvous::Phase;
using rendezvous::RoundDocument;

constexpr int kMostAwaited = 10'000;  // a number in a document must not fill the memory

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

// As far as its document has room for them.
std::vector<NumberRange> failed_ranks(const rendezvous::FailureSummary& failure) {
  std::vector<NumberRange> ranks{{failure.rank, failure.rank}};
  for (const rendezvous::FailedRanks& group : failure.others)
    for (const auto& range : group.ranks)
      ranks.push_back({range.first, range.last});
  std::sort(ranks.begin(), ranks.end(),
            [](const NumberRange& a, const NumberRange& b) { return a.first < b.first; });
  return ranks;
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
    if (node.state == "failed" && member.failure) {
      node.note = failure_text(*member.failure);
      node.failed = failed_ranks(*member.failure);
    }
    if (node.state == "running" && member.stalled == round.number)
      node.note = "none of its ranks makes progress any more";
  } else {
    node.state = rendezvous::is_alive(round.phase) ? "spare" : "waiting";
  }
  for (const rendezvous::SetAside& each : round.set_aside)
    if (each.ticket == ticket && !each.cleared && node.note.empty())
      node.note = "set aside: " + each.why;
  if (member.leave) {
    node.state = "leaving";
    node.note = member.leave->reason;
  }
  return node;
}

// Nodes with a place in the round but no agent: it was killed, or the store has not heard of it for
// too long. Its document is gone with it, so its ranks follow from the next node's first rank.
void add_missing(const Papers& papers, JobView& job) {
  struct Place {
    int first = 0;  // rank
    bool is_there = false;
    std::string host;
    std::string ticket;
  };
  std::map<int, Place> places;  // by group rank
  for (const auto& [ticket, document] : papers.assignments)
    if (has_place(document, job.round))
      places.insert_or_assign(document.assignment.group_rank,
                              Place{document.assignment.first_rank, papers.members.contains(ticket),
                                    document.host, ticket});
  for (auto place = places.begin(); place != places.end(); ++place) {
    const auto& [first, is_there, host, ticket] = place->second;
    if (is_there) continue;
    const auto next = std::next(place);
    AbsentNode node{host, "missing", "its agent is gone", place->first, std::nullopt, ticket};
    const bool next_known = next != places.end() && next->first == place->first + 1;
    const bool is_last = place->first + 1 == job.round.nodes;
    const int end = next_known ? next->second.first : is_last ? job.round.world_size : 0;
    if (end > first) node.ranks = NumberRange{first, end - 1};
    job.absent.push_back(std::move(node));
  }
}

// `there`: other agents of its host, where there were `before` of them.
std::string lost_text(int times, int there, int before) {
  std::string text = "lost in " + counted(times, "round") + ", and not back";
  if (there > 0)
    text += ": " + std::to_string(there) + " of " + std::to_string(before) + " agents are there";
  return text;
}

// Of a job that goes on without them.
void add_lost(const Papers& papers, JobView& job) {
  for (const auto& [host, times] : job.round.lost_hosts) {
    const auto several = job.round.agents_of_lost.find(host);
    const int before = several == job.round.agents_of_lost.end() ? 1 : several->second;
    const auto there = static_cast<int>(std::count_if(
        papers.members.begin(), papers.members.end(),
        [&name = host](const auto& each) { return each.second && each.second->host == name; }));
    for (int lost = there; lost < before; ++lost)  // each is a node, and one note tells of all
      job.absent.push_back(
          {host, "lost", lost == there ? lost_text(times, there, before) : "", {}, {}, ""});
  }
  for (const rendezvous::SetAside& each : job.round.set_aside) {
    if (each.cleared || papers.members.contains(each.ticket)) continue;
    const bool told = std::any_of(job.absent.begin(), job.absent.end(),
                                  [&](const AbsentNode& node) { return node.host == each.host; });
    if (!told) job.absent.push_back({each.host, "set-aside", each.why, {}, {}, each.ticket});
  }
}

// The node ranks that a job of nodes with ranks still waits for. With nodes among them that take
// any, nobody can tell.
void add_awaited(const Papers& papers, JobView& job) {
  const auto least = whole_number<int>(job.nnodes.substr(0, job.nnodes.find(':'))).value_or(0);
  if (job.round.phase != Phase::Gathering || least > kMostAwaited) return;
  std::set<int> asked;
  for (const auto& [ticket, member] : papers.members) {
    if (!member || !member->node_rank || member->node_rank_is_wish) return;
    asked.insert(*member->node_rank);
  }
  for (int rank = 0; !asked.empty() && rank < least; ++rank)
    if (!asked.contains(rank))
      job.absent.push_back({"", "missing", "it has not come", rank, std::nullopt, ""});
}

// Why the leader lets it wait; it is refused if the other stays.
void note_duplicates(const Papers& papers, JobView& job) {
  std::map<int, int> asking;  // agents, by node rank
  const auto own = [&](const NodeView& node) {
    const auto& member = papers.members.at(node.ticket);
    return member && !member->node_rank_is_wish ? member->node_rank : std::nullopt;
  };
  for (const NodeView& node : job.nodes)
    if (const auto rank = own(node)) ++asking[*rank];
  for (NodeView& node : job.nodes) {
    const auto rank = own(node);
    if (rank && asking[*rank] > 1 && !node.group_rank && node.note.empty())
      node.note = "node rank " + std::to_string(*rank) + " is asked for by " +
                  counted(asking[*rank], "agent");
  }
}

void add_beats(const Papers& papers, JobView& job) {
  if (job.round.phase != Phase::Running) return;
  for (const auto& [ticket, beats] : papers.beats) {
    const auto member = papers.members.find(ticket);
    if (beats.round != job.round.number || member == papers.members.end()) continue;
    job.beats.push_back({member->second ? member->second->host : "", beats});
  }
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
  Reader(std::string id, const LastWords& words) : keys_(id), words_(words) {
    job_.id = std::move(id);
  }

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
    for (const auto& [ticket, member] : papers_.members) {
      job_.nodes.push_back(node_of(ticket, member, papers_, job_.round));
      const auto word = words_.find(keys_.member(ticket));
      if (word != words_.end()) job_.nodes.back().word = word->second;
    }
    std::sort(job_.nodes.begin(), job_.nodes.end(), [](const NodeView& a, const NodeView& b) {
      return std::tuple(!a.group_rank, a.group_rank.value_or(0), std::string_view(a.host),
                        std::string_view(a.ticket)) <
             std::tuple(!b.group_rank, b.group_rank.value_or(0), std::string_view(b.host),
                        std::string_view(b.ticket));
    });
    note_duplicates(papers_, job_);
    add_missing(papers_, job_);
    add_lost(papers_, job_);
    add_beats(papers_, job_);
    job_.state = state_of(job_, !papers_.members.empty());
    // The agreement goes with the job's end.
    if (job_.max_restarts == 0) job_.max_restarts = job_.history.max_restarts;
    if (job_.nnodes.empty()) job_.nnodes = job_.history.nnodes;
    add_awaited(papers_, job_);
    return std::move(job_);
  }

 private:
  const rendezvous::Keys keys_;
  const LastWords& words_;
  JobView job_;
  Papers papers_;
};

}  // namespace

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

std::vector<JobView> jobs_in(const Documents& documents, const LastWords& words) {
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
      reader.emplace(rendezvous::unescape_id(id), words);
    }
    reader->take(rest.substr(slash + 1), text);
  }
  if (reader) jobs.push_back(reader->finish());
  return jobs;
}

}  // namespace drun::jobs
