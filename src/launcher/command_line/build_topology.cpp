// --rank-order topology, --topology-file: where this node is in the network.
#include "base/environment_variable.hpp"
#include "base/printable.hpp"
#include "cli/usage_error.hpp"
#include "launcher/cluster/network_place.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/values.hpp"

namespace drun::launcher {
namespace {

// What this node may be called in such a file.
std::vector<std::string> own_names(const BuildInput& given) {
  std::vector<std::string> names;
  if (const auto slurms = environment_variable(given.environment, "SLURMD_NODENAME"))
    names.push_back(*slurms);
  if (given.host.host_name) {
    const std::string name = given.host.host_name();
    names.push_back(name);
    names.push_back(name.substr(0, name.find('.')));
  }
  return names;
}

std::string place_in_file(const cli::Setting& setting, const BuildInput& given) {
  const auto text = content_of(setting, given.host);
  const auto place = cluster::network_place_in(text, own_names(given));
  if (!place) refuse(setting, place.error().what());
  return *place;
}

}  // namespace

void build_topology(const BuildInput& given, Options& options) {
  using rendezvous::RankOrder;
  const cli::Setting* file = filled(given.flags, "topology-file");
  const cli::Setting* order = given.flags.find("rank-order");
  if (file != nullptr && order != nullptr && options.rank_order != RankOrder::Topology)
    throw cli::UsageError(order->shown + " " + in_quotes(order->value) + ": " + file->shown +
                          " is for topology");
  if (file != nullptr) options.rank_order = RankOrder::Topology;
  if (options.rank_order != RankOrder::Topology) return;
  if (file != nullptr) {
    options.network = place_in_file(*file, given);
  } else {
    const auto address = environment_variable(given.environment, "SLURM_TOPOLOGY_ADDR");
    const auto pattern = environment_variable(given.environment, "SLURM_TOPOLOGY_ADDR_PATTERN");
    options.network = cluster::network_place(address.value_or(""), pattern.value_or(""));
    if (options.network.empty())
      options.notes.push_back(order->shown +
                              " topology: nothing says where this node is in the network (Slurm "
                              "would, with SLURM_TOPOLOGY_ADDR; otherwise give --topology-file)");
  }
}

}  // namespace drun::launcher
