#include "timeline/timeline.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "timeline/node_story.hpp"
#include "timeline/stops.hpp"

namespace drun::timeline {
namespace {

using events::Kind;

// Those that make a mark: what the spans do not show.
bool is_mark(const LogEntry& entry) {
  switch (entry.kind) {
    case Kind::AgentStarted:
    case Kind::RoundBegun:
    case Kind::WorkerStarted:
    case Kind::WorkersRunning:
    case Kind::RoundStopping:
    case Kind::RoundEnded:
    case Kind::AgentEnded:
      return false;
    case Kind::WorkerExited:
      return entry.end == LoggedEnd::Failed;
    default:
      return true;
  }
}

// Not what is told where nothing went wrong: the outcome, a time that is over, a store that was
// lost.
bool is_bad(const LogEntry& entry) {
  return entry.kind == Kind::WorkerExited || entry.kind == Kind::Failure ||
         entry.kind == Kind::NodeGone || entry.kind == Kind::Hang;
}

// No node is more in it than the others.
bool is_of_job(const LogEntry& entry) {
  return entry.kind == Kind::Limit || entry.kind == Kind::RoundStopping ||
         (entry.kind == Kind::Hang && entry.rank < 0);
}

std::string name_of_event(const LogEntry& entry) {
  return entry.unknown.empty() ? std::string(events::info_of(entry.kind).name) : entry.unknown;
}

// Everything that a timeline is made of, on the way there.
class Maker {
 public:
  Maker(const Log& log, const std::vector<std::size_t>& runs, std::int64_t now_ns)
      : log_(log), runs_(runs), now_ns_(now_ns) {
    for (std::size_t i = 0; i < log.agents.size(); ++i)
      by_id_.emplace(std::pair(runs[i], log.agents[i].node), i);
  }

  Timeline make() {
    bound();
    name_runs();
    tell_nodes();
    note_failed_workers();
    for (const LogEntry& entry : log_.entries)
      take(entry);
    stretch_rounds();
    find_causes();
    order();
    return std::move(result_);
  }

 private:
  std::int64_t at(const LogEntry& entry) const { return entry.at_ns - result_.begin_ns; }
  std::size_t run_of(const LogEntry& entry) const { return runs_[entry.agent]; }

  // What the leader tells of another node is about that one.
  std::size_t subject_of(const LogEntry& entry) const {
    if (entry.peer.empty()) return entry.agent;
    const auto peer = by_id_.find({run_of(entry), entry.peer});
    return peer == by_id_.end() ? entry.agent : peer->second;
  }
  bool is_of_unknown_node(const LogEntry& entry) const {
    return !entry.peer.empty() && !by_id_.contains({run_of(entry), entry.peer});
  }
  bool is_placed(const LogEntry& entry) const {
    return !is_of_job(entry) && !is_of_unknown_node(entry);
  }

  // "rank 12 on node4: killed by SIGKILL", where no row or column says of whom it is.
  std::string text_of(const LogEntry& entry) const {
    if (!is_of_unknown_node(entry) || entry.peer_host.empty()) return entry.text;
    const std::string rank = entry.rank < 0 ? "" : "rank " + std::to_string(entry.rank) + " on ";
    return rank + entry.peer_host + (entry.text.empty() ? "" : ": " + entry.text);
  }

  // The leader tells of a failure that the worker's node has told, too.
  void note_failed_workers() {
    for (const LogEntry& entry : log_.entries)
      if (entry.kind == Kind::WorkerExited && entry.end == LoggedEnd::Failed)
        failed_workers_.emplace(run_of(entry), entry.round, entry.rank);
  }
  bool is_told_twice(const LogEntry& entry) const {
    return entry.kind == Kind::Failure &&
           failed_workers_.contains({run_of(entry), entry.round, entry.rank});
  }

  void bound() {
    if (log_.entries.empty()) return;
    const auto [first, last] =
        std::minmax_element(log_.entries.begin(), log_.entries.end(),
                            [](const auto& a, const auto& b) { return a.at_ns < b.at_ns; });
    result_.begin_ns = first->at_ns;
    result_.live = now_ns_ != 0;
    result_.length = std::max(last->at_ns, now_ns_) - first->at_ns;
  }

  void name_runs() {
    std::map<std::size_t, std::string> jobs;
    for (std::size_t i = 0; i < runs_.size(); ++i)
      jobs.emplace(runs_[i], log_.agents[i].run_id);
    std::map<std::string, int> count;
    for (const auto& [run, job] : jobs) {
      const int number = ++count[job];
      if (number == 1) result_.jobs.push_back(job);
      std::string name = number == 1 ? job : job + ", run " + std::to_string(number);
      result_.run_names.push_back(jobs.size() == 1 ? "" : std::move(name));
    }
  }

  // When the events of another agent say that an agent is gone.
  std::map<std::size_t, std::int64_t> losses() const {
    std::map<std::size_t, std::int64_t> lost;
    for (const LogEntry& entry : log_.entries)
      if (entry.kind == Kind::NodeGone && subject_of(entry) != entry.agent)
        lost.emplace(subject_of(entry), at(entry));
    return lost;
  }

  // When the last of the nodes that tell it has left the round.
  std::map<RunRound, std::int64_t> round_ends() const {
    std::map<RunRound, std::int64_t> ends;
    for (const LogEntry& entry : log_.entries)
      if (entry.kind == Kind::RoundEnded) {
        std::int64_t& end = ends[{run_of(entry), entry.round}];
        end = std::max(end, at(entry));
      }
    return ends;
  }

  // Until when a node without an end is drawn. If nobody has missed it, it was in its round until
  // that was over for the others.
  std::int64_t end_of_node(std::size_t node, std::int64_t round,
                           const std::map<std::size_t, std::int64_t>& lost,
                           const std::map<RunRound, std::int64_t>& ends) const {
    if (const auto loss = lost.find(node); loss != lost.end()) return loss->second;
    const auto end = ends.find({runs_[node], round});
    return end == ends.end() ? result_.length : end->second;
  }

  // A round lasts at least as long as what belongs to it.
  void stretch_rounds() {
    for (const NodeRow& node : result_.nodes)
      for (const Span& span : node.spans)
        if (const auto round = rounds_.find({node.run, span.round});
            span.cut && span.state != SpanState::Waiting && round != rounds_.end())
          round->second.end = std::max(round->second.end, span.end);
  }

  void tell_nodes() {
    std::map<std::string, int> hosts;
    for (const LoggedAgent& agent : log_.agents)
      ++hosts[agent.hostname];
    for (std::size_t i = 0; i < log_.agents.size(); ++i) {
      const LoggedAgent& agent = log_.agents[i];
      NodeRow node;
      node.hostname = agent.hostname;
      node.name = agent.hostname;
      if (hosts[agent.hostname] > 1) node.name += " (pid " + std::to_string(agent.pid) + ")";
      node.id = agent.node;
      node.job = agent.run_id;
      node.run = runs_[i];
      result_.nodes.push_back(std::move(node));
    }
    const auto lost = losses();
    const auto ends = round_ends();
    auto entry = log_.entries.begin();
    for (std::size_t i = 0; i < result_.nodes.size(); ++i) {
      NodeStory story(result_.nodes[i]);
      for (; entry != log_.entries.end() && entry->agent == i; ++entry)
        story.take(*entry, at(*entry));
      story.finish(end_of_node(i, story.open_round(), lost, ends));
    }
  }

  void take(const LogEntry& entry) {
    const RunRound key{run_of(entry), entry.round};
    if (entry.kind == Kind::RoundBegun) {
      Round& round =
          rounds_.try_emplace(key, Round{key.first, key.second, at(entry), 0, 0, 0, 0, ""})
              .first->second;
      round.begin = std::min(round.begin, at(entry));
      round.nodes = entry.nodes;
      round.ranks = entry.world_size;
      round.restarts = entry.restarts;
    }
    if (const auto round = rounds_.find(key); round != rounds_.end() && in_round(entry.kind))
      round->second.end = std::max(round->second.end, at(entry));
    if (entry.kind == Kind::Outcome) note_ending(entry);
    if (!is_mark(entry)) return;
    Mark mark;
    mark.at = at(entry);
    mark.node = subject_of(entry);
    mark.placed = is_placed(entry);
    mark.rank = mark.placed ? entry.rank : -1;
    mark.name = name_of_event(entry);
    mark.text = text_of(entry);
    mark.bad = is_bad(entry) && !is_told_twice(entry);
    result_.marks.push_back(std::move(mark));
  }

  // Each agent tells how the job ended for it; one that was refused or out of touch is alone in
  // that.
  void note_ending(const LogEntry& entry) {
    auto& told = endings_[run_of(entry)][{entry.exit_code, entry.text}];
    ++told.first;
    if (told.first == 1 || at(entry) >= told.second.at)
      told.second = {run_of(entry), at(entry), entry.end, entry.exit_code, entry.text};
  }

  static bool in_round(Kind kind) {
    return kind == Kind::RoundBegun || kind == Kind::WorkerStarted ||
           kind == Kind::WorkersRunning || kind == Kind::WorkerExited ||
           kind == Kind::RoundStopping || kind == Kind::RoundEnded;
  }

  void find_causes() {
    for (const auto& [key, stop] : stops_of(log_, runs_)) {
      const auto round = rounds_.find(key);
      if (round == rounds_.end()) continue;
      if (stop.word != nullptr) round->second.reason = stop.word->text;
      if (stop.cause != nullptr) add_cause(key, *stop.cause, round->second.reason);
    }
  }

  void add_cause(const RunRound& key, const LogEntry& entry, const std::string& reason) {
    const bool placed = is_placed(entry);
    std::string text = entry.kind == Kind::NodeJoined ? reason : text_of(entry);
    if (entry.kind == Kind::NodeGone)
      text = (placed || entry.peer_host.empty() ? "the node" : entry.peer_host) + " is gone" +
             (entry.text.empty() ? "" : ": " + entry.text);
    result_.causes.push_back({key.first, key.second, at(entry), subject_of(entry),
                              placed ? entry.rank : -1, std::move(text), placed});
  }

  // Nodes by rank, all else by time.
  void order() {
    std::vector<std::size_t> places(result_.nodes.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    const auto rank = [&](std::size_t i) {  // those without a place come last
      return static_cast<std::uint64_t>(result_.nodes[i].group_rank);
    };
    std::stable_sort(places.begin(), places.end(), [&](auto a, auto b) {
      return std::tuple(result_.nodes[a].run, rank(a)) < std::tuple(result_.nodes[b].run, rank(b));
    });
    std::vector<NodeRow> nodes;
    std::vector<std::size_t> now(places.size());
    for (const std::size_t place : places) {
      now[place] = nodes.size();
      nodes.push_back(std::move(result_.nodes[place]));
    }
    result_.nodes = std::move(nodes);
    for (Mark& mark : result_.marks)
      mark.node = now[mark.node];
    for (StopCause& cause : result_.causes)
      cause.node = now[cause.node];
    for (auto& [key, round] : rounds_)
      result_.rounds.push_back(std::move(round));
    for (auto& [run, told] : endings_) {
      const auto by_agents = [](const auto& a, const auto& b) {
        return std::tuple(a.second.first, a.second.second.at) <
               std::tuple(b.second.first, b.second.second.at);
      };
      result_.endings.push_back(
          std::max_element(told.begin(), told.end(), by_agents)->second.second);
    }
    const auto by_begin = [](const auto& a, const auto& b) { return a.begin < b.begin; };
    std::stable_sort(result_.rounds.begin(), result_.rounds.end(), by_begin);
    const auto by_time = [](const auto& a, const auto& b) { return a.at < b.at; };
    std::stable_sort(result_.marks.begin(), result_.marks.end(), by_time);
    std::stable_sort(result_.causes.begin(), result_.causes.end(), by_time);
  }

  const Log& log_;
  const std::vector<std::size_t>& runs_;
  const std::int64_t now_ns_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> by_id_;  // run and node
  std::map<RunRound, Round> rounds_;
  std::set<std::tuple<std::size_t, std::int64_t, std::int64_t>>
      failed_workers_;  // run, round, rank
  // By run: what was told, by how many agents.
  std::map<std::size_t, std::map<std::pair<std::int64_t, std::string>, std::pair<int, Ending>>>
      endings_;
  Timeline result_;
};

}  // namespace

std::string_view name_of(SpanState state) {
  constexpr std::array<std::string_view, kStates> kNames{
      "waiting", "starting", "running", "stopping", "succeeded", "failed", "stopped"};
  return kNames.at(static_cast<std::size_t>(state));
}

std::size_t Timeline::ranks() const {
  std::int64_t most = 0;
  for (const Round& round : rounds)
    most = std::max(most, round.ranks);
  return static_cast<std::size_t>(most);
}

Timeline make_timeline(const Log& log, const std::vector<std::size_t>& runs, std::int64_t now_ns) {
  return Maker(log, runs, now_ns).make();
}

}  // namespace drun::timeline
