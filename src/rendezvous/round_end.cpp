#include "rendezvous/round_end.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/folded_names.hpp"
#include "rendezvous/expulsion.hpp"
#include "rendezvous/job_end.hpp"
#include "rendezvous/messages.hpp"
#include "rendezvous/node_count.hpp"
#include "rendezvous/root_cause.hpp"
#include "rendezvous/set_aside.hpp"

namespace drun::rendezvous {
namespace {

// A round that ends so soon after its start will end so again, as a rule: that costs a restart. But
// a job that grows at its start has many short rounds, so a round that ends for newcomers costs
// none. Nor does a round if nobody knows when it began. That may be a time of another leader's
// clock: if it is a moment ahead of this one's, the round has just begun; if it is further ahead,
// nobody knows.
bool is_brief(const DecisionContext& c, Cause cause) {
  const std::int64_t since_ms = c.state.round.since_ms;
  if (cause == Cause::Resize || since_ms == 0) return false;
  return std::abs(c.unix_ms(c.now) - since_ms) < c.config.min_runtime.count();
}

void stop_round(DecisionContext& c, Cause cause, std::string reason) {
  c.round().phase = Phase::Stopping;
  c.round().hung = false;
  c.round().cause = cause;
  c.round().brief = is_brief(c, cause);
  c.round().reason = std::move(reason);
  c.decision.stopping = c.round().reason;
  c.history().stop(cause, c.round().reason, c.unix_ms(c.now));
}

// "node[5-6] have joined": those that count as joiners.
std::string joined_text(const State& state) {
  std::vector<std::string_view> hosts;
  for (const auto& [ticket, member] : state.members)
    if (member.standing == Standing::Eligible && !state.slots.contains(ticket) &&
        !holds_workers(member.document) && !member.document.stop)
      hosts.push_back(std::string_view(member.document.host).substr(0, kMaxShownId));
  return folded_names(hosts, kMostHosts) + (hosts.size() == 1 ? " has joined" : " have joined");
}

// The first place whose agent has left the running round without a result.
std::string early_text(const State& s) {
  const int number = s.round.number;
  const auto early = std::find_if(s.slots.begin(), s.slots.end(), [&](const auto& slot) {
    const auto member = s.members.find(slot.first);
    if (member == s.members.end()) return false;
    const MemberDocument& d = member->second.document;
    return d.left >= number && d.succeeded != number && d.failed != number;
  });
  const std::string what = " was out of touch for too long, so its workers were stopped";
  if (early == s.slots.end()) return "a node" + what;
  return node_name(s, early->second.group_rank, early->second.host, "a node") + what;
}

std::string hang_text(const State& s) {
  const std::string ranks = std::to_string(s.round.world_size);
  return s.round.world_size == 1 ? "the rank of the job makes no more progress"
                                 : "none of the job's " + ranks + " ranks makes progress any more";
}

bool is_hung(const DecisionContext& c) {
  return is_still(c.state) && c.past(c.state.last_success, c.config.hang_timeout);
}

// When ranks have failed by it, it stays one: nodes that have not heard of it yet are to look, too.
void note_hang(DecisionContext& c) {
  if (!c.state.failures.empty()) return;
  const bool hung = is_hung(c);
  if (std::exchange(c.round().hung, hung) || !hung) return;
  c.decision.news.push_back({News::What::Hung, c.config.ticket, c.config.host, hang_text(c.state)});
}

// A node of the round was lost, and nobody had told it to go.
bool robbed(const State& s) {
  const auto told = std::count_if(s.slots.begin(), s.slots.end(), [](const auto& slot) {
    return slot.second.lost && slot.second.told;
  });
  return s.lost + s.missing > told;
}

void spend_restart(DecisionContext& c, bool failed) {
  ++c.round().restart_count;
  News news{News::What::Restarted, c.config.ticket, c.config.host, "", c.round().restart_count};
  if (failed) {
    c.decision.set_aside = note_cost(c.state, c.root(), c.config, c.round());
    const Failure& root = c.root();
    news.ticket = root.ticket;
    news.host = root.summary.host;
    news.reason = failure_text(root.summary);
  } else {
    news.reason = brief_text(c);
  }
  // A failure in a job of one node the agent logs itself: it knows more about it.
  if (c.config.max_nodes > 1 || !failed)
    c.log(restart_text(c.round().restart_count, c.config.max_restarts, news.reason));
  c.decision.news.push_back(std::move(news));
}

// Of a node that has fallen silent nobody knows why.
std::string is_gone(bool died) {
  return died ? " is gone: " + std::string(kAgentDied) : " is gone";
}

}  // namespace

std::string lost_text(const DecisionContext& c) {
  const bool missing = c.state.lost == 0;
  for (const auto& [ticket, slot] : c.state.slots) {
    if (!(missing ? slot.missing : slot.lost)) continue;
    const auto member = c.state.members.find(ticket);
    const bool told = member != c.state.members.end() && member->second.document.leave;
    const std::string gone = is_gone(has_died(c.state, ticket));
    return node_name(c.state, slot.group_rank, slot.host, "the node") +
           (told ? std::string(kLeavesTheJob) + member->second.document.leave->reason : gone);
  }
  // The store has forgotten who had which rank, or is a new one: the nodes that are there have said
  // theirs, so the missing rank is the one that nobody has claimed.
  const auto& occupied = c.state.occupied;
  for (int rank = 0; rank < c.state.round.nodes && c.state.vacant > 0; ++rank)
    if (!occupied.contains(rank))
      return node_name(c.state, rank, "", "the node") +
             is_gone(c.state.dead_places.contains({c.state.round.ran, rank}));
  return "a node is gone";
}

std::optional<Time> awaits_failures(const State& s) {
  if (s.failures.empty() || s.round.nodes == 1) return std::nullopt;
  const FailureSummary& first = s.failures.front().summary;
  Milliseconds limit = first.clue.others_within;
  // Nodes may look for different times, each by its own limits.
  if (first.hung)
    for (const Failure& each : s.failures)
      if (each.summary.hung) limit = std::max(limit, each.summary.clue.others_within);
  if (first.timed_out) limit = std::max(limit, kOthersTimeOut);
  if (!s.awaited.empty() && *s.awaited.begin() < s.failures.front().as)
    limit = std::max(limit, kReportFollows);
  if (limit == Milliseconds(0) || s.failed_ranks >= s.round.world_size) return std::nullopt;
  // A node tells at once of all of its ranks that hang.
  const auto heard = static_cast<int>(s.failures.size()) + s.succeeded;
  if (first.hung && heard >= s.round.nodes) return std::nullopt;
  return s.failed_since + limit;
}

void choose_root(DecisionContext& c) {
  std::vector<const FailureSummary*> all;
  for (const Failure& failure : c.state.failures)
    all.push_back(&failure.summary);
  c.chosen = c.state.failures[find_root(all)];
  name_rarest(c.chosen->summary, all);
  c.decision.root = c.chosen->ticket;
}

bool is_still(const State& s) {
  return s.stalled > 0 && s.stalled + s.succeeded >= s.round.nodes && s.lost == 0 &&
         s.missing == 0 && s.strangers == 0;
}

void running(DecisionContext& c) {
  const State& s = c.state;
  note_hang(c);
  const bool gone = s.lost > 0 || (s.missing > 0 && c.past(s.grace_until));
  if (const auto until = awaits_failures(s); until && c.now < *until && !gone) return;
  // A failure before a loss: it has a root cause to show. Whether it costs a restart, stopping()
  // decides when it is known which nodes are left.
  if (!s.failures.empty()) {
    choose_root(c);
    const Failure& root = c.root();
    const FailureSummary& summary = root.summary;
    stop_round(c, Cause::Failure, cause_text(summary));
    c.round().root = root.ticket;
    c.round().hung = summary.hung;
    c.decision.news.push_back(
        {News::What::Failed, root.ticket, summary.host, "", c.round().restart_count, summary});
  } else if (gone) {
    stop_round(c, Cause::Membership, lost_text(c));
  } else if (s.strangers > 0) {
    stop_round(c, Cause::Membership,
               "nodes came back with workers of another " + round_name(c.round()) +
                   ", which the store has forgotten");
  } else if (s.early > 0) {
    stop_round(c, Cause::Membership, early_text(s));
  } else if (s.succeeded == c.round().nodes) {
    close(c, {});
  } else if (c.config.resize == Resize::Now && makes_larger(c.config, s.round.nodes, s.joiners) &&
             s.succeeded == 0 && s.missing == 0) {
    // Not once a node is done, whose workers would run again, nor while one is out of touch. A full
    // house begins at once; otherwise more newcomers are waited for, but not for ever.
    if (c.round().nodes + s.joiners >= c.config.max_nodes ||
        c.past(s.last_join, c.config.quiet_period) ||
        c.past(s.joiners_since, c.config.last_call_timeout))
      stop_round(c, Cause::Resize, joined_text(s));
  }
}

std::string brief_text(const DecisionContext& c) {
  return c.decision.round.reason + ", and " + round_name(c.decision.round) +
         " had run for less than --min-runtime " + duration_text(c.config.min_runtime);
}

// Once all nodes have left the round or are gone: restart, go on, or end the job? If a node was
// lost in the same round, the workers' failures are its consequence (their peers are gone), so they
// cost no restart, unless the round was brief.
void stopping(DecisionContext& c) {
  const State& s = c.state;
  if (s.unleft > 0) {
    const bool stopping_already = s.round.phase == Phase::Stopping;
    if (stopping_already && may_expel(c, s.stopping_since)) expel_unleft(c);
    return;
  }
  if (s.missing > 0 && !c.past(s.grace_until)) return;
  if (robbed(s)) {
    if (c.config.max_losses && c.round().losses >= *c.config.max_losses) return close_lost(c);
    ++c.round().losses;
    note_lost_hosts(c.state, c.round());
  }
  const bool failed = !s.failures.empty() && s.lost == 0 && s.missing == 0;
  const bool spends = failed || c.round().brief;
  const bool none_left = spends && c.round().restart_count >= c.config.max_restarts;
  if (failed && (!c.root().summary.restartable || none_left)) return close_failed(c);
  // A failure that came first is what the user has to see.
  if (none_left && c.round().cause == Cause::Failure && !s.failures.empty()) return close_failed(c);
  if (none_left) return close_brief(c);
  if (spends) spend_restart(c, failed);
  c.history().end(spends ? c.round().restart_count : 0, c.unix_ms(c.now));
  c.round().phase = Phase::Gathering;
  c.round().cause = Cause::None;
  c.round().brief = false;
  c.round().hung = false;
  c.round().root.clear();
}

}  // namespace drun::rendezvous
