// Runs simulated jobs: simulate [first seed] [how many] [most nodes] [trace]. Prints the schedule
// of the first run that breaks an invariant, and leaves with 1.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#ifdef DRUN_KEPT_DOCUMENTS
#include "simulation/kept_documents.hpp"
#endif
#include "simulation/print_run.hpp"
#include "simulation/world.hpp"

int main(int argc, char** argv) {
  using namespace drun::simulation;
  const std::uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
  const int most_nodes = argc > 3 ? std::atoi(argv[3]) : 64;
  const bool trace = argc > 4;
  std::uint64_t rounds = 0, agents = 0, inputs = 0;
  std::map<std::string, int> ends, by_rounds;
  static constexpr const char* kEnds[] = {"success",    "failure", "stopped",   "timed out",
                                          "nodes lost", "refused", "store lost"};
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
#ifdef DRUN_KEPT_DOCUMENTS
    forget_documents();
#endif
    const Plan plan = make_plan(seed, most_nodes);
    const Report report = World(plan, trace).run();
    rounds += static_cast<std::uint64_t>(report.rounds);
    agents += static_cast<std::uint64_t>(report.agents);
    inputs += report.inputs;
    ++ends[report.end ? kEnds[static_cast<int>(*report.end)] : "unsaid"];
    ++by_rounds[report.rounds < 4 ? std::to_string(report.rounds) : "more"];
    if (report.violation.empty() && !trace) continue;
    print_run(plan, World(plan, true).run());
    if (!report.violation.empty()) return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%llu runs in %.1f s: %llu agents, %llu rounds, %llu inputs, no violation\n",
              static_cast<unsigned long long>(count), took.count(),
              static_cast<unsigned long long>(agents), static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(inputs));
  const auto print = [](const char* what, const std::map<std::string, int>& counts) {
    std::printf("%s:", what);
    for (const auto& [name, times] : counts)
      std::printf(" %s %d", name.c_str(), times);
    std::printf("\n");
  };
  print("ends", ends);
  print("rounds", by_rounds);
  return 0;
}
