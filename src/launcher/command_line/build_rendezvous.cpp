#include <algorithm>

#include "base/addresses.hpp"
#include "base/lower_case.hpp"
#include "base/printable.hpp"
#include "base/trimmed.hpp"
#include "cli/usage_error.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/rdzv_conf.hpp"
#include "launcher/command_line/values.hpp"
#include "launcher/options/replica_group.hpp"

namespace drun::launcher {
namespace {

constexpr std::uint16_t kC10dPort = 29400;
constexpr std::uint16_t kStaticPort = 29500;
constexpr std::uint16_t kEtcdPort = 2379;
constexpr std::size_t kMostEndpoints = 16;
constexpr std::chrono::milliseconds kStaticTimeout{900'000};
constexpr std::string_view kDefaultMaster = "127.0.0.1";
constexpr std::size_t kLongestId =
    1'000;  // a store's keys have a limit, and escapes make it longer

enum class RequestedBackend { Nothing, C10d, Static, Etcd };

RequestedBackend requested_backend(const cli::GivenFlags& flags) {
  const cli::Setting* backend = filled(flags, "rdzv-backend");
  if (backend == nullptr) return RequestedBackend::Nothing;
  // torchrun's scripts say etcd-v2; etcd's own version 2 is long gone.
  for (const char* name : {"etcd", "etcd-v2", "etcd-v3"}) {
    if (backend->value == name) return RequestedBackend::Etcd;
  }
  if (backend->value != "c10d" && backend->value != "static") {
    refuse(*backend,
           "expected c10d, static or etcd; drun loads no Python plug-ins: use c10d, with one of "
           "the nodes "
           "as --rdzv-endpoint");
  }
  return parse_choice(*backend, {"c10d", "static"}) == 0 ? RequestedBackend::C10d
                                                         : RequestedBackend::Static;
}

Endpoint checked_endpoint(const cli::Setting& setting, std::uint16_t default_port) {
  const auto parsed = parse_endpoint(trimmed(setting.value), default_port);
  if (!parsed) throw cli::UsageError(setting.shown + " " + parsed.error().what());
  return *parsed;
}

// "host1:29400,host2,[::1]:29400".
std::vector<Endpoint> checked_endpoints(const cli::Setting& setting, std::uint16_t default_port) {
  std::vector<Endpoint> endpoints;
  for (const std::string& item : split(setting.value, ',')) {
    const auto parsed = parse_endpoint(trimmed(item), default_port);
    if (trimmed(item).empty() && item.size() < setting.value.size())
      refuse(setting, "there is a comma too many");
    if (!parsed) throw cli::UsageError(setting.shown + " " + parsed.error().what());
    endpoints.push_back(*parsed);
  }
  return endpoints;
}

std::vector<Endpoint> checked_members(const cli::Setting& setting) {
  auto members = checked_endpoints(setting, kEtcdPort);
  for (const Endpoint& member : members)
    if (member.port == 0)
      refuse(setting, "port 0 is no port of etcd, whose members listen at 2379 as a rule");
  return members;
}

// However it is written. Names that have one address are for those to know who gave them.
bool is_same_place(const Endpoint& a, const Endpoint& b) {
  const auto first = numeric_addresses(a.host);
  const auto second = numeric_addresses(b.host);
  const bool one_name = lower_case(a.host) == lower_case(b.host);
  const bool one_address =
      std::find_first_of(first.begin(), first.end(), second.begin(), second.end()) != first.end();
  return a.port == b.port && (one_name || one_address);
}

// A job may begin where most of them have met, so each must be one place, and one that all know.
std::vector<Endpoint> checked_list(const cli::Setting& setting) {
  auto list = checked_endpoints(setting, kC10dPort);
  if (list.size() == 1) return list;
  if (list.size() > kMostEndpoints)
    refuse(setting, "at most " + std::to_string(kMostEndpoints) + " endpoints");
  for (auto each = list.begin(); each != list.end(); ++each) {
    if (each->port == 0)
      refuse(setting, "port 0 means any free port, which the other nodes cannot know");
    if (each->host == "0.0.0.0" || each->host == "::")
      refuse(setting, each->host + " is no machine's address");
    if (std::any_of(list.begin(), each,
                    [&](const auto& other) { return is_same_place(other, *each); }))
      refuse(setting, to_string(*each) + " is there twice");
  }
  return list;
}

std::optional<std::uint16_t> port_setting(const cli::GivenFlags& flags) {
  const cli::Setting* setting = filled(flags, "master-port");
  if (setting == nullptr) return std::nullopt;
  return static_cast<std::uint16_t>(parse_integer(*setting, 0, 65535));
}

std::string master_address(const cli::GivenFlags& flags) {
  const cli::Setting* setting = filled(flags, "master-addr");
  if (setting == nullptr) return std::string(kDefaultMaster);
  const Endpoint parsed = checked_endpoint(*setting, 0);
  if (parsed.port != 0) refuse(*setting, "expected an address only; the port is --master-port");
  return parsed.host;
}

// A store that only this machine's agents know.
void use_private_store(Options& options) {
  if (options.local_nodes > 0) {
    options.backend = Backend::C10d;
    options.endpoint = {std::string(kDefaultMaster), 0};
  } else {
    options.backend = Backend::Standalone;
    options.endpoint = {};
    options.min_nodes = options.max_nodes = 1;
  }
}

void use_free_port(Options& options) {
  if (options.max_nodes == 1) return use_private_store(options);
  throw cli::UsageError(
      "port 0 means any free port, which the other nodes cannot know; give a number");
}

// drun must not hold the port that rank 0's worker binds. One node meets nobody, so that it needs
// no store there. Several meet at that port, and the worker gets another one.
void leave_port_to_rank0(Options& options) {
  if (options.max_nodes == 1) {
    options.backend = Backend::Standalone;
    options.master_port = options.endpoint.port;
    if (!options.local_addr) options.local_addr = options.endpoint.host;
  } else if (options.master_port == options.endpoint.port) {
    options.master_port.reset();
  }
}

// MASTER_ADDR:MASTER_PORT is the endpoint, as in torchrun.
void use_static(const cli::GivenFlags& flags, Options& options) {
  if (options.replica_groups > 0)
    throw cli::UsageError(
        "replica groups of several nodes meet at an --rdzv-endpoint: with --master-addr all of "
        "them would have the same MASTER_ADDR");
  if (const cli::Setting* endpoint = filled(flags, "rdzv-endpoint")) {
    if (split(endpoint->value, ',').size() > 1)
      refuse(*endpoint,
             "a static job meets at node rank 0, so it has one endpoint; several need "
             "--rdzv-backend c10d");
    options.endpoint = checked_endpoint(*endpoint, options.master_port.value_or(kStaticPort));
  } else {
    options.endpoint = {master_address(flags), options.master_port.value_or(kStaticPort)};
    options.endpoint_flag = "--master-addr";
    if (options.max_nodes > 1 && filled(flags, "master-addr") == nullptr) {
      options.notes.push_back("no --master-addr: the nodes meet at " + to_string(options.endpoint) +
                              ", which only this machine can reach");
    }
  }
  if (options.endpoint.port == 0) {
    options.master_port.reset();
    return use_free_port(options);
  }
  options.backend = Backend::Static;
  if (options.worker_store == WorkerStore::Rank0) leave_port_to_rank0(options);
}

void use_list(const cli::Setting& setting, std::vector<Endpoint> list, Options& options) {
  if (options.replica_groups > 0)
    refuse(setting,
           "each replica group would look for a majority of its own at these; give one endpoint, "
           "or etcd");
  const int majority = static_cast<int>(list.size()) / 2 + 1;
  if (options.max_nodes < majority)
    refuse(setting, "a job begins when the agents of " + std::to_string(majority) + " of these " +
                        std::to_string(list.size()) + " endpoints have met, and --nnodes is " +
                        std::to_string(options.max_nodes));
  if (options.conf.is_host.value_or(false))
    refuse(setting,
           "--rdzv-conf is_host=true does not say which of several endpoints is this node's; give "
           "addresses that the nodes have");
  options.endpoints = std::move(list);
  if (options.conf.successors == 0)
    refuse(setting,
           "with --rdzv-conf successors=0 the job would end with its first store, so several "
           "endpoints are of no use");
}

void use_c10d(const cli::Setting& endpoint, Options& options) {
  auto list = checked_list(endpoint);
  options.endpoint = list.front();
  if (list.size() > 1) use_list(endpoint, std::move(list), options);
  if (options.endpoint.port == 0) {
    return use_free_port(options);  // torchrun's documentation starts single nodes so
  }
  options.backend = Backend::C10d;
  // Scripts give both spellings of one port; torchrun's c10d ignores --master-port.
  if (options.master_port == options.endpoint.port) options.master_port.reset();
}

void use_etcd(const cli::GivenFlags& flags, const GivenConf& conf, Options& options) {
  const cli::Setting* members = filled(flags, "rdzv-endpoint");
  if (members == nullptr)
    throw cli::UsageError(flags.find("rdzv-backend")->shown +
                          " etcd: name the cluster's members: --rdzv-endpoint HOST[:PORT],...");
  options.backend = Backend::Etcd;
  options.etcd = conf.etcd;
  options.etcd.endpoints = checked_members(*members);
  options.endpoint = options.etcd.endpoints.front();
  // Two jobs of one name would be one job, and the name of one that has ended is not free soon.
  if (filled(flags, "rdzv-id") == nullptr)
    throw cli::UsageError(flags.find("rdzv-backend")->shown +
                          " etcd: other jobs meet at the cluster, too: give this one a name of its "
                          "own with --rdzv-id");
  if (options.conf.is_host)
    options.notes.push_back(flags.find("rdzv-conf")->shown +
                            ": is_host has no effect with etcd, which no node runs");
}

void use_standalone(const cli::GivenFlags& flags, Options& options) {
  const cli::Setting* nodes = flags.find("nnodes");
  if (options.min_nodes > 1 && options.local_nodes == 0 && nodes != nullptr) {
    refuse(
        *nodes,
        "--standalone is one node; drop it, or use --local-nodes to run several on this machine");
  }
  for (const char* name : {"rdzv-endpoint", "rdzv-backend", "master-addr"}) {
    const cli::Setting* setting = filled(flags, name);
    if (setting != nullptr && setting->source == cli::Source::Flag) {
      options.notes.push_back(setting->shown + " has no effect with --standalone");
    }
  }
  use_private_store(options);
}

// A replica group of one node meets nobody. torchft leads the other groups to its store.
void use_own_store(const Host& host, Options& options) {
  use_private_store(options);
  options.master_port.reset();
  if (options.replica_group >= 0 && !options.local_addr && host.host_name)
    options.local_addr = host.host_name();
}

// All nodes are on this machine and meet at a store that only they know.
void use_local_nodes(const cli::GivenFlags& flags, Options& options) {
  const cli::Setting* endpoint = filled(flags, "rdzv-endpoint");
  (void)master_address(flags);
  const RequestedBackend requested = requested_backend(flags);
  if (endpoint != nullptr && requested == RequestedBackend::Etcd) {
    (void)checked_members(*endpoint);
  } else if (endpoint != nullptr && checked_list(*endpoint).front().port == 0) {
    endpoint = nullptr;
  }
  const cli::Setting* backend = filled(flags, "rdzv-backend");
  if (requested == RequestedBackend::Nothing || requested == RequestedBackend::C10d)
    backend = nullptr;
  for (const cli::Setting* setting : {endpoint, backend, filled(flags, "master-addr")}) {
    if (setting != nullptr && setting->source == cli::Source::Flag)
      options.notes.push_back(setting->shown + " has no effect with --local-nodes");
  }
  use_private_store(options);
}

// If c10d or etcd is asked for by name, --node-rank is only a wish: torchrun ignores it then, and
// batch scripts give all nodes the rank of the first one.
void check_rank(const cli::GivenFlags& flags, const GivenConf& conf, Options& options) {
  const cli::Setting* setting = filled(flags, "node-rank");
  if (setting != nullptr) options.node_rank = parse_integer(*setting, 0, 1'000'000);
  // Among the nodes of its group, if it was counted off.
  if (options.node_rank && options.replica_groups > 0 &&
      filled(flags, "replica-group-id") == nullptr)
    *options.node_rank %= options.max_nodes;
  // A job of one node alone: the rank may be that of a pod among others.
  if (flags.on("standalone") && options.local_nodes == 0) {
    if (options.node_rank.value_or(0) != 0 && setting->source == cli::Source::Flag) {
      options.notes.push_back(setting->shown + " has no effect with --standalone");
    }
    return options.node_rank.reset();
  }
  const RequestedBackend requested = requested_backend(flags);
  // A scheduler's number is a wish, too: a pod that comes again before its old self is given up
  // waits, and there may be more nodes than take part.
  const bool inferred = setting != nullptr && setting->source == cli::Source::Inferred;
  options.node_rank_is_wish =
      requested == RequestedBackend::C10d || requested == RequestedBackend::Etcd || inferred;
  if (options.node_rank_is_wish) {
    if (!options.node_rank) options.node_rank = conf.rank;
    if (options.node_rank && *options.node_rank >= options.max_nodes) options.node_rank.reset();
  }
  if (conf.rank && !options.node_rank_is_wish) {
    if (options.node_rank && *options.node_rank != *conf.rank) {
      throw cli::UsageError(setting->shown + " " + in_quotes(setting->value) +
                            ": --rdzv-conf says rank=" + std::to_string(*conf.rank));
    }
    options.node_rank = conf.rank;
  }
  // A scheduler numbers its nodes as it likes.
  if (inferred && options.rank_order == rendezvous::RankOrder::Topology)
    return options.node_rank.reset();
  if (!options.node_rank) return;
  const std::string shown = setting != nullptr ? setting->shown : "--rdzv-conf rank";
  if (options.local_nodes > 0) {
    throw cli::UsageError(shown + ": names one node, and --local-nodes starts " +
                          std::to_string(options.local_nodes));
  }
  if (*options.node_rank >= options.max_nodes) {
    throw cli::UsageError(shown + " " + in_quotes(std::to_string(*options.node_rank)) + ": with " +
                          std::to_string(options.max_nodes) +
                          (options.max_nodes == 1 ? " node the only rank is 0"
                                                  : " nodes the ranks are 0 to " +
                                                        std::to_string(options.max_nodes - 1)));
  }
}

}  // namespace

void resolve_rendezvous(const BuildInput& given, Options& options) {
  const cli::GivenFlags& flags = given.flags;
  const RequestedBackend requested = requested_backend(flags);
  const cli::Setting* endpoint = filled(flags, "rdzv-endpoint");
  const bool has_master =
      filled(flags, "master-addr") != nullptr || filled(flags, "master-port") != nullptr;
  GivenConf conf;
  if (const cli::Setting* setting = flags.find("rdzv-conf")) conf = parse_conf(*setting);
  options.conf = conf.conf;
  options.master_port = port_setting(flags);
  // torchrun takes one node without a port for a private job, whatever its --master-addr says.
  const bool ranked = options.max_nodes > 1 && filled(flags, "node-rank") != nullptr;
  const bool master = (has_master && (options.master_port || options.max_nodes > 1)) || ranked;
  const bool is_static =
      requested == RequestedBackend::Static
          ? endpoint != nullptr || master
          : requested == RequestedBackend::Nothing && endpoint == nullptr && master;

  if (flags.on("standalone")) {
    use_standalone(flags, options);
  } else if (options.local_nodes > 0) {
    use_local_nodes(flags, options);
  } else if (options.replica_groups > 0 && options.max_nodes == 1) {
    use_own_store(given.host, options);
  } else if (requested == RequestedBackend::Etcd) {
    use_etcd(flags, conf, options);
  } else if (is_static) {
    use_static(flags, options);
  } else if (endpoint != nullptr) {
    use_c10d(*endpoint, options);
  } else if (options.max_nodes == 1) {
    use_private_store(options);
  } else {
    throw cli::UsageError(
        "several nodes need a place to meet: give --rdzv-endpoint HOST:PORT on every node, or "
        "--node-rank, --master-addr and --master-port, or try them on this machine with "
        "--local-nodes " +
        std::to_string(std::max(2, options.min_nodes)));
  }

  if (options.backend != Backend::Etcd && conf.etcd != etcd::Cluster{})
    options.notes.push_back(flags.find("rdzv-conf")->shown +
                            ": protocol, certificates, username and password are for etcd, and "
                            "have no effect here");
  const auto& meeting = options.endpoint.host;
  if (options.max_nodes > 1 && (meeting == "0.0.0.0" || meeting == "::")) {
    throw cli::UsageError(meeting + " is no machine's address: the nodes meet at an address that " +
                          "one of them has");
  }
  check_rank(flags, conf, options);
  if (options.backend == Backend::Static && !conf.join_timeout) {
    options.conf.join_timeout = conf.timeout.value_or(kStaticTimeout);
  }
  // As in torch, where many give it all the same.
  if (options.backend != Backend::Static && options.max_nodes > 1 && conf.timeout &&
      !conf.join_timeout)
    options.notes.push_back(flags.find("rdzv-conf")->shown +
                            ": timeout is of effect with --rdzv-backend static only, as in "
                            "torchrun; the time to wait for the nodes is join_timeout");
  const bool private_store = options.endpoint.port == 0;
  const cli::Setting* id = filled(flags, "rdzv-id");
  if (id != nullptr) {
    if (id->value.size() > kLongestId)
      refuse(*id, "at most " + std::to_string(kLongestId) + " bytes");
    options.run_id = id->value;
  } else {
    const auto& fresh_id = given.host.fresh_id;
    options.fresh_run_id = private_store && fresh_id;
    options.run_id = options.fresh_run_id ? fresh_id() : "none";
  }
  if (options.replica_group < 0) return;
  options.job_flags = (id != nullptr ? "--rdzv-id " + id->value.substr(0, 64) + ", " : "") +
                      "--replica-groups " + std::to_string(options.replica_groups) +
                      " and --replica-group-id " + std::to_string(options.replica_group);
  belong_to_group(options, options.replica_group);
}

}  // namespace drun::launcher
