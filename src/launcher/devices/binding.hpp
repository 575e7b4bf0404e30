// Which CPUs and memory each worker gets: --numa-binding, and --omp-threads auto. Pure: the machine
// comes in as a topology.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drun/base/result.hpp"
#include "launcher/devices/topology.hpp"

namespace drun::launcher {

// --numa-binding: which CPUs a worker is bound to.
enum class NumaBinding { None, Node, Socket, Exclusive, CoreComplex };

// What the guardian's child applies between fork and exec. Both lists are ascending, each number
// once.
struct WorkerBinding {
  std::vector<int> cpus;          // empty: not bound
  std::vector<int> memory_nodes;  // preferred NUMA nodes; empty: the system's default
  int cores = 0;                  // physical cores among the CPUs

  bool operator==(const WorkerBinding&) const = default;
};

struct BindingInput {
  NumaBinding binding = NumaBinding::Node;
  Topology topology;
  std::vector<int> allowed;  // the agent's own affinity
  // NUMA nodes that memory may come from; nullopt: not known, any.
  std::optional<std::vector<int>> allowed_memory;
  int workers = 1;
  // The NUMA node of each visible device, -1 when the kernel knows none (taken as 0). Local rank n
  // uses the n-th. A job with fewer devices than workers is bound like one without.
  std::vector<int> device_nodes;
};

// One binding for each local rank, torchrun's rules. With devices: node gives the CPUs of the
// device's NUMA node; socket those of all nodes of its package; exclusive divides the node's cores
// among the node's visible devices, the first ones get the remainder; core-complex gives each
// device of the node one last-level cache's CPUs, biggest first, round robin. Without devices the
// workers are spread over the NUMA nodes (or packages) in blocks, as their cores allow; exclusive
// divides all cores. Never more than `allowed`. The error says who would get nothing.
[[nodiscard]] Result<std::vector<WorkerBinding>> bind_workers(const BindingInput& input);

// "CPUs 0-7,16-23 (8 cores) of NUMA node 0"
[[nodiscard]] std::string describe(const WorkerBinding& binding);

// --omp-threads auto, for each of `workers` local ranks: the cores that it may use, shared equally
// with the other workers that may use them, and its share of the quota; at least 1. `cores` maps
// each CPU that drun may use to its core; `bindings` is empty when nothing is bound.
[[nodiscard]] std::vector<int> divide_threads(const std::map<int, int>& cores,
                                              const std::vector<WorkerBinding>& bindings,
                                              std::optional<double> quota, int workers);

}  // namespace drun::launcher
