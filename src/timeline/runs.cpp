#include "timeline/runs.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace drun::timeline {
namespace {

struct Interval {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
};

std::vector<Interval> lives_of(const Log& log) {
  std::vector<Interval> lives(log.agents.size());
  for (const LogEntry& entry : log.entries) {
    Interval& life = lives[entry.agent];
    life.begin = std::min(life.begin, entry.at_ns);
    life.end = std::max(life.end, entry.at_ns);
  }
  return lives;
}

// Sets of agents, each with one of them that stands for it.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t agent) {
    while (parent_[agent] != agent)
      agent = parent_[agent] = parent_[parent_[agent]];
    return agent;
  }
  void join(std::size_t one, std::size_t other) { parent_[find(other)] = find(one); }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace

std::vector<std::size_t> runs_of(const Log& log) {
  Sets sets(log.agents.size());
  std::map<std::pair<std::string, std::string>, std::size_t> by_node;
  for (std::size_t i = 0; i < log.agents.size(); ++i)
    by_node.emplace(std::pair(log.agents[i].run_id, log.agents[i].node), i);
  for (const LogEntry& entry : log.entries) {  // who leads names the others
    const auto peer = by_node.find({log.agents[entry.agent].run_id, entry.peer});
    if (!entry.peer.empty() && peer != by_node.end()) sets.join(entry.agent, peer->second);
  }
  // The leader's file may be missing: those that lived at one time belong together.
  const auto lives = lives_of(log);
  std::vector<std::size_t> order(log.agents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return lives[a].begin < lives[b].begin; });
  std::map<std::string, std::pair<std::size_t, std::int64_t>> last;  // of a job: who, until when
  for (const std::size_t agent : order) {
    const auto [found, is_first] =
        last.try_emplace(log.agents[agent].run_id, agent, lives[agent].end);
    if (is_first) continue;
    auto& [other, until] = found->second;
    if (lives[agent].begin <= until) sets.join(other, agent);
    other = agent;
    until = std::max(until, lives[agent].end);
  }
  std::vector<std::size_t> runs(log.agents.size());
  std::map<std::size_t, std::size_t> numbers;
  for (const std::size_t agent : order)
    runs[agent] = numbers.try_emplace(sets.find(agent), numbers.size()).first->second;
  return runs;
}

}  // namespace drun::timeline
