// Which seeds a test with random input runs: so many from 1 on, or the one that DRUN_SEED names.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace drun::test {

struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
};

inline Seeds seeds_to_run(std::uint64_t count) {
  const char* seed = std::getenv("DRUN_SEED");
  return seed == nullptr ? Seeds{1, count} : Seeds{std::strtoull(seed, nullptr, 10), 1};
}

}  // namespace drun::test
