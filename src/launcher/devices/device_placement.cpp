#include "launcher/devices/device_placement.hpp"

#include <algorithm>

#include "base/counted.hpp"
#include "base/cpu_list.hpp"
#include "base/small_file.hpp"
#include "launcher/devices/device_masks.hpp"

namespace drun::launcher {
namespace {

// Nodes of the job's devices; empty when their places are not known at all.
std::vector<int> device_nodes(const std::vector<Device>& devices) {
  const bool placed = std::any_of(devices.begin(), devices.end(),
                                  [](const Device& device) { return !device.pci_address.empty(); });
  std::vector<int> result;
  for (const auto& device : devices) {
    if (placed) result.push_back(device.numa_node);
  }
  return result;
}

// One binding for each worker of each agent. Agents share the GPUs, since each counts its local
// ranks from 0; without GPUs every worker of the machine gets a place of its own.
Result<std::vector<WorkerBinding>> bind(const PlacementRequest& request, const MachineFacts& facts,
                                        const DevicePlan& plan, Placement& placement) {
  if (request.binding == NumaBinding::None) {
    return std::vector<WorkerBinding>(static_cast<std::size_t>(plan.workers * request.agents));
  }
  if (!facts.topology) return facts.topology.error();
  BindingInput input;
  input.binding = request.binding;
  input.topology = *facts.topology;
  input.allowed = facts.usable.cpus;
  input.allowed_memory = facts.memory_nodes;
  input.workers = plan.workers;
  input.device_nodes = device_nodes(plan.devices);
  const bool by_device = !input.device_nodes.empty() &&
                         input.device_nodes.size() >= static_cast<std::size_t>(plan.workers);
  if (!by_device) {
    input.workers *= request.agents;
    if (input.device_nodes.empty() && !plan.devices.empty()) {
      placement.notes.emplace_back(
          "the GPUs' places are not known: CPUs are given out without them");
    } else if (!plan.devices.empty()) {
      placement.notes.push_back(std::to_string(plan.workers) + " workers for " +
                                std::to_string(plan.devices.size()) +
                                " visible GPUs: CPUs are given out without them");
    }
    input.device_nodes.clear();
    return bind_workers(input);
  }
  const auto one_agent = bind_workers(input);
  if (!one_agent) return one_agent.error();
  std::vector<WorkerBinding> result;
  for (int agent = 0; agent < request.agents; ++agent) {
    result.insert(result.end(), one_agent->begin(), one_agent->end());
  }
  return result;
}

std::string describe(const WorkerPlacement& worker, const WorkerBinding& binding,
                     const std::vector<int>& allowed) {
  std::string result = worker.devices;
  if (!result.empty()) result += "; ";
  if (!binding.cpus.empty() || allowed.empty()) {
    result += describe(binding);
  } else {
    result += (allowed.size() == 1 ? "CPU " : "CPUs ") + format_cpu_list(allowed) + " (not bound)";
  }
  if (worker.threads) {
    result += "; " + counted(*worker.threads, "OpenMP thread");
  }
  return result;
}

}  // namespace

const WorkerPlacement& Placement::of(int agent, int local_rank) const {
  static const WorkerPlacement kAnywhere{};
  const auto index = static_cast<std::size_t>(std::max(agent, 0));
  const auto rank = static_cast<std::size_t>(local_rank);
  return index < agents.size() && rank < agents[index].size() ? agents[index][rank] : kAnywhere;
}

Result<Placement> place_workers(const PlacementRequest& request, const MachineFacts& facts,
                                const std::vector<std::string>& environment) {
  const auto plan =
      plan_devices(request.devices, facts.inventory, environment, facts.usable.count());
  if (!plan) return plan.error();
  Placement result;
  result.notes = plan->notes;
  const auto bindings = bind(request, facts, *plan, result);
  if (!bindings) return bindings.error();
  const auto threads = request.divide_threads
                           ? divide_threads(facts.cores, *bindings, facts.usable.quota,
                                            plan->workers * request.agents)
                           : std::vector<int>();
  const auto workers = static_cast<std::size_t>(plan->workers);
  result.agents.resize(static_cast<std::size_t>(request.agents));
  for (std::size_t i = 0; i < bindings->size(); ++i) {
    const std::size_t local_rank = i % workers;
    const auto& binding = (*bindings)[i];
    WorkerPlacement worker;
    worker.cpus = binding.cpus;
    worker.memory_nodes = binding.memory_nodes;
    worker.environment = plan->environment[local_rank];
    worker.devices = plan->descriptions[local_rank];
    if (i < threads.size()) worker.threads = threads[i];
    worker.description = describe(worker, binding, facts.usable.cpus);
    result.agents[i / workers].push_back(std::move(worker));
  }
  return result;
}

MachineFacts read_machine(const PlacementRequest& request,
                          const std::vector<std::string>& environment) {
  MachineFacts facts;
  const bool bound = request.binding != NumaBinding::None;
  facts.usable.cpus = own_affinity();
  const auto what = request.devices.counted_by();
  if (request.divide_threads || what == CountedBy::Cpu || what == CountedBy::Auto) {
    facts.usable.quota = read_cpu_quota("");
  }
  switch (inventory_need(request.devices, bound || request.show_devices)) {
    case InventoryNeed::Nothing:
      break;
    case InventoryNeed::Presence:
      facts.inventory = read_device_inventory("", NvidiaListing::None, {});
      break;
    case InventoryNeed::Everything:
      facts.inventory = read_device_inventory("", NvidiaListing::Full, mig_entries(environment));
      break;
  }
  if (bound) {
    facts.topology = read_topology();
    facts.memory_nodes = read_allowed_memory_nodes("");
  }
  if (request.divide_threads) facts.cores = read_cores("", facts.usable.cpus);
  return facts;
}

Result<Placement> plan_placement(const PlacementRequest& request,
                                 const std::vector<std::string>& environment) {
  return place_workers(request, read_machine(request, environment), environment);
}

std::vector<std::string> placement_lines(const Placement& placement, int agent, int first_rank) {
  std::vector<std::string> result;
  if (placement.agents.empty()) return result;
  const auto workers = static_cast<int>(placement.agents.front().size());
  for (int local_rank = 0; local_rank < workers; ++local_rank) {
    result.push_back("rank " + std::to_string(first_rank + local_rank) + " (local rank " +
                     std::to_string(local_rank) +
                     "): " + placement.of(agent, local_rank).description);
  }
  return result;
}

std::map<int, int> read_cores(const std::string& root, const std::vector<int>& cpus) {
  std::map<int, int> result;
  for (const int cpu : cpus) {
    result[cpu] = cpu;
    const auto text = read_small_file(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                                      "/topology/thread_siblings_list");
    if (!text) continue;
    if (const auto siblings = parse_cpu_list(*text); siblings && !siblings->empty()) {
      result[cpu] = siblings->front();
    }
  }
  return result;
}

}  // namespace drun::launcher
