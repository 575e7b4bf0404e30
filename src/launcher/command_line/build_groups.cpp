// --replica-groups: how many worlds the job is, and which of them is this drun's.
#include "base/counted.hpp"
#include "base/split.hpp"
#include "cli/usage_error.hpp"
#include "drun/base/endpoint.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/values.hpp"

namespace drun::launcher {
namespace {

constexpr int kMostGroups = 10'000;

// The flags that are of no use without groups.
void refuse_without_groups(const cli::GivenFlags& flags) {
  for (const char* name : {"replica-group-id", "lighthouse"})
    if (const cli::Setting* setting = filled(flags, name))
      throw cli::UsageError(setting->shown +
                            ": say how many groups there are, with "
                            "--replica-groups");
}

// The nodes are counted off: the first group has the first ranks.
int group_of(const cli::Setting& rank, const Options& options) {
  const std::int64_t nodes = std::int64_t{options.replica_groups} * options.max_nodes;
  const int number = parse_integer(rank, 0, 1'000'000);
  if (number >= nodes)
    refuse(rank, "the ranks of " + std::to_string(options.replica_groups) + " groups of " +
                     counted(options.max_nodes, "node") + " are 0 to " + std::to_string(nodes - 1));
  return number / options.max_nodes;
}

}  // namespace

bool is_private(const cli::GivenFlags& flags) {
  const cli::Setting* endpoint = flags.find("rdzv-endpoint");
  if (endpoint == nullptr) return false;
  const auto parsed = parse_endpoint(endpoint->value, 1);
  return parsed && parsed->port == 0;
}

int replica_groups(const cli::GivenFlags& flags) {
  const cli::Setting* groups = filled(flags, "replica-groups");
  return groups == nullptr ? 0 : parse_integer(*groups, 1, kMostGroups);
}

void build_groups(const cli::GivenFlags& flags, Options& options) {
  options.replica_groups = replica_groups(flags);
  if (options.replica_groups == 0) return refuse_without_groups(flags);
  const bool here = options.local_nodes > 0 || flags.on("standalone") || is_private(flags);
  const cli::Setting* rank = filled(flags, "node-rank");
  if (const cli::Setting* id = filled(flags, "replica-group-id")) {
    options.replica_group = parse_integer(*id, 0, options.replica_groups - 1);
  } else if (rank != nullptr && !here) {
    options.replica_group = group_of(*rank, options);
  } else if (!here) {
    for (const char* name : {"rdzv-endpoint", "master-addr"})
      if (const cli::Setting* place = filled(flags, name))
        throw cli::UsageError(place->shown +
                              " with --replica-groups: say which group this node belongs to, with "
                              "--replica-group-id, or count the nodes off with --node-rank");
  }
  const cli::Setting* lighthouse = filled(flags, "lighthouse");
  if (lighthouse == nullptr) return;
  // Inferred: of a host that drun starts, which does not start it.
  const cli::Setting* id = flags.find("replica-group-id");
  if (options.replica_group >= 0 && (id == nullptr || id->source != cli::Source::Inferred))
    throw cli::UsageError(
        lighthouse->shown +
        " is for one drun that starts all groups, on this machine or with -H; beside one drun on "
        "each node start it yourself, and give all of them TORCHFT_LIGHTHOUSE=http://HOST:29510");
  options.lighthouse = lighthouse->value;
}

}  // namespace drun::launcher
