// -H, --hostfile and what belongs to them: which agents are started on which hosts, with which
// command lines. What an agent there must be told is told by flags, so that it is started as a user
// would start it.
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/environment_variable.hpp"
#include "base/printable.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "drun/base/endpoint.hpp"
#include "launcher/cluster/cluster.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/flags.hpp"
#include "launcher/command_line/rdzv_conf.hpp"
#include "launcher/command_line/values.hpp"
#include "launcher/hosts/handed_environment.hpp"
#include "secure/token_source.hpp"

namespace drun::launcher {
namespace {

// Not for the agents.
constexpr auto kStartersOwn = std::to_array<std::string_view>(
    {"host", "hostfile", "export", "env-file", "launcher", "fan-out", "copy-self", "cluster",
     "dry-run", "explain", "lighthouse", "replica-group-id"});
// Of no meaning if drun starts one agent on each host.
constexpr auto kNotWithHosts =
    std::to_array<std::string_view>({"standalone", "local-nodes", "node-rank", "replica-group-id"});
constexpr std::uint16_t kSomePort = 29400;  // the first host will say which

bool is_one_of(std::string_view name, const auto& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Nothing but --launcher srun: on all nodes of the allocation.
std::vector<hosts::Host> hosts_of_allocation(const cluster::StepNodes& nodes, bool counted) {
  std::vector<hosts::Host> result;
  for (std::size_t i = 0; i < nodes.hosts.size(); ++i) {
    hosts::Host& host = result.emplace_back(hosts::Host{nodes.hosts[i], {}, {}});
    if (!nodes.tasks.empty() && !counted) host.slots = nodes.tasks[i];
  }
  return result;
}

std::vector<hosts::Host> listed_hosts(const cli::GivenFlags& flags, const Host& host) {
  const cli::Setting* list = flags.find("host");
  const cli::Setting* file = flags.find("hostfile");
  if (list != nullptr && file != nullptr)
    throw cli::UsageError(list->shown + " and " + file->shown + " both list hosts: give one");
  const cli::Setting& setting = list != nullptr ? *list : *file;
  const auto found = list != nullptr ? hosts::parse_host_list(setting.value)
                                     : hosts::parse_hostfile(content_of(setting, host));
  if (!found) refuse(setting, found.error().what());
  return *found;
}

// -H a -H b is -H a,b. A variable of the shell that is not set, as in -H "$HOSTS", must not start
// the program here.
void join_lists(cli::GivenFlags& flags) {
  for (const char* name : {"host", "hostfile"}) {
    const cli::Setting* setting = flags.find(name);
    if (setting == nullptr || setting->source != cli::Source::Flag) continue;
    cli::Setting joined = *setting;
    std::replace(joined.value.begin(), joined.value.end(), cli::kBetweenValues, ',');
    for (const std::string& list : split(setting->value, cli::kBetweenValues))
      if (list.empty()) refuse(joined, "it names no host");
    flags.set(std::move(joined));
  }
}

// A flag of this group without hosts to start.
void refuse_without_hosts(const cli::GivenFlags& flags) {
  for (const char* name : {"export", "env-file"}) {
    const cli::Setting* setting = flags.find(name);
    if (setting == nullptr || setting->source != cli::Source::Flag) continue;
    throw cli::UsageError(setting->shown +
                          " is for other hosts (-H, --hostfile); workers of this one inherit "
                          "drun's environment");
  }
  for (const char* name : {"launcher", "fan-out", "copy-self"})
    if (const cli::Setting* setting = flags.find(name);
        setting != nullptr && setting->source == cli::Source::Flag)
      throw cli::UsageError(setting->shown +
                            " is for other hosts: name them with -H or --hostfile");
}

void refuse_what_contradicts(const cli::GivenFlags& flags) {
  for (const std::string_view name : kNotWithHosts)
    if (const cli::Setting* setting = flags.find(name);
        name == "node-rank" || name == "replica-group-id" ? filled(flags, name) != nullptr
                                                          : flags.on(name))
      throw cli::UsageError(setting->shown +
                            " is for one drun, and -H or --hostfile starts one on each host");
  if (const cli::Setting* setting = flags.find("stdin"); setting && setting->value != "none")
    throw cli::UsageError(
        setting->shown + ": standard input does not go to other hosts; let the worker read a file");
}

void infer(cli::GivenFlags& flags, std::string_view name, const std::string& from,
           std::string value) {
  flags.set({drun_program(false).find(name), cli::Source::Inferred, from, std::move(value)});
}

void count_nodes(cli::GivenFlags& flags, const std::string& from, std::size_t hosts) {
  const cli::Setting* nodes = flags.find("nnodes");
  if (nodes == nullptr) return infer(flags, "nnodes", from, std::to_string(hosts));
  const NodeNumbers numbers = parse_nodes(*nodes);
  if (static_cast<int>(hosts) < numbers.least)
    refuse(*nodes, "there are fewer hosts in the list: " + std::to_string(hosts));
  if (numbers.most == 1 && hosts > 1)
    refuse(*nodes, "a job of one node has no spares, and there are " + std::to_string(hosts) +
                       " hosts in the list");
}

// Of each group: its hosts stand together in the list.
std::size_t hosts_of_a_group(const cli::GivenFlags& flags, std::size_t hosts) {
  const int groups = replica_groups(flags);
  if (groups == 0) return hosts;
  if (hosts % static_cast<std::size_t>(groups) != 0)
    refuse(*flags.find("replica-groups"), "the list has " + std::to_string(hosts) +
                                              " hosts, which do not make " +
                                              std::to_string(groups) + " groups of the same size");
  return hosts / static_cast<std::size_t>(groups);
}

void check_slots(const cli::GivenFlags& flags, const std::vector<hosts::Host>& hosts) {
  const cli::Setting* workers = flags.find("nproc-per-node");
  const auto given = workers != nullptr ? cli::lenient_integer(workers->value) : std::nullopt;
  for (const hosts::Host& host : hosts) {
    const auto count = workers != nullptr ? given : std::optional<std::int64_t>(host.slots);
    if (count && host.max_slots && *count > *host.max_slots)
      throw cli::UsageError(host.name + " takes at most " + std::to_string(*host.max_slots) +
                            " workers (max_slots), and would get " + std::to_string(*count));
  }
}

std::vector<std::string> agent_flags(const cli::GivenFlags& flags, bool launch, bool conf) {
  std::vector<std::string> result{launch ? "drun-launch" : "drun"};
  for (const cli::Flag& flag : drun_program(launch).flags) {
    const cli::Setting* setting = flags.find(flag.name);
    // Variables go over as such.
    if (setting == nullptr || setting->source == cli::Source::Variable ||
        is_one_of(flag.name, kStartersOwn) || (flag.name == "rdzv-conf" && !conf))
      continue;
    if (flag.repeats) {
      for (const std::string& value : split(setting->value, cli::kBetweenValues))
        result.push_back("--" + std::string(flag.name) + "=" + value);
    } else if (flag.takes_value()) {
      result.push_back("--" + std::string(flag.name) + "=" + setting->value);
    } else if (setting->value != "0") {
      result.push_back("--" + std::string(flag.name));
    }
  }
  return result;
}

std::vector<std::string> handed_over(const cli::GivenFlags& flags,
                                     const std::vector<std::string>& environment, const Host& host,
                                     std::vector<std::string>& notes) {
  const cli::Setting* file = flags.find("env-file");
  const cli::Setting* asked = flags.find("export");
  const auto attempt = [&](const std::string& text, const std::vector<std::string>& names,
                           const cli::Setting* whose) {
    auto handed = hosts::handed_environment(environment, text, names);
    if (!handed)
      throw cli::UsageError((whose != nullptr ? whose->shown + ": " : "") + handed.error().what());
    return std::move(*handed);
  };
  const std::string text = file != nullptr ? content_of(*file, host) : "";
  if (file != nullptr) (void)attempt(text, {}, file);
  const std::vector<std::string> names =
      asked != nullptr ? split(asked->value, cli::kBetweenValues) : std::vector<std::string>();
  hosts::Handed handed = attempt(text, names, asked != nullptr ? asked : file);
  // Others may read what is on its way, and what it sets is in this command line or in a file that
  // nobody has looked at.
  for (const std::string_view name : {secure::kTokenVariable, secure::kMadeTokenVariable})
    if (environment_variable(handed.environment, name) || is_one_of(name, handed.missing))
      throw cli::UsageError(std::string(name) +
                            " is no variable to hand over: set DRUN_TOKEN in drun's own "
                            "environment, and its agents have it, but not their workers");
  for (const std::string& name : handed.missing)
    notes.push_back(name + " is to be handed over, and is not set here");
  erase_variable(handed.environment, "DRUN_CLUSTER");
  for (const std::string_view flag : kStartersOwn)
    erase_variable(handed.environment, cli::variable_named(drun_program(false), flag));
  // Whatever a login there sets: an agent starts nobody.
  for (const char* flag : {"host", "hostfile", "launcher"})
    handed.environment.push_back(cli::variable_named(drun_program(false), flag) + "=");
  return std::move(handed.environment);
}

// As far as another host's devices need not be known.
Host stand_in(const Host& host) {
  Host result = host;
  result.interface_address = nullptr;
  result.place_workers = [](const PlacementRequest&, const std::vector<std::string>&) {
    Placement placement;
    placement.agents.emplace_back(1);
    return Result<Placement>(std::move(placement));
  };
  return result;
}

}  // namespace

std::string content_of(const cli::Setting& setting, const Host& host) {
  auto text = host.read_file ? host.read_file(setting.value) : Result<std::string>();
  if (!text) refuse(setting, "cannot read this file: " + text.error().what());
  return std::move(*text);
}

std::optional<hosts::StartPlan> plan_start(cli::CommandLine& given, bool launch,
                                           const std::vector<std::string>& environment,
                                           const Host& host, std::vector<std::string>& notes) {
  cli::GivenFlags& flags = given.flags;
  join_lists(flags);
  const cli::Setting* command = filled(flags, "launcher");
  auto launcher = hosts::parse_launcher(command != nullptr ? command->value : "ssh");
  if (!launcher) refuse(*command, launcher.error().what());
  const cli::Setting* list = filled(flags, "host");
  if (list == nullptr) list = filled(flags, "hostfile");
  if (list == nullptr && !launcher->is_srun()) {
    refuse_without_hosts(flags);
    return std::nullopt;
  }
  refuse_what_contradicts(flags);
  hosts::StartPlan plan;
  if (list != nullptr) plan.hosts = listed_hosts(flags, host);
  if (launcher->is_srun()) {
    const auto nodes = cluster::nodes_for_steps({environment, host.read_file, "", false, false});
    if (!nodes) refuse(*command, nodes.error().what());
    if (list == nullptr) plan.hosts = hosts_of_allocation(*nodes, workers_are_counted(flags));
    if (list == nullptr) list = command;
    const auto about_gpus = [](const std::string& word) {
      return word.starts_with("--gpus") || word.starts_with("--gres") || word.starts_with("-G");
    };
    if (!nodes->srun_option.empty() &&
        std::none_of(launcher->words.begin(), launcher->words.end(), about_gpus))
      launcher->words.insert(launcher->words.begin() + 1, nodes->srun_option);
  }
  const std::string from = list->shown;
  const std::size_t each = hosts_of_a_group(flags, plan.hosts.size());
  count_nodes(flags, from, each);
  if (each < plan.hosts.size() || replica_groups(flags) > 0)
    infer(flags, "replica-group-id", from, "0");
  check_slots(flags, plan.hosts);
  if (filled(flags, "rdzv-id") == nullptr && host.fresh_id)
    infer(flags, "rdzv-id", from, host.fresh_id());
  const cli::Setting* order = filled(flags, "rank-order");
  plan.ranks_count =
      (order == nullptr || order->value != "topology") && filled(flags, "topology-file") == nullptr;
  plan.slots_count = filled(flags, "nproc-per-node") == nullptr;
  plan.most_nodes = parse_nodes(*flags.find("nnodes")).most;
  const bool several = plan.most_nodes > 1 || each > 1;
  plan.meet_at_first = several && filled(flags, "rdzv-endpoint") == nullptr &&
                       filled(flags, "master-addr") == nullptr;
  if (const cli::Setting* conf = flags.find("rdzv-conf"); conf != nullptr && plan.meet_at_first) {
    plan.conf = conf->value;
    plan.says_is_host = parse_conf(*conf).conf.is_host.has_value();
  }
  plan.flags = agent_flags(flags, launch, !plan.meet_at_first);
  plan.program = given.words;
  plan.environment = handed_over(flags, environment, host, notes);
  // What the scheduler here says does not go over.
  if (const cluster::Value end = cluster::find_job_end(environment);
      end.problem.empty() && !end.text.empty() && end.from != cluster::kJobEnd)
    plan.environment.push_back(std::string(cluster::kJobEnd) + "=" + end.text);
  if (host.working_directory) plan.directory = host.working_directory();
  if (host.program_file) plan.drun = host.program_file();
  plan.launcher = std::move(*launcher);
  plan.copy_self = flags.on("copy-self");
  if (const cli::Setting* number = flags.find("fan-out"))
    plan.fan_out = static_cast<std::size_t>(parse_integer(*number, 1, 100'000));
  // For those who look here what the agents will be told.
  const hosts::Host& first = plan.hosts.front();
  if (plan.slots_count && first.slots)
    infer(flags, "nproc-per-node", from, std::to_string(*first.slots));
  return plan;
}

Options build_start(const BuildInput& given, hosts::StartPlan plan) {
  cli::GivenFlags flags = given.flags;
  const std::string& first = plan.hosts.front().name;
  if (plan.meet_at_first)
    infer(flags, "rdzv-endpoint", "",
          to_string(Endpoint{first.substr(first.find('@') + 1), kSomePort}));
  Options options =
      build_elsewhere({flags, given.program, given.environment, given.host, given.launch});
  options.makes_token = plan.meet_at_first;
  options.start = std::move(plan);
  return options;
}

Options build_elsewhere(const BuildInput& given) {
  const Host host = stand_in(given.host);
  cli::GivenFlags flags = given.flags;
  // Each host looks itself up.
  if (filled(flags, "topology-file") != nullptr) {
    if (flags.find("rank-order") == nullptr) infer(flags, "rank-order", "", "topology");
    infer(flags, "topology-file", "", "");
  }
  Options options = build_options({flags, given.program, given.environment, host, given.launch});
  options.notes.clear();  // each host tells its own
  return options;
}

}  // namespace drun::launcher
