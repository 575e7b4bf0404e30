// Prints what a job does, from its events: job_events EVENTS... reads the files that drun --events
// has written, of one node or of all. The status of a job is what its events add up to.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <drun/events/event.hpp>

using drun::events::Event;
using drun::events::Kind;

struct Node {
  std::string host;
  std::string state = "started";
  std::set<std::int64_t> running;  // ranks
};

struct Job {
  std::map<std::string, Node> nodes;  // by Event::node
  std::int64_t round = 0;
  std::int64_t restarts = 0;
  std::vector<std::string> failures;
  std::string outcome;

  void add(const Event& event) {
    round = std::max(round, event.round);
    restarts = std::max(restarts, event.agent_restarts);
    if (event.kind == Kind::Failure)
      failures.push_back("round " + std::to_string(event.round) + ": rank " +
                         std::to_string(event.global_rank) + " on " + event.peer_host + ": " +
                         event.raw_error);
    // The leader tells it of another node, whose last events may be missing.
    if (event.kind == Kind::NodeGone && event.peer != event.node) {
      Node& gone = nodes[event.peer];
      gone.host = event.peer_host;
      gone.state = "gone";
      gone.running.clear();
    }
    if (event.node.empty()) return;  // it has not joined yet
    Node& node = nodes[event.node];
    node.host = event.hostname;
    switch (event.kind) {
      case Kind::RoundBegun:
        node.state = "starting";
        break;
      case Kind::WorkerStarted:
        node.running.insert(event.global_rank);
        break;
      case Kind::WorkersRunning:
        node.state = "running";
        break;
      case Kind::WorkerExited:
        node.running.erase(event.global_rank);
        break;
      case Kind::RoundEnded:
        node.state = "waiting";
        node.running.clear();
        break;
      case Kind::Outcome:
        outcome = event.state + ", exit code " + std::to_string(event.exit_code);
        break;
      case Kind::AgentEnded:
        node.state = "ended";
        break;
      default:
        break;
    }
  }
};

int main(int argc, char** argv) {
  std::vector<Event> events;
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i]);
    std::string line;
    while (std::getline(file, line))
      if (const auto event = drun::events::parse_event(line)) events.push_back(*event);
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.time_ns < b.time_ns; });
  std::map<std::string, Job> jobs;
  for (const Event& event : events)
    jobs[event.run_id].add(event);
  for (const auto& [id, job] : jobs) {
    std::cout << "job " << id << ": round " << job.round << ", restarts " << job.restarts
              << (job.outcome.empty() ? "" : ", " + job.outcome) << '\n';
    for (const auto& [ticket, node] : job.nodes) {
      std::cout << "  " << node.host << ": " << node.state;
      for (const auto rank : node.running)
        std::cout << ' ' << rank;
      std::cout << '\n';
    }
    for (const std::string& failure : job.failures)
      std::cout << "  " << failure << '\n';
  }
}
