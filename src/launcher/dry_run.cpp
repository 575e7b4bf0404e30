#include "launcher/dry_run.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "base/counted.hpp"
#include "base/printable.hpp"
#include "base/shell_quote.hpp"
#include "launcher/hosts/group_plan.hpp"
#include "launcher/hosts/remote_command.hpp"
#include "launcher/hosts/start_plan.hpp"
#include "launcher/starter/self_copy.hpp"
#include "launcher/workers/environment.hpp"
#include "launcher/workers/frameworks.hpp"

namespace drun::launcher {
namespace {

// Variables whose value only the rendezvous decides, with what is known of it instead.
using Undecided = std::map<std::string_view, std::string>;

constexpr int kMostNodesShown = 16;
constexpr const char* kFreshId = "<a fresh one>";

// MASTER_PORT is where the nodes meet.
bool shares_endpoint(const Options& options) {
  return options.backend == Backend::Static && options.worker_store != WorkerStore::Rank0;
}

// What is known before the nodes have met, supposing that all run the same command line.
struct Plan {
  int nodes = 1;          // in the layout
  std::vector<int> here;  // nodes of this machine; empty: decided at the rendezvous
  bool elastic = false;
  rendezvous::Assignment of(const Options& options, int node) const {
    rendezvous::Assignment result;
    result.round = 1;
    result.group_rank = node;
    result.group_world_size = nodes;
    result.first_rank = result.first_role_rank = node * options.nproc_per_node;
    result.world_size = result.role_world_size = nodes * options.nproc_per_node;
    result.master_address = options.backend == Backend::Standalone
                                ? options.local_addr.value_or("127.0.0.1")
                                : options.endpoint.host;
    result.master_port =
        shares_endpoint(options) ? options.endpoint.port : options.master_port.value_or(0);
    if (options.worker_store == WorkerStore::Local) result.store_here = {"127.0.0.1", 0};
    return result;
  }
};

Plan plan_of(const Options& options) {
  Plan plan;
  plan.nodes = options.max_nodes;
  plan.elastic = options.min_nodes != options.max_nodes;
  if (options.local_nodes > 0) {
    plan.nodes = std::min(options.local_nodes, options.max_nodes);
    plan.nodes -= plan.nodes % options.node_step;
    plan.elastic = false;
    for (int node = 0; node < plan.nodes; ++node)
      plan.here.push_back(node);
  } else if (options.max_nodes == 1) {
    plan.here.push_back(0);
  } else if (options.node_rank) {
    plan.here.push_back(*options.node_rank);
  }
  return plan;
}

std::string between(int low, int high, int step) {
  return "<" + std::to_string(low) + " to " + std::to_string(high) +
         (step > 1 ? ", in steps of " + std::to_string(step) : "") + ">";
}

Undecided undecided_of(const Options& options, const Plan& plan) {
  Undecided result;
  const int workers = options.nproc_per_node;
  const bool relays = options.worker_store == WorkerStore::Local;
  if (relays) {
    result["MASTER_PORT"] = "<a free port of the worker's own node>";
  } else if (!options.master_port && !shares_endpoint(options)) {
    result["MASTER_PORT"] = "<a free port of node 0>";
  }
  if (plan.elastic) {
    result["WORLD_SIZE"] = result["ROLE_WORLD_SIZE"] =
        between(options.min_nodes * workers, options.max_nodes * workers,
                options.node_step > 1 ? options.node_step * workers : 1);
    result["GROUP_WORLD_SIZE"] = between(options.min_nodes, options.max_nodes, options.node_step);
  }
  const bool at_a_node = options.backend == Backend::C10d && options.endpoint.port != 0;
  if (at_a_node || options.backend == Backend::Etcd) {
    result[relays ? "DRUN_MASTER_ADDR" : "MASTER_ADDR"] = "<address of node 0>";
  }
  if (plan.here.empty()) result["GROUP_RANK"] = "<node>";
  if (options.fresh_run_id) result["TORCHELASTIC_RUN_ID"] = kFreshId;
  if (options.replica_groups > 0 && options.replica_group < 0)
    result["REPLICA_GROUP_ID"] = "<0 to " + std::to_string(options.replica_groups - 1) + ">";
  const auto address = result.find("MASTER_ADDR");
  const auto port = result.find("MASTER_PORT");
  if (address != result.end() || port != result.end())
    result["JAX_COORDINATOR_ADDRESS"] = "<MASTER_ADDR>:<MASTER_PORT>";
  return result;
}

std::string shown(const std::string& entry, const Undecided& undecided) {
  const auto equals = entry.find('=');
  const std::string name = entry.substr(0, equals);
  const auto found = undecided.find(FrameworkVariables::torchrun_name(name));
  return name + "=" +
         (found != undecided.end() ? found->second : shell_quoted(entry.substr(equals + 1)));
}

std::string command_line(const Options& options, int local_rank) {
  std::string result;
  for (const std::string& word : worker_command(options, local_rank)) {
    result += (result.empty() ? "" : " ") + shell_quoted(word);
  }
  return result;
}

std::string head(const Options& options, const Plan& plan) {
  const int workers = options.nproc_per_node;
  std::string text;
  if (options.replica_groups > 0)
    text +=
        "groups:   " + std::to_string(options.replica_groups) + ", " +
        (options.replica_group < 0 ? std::string("all on this machine")
                                   : "this is number " + std::to_string(options.replica_group)) +
        "; of each:\n";
  text += "nodes:    ";
  if (plan.elastic) {
    text += std::to_string(options.min_nodes) + " to ";
  }
  text += std::to_string(plan.nodes);
  if (plan.elastic && options.node_step > 1)
    text += " in steps of " + std::to_string(options.node_step);
  text += ", " + counted(workers, "worker") + " each";
  if (static_cast<int>(plan.here.size()) < plan.nodes)
    text += " (if all nodes are started like this one)";
  text += "\nmeet at:  ";
  if (options.backend == Backend::Standalone || options.endpoint.port == 0) {
    text += "a private store on a free port";
  } else {
    text += meeting_place(options);
    if (options.backend != Backend::Etcd)
      text += options.backend == Backend::Static ? " (static)" : " (c10d)";
  }
  text += "\njob id:   " + (options.fresh_run_id ? kFreshId : options.run_id) + "\n";
  const int listed = std::min(plan.nodes, kMostNodesShown);
  for (int node = 0; node < listed; ++node) {
    const int first = node * workers;
    text += node == 0 ? "ranks:    " : "          ";
    text += "node " + std::to_string(node) + ": " + std::to_string(first);
    if (workers > 1) text += "-" + std::to_string(first + workers - 1);
    text += "\n";
  }
  if (plan.nodes > listed) {
    text += "          and so on to node " + std::to_string(plan.nodes - 1) + "\n";
  }
  return text;
}

// One node's workers; `node` < 0: which one is decided at the rendezvous.
std::string node_text(Options options, const Plan& plan, int node) {
  if (options.local_nodes > 0) options.local_node = node;
  const Undecided undecided = undecided_of(options, plan);
  const auto assignment = plan.of(options, std::max(node, 0));
  const WorkerEnvironments environments(options, assignment);
  const auto own_count = environments.own(0, "").size();
  std::string text = "\n";
  text += node < 0 ? "this node (the rendezvous decides which; --node-rank asks for one)"
                   : "node " + std::to_string(node);
  text += ", every worker:\n";
  const auto all = environments.set_by_drun(0, "");
  for (std::size_t i = own_count; i < all.size(); ++i) {
    text += "  " + shown(all[i], undecided) + "\n";
  }
  for (int local_rank = 0; local_rank < options.nproc_per_node; ++local_rank) {
    Undecided mine;
    std::string rank = std::to_string(assignment.first_rank + local_rank);
    if (node < 0) {
      rank = "<" + std::to_string(options.nproc_per_node) + " x node";
      if (local_rank > 0) rank += " + " + std::to_string(local_rank);
      rank += ">";
      mine["RANK"] = mine["ROLE_RANK"] = rank;
    }
    text += "rank " + rank + ", local rank " + std::to_string(local_rank) + ":\n  ";
    const std::string& place = options.placement.of(options.local_node, local_rank).description;
    if (!place.empty()) text += "on " + place + "\n  ";
    for (const std::string& each : environments.own(local_rank, "")) {
      if (each.starts_with("TORCHELASTIC_ERROR_FILE=") || each.starts_with("DRUN_HEARTBEAT_FILE="))
        continue;
      text += shown(each, mine) + " ";
    }
    text += command_line(options, local_rank) + "\n";
  }
  return text;
}

std::string in_one_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words)
    line += (line.empty() ? "" : " ") + shell_quoted(word);
  return line;
}

// Of variables the number alone: their values may be secrets.
std::string hosts_head(const hosts::StartPlan& plan) {
  return "folder:   " + as_name(plan.directory) +
         "\nvariables handed over: " + std::to_string(plan.environment.size()) + "\n";
}

std::string hosts_text(const hosts::StartPlan& plan) {
  std::string text;
  const std::size_t listed = std::min(plan.hosts.size(), std::size_t{kMostNodesShown});
  const hosts::SelfOffer offer = plan.copy_self ? self_offer() : hosts::SelfOffer();
  for (std::size_t node = 0; node < listed; ++node)
    text += "\nnode " + std::to_string(node) + " on " + plan.hosts[node].name + ":\n  " +
            in_one_line(remote_command(plan.launcher, plan.hosts[node].name, plan.drun, offer)) +
            "\n  " + in_one_line(agent_command(plan, node, {"<its address and a free port>", 0})) +
            "\n";
  if (plan.hosts.size() > listed)
    text += "\nand so on to node " + std::to_string(plan.hosts.size() - 1) + "\n";
  return text;
}

std::string starts_text(const Options& options) {
  std::string text = hosts_head(*options.start);
  if (options.replica_groups == 0) text += hosts_text(*options.start);
  for (int group = 0; group < options.replica_groups; ++group)
    text += "\nreplica group " + std::to_string(group) + ":\n" +
            hosts_text(hosts::group_plan(*options.start, options.replica_groups, group));
  return text + "\nNothing was started.\n";
}

}  // namespace

std::string dry_run(const Options& options) {
  if (options.start) return starts_text(options);
  const Plan plan = plan_of(options);
  std::string text = head(options, plan);
  if (plan.here.empty()) {
    text += node_text(options, plan, -1);
  }
  for (const int node : plan.here)
    text += node_text(options, plan, node);
  text +=
      "\nTORCHELASTIC_ERROR_FILE and DRUN_HEARTBEAT_FILE are decided when a worker starts. "
      "Nothing was started.\n";
  return text;
}

}  // namespace drun::launcher
