#include "launcher/devices/topology.hpp"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/loaded_library.hpp"

namespace drun::launcher {
namespace {

// hwloc 2.x keeps the layout of its objects and these functions for all of libhwloc.so.15.
struct HwlocLibrary {
  decltype(&::hwloc_topology_init) init = nullptr;
  decltype(&::hwloc_topology_destroy) destroy = nullptr;
  decltype(&::hwloc_topology_set_synthetic) set_synthetic = nullptr;
  decltype(&::hwloc_topology_load) load = nullptr;
  decltype(&::hwloc_get_type_depth) type_depth = nullptr;
  decltype(&::hwloc_get_nbobjs_by_depth) count = nullptr;
  decltype(&::hwloc_get_obj_by_depth) object = nullptr;
  decltype(&::hwloc_bitmap_isset) contains = nullptr;
  decltype(&::hwloc_bitmap_first) first = nullptr;
};

Result<HwlocLibrary> load_hwloc() {
  HwlocLibrary hwloc;
  LoadedLibrary file({"libhwloc.so.15", "CPU binding", "2.0", "libhwloc15"});
  file.need("hwloc_topology_init", hwloc.init);
  file.need("hwloc_topology_destroy", hwloc.destroy);
  file.need("hwloc_topology_set_synthetic", hwloc.set_synthetic);
  file.need("hwloc_topology_load", hwloc.load);
  file.need("hwloc_get_type_depth", hwloc.type_depth);
  file.need("hwloc_get_nbobjs_by_depth", hwloc.count);
  file.need("hwloc_get_obj_by_depth", hwloc.object);
  file.need("hwloc_bitmap_isset", hwloc.contains);
  file.need("hwloc_bitmap_first", hwloc.first);
  return file.status().map([&](Done) { return hwloc; });
}

// The system's number of the NUMA node that a CPU belongs to. If memory-only nodes are attached to
// the same CPUs, the lowest is the CPUs' own.
int node_of(const HwlocLibrary& hwloc, hwloc_topology_t topology, unsigned cpu) {
  int result = -1;
  const int depth = HWLOC_TYPE_DEPTH_NUMANODE;
  for (unsigned i = 0; i < hwloc.count(topology, depth); ++i) {
    const auto* const node = hwloc.object(topology, depth, i);
    if (hwloc.contains(node->cpuset, cpu) == 0) continue;
    const int number = static_cast<int>(node->os_index);
    if (result < 0 || number < result) result = number;
  }
  return std::max(result, 0);
}

bool holds_data(hwloc_obj_type_t type) {
  return type >= HWLOC_OBJ_L1CACHE && type <= HWLOC_OBJ_L5CACHE;
}

TopologyCpu describe(const HwlocLibrary& hwloc, hwloc_topology_t topology, const hwloc_obj* unit) {
  TopologyCpu result;
  result.number = static_cast<int>(unit->os_index);
  result.core = result.number;
  result.node = node_of(hwloc, topology, unit->os_index);
  int package_group = -1;
  int cache = -1;
  const hwloc_obj* top = unit;
  for (const hwloc_obj* object = unit; object != nullptr; object = object->parent) {
    const int lowest = hwloc.first(object->cpuset);
    if (object->type == HWLOC_OBJ_CORE) result.core = lowest;
    if (holds_data(object->type)) cache = lowest;  // the last one on the way up is the largest
    if (object->type == HWLOC_OBJ_PACKAGE) {
      result.package = static_cast<int>(object->os_index);
      package_group = lowest;
    }
    top = object;
  }
  if (package_group < 0) package_group = hwloc.first(top->cpuset);
  result.cache = cache >= 0 ? cache : package_group;
  return result;
}

}  // namespace

Result<Topology> read_topology(const std::string& synthetic) {
  const auto library = load_hwloc();
  if (!library) return library.error();
  const HwlocLibrary& hwloc = *library;
  hwloc_topology_t raw = nullptr;
  if (hwloc.init(&raw) != 0) {
    return Error::from_errno(errno, "CPU binding: hwloc_topology_init");
  }
  const std::unique_ptr<hwloc_topology, decltype(hwloc.destroy)> topology(raw, hwloc.destroy);
  if (!synthetic.empty() && hwloc.set_synthetic(raw, synthetic.c_str()) != 0) {
    return Error(std::make_error_code(std::errc::invalid_argument),
                 "\"" + synthetic + "\" is not a synthetic topology that hwloc understands");
  }
  if (hwloc.load(raw) != 0) {
    return Error::from_errno(errno, "CPU binding: hwloc cannot read this machine's topology");
  }
  Topology result;
  const int depth = hwloc.type_depth(raw, HWLOC_OBJ_PU);
  for (unsigned i = 0; i < hwloc.count(raw, depth); ++i) {
    result.cpus.push_back(describe(hwloc, raw, hwloc.object(raw, depth, i)));
  }
  std::sort(result.cpus.begin(), result.cpus.end(),
            [](const TopologyCpu& a, const TopologyCpu& b) { return a.number < b.number; });
  return result;
}

}  // namespace drun::launcher
