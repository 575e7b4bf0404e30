// Prints what jobs do, in a few words for each: drunctl status --json | job_status, or, whenever
// something changes, drunctl status --watch --json | job_status.
#include <iostream>
#include <string>

#include <drun/status/job_status.hpp>

using namespace drun::status;

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const drun::Result<JobStatus> job = parse_job_status(line);
    if (!job) {
      std::cerr << job.error().what() << '\n';
      return 1;
    }
    std::cout << job->id << ": " << name_of(job->state) << ", round " << job->round.number << ", "
              << job->restarts << " of " << job->max_restarts << " restarts\n";
    for (const NodeStatus& node : job->nodes) {
      std::cout << "  " << node.host << ": " << node.state;
      if (node.ranks) std::cout << ", ranks " << node.ranks->first << " to " << node.ranks->last;
      std::cout << '\n';
    }
    for (const AbsentStatus& node : job->absent) {
      const std::string rank =
          node.group_rank ? "group rank " + std::to_string(*node.group_rank) : "";
      std::cout << "  " << (node.host.empty() ? rank : node.host) << ": " << node.state
                << (node.note.empty() ? "" : ", " + node.note) << '\n';
    }
    for (const PastRoundStatus& round : job->rounds)
      if (round.cause != "none")
        std::cout << "  round " << round.number << " was stopped: " << round.reason << '\n';
    if (job->outcome) std::cout << "  exit code " << job->outcome->exit_code << '\n';
    std::cout << std::flush;
  }
  return 0;
}
