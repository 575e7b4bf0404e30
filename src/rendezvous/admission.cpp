#include "rendezvous/admission.hpp"

#include <algorithm>
#include <utility>

#include "rendezvous/member_counts.hpp"
#include "rendezvous/messages.hpp"

namespace drun::rendezvous {
namespace {

constexpr std::size_t kMaxRefusals = 3;  // remembered for the time-out's text

std::string why_refused(const State& state, const Config& config, const MemberDocument& d) {
  if (d.version != kProtocolVersion)
    return d.host + " speaks rendezvous protocol " + std::to_string(d.version) + ", the job " +
           std::to_string(kProtocolVersion);
  if (auto fields = disagreement(d.host, d.agreement, state.agreement); !fields.empty())
    return fields;
  if (d.node_rank && *d.node_rank >= config.max_nodes)
    return d.host + " asks for node rank " + std::to_string(*d.node_rank) + ", the job has " +
           nodes_text(config);
  return {};
}

void join(State& state, const std::string& ticket, Member& member) {
  member.standing = Standing::Eligible;
  if (member.document.node_rank) state.rank_holders.emplace(*member.document.node_rank, ticket);
}

// Only a node of the running or last job round ends the job for all; before the first round, any
// does. The host takes the store with it.
bool may_stop_job(const State& state, const std::string& ticket, const Member& member) {
  return member.standing == Standing::Eligible &&
         (state.slots.empty() || state.slots.contains(ticket) || member.document.is_host);
}

// Takes the rank from its holder. If that only wished for it, it goes on without; if it insists, it
// waits until the rank is free again.
void displace(State& state, std::map<int, std::string>::iterator at, Time now) {
  const std::string ticket = std::move(at->second);
  state.rank_holders.erase(at);
  Member& member = state.members.find(ticket)->second;
  count(state, ticket, member, -1);
  if (member.document.node_rank_is_wish) {
    member.document.node_rank.reset();
  } else {
    member.standing = Standing::Held;
    member.since = now;
    state.held.insert(ticket);
  }
  count(state, ticket, member, 1);
}

}  // namespace

void refuse(State& state, const std::string& ticket, Member& member, std::string reason) {
  member.standing = Standing::Refused;
  member.refusal = std::move(reason);
  state.to_refuse.insert(ticket);
  auto& known = state.refusals;
  if (std::find(known.begin(), known.end(), member.refusal) == known.end()) {
    if (known.size() == kMaxRefusals) known.erase(known.begin());
    known.push_back(member.refusal);
  }
}

void note_stop(State& state, const std::string& ticket, const Member& member) {
  if (member.document.stop && !state.stop && may_stop_job(state, ticket, member))
    state.stop = member.document.stop;
}

// The member takes part no more: the rank that it asked for goes to the member that has waited for
// it longest.
void release_rank(State& state, const std::string& ticket, const MemberDocument& document,
                  Time now) {
  if (!document.node_rank) return;
  const auto holder = state.rank_holders.find(*document.node_rank);
  if (holder == state.rank_holders.end() || holder->second != ticket) return;
  state.rank_holders.erase(holder);
  auto heir = state.members.end();
  for (const auto& waiting : state.held) {
    const auto next = state.members.find(waiting);
    if (next->second.document.node_rank == document.node_rank &&
        (heir == state.members.end() || next->second.arrival < heir->second.arrival))
      heir = next;
  }
  if (heir == state.members.end()) return;
  state.held.erase(heir->first);
  count(state, heir->first, heir->second, -1);
  join(state, heir->first, heir->second);
  state.last_join = now;
  count(state, heir->first, heir->second, 1);
  note_stop(state, heir->first, heir->second);  // it may have been told while it waited
}

void admit(State& state, const Config& config, const std::string& ticket, Member& member, Time now,
           const std::string& problem) {
  member.arrival = ++state.arrivals;
  member.since = now;
  if (!problem.empty()) return refuse(state, ticket, member, problem);
  if (auto reason = why_refused(state, config, member.document); !reason.empty())
    return refuse(state, ticket, member, std::move(reason));
  auto& rank = member.document.node_rank;
  const bool wish = member.document.node_rank_is_wish;
  const auto& claim = member.document.claim;
  // It runs with another rank than it wished for, so the wish is over.
  if (wish && claim && claim->group_rank != rank) rank.reset();
  const auto at = rank ? state.rank_holders.find(*rank) : state.rank_holders.end();
  if (at != state.rank_holders.end()) {
    const std::string& holder = at->second;
    const bool settled = state.slots.contains(holder) || state.planned.contains(holder);
    const bool holder_wishes = state.members.find(holder)->second.document.node_rank_is_wish;
    // After the store has forgotten the round, members return in any order. The rank belongs to
    // the one whose workers run with it, not to the first that came back. Otherwise a member that
    // insists on the rank goes before one that only wishes for it.
    const bool runs = claims_place(state, member.document);
    if (!settled && (holder_wishes ? runs || !wish : runs && !wish)) {
      displace(state, at, now);
    } else if (wish) {
      rank.reset();
    } else {
      member.standing = Standing::Held;
      state.held.insert(ticket);
      return;
    }
  }
  join(state, ticket, member);
  state.last_join = std::max(state.last_join,
                             std::optional(join_counts_from(state, config, member.document, now)));
}

}  // namespace drun::rendezvous
