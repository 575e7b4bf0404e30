// Runs simulated jobs whose store may be succeeded: simulate_succession [first seed] [how many]
// [trace]. Prints the schedule of the first run that breaks an invariant, and leaves with 1.
//
// simulate_succession cost NODES...: what it costs that the host of such a job is killed.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "simulation/print_run.hpp"
#include "simulation/succession/world.hpp"

namespace {

// A spare takes the place of the host, which is killed: what a node sends
// and gets until all have their new workers.
int print_cost(int nodes) {
  using namespace drun::simulation;
  SuccessionPlan plan;
  plan.seed = 1;
  plan.nodes = nodes + 1;
  plan.min_nodes = plan.max_nodes = nodes;
  Blow blow;
  blow.at_ms = 10'000;
  blow.of_host = true;
  plan.blows.push_back(blow);
  const SuccessionReport report = SuccessionWorld(plan, false).run();
  if (!report.violation.empty() || report.rounds != 2) {
    std::printf("%d nodes: %s\n", nodes, report.violation.c_str());
    return 1;
  }
  std::printf("| %d | %.1f | %.0f | %.2f |\n", nodes, static_cast<double>(report.messages) / nodes,
              static_cast<double>(report.bytes) / nodes,
              static_cast<double>(report.fail_over.count()) / 1'000);
  std::fflush(stdout);
  return 0;
}

int print_costs(int argc, char** argv) {
  std::printf(
      "| Nodes | Messages per node | Bytes per node | New workers after, s |\n"
      "|---|---|---|---|\n");
  for (int i = 2; i < argc; ++i)
    if (const int failed = print_cost(std::atoi(argv[i])); failed != 0) return failed;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace drun::simulation;
  if (argc > 2 && argv[1] == std::string_view("cost")) return print_costs(argc, argv);
  const std::uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
  const bool trace = argc > 3;
  std::uint64_t stores = 0, rounds = 0, succeeded = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const SuccessionPlan plan = make_succession_plan(seed);
    const SuccessionReport report = SuccessionWorld(plan, trace).run();
    stores += static_cast<std::uint64_t>(report.stores);
    rounds += static_cast<std::uint64_t>(report.rounds);
    succeeded += static_cast<std::uint64_t>(report.succeeded);
    if (report.violation.empty() && !trace) continue;
    print_run(plan, SuccessionWorld(plan, true).run());
    if (!report.violation.empty()) return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf(
      "%llu runs in %.1f s: %llu stores, %llu rounds, %llu agents succeeded, no violation\n",
      static_cast<unsigned long long>(count), took.count(), static_cast<unsigned long long>(stores),
      static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(succeeded));
  return 0;
}
