// The CPUs of a machine and what they share, read through hwloc. The library is loaded when a
// binding is asked for; drun is not linked with it.
#pragma once

#include <string>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::launcher {

// A logical CPU ("hardware thread"). Each group is named by the lowest CPU number in it, NUMA nodes
// and packages by the system's own number.
struct TopologyCpu {
  int number = 0;
  int core = 0;
  int cache = 0;  // the group that shares a last-level cache; without caches, the package
  int node = 0;   // NUMA node
  int package = 0;

  bool operator==(const TopologyCpu&) const = default;
};

struct Topology {
  std::vector<TopologyCpu> cpus;  // ascending by number
};

// This machine as far as its cpuset allows; with a `synthetic` description ("package:2 numa:1
// core:4 pu:2") the machine that it describes. The error names the Debian package when the library
// is not there.
[[nodiscard]] Result<Topology> read_topology(const std::string& synthetic = {});

}  // namespace drun::launcher
