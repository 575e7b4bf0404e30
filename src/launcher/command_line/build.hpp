// From what was given on the command line and in PET_* variables to Options: values checked, the
// backend decided, the worker's command built. Pure but for `host`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/parse.hpp"
#include "launcher/command_line/parse.hpp"
#include "launcher/hosts/start_plan.hpp"

namespace drun::launcher {

struct BuildInput {
  const cli::GivenFlags& flags;
  const std::vector<std::string>& program;  // and its arguments
  const std::vector<std::string>& environment;
  const Host& host;
  bool launch = false;  // called as drun-launch
};

// --cluster: what the scheduler around this process says of the nodes, for all that no flag and no
// variable of drun's says, as settings with Source::Inferred. Throws UsageError if there is a
// scheduler and it does not say it, or if drun must not run here.
struct Inferred {
  std::string line;                // what was inferred, and from what; empty: nothing
  std::vector<std::string> notes;  // what the user should be warned of
  // Not empty: this process runs outside of what the scheduler starts. A command that starts drun
  // there, if its arguments are put behind.
  std::vector<std::string> instead;
  std::string mark;              // as Options::instead_mark
  bool one_rank_a_host = false;  // a drun that asks for the same rank is one of this host
};
[[nodiscard]] Inferred infer_place(cli::GivenFlags& flags, bool launch,
                                   const std::vector<std::string>& environment, const Host& host);

// -H, --hostfile: whom to start, with settings for what follows from it (Source::Inferred);
// nullopt: nobody. Notes are for the user. Throws UsageError.
[[nodiscard]] std::optional<hosts::StartPlan> plan_start(
    cli::CommandLine& given, bool launch, const std::vector<std::string>& environment,
    const Host& host, std::vector<std::string>& notes);

// The options of the first of these agents, without what only its host can tell.
[[nodiscard]] Options build_start(const BuildInput& given, hosts::StartPlan plan);

// The options of a drun that is only to start others: as far as they can be checked here.
[[nodiscard]] Options build_elsewhere(const BuildInput& given);

// The same for one that becomes `command` with the rest of its own command line.
[[nodiscard]] Options build_instead(const BuildInput& given, Inferred place,
                                    const std::vector<std::string>& arguments);

// Checks every flag. Throws UsageError.
[[nodiscard]] Options build_options(const BuildInput& given);

// Decides standalone, c10d or static, the endpoint, the run id and the node rank, once the number
// of nodes is known. Throws UsageError.
void resolve_rendezvous(const BuildInput& given, Options& options);

// "--rdzv-endpoint localhost:0": one node, as torchrun's documentation starts it.
[[nodiscard]] bool is_private(const cli::GivenFlags& flags);

// How many workers there are is said, if only by the devices that they get.
[[nodiscard]] bool workers_are_counted(const cli::GivenFlags& flags);

// --replica-groups; 0: none. Throws UsageError.
[[nodiscard]] int replica_groups(const cli::GivenFlags& flags);

// The replica groups, and which of them is this drun's, once the number of nodes is known. Throws
// UsageError.
void build_groups(const cli::GivenFlags& flags, Options& options);

// The file that a flag names. Throws UsageError.
[[nodiscard]] std::string content_of(const cli::Setting& setting, const Host& host);

// Where this node is in the network, if its rank depends on that. Throws UsageError.
void build_topology(const BuildInput& given, Options& options);

// The number of workers, their GPUs, CPUs and threads. Throws UsageError.
void build_devices(const BuildInput& given, Options& options);

// Signals, limits of time, restarts, exit codes. Throws UsageError.
void build_stopping(const cli::GivenFlags& flags, Options& options);

// What is told of the job to other programs. Throws UsageError.
void build_events(const cli::GivenFlags& flags, Options& options);

// --status-listen, --token-file, --metrics-file, --summary. Throws UsageError.
void build_status(const cli::GivenFlags& flags, Options& options);

// The worker's argv from the program as given. Throws UsageError.
void build_command(const BuildInput& given, Options& options);

// drun was called as the older torch.distributed.launch.
[[nodiscard]] bool is_launch(std::string_view program_name);

}  // namespace drun::launcher
