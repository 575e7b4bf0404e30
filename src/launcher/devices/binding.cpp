#include "launcher/devices/binding.hpp"

#include <algorithm>
#include <cassert>
#include <set>
#include <utility>

#include "base/counted.hpp"
#include "base/cpu_list.hpp"
#include "launcher/devices/device_request.hpp"

namespace drun::launcher {
namespace {

using Cpus = std::vector<TopologyCpu>;
// A set of CPUs that belong together, and the number it is known by.
using Groups = std::vector<std::pair<int, Cpus>>;

std::string name_of(NumaBinding binding) {
  switch (binding) {
    case NumaBinding::None:
      break;
    case NumaBinding::Node:
      return "node";
    case NumaBinding::Socket:
      return "socket";
    case NumaBinding::Exclusive:
      return "exclusive";
    case NumaBinding::CoreComplex:
      return "core-complex";
  }
  return "none";
}

Error refused(const BindingInput& input, const std::string& why) {
  return refused(DeviceFlag::NumaBinding, " " + name_of(input.binding) + ": " + why);
}

Groups group_by(const Cpus& cpus, int TopologyCpu::*key) {
  std::map<int, Cpus> groups;
  for (const auto& cpu : cpus)
    groups[cpu.*key].push_back(cpu);
  return {groups.begin(), groups.end()};
}

Cpus usable(const BindingInput& input) {
  Cpus result;
  for (const auto& cpu : input.topology.cpus) {
    if (std::binary_search(input.allowed.begin(), input.allowed.end(), cpu.number)) {
      result.push_back(cpu);
    }
  }
  return result;
}

WorkerBinding to_binding(const Cpus& cpus, const BindingInput& input) {
  WorkerBinding result;
  std::set<int> nodes;
  for (const auto& cpu : cpus) {
    result.cpus.push_back(cpu.number);
    nodes.insert(cpu.node);
  }
  std::sort(result.cpus.begin(), result.cpus.end());
  result.cores = static_cast<int>(group_by(cpus, &TopologyCpu::core).size());
  result.memory_nodes.assign(nodes.begin(), nodes.end());
  if (input.allowed_memory) {
    result.memory_nodes = common_numbers(result.memory_nodes, *input.allowed_memory);
  }
  return result;
}

// The `index`-th of `parts` shares of `cores`: contiguous, the first ones one core larger.
Cpus core_share(const Groups& cores, std::size_t index, std::size_t parts) {
  const std::size_t each = cores.size() / parts;
  const std::size_t larger = cores.size() % parts;
  const std::size_t begin = index * each + std::min(index, larger);
  const std::size_t end = begin + each + (index < larger ? 1 : 0);
  Cpus result;
  for (std::size_t i = begin; i < end; ++i) {
    result.insert(result.end(), cores[i].second.begin(), cores[i].second.end());
  }
  return result;
}

// Groups that share a last-level cache, the biggest first, then by number.
Groups core_complexes(const Cpus& cpus) {
  Groups result = group_by(cpus, &TopologyCpu::cache);
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return result;
}

// How many of `workers` each group gets: in proportion to its cores, the largest remainders rounded
// up, the first of equals first.
std::vector<std::size_t> apportion(const Groups& groups, std::size_t workers) {
  std::vector<std::size_t> cores;
  std::size_t all = 0;
  for (const auto& [number, cpus] : groups) {
    cores.push_back(group_by(cpus, &TopologyCpu::core).size());
    all += cores.back();
  }
  assert(all > 0);  // there are groups, and each has a core
  std::vector<std::size_t> result;
  std::vector<std::size_t> order;
  std::size_t given = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    result.push_back(workers * cores[i] / all);
    order.push_back(i);
    given += result.back();
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return workers * cores[a] % all > workers * cores[b] % all;
  });
  for (std::size_t i = 0; given < workers; ++i, ++given)
    ++result[order[i]];
  return result;
}

// For each worker the group that it belongs to: neighbours in rank share a group. Fewer workers
// than groups are spread evenly.
std::vector<std::size_t> spread(const Groups& groups, std::size_t workers) {
  std::vector<std::size_t> result;
  if (workers < groups.size()) {
    for (std::size_t i = 0; i < workers; ++i)
      result.push_back(i * groups.size() / workers);
    return result;
  }
  const auto counts = apportion(groups, workers);
  for (std::size_t i = 0; i < counts.size(); ++i)
    result.insert(result.end(), counts[i], i);
  return result;
}

Result<std::vector<WorkerBinding>> bind_without_devices(const BindingInput& input,
                                                        const Cpus& cpus) {
  const auto workers = static_cast<std::size_t>(input.workers);
  std::vector<WorkerBinding> result;
  if (input.binding == NumaBinding::Exclusive) {
    Groups cores;  // in the order of NUMA nodes, so that few shares straddle two
    for (const auto& [node, members] : group_by(cpus, &TopologyCpu::node)) {
      for (auto& core : group_by(members, &TopologyCpu::core))
        cores.push_back(std::move(core));
    }
    if (cores.size() < workers) {
      return refused(input, counted(cores.size(), "usable core") + " for " +
                                counted(workers, "worker") + "; start fewer, or use node");
    }
    for (std::size_t i = 0; i < workers; ++i) {
      result.push_back(to_binding(core_share(cores, i, workers), input));
    }
    return result;
  }
  const auto groups = group_by(
      cpus, input.binding == NumaBinding::Socket ? &TopologyCpu::package : &TopologyCpu::node);
  const auto places = spread(groups, workers);
  std::vector<std::size_t> used(groups.size());
  for (const std::size_t place : places) {
    const Cpus& members = groups[place].second;
    if (input.binding != NumaBinding::CoreComplex) {
      result.push_back(to_binding(members, input));
      continue;
    }
    const auto complexes = core_complexes(members);
    result.push_back(to_binding(complexes[used[place]++ % complexes.size()].second, input));
  }
  return result;
}

Result<std::vector<WorkerBinding>> bind_to_devices(const BindingInput& input, const Cpus& cpus) {
  std::vector<WorkerBinding> result;
  const auto nodes = group_by(cpus, &TopologyCpu::node);
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(input.workers); ++rank) {
    const int number = std::max(input.device_nodes[rank], 0);
    const auto node = std::find_if(nodes.begin(), nodes.end(),
                                   [&](const auto& group) { return group.first == number; });
    if (node == nodes.end()) {
      return refused(input, "device " + std::to_string(rank) + " is at NUMA node " +
                                std::to_string(number) +
                                ", of which drun may use no CPU: its own are " +
                                format_cpu_list(input.allowed));
    }
    const Cpus& members = node->second;
    std::size_t peers = 0;  // devices of the same node, and how many of them come before this one
    std::size_t before = 0;
    for (std::size_t i = 0; i < input.device_nodes.size(); ++i) {
      if (std::max(input.device_nodes[i], 0) != number) continue;
      ++peers;
      if (i < rank) ++before;
    }
    if (input.binding == NumaBinding::Node) {
      result.push_back(to_binding(members, input));
    } else if (input.binding == NumaBinding::Socket) {
      Cpus package;
      for (const auto& [other, others] : nodes) {
        if (others.front().package != members.front().package) continue;
        package.insert(package.end(), others.begin(), others.end());
      }
      result.push_back(to_binding(package, input));
    } else if (input.binding == NumaBinding::CoreComplex) {
      const auto complexes = core_complexes(members);
      result.push_back(to_binding(complexes[before % complexes.size()].second, input));
    } else {
      const auto cores = group_by(members, &TopologyCpu::core);
      if (cores.size() < peers) {
        return refused(input, "NUMA node " + std::to_string(number) + " has " +
                                  counted(cores.size(), "usable core") + " for " +
                                  counted(peers, "device") + "; use node instead");
      }
      result.push_back(to_binding(core_share(cores, before, peers), input));
    }
  }
  return result;
}

}  // namespace

Result<std::vector<WorkerBinding>> bind_workers(const BindingInput& input) {
  if (input.binding == NumaBinding::None) {
    return std::vector<WorkerBinding>(static_cast<std::size_t>(input.workers));
  }
  const Cpus cpus = usable(input);
  if (cpus.empty()) {
    return refused(
        input, "hwloc lists none of the CPUs that drun may use: " + format_cpu_list(input.allowed));
  }
  const bool has_devices = !input.device_nodes.empty() &&
                           input.device_nodes.size() >= static_cast<std::size_t>(input.workers);
  return has_devices ? bind_to_devices(input, cpus) : bind_without_devices(input, cpus);
}

std::string describe(const WorkerBinding& binding) {
  if (binding.cpus.empty()) return "any CPU";
  std::string result = binding.cpus.size() == 1 ? "CPU " : "CPUs ";
  result += format_cpu_list(binding.cpus) + " (" + counted(binding.cores, "core") + ")";
  if (!binding.memory_nodes.empty()) {
    result += binding.memory_nodes.size() == 1 ? " of NUMA node " : " of NUMA nodes ";
    result += format_cpu_list(binding.memory_nodes);
  }
  return result;
}

std::vector<int> divide_threads(const std::map<int, int>& cores,
                                const std::vector<WorkerBinding>& bindings,
                                std::optional<double> quota, int workers) {
  // The cores of each worker, and how many workers may use each core.
  std::vector<std::set<int>> own(static_cast<std::size_t>(workers));
  std::map<int, int> users;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const bool bound = i < bindings.size() && !bindings[i].cpus.empty();
    for (const auto& [cpu, core] : cores) {
      if (bound && !std::binary_search(bindings[i].cpus.begin(), bindings[i].cpus.end(), cpu)) {
        continue;
      }
      own[i].insert(core);
    }
    for (const int core : own[i])
      ++users[core];
  }
  std::vector<int> result;
  for (const auto& mine : own) {
    double share = 0;
    for (const int core : mine)
      share += 1.0 / users[core];
    if (quota) share = std::min(share, *quota / workers);
    constexpr double kRounding = 1e-6;  // three thirds are one
    result.push_back(std::max(1, static_cast<int>(share + kRounding)));
  }
  return result;
}

}  // namespace drun::launcher
