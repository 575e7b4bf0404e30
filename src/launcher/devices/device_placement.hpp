// Where the workers of this machine run, decided once before the first of them starts: how many
// there are, which devices, CPUs and memory each of them gets, and how many threads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/usable_cpus.hpp"
#include "drun/base/result.hpp"
#include "launcher/devices/binding.hpp"
#include "launcher/devices/devices.hpp"

namespace drun::launcher {

struct PlacementRequest {
  DeviceRequest devices;
  NumaBinding binding = NumaBinding::None;
  bool divide_threads = false;  // --omp-threads auto
  bool show_devices = false;    // list the devices although nothing depends on it
  int agents = 1;               // on this machine, alike: --local-nodes

  // Whether there is anything to place: false for a known number of workers that are left alone.
  [[nodiscard]] bool asks_for_something() const {
    return devices.counted_by() || devices.selects() || devices.virtual_local_rank ||
           binding != NumaBinding::None || divide_threads || show_devices;
  }
};

// One local rank.
struct WorkerPlacement {
  std::vector<int> cpus;                 // ascending; empty: not bound
  std::vector<int> memory_nodes;         // ascending; empty: the system's default
  std::vector<std::string> environment;  // "NAME=value" of the device masks
  std::optional<int> threads;            // with divide_threads: OMP_NUM_THREADS
  std::string devices;                   // "GPU 3 (0000:5e:00.0)"; empty: whatever drun sees
  std::string description;  // "GPU 3 (0000:5e:00.0); CPUs 0-7 (8 cores) of NUMA node 0"
};

struct Placement {
  std::vector<std::string> notes;  // for drun's log
  // The workers of each agent of this machine, equally many; empty: nothing was asked for.
  std::vector<std::vector<WorkerPlacement>> agents;

  // `agent` counts the agents of this machine from 0; a worker that is not listed runs anywhere.
  [[nodiscard]] const WorkerPlacement& of(int agent, int local_rank) const;
};

// What was read of the machine. Only what the request needs is filled in.
struct MachineFacts {
  UsableCpus usable;
  DeviceInventory inventory;
  Result<Topology> topology;
  std::optional<std::vector<int>> memory_nodes;
  std::map<int, int> cores;  // CPU -> core
};

// Pure. `environment` is drun's own.
[[nodiscard]] Result<Placement> place_workers(const PlacementRequest& request,
                                              const MachineFacts& facts,
                                              const std::vector<std::string>& environment);

// Reads this machine. A plain job reads nothing but its affinity mask. Throws std::system_error
// when the kernel does not tell that.
[[nodiscard]] MachineFacts read_machine(const PlacementRequest& request,
                                        const std::vector<std::string>& environment);

// Both of the above.
[[nodiscard]] Result<Placement> plan_placement(const PlacementRequest& request,
                                               const std::vector<std::string>& environment);

// For the log and --report-bindings, one line for each worker of an agent whose first rank is
// `first_rank`: "rank 5 (local rank 1): GPU 3 (0000:5e:00.0); CPUs 0-7 (8 cores) of NUMA node 0".
// None if nothing was asked for.
[[nodiscard]] std::vector<std::string> placement_lines(const Placement& placement, int agent,
                                                       int first_rank);

// CPU -> the lowest CPU number of its core; a CPU about which nothing is known is a core of its
// own.
[[nodiscard]] std::map<int, int> read_cores(const std::string& root, const std::vector<int>& cpus);

}  // namespace drun::launcher
