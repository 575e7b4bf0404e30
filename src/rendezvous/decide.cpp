// decide(): what to write next, and why.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/counted.hpp"
#include "base/deadline.hpp"
#include "base/fnv1a.hpp"
#include "base/folded_names.hpp"
#include "rendezvous/failure_merge.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/messages.hpp"
#include "rendezvous/node_count.hpp"
#include "rendezvous/rank_assignment.hpp"
#include "rendezvous/rejections.hpp"
#include "rendezvous/root_cause.hpp"
#include "rendezvous/set_aside.hpp"

namespace drun::rendezvous {
namespace {

constexpr std::size_t kMaxShownId = 64;
// An agent that a full store turned away asks again within this time.
constexpr Milliseconds kAskedAgain = kRejectedPause + Milliseconds(2'000);
constexpr std::size_t kMostHosts = 8;  // in one line

struct Context {
  const State& state;
  const Config& config;
  Time now;
  Decision decision;
  std::optional<Failure>
      chosen{};  // the root cause, if it is not yet the first of `state.failures`

  // Precondition: there is a failure.
  [[nodiscard]] const Failure& root() const { return chosen ? *chosen : state.failures.front(); }
  RoundDocument& round() { return decision.round; }
  void write(std::string key, std::string value) {
    decision.writes.push_back({std::move(key), std::move(value), false});
  }
  void drop(std::string key) { decision.writes.push_back({std::move(key), std::nullopt, false}); }
  void log(std::string text) { decision.log.push_back(std::move(text)); }
  History& history() {
    if (!decision.history) decision.history = state.history;
    decision.history->max_restarts = config.max_restarts;
    if (const auto nodes = state.agreement.find("nnodes"); nodes != state.agreement.end())
      decision.history->nnodes = nodes->second;
    return *decision.history;
  }
  [[nodiscard]] std::int64_t unix_ms(Time time) const {
    return std::chrono::duration_cast<Milliseconds>(time.time_since_epoch()).count() +
           config.unix_offset_ms;
  }
  [[nodiscard]] bool past(std::optional<Time> time, Milliseconds after = {}) const {
    return !time || now >= *time + after;
  }
};

std::string round_name(const RoundDocument& round) {
  return "round " + std::to_string(round.number);
}

void close(Context& c, Outcome outcome) {
  c.round().phase = Phase::Closed;
  c.round().hung = false;
  if (is_time_limit(outcome)) c.round().cause = Cause::TimeLimit;
  c.round().reason = outcome.text;
  c.round().waiting.clear();
  if (outcome.exit_code != 0) {
    const Cause cause = outcome.end == End::Failure ? Cause::Failure : c.round().cause;
    c.history().stop(cause, outcome.text, c.unix_ms(c.now));
  }
  c.history().end(0, c.unix_ms(c.now));
  c.write(c.state.keys.outcome, encode(outcome));
  c.drop(c.state.keys.job);
  for (const auto& ticket : c.state.assignment_keys) {
    const auto member = c.state.members.find(ticket);
    if (member != c.state.members.end() && member->second.standing == Standing::Refused) continue;
    c.drop(c.state.keys.assignment(ticket));
    c.decision.dropped.push_back(ticket);
  }
  c.decision.outcome = std::move(outcome);
}

std::string describe(const FailureSummary& failure) {
  return "rank " + std::to_string(failure.rank) + " on " + failure.host + ": " + failure.cause;
}

int job_exit_code(const FailureSummary& root, ExitCodePolicy policy) {
  if (!root.requeue) return kDoNotRequeue;
  if (policy == ExitCodePolicy::Highest) return std::max(root.shell_code(), root.highest_code);
  if (policy == ExitCodePolicy::LowestRank && root.lowest_rank >= 0 && root.lowest_rank < root.rank)
    return root.lowest_code;
  return root.shell_code();
}

FailureSummary root_with_others(const Context& c) {
  std::vector<const FailureSummary*> all{&c.root().summary};
  for (const Failure& failure : c.state.failures)
    if (failure.ticket != c.root().ticket) all.push_back(&failure.summary);
  return merge_failures(all);
}

void close_failed(Context& c) {
  const FailureSummary root = root_with_others(c);
  Outcome outcome;
  outcome.end = End::Failure;
  outcome.exit_code = job_exit_code(root, c.config.exit_code);
  outcome.text = describe(root);
  if (c.state.crashes > 0 && root.rank == c.state.crash_rank && root.cause == c.state.crash_cause) {
    outcome.notes.push_back("crash loop: rank " + std::to_string(root.rank) +
                            " ended in the same way " + std::to_string(c.state.crashes + 1) +
                            " times in a row within seconds of its start");
  } else if (c.config.max_restarts > 0 && c.round().restart_count >= c.config.max_restarts) {
    outcome.notes.push_back("no restart of " + std::to_string(c.config.max_restarts) + " is left");
  }
  for (const SetAside& each : c.round().set_aside)
    if (!each.cleared) outcome.notes.push_back(each.host + " was set aside: " + each.why);
  if (!root.requeue)
    outcome.notes.push_back("--no-requeue-on: exit code " + std::to_string(kDoNotRequeue) +
                            " says that another run would fail, too");
  for (const auto& note : outcome.notes)
    outcome.text += "; " + note;
  outcome.failure = root;
  close(c, std::move(outcome));
}

bool timed_out(const Context& c) {
  return c.decision.round.phase == Phase::Gathering && c.state.waiting_since &&
         c.past(c.state.waiting_since, c.config.join_timeout);
}

void close_timed_out(Context& c) {
  std::string text = "not enough nodes within " + duration_text(c.config.join_timeout) + ": " +
                     waiting_text(c.state, c.config, c.now);
  if (const auto refused = refused_text(c.state); !refused.empty()) text += "; refused: " + refused;
  text +=
      "; start drun on every node with " +
      (c.config.endpoint.empty() ? "this endpoint" : "the endpoint " + c.config.endpoint) +
      (c.config.endpoint_is_local ? " (other machines need another: it is this one's only)" : "") +
      (!c.config.job_flags.empty()   ? " and " + c.config.job_flags
       : c.config.run_id == kNoRunId ? ""
                                     : " and --rdzv-id " + c.config.run_id.substr(0, kMaxShownId)) +
      ", or wait longer with --rdzv-conf join_timeout=SECONDS";
  close(c, {End::Timeout, kTimeLimit, std::move(text), std::nullopt});
}

// Writes to the member why it must leave.
void refuse_member(Context& c, const std::string& ticket, const std::string& reason,
                   bool unfit = false) {
  AssignmentDocument document;
  document.refused = reason;
  document.unfit = unfit;
  c.write(c.state.keys.assignment(ticket), encode(document));
  c.decision.refused.emplace(ticket, reason);
  c.log("refused: " + reason);
}

// All members that may not take part.
void refuse_all(Context& c) {
  for (const auto& ticket : c.state.to_refuse)
    refuse_member(c, ticket, c.state.members.find(ticket)->second.refusal);
  for (const auto& ticket : c.state.held) {
    const Member& member = c.state.members.find(ticket)->second;
    if (!c.past(member.since, duplicate_grace(c.config)) && !timed_out(c)) continue;
    if (holds_workers(member.document)) continue;  // nobody waits for who is refused
    const auto holder = c.state.rank_holders.at(*member.document.node_rank);
    refuse_member(
        c, ticket,
        c.config.max_nodes == 1
            ? foreign_job_text(c.config)
            : duplicate_text(member.document, c.state.members.find(holder)->second.document));
  }
}

// A round that ends so soon after its start will end so again, as a rule: that costs a restart. But
// a job that grows at its start has many short rounds, so a round that ends for newcomers costs
// none. Nor does a round if nobody knows when it began. That may be a time of another leader's
// clock: if it is a moment ahead of this one's, the round has just begun; if it is further ahead,
// nobody knows.
bool is_brief(const Context& c, Cause cause) {
  const std::int64_t since_ms = c.state.round.since_ms;
  if (cause == Cause::Resize || since_ms == 0) return false;
  return std::abs(c.unix_ms(c.now) - since_ms) < c.config.min_runtime.count();
}

void stop_round(Context& c, Cause cause, std::string reason) {
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

std::string lost_text(const Context& c) {
  const bool missing = c.state.lost == 0;
  for (const auto& [ticket, slot] : c.state.slots) {
    if (!(missing ? slot.missing : slot.lost)) continue;
    const auto member = c.state.members.find(ticket);
    const bool told = member != c.state.members.end() && member->second.document.leave;
    return node_name(c.state, slot.group_rank, slot.host, "the node") +
           (told ? std::string(kLeavesTheJob) + member->second.document.leave->reason : " is gone");
  }
  // The store has forgotten who had which rank, or is a new one: the nodes that are there have said
  // theirs, so the missing rank is the one that nobody has claimed.
  const auto& occupied = c.state.occupied;
  for (int rank = 0; rank < c.state.round.nodes && c.state.vacant > 0; ++rank)
    if (!occupied.contains(rank)) return node_name(c.state, rank, "", "the node") + " is gone";
  return "a node is gone";
}

// Until when the round runs on although a rank has failed; nullopt: it is to be stopped.
std::optional<Time> awaits_failures(const State& s) {
  if (s.failures.empty() || s.round.nodes == 1) return std::nullopt;
  const FailureSummary& first = s.failures.front().summary;
  Milliseconds limit = first.clue.others_within;
  if (first.timed_out) limit = std::max(limit, kOthersTimeOut);
  if (limit == Milliseconds(0) || s.failed_ranks >= s.round.world_size) return std::nullopt;
  // A node tells at once of all of its ranks that hang.
  const auto heard = static_cast<int>(s.failures.size()) + s.succeeded;
  if (first.hung && heard >= s.round.nodes) return std::nullopt;
  return s.failed_since + limit;
}

void choose_root(Context& c) {
  std::vector<const FailureSummary*> all;
  for (const Failure& failure : c.state.failures)
    all.push_back(&failure.summary);
  c.chosen = c.state.failures[find_root(all)];
  name_rarest(c.chosen->summary, all);
  c.decision.root = c.chosen->ticket;
}

std::string hang_text(const State& s) {
  const std::string ranks = std::to_string(s.round.world_size);
  return s.round.world_size == 1 ? "the rank of the job makes no more progress"
                                 : "none of the job's " + ranks + " ranks makes progress any more";
}

// Nobody of the round is out of touch, and no worker that runs makes progress.
bool is_still(const State& s) {
  return s.stalled > 0 && s.stalled + s.succeeded >= s.round.nodes && s.lost == 0 &&
         s.missing == 0 && s.strangers == 0;
}

bool is_hung(const Context& c) {
  return is_still(c.state) && c.past(c.state.last_success, c.config.hang_timeout);
}

// When ranks have failed by it, it stays one: nodes that have not heard of it yet are to look, too.
void note_hang(Context& c) {
  if (!c.state.failures.empty()) return;
  const bool hung = is_hung(c);
  if (std::exchange(c.round().hung, hung) || !hung) return;
  c.decision.news.push_back({News::What::Hung, c.config.ticket, c.config.host, hang_text(c.state)});
}

void running(Context& c) {
  const State& s = c.state;
  note_hang(c);
  const bool gone = s.lost > 0 || (s.missing > 0 && c.past(s.grace_until));
  if (const auto until = awaits_failures(s); until && c.now < *until && !gone) return;
  // A failure before a loss: it has a root cause to show. Whether it costs a restart, stopping()
  // decides when it is known which nodes are left.
  if (!s.failures.empty()) {
    choose_root(c);
    const auto& [ticket, summary] = c.root();
    stop_round(c, Cause::Failure, describe(summary));
    c.round().root = ticket;
    c.round().hung = summary.hung;
    c.decision.news.push_back(
        {News::What::Failed, ticket, summary.host, "", c.round().restart_count, summary});
  } else if (gone) {
    stop_round(c, Cause::Membership, lost_text(c));
  } else if (s.strangers > 0) {
    stop_round(c, Cause::Membership,
               "nodes came back with workers of another " + round_name(c.round()) +
                   ", which the store has forgotten");
  } else if (s.early > 0) {
    stop_round(c, Cause::Membership, "a node has stopped its workers");
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

// Somebody asked for it. What made the workers stop before is worth knowing all the same; but what
// asked may have ended workers, too, and one that was just told of can be such.
void close_stopped(Context& c, const StopRequest& request) {
  Outcome outcome{End::Stopped, request.exit_code, request.reason, std::nullopt};
  const RoundDocument& round = c.state.round;
  const bool stopping = round.phase == Phase::Stopping && round.cause == Cause::Failure;
  if (!c.state.failures.empty() && (stopping || round.phase == Phase::Running)) {
    if (!stopping) choose_root(c);
    const FailureSummary& root = c.root().summary;
    const bool before = stopping || root.timed_out || root.hung;  // others were waited for
    if (before && root.shell_code() != request.exit_code) outcome.failure = root_with_others(c);
  }
  close(c, std::move(outcome));
}

// From then on a write shows whether the nodes that still stop could have said that they are done.
Time trial_begins(const Config& config, Time since) {
  return since + std::max(config.stop_timeout - kAskedAgain, Milliseconds(0));
}

bool was_tried(const State& state, const Config& config, Time since) {
  return state.tried_at && *state.tried_at >= trial_begins(config, since);
}

// When to look after those that stop since then.
Time stop_due(const State& state, const Config& config, Time since) {
  if (!was_tried(state, config, since)) return trial_begins(config, since);
  return std::max(since + config.stop_timeout, *state.tried_at + kAskedAgain);
}

// A store that was full turned away those that had stopped. Nobody is left behind before it has
// taken a write, and they have had the time to ask it again.
bool may_expel(Context& c, std::optional<Time> since) {
  if (!since || c.now < stop_due(c.state, c.config, *since)) return false;
  const bool tried = was_tried(c.state, c.config, *since);
  c.decision.tries |= !tried;
  return tried;
}

void expel(Context& c, const std::string& ticket, const Member& member) {
  refuse_member(c, ticket,
                member.document.host + " did not stop its workers of " + round_name(c.round()) +
                    " within " + duration_text(c.config.stop_timeout) +
                    "; the others go on without it");
}

// The job goes on without the nodes that have not stopped their workers within stop_timeout.
void expel_unleft(Context& c) {
  for (const auto& [ticket, slot] : c.state.slots) {
    const auto member = c.state.members.find(ticket);
    if (member == c.state.members.end() || member->second.standing == Standing::Refused ||
        member->second.document.left >= c.round().number)
      continue;
    expel(c, ticket, member->second);
  }
}

// The same for those that hold workers, but no place in the last round.
void expel_holding(Context& c) {
  for (const auto& [ticket, member] : c.state.members) {
    const auto& d = member.document;
    if (member.standing != Standing::Refused && holds_workers(d)) expel(c, ticket, member);
  }
}

// A node of the round was lost, and nobody had told it to go.
bool robbed(const State& s) {
  const auto told = std::count_if(s.slots.begin(), s.slots.end(), [](const auto& slot) {
    return slot.second.lost && slot.second.told;
  });
  return s.lost + s.missing > told;
}

void close_lost(Context& c) {
  const int most = *c.config.max_losses;
  close(c,
        {End::NodesLost, kDrunFailed,
         lost_text(c) + "; nodes were lost in " + std::to_string(most + 1) +
             (most == 0 ? " round" : " rounds") + ", --max-losses allows " + std::to_string(most),
         std::nullopt});
}

std::string brief_text(const Context& c) {
  return c.decision.round.reason + ", and " + round_name(c.decision.round) +
         " had run for less than --min-runtime " + duration_text(c.config.min_runtime);
}

void close_brief(Context& c) {
  close(c, {End::NodesLost, kDrunFailed,
            brief_text(c) + "; that spends a restart, and --max-restarts " +
                std::to_string(c.config.max_restarts) + " leaves none",
            std::nullopt});
}

void spend_restart(Context& c, bool failed) {
  ++c.round().restart_count;
  News news{News::What::Restarted, c.config.ticket, c.config.host, "", c.round().restart_count};
  if (failed) {
    c.decision.set_aside = note_cost(c.state, c.root(), c.config, c.round());
    const auto& [ticket, summary] = c.root();
    news.ticket = ticket;
    news.host = summary.host;
    news.reason = failure_text(summary);
  } else {
    news.reason = brief_text(c);
  }
  // A failure in a job of one node the agent logs itself: it knows more about it.
  if (c.config.max_nodes > 1 || !failed)
    c.log(restart_text(c.round().restart_count, c.config.max_restarts, news.reason));
  c.decision.news.push_back(std::move(news));
}

// Once all nodes have left the round or are gone: restart, go on, or end the job? If a node was
// lost in the same round, the workers' failures are its consequence (their peers are gone), so they
// cost no restart, unless the round was brief.
void stopping(Context& c) {
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

// All that are there were told to go, and nobody is waited for.
bool all_leave(const Context& c) {
  return c.state.leaving > 0 && c.state.staying == 0 && c.past(c.state.grace_until) &&
         c.state.members.contains(c.config.ticket);
}

// Nodes that were spares until now, or have come since. Each says it of itself.
void log_taken_in(Context& c) {
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

// They begin a store in turn when this one is lost: those where the job's nodes look first, in the
// order of the endpoints, then the next node after the store's, by rank, and others that are spread
// evenly over the ranks: neighbours in rank often share a rack, and are lost together. `nodes` by
// rank.
std::vector<Successor> successors(const Context& c, const std::vector<const MemberDocument*>& nodes,
                                  int casting) {
  std::vector<const MemberDocument*> able;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const MemberDocument* node = nodes[(i + static_cast<std::size_t>(casting + 1)) % nodes.size()];
    if (node != nullptr && !node->is_host && node->successor_port != 0) able.push_back(node);
  }
  std::stable_sort(able.begin(), able.end(), [](const auto* a, const auto* b) {
    return a->listed >= 0 && (b->listed < 0 || a->listed < b->listed);
  });
  const auto unlisted = static_cast<std::size_t>(
      std::count_if(able.begin(), able.end(), [](const auto* node) { return node->listed < 0; }));
  const std::size_t count =
      std::min(able.size(), static_cast<std::size_t>(std::max(c.config.successors, 0)));
  const std::size_t first = std::min(count, able.size() - unlisted);  // of those to spread
  std::vector<Successor> list;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i < first ? i : first + (i - first) * unlisted / (count - first);
    list.push_back({able[at]->address, able[at]->successor_port});
  }
  return list;
}

// Of the round that begins. If a store was lost before anybody had heard of its round, and another
// one begins in its place, both have a first round: what is said of the lost one must not count
// here, and agents that were told of it must take this one for the later.
std::int64_t era(const Context& c) {
  const State& s = c.state;
  const std::string leadership = c.config.ticket + "." + std::to_string(s.epoch);
  const Place& latest = c.decision.round.latest;
  const std::int64_t origin = latest.exists()
                                  ? latest.era % kOrigins
                                  : static_cast<std::int64_t>(fnv1a(leadership) % kOrigins);
  std::int64_t era = s.succession.generation * kOrigins + origin;
  for (const Place& other : s.others)
    era = std::max(era, other.era);
  return era;
}

// Whose majority says from now on which store is the right one. The same as before if the nodes
// are: then nobody needs to hear of it first.
void choose_electorate(Context& c) {
  const State& s = c.state;
  RoundDocument& round = c.round();
  if (c.config.successors <= 0 || s.succession.generation <= 0) return;
  std::vector<const MemberDocument*> nodes;
  int casting = -1;
  std::string store_host;
  bool same =
      s.slots.size() == s.plan.size() && round.latest.nodes == static_cast<int>(s.plan.size());
  for (const auto& [ticket, place] : s.plan) {
    const auto member = s.members.find(ticket);
    nodes.push_back(member == s.members.end() ? nullptr : &member->second.document);
    if (nodes.back() != nullptr && nodes.back()->is_host) {
      casting = place.group_rank;
      store_host = nodes.back()->host.substr(0, kMaxName);
    }
    const auto slot = s.slots.find(ticket);
    same = same && slot != s.slots.end() && slot->second.group_rank == place.group_rank;
  }
  round.successors = successors(c, nodes, casting);
  round.store_host = std::move(store_host);
  if (same && round.latest.casting == casting) return;
  round.before = round.latest;
  round.latest = {era(c), round.number, -1, round.nodes, casting};
}

// A round that was taken up from what its nodes say: some may have come back only now.
void find_successors(Context& c) {
  const State& s = c.state;
  if (!s.succession.is_later() || c.config.successors <= 0 || !c.round().latest.exists()) return;
  std::vector<const MemberDocument*> nodes(s.slots.size() + static_cast<std::size_t>(s.vacant));
  int casting = -1;
  for (const auto& [ticket, slot] : s.slots) {
    const auto member = s.members.find(ticket);
    if (member == s.members.end() || slot.group_rank >= static_cast<int>(nodes.size())) continue;
    nodes[static_cast<std::size_t>(slot.group_rank)] = &member->second.document;
    if (member->second.document.is_host) casting = slot.group_rank;
  }
  // The old successors stay, except the one that serves now: not every agent may hear of new ones
  // before this store is lost, and all must go to the same place.
  std::vector<Successor> list;
  const auto own = s.members.find(c.config.ticket);
  const bool hosts = own != s.members.end() && own->second.document.is_host;
  for (const Successor& old : s.round.successors)
    if (!hosts || old.address != c.config.address || old.port != c.config.successor_port)
      list.push_back(old);
  for (const Successor& next : successors(c, nodes, casting)) {
    if (static_cast<int>(list.size()) >= c.config.successors) break;
    if (std::find(list.begin(), list.end(), next) == list.end()) list.push_back(next);
  }
  c.round().successors = std::move(list);
}

// Group rank 0's node makes the workers' store ready; then all start at once. A member that goes in
// between, one more that would still fit in, or one that still has workers, sends everybody back to
// gathering: nothing has been started yet, so a new plan costs nothing.
void preparing(Context& c) {
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
bool sort_out_unfit(Context& c, const std::vector<Candidate>& candidates) {
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

void plan_round(Context& c) {
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

void gathering(Context& c) {
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

// Nodes that nobody sees may still have workers. The next leader, perhaps at a store that has lost
// its sessions, must know that and wait for them.
bool is_unsure(const Context& c) {
  const bool others_hold = c.decision.round.phase == Phase::Gathering && c.state.holding > 0;
  return others_hold || !c.past(c.state.unsure_until) ||
         (c.state.missing > 0 && !c.past(c.state.grace_until));
}

// When the phase that is written now began. If a round runs that the store has forgotten, it began
// earlier: the next leader needs that time for --min-runtime.
std::int64_t phase_since_ms(const Context& c) {
  const State& s = c.state;
  const RoundDocument& round = c.decision.round;
  const bool forgotten = round.phase == Phase::Running && s.round.phase == Phase::Running &&
                         round.number == s.round.number;
  return forgotten ? s.round.since_ms : c.unix_ms(c.now);
}

}  // namespace

Decision decide(const State& state, const Config& config, Time now) {
  Context c{state, config, now, {}};
  c.round() = state.round;
  if (state.round.phase == Phase::Closed) return {};
  if (state.stop) {
    close_stopped(c, *state.stop);
  } else if (all_leave(c)) {
    close_stopped(c, state.leave.value());
  } else {
    refuse_all(c);
    if (c.round().phase == Phase::Running) running(c);
    if (c.round().phase == Phase::Stopping) stopping(c);
    if (c.round().phase == Phase::Preparing) preparing(c);
    if (c.round().phase == Phase::Gathering) gathering(c);
  }
  if (is_alive(c.round().phase)) {
    for (const auto& [ticket, assignment] : state.reclaimed) {
      AssignmentDocument document{assignment, true, -1, {}};
      if (const auto slot = state.slots.find(ticket); slot != state.slots.end())
        document.host = slot->second.host;
      c.write(state.keys.assignment(ticket), encode(document));
      c.decision.reclaimed.push_back(ticket);
    }
    if (!state.reclaimed.empty() || !state.round_written) find_successors(c);
  }
  if (c.round().phase != Phase::Closed) c.round().unsure = is_unsure(c);
  const bool other_phase = c.round().phase != state.round.phase ||
                           c.round().number != state.round.number || !state.round_written;
  if (other_phase) c.round().since_ms = phase_since_ms(c);
  const bool written =
      state.round_written && state.latest_written && state.job_written && state.history_written;
  if (c.round() != state.round || !written || c.decision.tries) {
    c.round().epoch = state.epoch;
    if (!state.job_written && c.round().phase != Phase::Closed)
      c.write(state.keys.job, encode(JobDocument{state.agreement}));
    if (!state.history_written) c.history();
    if (c.decision.history) c.write(state.keys.history, encode(*c.decision.history));
    c.write(state.keys.round, encode(c.round()));  // last: it is what starts and stops
  }
  return std::move(c.decision);
}

std::optional<Time> next_deadline(const State& state, const Config& config) {
  if (state.round.phase == Phase::Closed) return std::nullopt;
  EarliestDeadline next;
  for (const auto& ticket : state.held) {
    const Member& member = state.members.find(ticket)->second;
    if (!holds_workers(member.document)) next.include(member.since, duplicate_grace(config));
  }
  if (state.leaving > 0 && state.staying == 0 && state.members.contains(config.ticket))
    next.include(state.grace_until);
  switch (state.round.phase) {
    case Phase::Running:
      if (state.missing > 0) next.include(state.grace_until);
      next.include(awaits_failures(state));
      if (is_still(state) && !state.round.hung && state.failures.empty())
        next.include(state.last_success, config.hang_timeout);
      if (state.round.unsure) next.include(state.unsure_until);
      // A round that is to be stopped for a failure makes room for nobody.
      if (config.resize == Resize::Now && state.succeeded == 0 && state.missing == 0 &&
          state.failures.empty() && makes_larger(config, state.round.nodes, state.joiners)) {
        next.include(state.last_join, config.quiet_period);
        next.include(state.joiners_since, config.last_call_timeout);
      }
      break;
    case Phase::Stopping:
      if (state.unleft > 0) {
        if (state.stopping_since) next.include(stop_due(state, config, *state.stopping_since));
      } else if (state.missing > 0) {
        next.include(state.grace_until);
      }
      break;
    case Phase::Gathering:
      if (state.holding > 0) {
        if (state.holding_since) next.include(stop_due(state, config, *state.holding_since));
      } else if (state.unsure_until) {
        next.include(state.unsure_until);
      } else if (state.ready >= config.min_nodes) {
        EarliestDeadline quiet;
        quiet.include(state.last_join, config.quiet_period);
        quiet.include(state.enough_since, config.last_call_timeout);
        const bool enough = state.ready >= config.max_nodes || !state.last_join;
        next.include(enough ? state.leave_until : std::max(quiet.time(), state.leave_until));
      }
      if (state.progress_due) next.include(state.next_progress);
      next.include(state.waiting_since, config.join_timeout);
      break;
    case Phase::Preparing:
      next.include(state.preparing_since, kPrepareTimeout);
      break;
    case Phase::Closed:
      break;
  }
  return next.time();
}

}  // namespace drun::rendezvous
