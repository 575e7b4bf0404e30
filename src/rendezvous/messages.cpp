#include "rendezvous/messages.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>

#include "base/counted.hpp"
#include "base/duration_text.hpp"
#include "base/folded_names.hpp"
#include "base/number_ranges.hpp"
#include "rendezvous/rank_assignment.hpp"

namespace drun::rendezvous {
namespace {

constexpr std::size_t kMaxHeld = 2;
constexpr std::size_t kMostLost = 4;
constexpr std::size_t kMaxReason = 200;

// A later store has never known the nodes that did not come over to it. Their ranks are those of
// the last round that nobody here has, once it is known that they do not come, or they have had the
// time to. Without the node that was told to go.
std::set<int> ranks_left_behind(const State& state, Time now) {
  std::set<int> ranks;
  const Place& latest = state.round.latest;
  if (!state.succession.is_later()) return ranks;
  const bool may_come = now < state.succession.sure_from;
  for (int rank = 0; rank < latest.nodes; ++rank)
    if (!may_come || !state.unheard.contains({latest.era, latest.round, rank})) ranks.insert(rank);
  const std::string& reason = state.round.reason;
  const auto told = reason.find(kLeavesTheJob);
  for (auto rank = ranks.begin(); told != std::string::npos && rank != ranks.end();) {
    const std::string place = " (group rank " + std::to_string(*rank) + ")";
    rank = std::string_view(reason).substr(0, told).ends_with(place) ? ranks.erase(rank)
                                                                     : std::next(rank);
  }
  for (const auto& [ticket, member] : state.members)
    if (member.document.latest.same_round(latest)) ranks.erase(member.document.latest.rank);
  for (const auto& [ticket, slot] : state.slots)
    ranks.erase(slot.group_rank);
  return ranks;
}

// "node2 (group rank 1) was lost in round 1": of the last round that ran, whom the wait is for.
std::string who_was_lost(const State& state, Time now) {
  std::map<int, std::string_view> lost;  // hosts by group rank
  for (const int rank : ranks_left_behind(state, now))
    lost.emplace(rank, "");
  for (const auto& [ticket, slot] : state.slots)
    if ((slot.lost || slot.missing) && !slot.told) lost.emplace(slot.group_rank, slot.host);
  if (lost.empty()) return "";
  std::string text;
  std::size_t shown = 0;
  for (const auto& [rank, host] : lost) {
    if (shown++ == kMostLost) break;
    text += (text.empty() ? "" : ", ") + node_name(state, rank, std::string(host), "a node");
  }
  if (lost.size() > kMostLost) text += " and " + std::to_string(lost.size() - kMostLost) + " more";
  return text + (lost.size() == 1 ? " was" : " were") + " lost in round " +
         std::to_string(state.round.ran);
}

// Enough nodes are there, but others may be about to go.
std::string leaving_text(const State& state, const Config& config, Time now) {
  if (!state.leave || state.ready < config.min_nodes || now >= state.leave_until) return "";
  const auto left = std::chrono::ceil<std::chrono::seconds>(*state.leave_until - now);
  return "; " + state.leave->reason.substr(0, kMaxReason) + ": waiting " +
         std::to_string(left.count()) + " s for others that are told to go";
}

}  // namespace

std::string clock_text(Milliseconds elapsed) {
  const auto seconds =
      static_cast<long long>(std::max<Milliseconds::rep>(elapsed.count(), 0)) / 1000;
  char text[32];
  if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%02lld:%02lld", seconds / 60, seconds % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60,
                  seconds % 60);
  }
  return text;
}

std::string left_text(Milliseconds elapsed, Milliseconds limit) {
  return " (" + clock_text(std::chrono::ceil<std::chrono::seconds>(limit - elapsed)) + " left)";
}

std::string duration_text(Milliseconds duration) {
  return seconds_text(duration);
}

std::string ranges_text(const std::vector<int>& sorted) {
  std::string text;
  std::size_t shown = 0;
  for (const NumberRange& range : ranges_of(sorted)) {
    if (!text.empty()) text += ", ";
    if (++shown > kMaxNames) return text + "...";
    text += to_string(range);
  }
  return text;
}

Milliseconds told_join_timeout(const Config& config) {
  return std::max(config.join_timeout, config.given_join_timeout);
}

std::string nodes_text(const Config& config) {
  std::string text = std::to_string(config.min_nodes);
  if (config.max_nodes != config.min_nodes) text += " to " + std::to_string(config.max_nodes);
  text += config.max_nodes == 1 ? " node" : " nodes";
  if (config.max_nodes != config.min_nodes && config.node_step > 1)
    text += ", in steps of " + std::to_string(config.node_step);
  return text;
}

std::string node_name(const State& state, int group_rank, const std::string& host,
                      std::string_view unknown) {
  const RoundDocument& round = state.round;
  std::string name = host.substr(0, kMaxName);
  if (name.empty() && group_rank == round.latest.casting) name = round.store_host;
  if (name.empty()) name = unknown;
  return name + " (group rank " + std::to_string(group_rank) + ")";
}

std::string said_of_leaving(const State& state, const RankSlot& slot) {
  if (slot.host.empty()) return {};
  const std::string& reason = state.round.reason;
  const std::string left = node_name(state, slot.group_rank, slot.host, "").append(kLeavesTheJob);
  return reason.starts_with(left) ? reason.substr(left.size()) : "";
}

std::string duplicate_text(const MemberDocument& asking, const MemberDocument& holding) {
  const bool same = holding.host == asking.host;
  const std::string holder = same ? "another agent of " : "";
  return asking.host.substr(0, kMaxName) + " asks for node rank " +
         std::to_string(asking.node_rank.value_or(0)) + ", which " + holder +
         holding.host.substr(0, kMaxName) + " has" +
         (same ? "; one drun starts all workers of a host: start one on each" : "");
}

std::string foreign_job_text(const Config& config) {
  return "a job of one node " +
         (config.run_id == kNoRunId ? "without an --rdzv-id"
                                    : "with --rdzv-id " + config.run_id.substr(0, kMaxName)) +
         " already runs at this endpoint; give this one an --rdzv-id or a port of its own";
}

std::string waiting_text(const State& state, const Config& config, Time now) {
  std::vector<std::string_view> names;
  std::vector<int> asked;
  for (const auto& [ticket, member] : state.members) {
    if (member.standing != Standing::Eligible) continue;
    names.push_back(std::string_view(member.document.host).substr(0, kMaxName));
    if (member.document.node_rank && !member.document.node_rank_is_wish)
      asked.push_back(*member.document.node_rank);
  }
  const std::size_t present = names.size();
  std::string text = std::to_string(present) + " of " + nodes_text(config);
  if (present > 0) text += " (" + folded_names(names, kMaxNames) + ")";
  if (!asked.empty()) {
    std::sort(asked.begin(), asked.end());
    std::vector<int> missing;
    for (int rank = 0; rank < config.min_nodes; ++rank) {
      if (!std::binary_search(asked.begin(), asked.end(), rank)) missing.push_back(rank);
    }
    // Members without a wish take what is free: with as many of them as gaps, nothing is missing.
    if (!missing.empty() && present < static_cast<std::size_t>(config.min_nodes)) {
      const std::size_t needed = static_cast<std::size_t>(config.min_nodes) - present;
      text += "; missing " +
              (needed < missing.size() ? std::to_string(needed) + " of node ranks "
               : needed == 1           ? "node rank "
                                       : "node ranks ") +
              ranges_text(missing);
    }
  }
  if (const auto lost = who_was_lost(state, now); !lost.empty()) text += "; " + lost;
  if (state.ready >= config.min_nodes && state.ready < config.max_nodes)
    text += "; enough to start, waiting a moment for more";
  text += leaving_text(state, config, now);
  std::size_t held = 0;
  for (const auto& ticket : state.held) {
    if (held++ == kMaxHeld) {
      text += "; ...";
      break;
    }
    const auto& asking = state.members.find(ticket)->second.document;
    const auto holder = state.members.find(state.rank_holders.at(asking.node_rank.value_or(0)));
    text += "; " + duplicate_text(asking, holder->second.document);
  }
  if (!state.other_jobs.empty() && present < static_cast<std::size_t>(config.min_nodes))
    text += "; other rendezvous ids on this store: " + state.other_jobs;
  return text;
}

std::string with_place(std::string waiting, const Config& config) {
  if (config.endpoint.empty()) return waiting;
  const auto others = std::count(config.endpoint.begin(), config.endpoint.end(), ',');
  std::string place = " at " + config.endpoint.substr(0, config.endpoint.find(','));
  if (others > 0) place += " and " + std::to_string(others) + " more";
  if (config.endpoint_is_local) place += ", this machine only";
  if (waiting.starts_with(kStoreIsThere)) return waiting.insert(kStoreIsThere.size(), place);
  const auto number_ends =
      std::min({waiting.find(" ("), waiting.find(';'), waiting.find(':'), waiting.size()});
  const auto hosts_end = waiting.find(");", number_ends);
  if (waiting.compare(number_ends, 2, " (") == 0 && hosts_end != std::string::npos) {
    const std::string hosts = waiting.substr(number_ends, hosts_end + 1 - number_ends);
    return waiting.erase(number_ends, hosts.size()) + ";" + place + hosts;
  }
  if (waiting.compare(number_ends, 1, ";") == 0) return waiting + ";" + place;
  return waiting.insert(number_ends, place);
}

bool is_of_drun(const FailureSummary& failure) {
  return failure.pid <= 0 && failure.signal == 0 && failure.exit_code == kDrunFailed;
}

namespace {

std::string could_not_start(const FailureSummary& failure) {
  return "drun" + (failure.host.empty() ? "" : " on " + failure.host) +
         " could not start its workers: " + failure.cause;
}

}  // namespace

std::string cause_text(const FailureSummary& failure) {
  if (is_of_drun(failure)) return could_not_start(failure);
  return "rank " + std::to_string(failure.rank) + " on " + failure.host + ": " + failure.cause;
}

std::string failure_text(const FailureSummary& failure) {
  if (is_of_drun(failure)) return could_not_start(failure);
  std::string text =
      "rank " + std::to_string(failure.rank) + " (local rank " + std::to_string(failure.local_rank);
  if (!failure.host.empty()) text += " on " + failure.host;
  if (failure.pid > 0) text += ", pid " + std::to_string(failure.pid);
  text += "): " + failure.cause;
  if (failure.pid <= 0) return text;
  // What the cause names may be a time, too.
  if (failure.hung) return text + ", " + describe_duration(failure.uptime_ms) + " after its start";
  return text + " after " + describe_duration(failure.uptime_ms);
}

std::string restart_text(int restart, int max_restarts, std::string_view failure) {
  std::string text = "restart " + std::to_string(restart) + '/' + std::to_string(max_restarts);
  return text.append(" after ").append(failure);
}

std::string taken_in_text(const std::string& host, const Assignment& place) {
  return host.substr(0, kMaxName) + " is taken in from round " + std::to_string(place.round) +
         " on, as group rank " + std::to_string(place.group_rank);
}

std::string beyond_the_step_text(const Config& config, int spares) {
  if (config.node_step == 1 || spares <= 0) return "";
  return "; " + counted(spares, "spare waits", "spares wait") + " (steps of " +
         std::to_string(config.node_step) + ")";
}

std::string refused_text(const State& state) {
  std::string text;
  for (const auto& refusal : state.refusals)
    text += (text.empty() ? "" : "; ") + refusal.substr(0, 400);
  return text;
}

std::string rank_map(const State& state, const std::vector<Planned>& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (plan.size() > kMaxNames + 1 && i == kMaxNames) {
      text += ", ... " + std::to_string(plan.size() - kMaxNames - 1) + " more ...";
      i = plan.size() - 1;
    }
    const auto member = state.members.find(plan[i].ticket);
    if (member == state.members.end()) continue;
    const int first = plan[i].assignment.first_rank;
    text += (text.empty() ? "" : ", ") + member->second.document.host.substr(0, kMaxName) + " " +
            to_string(NumberRange{first, first + member->second.document.local_world_size - 1});
  }
  return text;
}

}  // namespace drun::rendezvous
