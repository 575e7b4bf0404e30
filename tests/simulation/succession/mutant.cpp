// Linked with one source broken on purpose: leaves with 0 when the simulation of succession
// notices, with 1 when no run of many does.
//   mutant_NAME [first seed]
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "simulation/succession/world.hpp"

int main(int argc, char** argv) {
  using namespace drun::simulation;
  constexpr std::uint64_t kRuns = 2'000;
  const std::uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  for (std::uint64_t seed = first; seed < first + kRuns; ++seed) {
    const SuccessionReport report = SuccessionWorld(make_succession_plan(seed), false).run();
    if (report.violation.empty()) continue;
    std::printf("noticed by run %llu: %s\n", static_cast<unsigned long long>(seed),
                report.violation.c_str());
    return 0;
  }
  std::printf("nothing was noticed in %llu runs\n", static_cast<unsigned long long>(kRuns));
  return 1;
}
