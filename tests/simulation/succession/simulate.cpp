// Runs simulated jobs whose store may be succeeded: simulate_succession [first seed] [how many]
// [trace]. Prints the schedule of the first run that breaks an invariant, and leaves with 1.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "simulation/succession/world.hpp"

int main(int argc, char** argv) {
  using namespace drun::simulation;
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
    const SuccessionReport again = SuccessionWorld(plan, true).run();
    std::printf("%s", describe(plan).c_str());
    for (const auto& line : again.trace)
      std::printf("%s\n", line.c_str());
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
                again.violation.empty() ? "no violation" : again.violation.c_str());
    if (!report.violation.empty()) return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf(
      "%llu runs in %.1f s: %llu stores, %llu rounds, %llu agents succeeded, no violation\n",
      static_cast<unsigned long long>(count), took.count(), static_cast<unsigned long long>(stores),
      static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(succeeded));
  return 0;
}
