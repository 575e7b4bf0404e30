#include "rendezvous/next_round.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/counted.hpp"
#include "base/folded_names.hpp"
#include "rendezvous/expulsion.hpp"
#include "rendezvous/job_end.hpp"
#include "rendezvous/messages.hpp"
#include "rendezvous/node_count.hpp"
#include "rendezvous/rank_assignment.hpp"
#include "rendezvous/set_aside.hpp"
#include "rendezvous/successors.hpp"

namespace drun::rendezvous {
namespace {

// Nodes that were spares until now, or have come since. Each says it of itself.
void log_taken_in(DecisionContext& c) {
  constexpr std::size_t kMostLines = 4;
  const State& s = c.state;
  if (s.slots.empty()) return;  // nobody was in an earlier round
  std::vector<std::string> lines;
  std::vector<std::string_view> hosts;
  for (const auto& [ticket, place] : s.plan) {
    const auto member = s.members.find(ticket);
    if (s.slots.contains(ticket) || ticket == c.config.ticket || member == s.members.end())
      continue;
    const std::string& host = member->second.document.host;
    lines.push_back(taken_in_text(host, place));
    hosts.push_back(std::string_view(host).substr(0, kMaxShownId));
  }
  if (lines.size() > kMostLines)
    lines.assign(1, std::to_string(hosts.size()) + " nodes are taken in from " +
                        round_name(c.round()) + " on: " + folded_names(hosts, kMostHosts));
  for (auto& line : lines)
    c.log(std::move(line));
}

// In the last round that ran. `kept`: those that members have been given.
std::optional<int> last_rank(const State& state, const std::string& ticket, const MemberDocument& d,
                             const std::set<int>& kept) {
  if (const auto slot = state.slots.find(ticket); slot != state.slots.end())
    return slot->second.group_rank;
  // The store has forgotten it.
  std::optional<int> rank;
  if (const auto known = state.recalled.find(ticket); known != state.recalled.end()) {
    rank = known->second;
  } else if (d.claim && d.claim->round == state.round.ran) {
    rank = d.claim->group_rank;
  }
  return rank && !kept.contains(*rank) ? rank : std::nullopt;
}

// Those whose machines are not like the others' must not run. Of a job that can change its size
// they stay as spares that are never taken. False: there are none.
bool sort_out_unfit(DecisionContext& c, const std::vector<Candidate>& candidates) {
  if (!c.config.unfit) return false;
  std::vector<const Candidate*> order;
  for (const Candidate& each : candidates)
    order.push_back(&each);
  std::sort(order.begin(), order.end(), [](const Candidate* a, const Candidate* b) {
    const auto place = [](const Candidate& each) {
      return std::tuple(!each.last_rank.has_value(), each.last_rank.value_or(0),
                        !each.document->is_host, each.arrival);
    };
    return place(*a) < place(*b);
  });
  std::vector<NodeFacts> nodes;
  for (const Candidate* each : order) {
    const auto sheet = c.state.facts.find(*each->ticket);
    nodes.push_back({*each->ticket, each->document->host, each->last_rank.value_or(-1),
                     sheet == c.state.facts.end() ? "" : sheet->second});
  }
  const auto unfit = c.config.unfit(nodes);
  for (const auto& [ticket, reason] : unfit) {
    if (c.config.min_nodes == c.config.max_nodes) {
      refuse_member(c, ticket, reason, true);
    } else {
      c.decision.unfit.push_back(ticket);
      c.log("not taken in: " + reason);
    }
  }
  return !unfit.empty();
}

void plan_round(DecisionContext& c) {
  std::vector<Candidate> candidates;
  std::set<int> kept;  // ranks, by those who were given them
  for (const auto& [ticket, slot] : c.state.slots)
    if (c.state.members.contains(ticket)) kept.insert(slot.group_rank);
  candidates.reserve(c.state.members.size());
  for (const auto& [ticket, member] : c.state.members) {
    const auto& d = member.document;
    if (member.standing != Standing::Eligible || d.stop) continue;
    if (holds_workers(d)) continue;
    candidates.push_back({&ticket, &d, member.arrival, last_rank(c.state, ticket, d, kept),
                          !why_aside(c.state, c.config, c.round(), ticket, d.host).empty()});
  }
  if (sort_out_unfit(c, candidates)) return;
  const auto ordered = place(candidates, c.config);
  for (SetAside& each : take_set_aside(c.state, c.config, candidates, ordered, c.round()))
    c.decision.set_aside.push_back(std::move(each));
  RoundDocument& round = c.round();
  round.number = std::max(round.number, c.state.floor) + 1;
  round.phase = Phase::Preparing;
  round.master.clear();
  round.waiting.clear();
  auto assignments = assign(ordered, round.number, round.restart_count);
  round.nodes = static_cast<int>(ordered.size());
  round.world_size = assignments.front().world_size;
  for (std::size_t i = 0; i < ordered.size(); ++i)
    c.decision.plan.push_back({*ordered[i].ticket, std::move(assignments[i])});

  AssignmentDocument document;
  document.assignment = c.decision.plan.front().assignment;
  document.assignment.master_address = ordered.front().document->address;
  document.assignment.master_port = ordered.front().document->worker_store_port;
  document.last_rank = ordered.front().last_rank.value_or(-1);
  c.write(c.state.keys.assignment(c.decision.plan.front().ticket), encode(document));
}

}  // namespace

// Group rank 0's node makes the workers' store ready; then all start at once. A member that goes in
// between, one more that would still fit in, or one that still has workers, sends everybody back to
// gathering: nothing has been started yet, so a new plan costs nothing.
void preparing(DecisionContext& c) {
  const State& s = c.state;
  const int planned = static_cast<int>(s.plan.size());
  const bool more = nodes_taken(c.config, s.ready) > planned &&
                    !c.past(s.enough_since, c.config.last_call_timeout);
  if (s.plan_broken || more || s.holding > 0 || !c.past(s.leave_until)) {
    c.round().phase = Phase::Gathering;
    return;
  }
  const auto& master = s.members.find(s.plan.front().ticket)->second.document;
  if (master.prepared != c.round().number) {
    if (s.preparing_since && c.past(s.preparing_since, kPrepareTimeout))
      refuse_member(c, s.plan.front().ticket,
                    master.host + " did not make the workers' store ready within " +
                        duration_text(kPrepareTimeout));
    return;
  }
  AssignmentDocument document;
  document.go = true;
  for (const auto& [ticket, assignment] : s.plan) {
    document.assignment = assignment;
    document.assignment.master_address = master.address;
    document.assignment.master_port = master.prepared_worker_store_port;
    document.host = s.members.find(ticket)->second.document.host;
    c.write(s.keys.assignment(ticket), encode(document));
  }
  for (const auto& ticket : s.assignment_keys) {
    if (s.members.contains(ticket)) continue;
    c.drop(s.keys.assignment(ticket));
    c.decision.dropped.push_back(ticket);
  }
  c.round().phase = Phase::Running;
  c.round().ran = c.round().number;
  PastRound past;
  past.number = c.round().number;
  past.nodes = c.round().nodes;
  past.world_size = c.round().world_size;
  past.waited_ms = s.waiting_since ? c.unix_ms(*s.waiting_since) : 0;
  past.began_ms = c.unix_ms(c.now);
  c.history().begin(std::move(past));
  choose_electorate(c);
  c.round().master = rendezvous::master(document.assignment);
  c.round().reason.clear();
  c.decision.plan = s.plan;
  c.log(round_name(c.round()) + ": " + counted(c.round().nodes, "node") + ", " +
        counted(c.round().world_size, "rank") + ": " + rank_map(s, s.plan) +
        beyond_the_step_text(c.config, s.ready - c.round().nodes));
  log_taken_in(c);
}

void gathering(DecisionContext& c) {
  const State& s = c.state;
  // Written at once: who knows of more than the store may be gone before the next round.
  c.round().restart_count = std::max(c.round().restart_count, s.restarts_floor);
  c.round().losses = std::max(c.round().losses, s.losses_floor);
  const bool quiet = c.past(s.last_join, c.config.quiet_period) ||
                     (s.enough_since && c.past(s.enough_since, c.config.last_call_timeout));
  const bool enough = s.ready >= c.config.max_nodes || (s.ready >= c.config.min_nodes && quiet);
  // A node that comes back with workers of an earlier round stops them first.
  const bool sure = s.holding == 0 && c.past(s.unsure_until);
  if (enough && sure && c.past(s.leave_until)) return plan_round(c);
  // Without a time the wait has only just begun: the round was stopping until now.
  if (may_expel(c, s.holding_since)) expel_holding(c);
  if (timed_out(c)) {
    // If members are refused at the last moment, their refusals are written first; the next
    // decision then names them in the reason for the time-out.
    if (c.decision.refused.empty()) close_timed_out(c);
    return;
  }

  const bool entered = s.round.phase != Phase::Gathering || !s.round_written;
  if (!entered && !(s.progress_due && c.past(s.next_progress))) return;
  c.round().nodes = 0;
  c.round().world_size = 0;
  c.round().waiting = waiting_text(s, c.config, c.now);
  if (entered && c.round().number > 0)
    c.log(round_name(c.round()) + " has ended; waiting for nodes: " + c.round().waiting);
}

}  // namespace drun::rendezvous
