#include "rendezvous/expulsion.hpp"

#include <algorithm>
#include <string>

#include "rendezvous/job_end.hpp"
#include "rendezvous/messages.hpp"
#include "rendezvous/rejections.hpp"

namespace drun::rendezvous {
namespace {

// An agent that a full store turned away asks again within this time.
constexpr Milliseconds kAskedAgain = kRejectedPause + Milliseconds(2'000);

// From then on a write shows whether the nodes that still stop could have said that they are done.
Time trial_begins(const Config& config, Time since) {
  return since + std::max(config.stop_timeout - kAskedAgain, Milliseconds(0));
}

bool was_tried(const State& state, const Config& config, Time since) {
  return state.tried_at && *state.tried_at >= trial_begins(config, since);
}

void expel(DecisionContext& c, const std::string& ticket, const Member& member) {
  refuse_member(c, ticket,
                member.document.host + " did not stop its workers of " + round_name(c.round()) +
                    " within " + duration_text(c.config.stop_timeout) +
                    "; the others go on without it");
}

}  // namespace

void refuse_member(DecisionContext& c, const std::string& ticket, const std::string& reason,
                   bool unfit) {
  AssignmentDocument document;
  document.refused = reason;
  document.unfit = unfit;
  c.write(c.state.keys.assignment(ticket), encode(document));
  c.decision.refused.emplace(ticket, reason);
  c.log("refused: " + reason);
}

void refuse_all(DecisionContext& c) {
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

Time stop_due(const State& state, const Config& config, Time since) {
  if (!was_tried(state, config, since)) return trial_begins(config, since);
  return std::max(since + config.stop_timeout, *state.tried_at + kAskedAgain);
}

bool may_expel(DecisionContext& c, std::optional<Time> since) {
  if (!since || c.now < stop_due(c.state, c.config, *since)) return false;
  const bool tried = was_tried(c.state, c.config, *since);
  c.decision.tries |= !tried;
  return tried;
}

void expel_unleft(DecisionContext& c) {
  for (const auto& [ticket, slot] : c.state.slots) {
    const auto member = c.state.members.find(ticket);
    if (member == c.state.members.end() || member->second.standing == Standing::Refused ||
        member->second.document.left >= c.round().number)
      continue;
    expel(c, ticket, member->second);
  }
}

void expel_holding(DecisionContext& c) {
  for (const auto& [ticket, member] : c.state.members) {
    const auto& d = member.document;
    if (member.standing != Standing::Refused && holds_workers(d)) expel(c, ticket, member);
  }
}

}  // namespace drun::rendezvous
