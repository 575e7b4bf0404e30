// From what was given on the command line and in PET_* variables to Options: values checked, the
// backend decided, the worker's command built. Pure but for `host`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/parse.hpp"
#include "launcher/command_line/parse.hpp"

namespace drun::launcher {

struct BuildInput {
  const cli::GivenFlags& flags;
  const std::vector<std::string>& program;  // and its arguments
  const std::vector<std::string>& environment;
  const Host& host;
  bool launch = false;  // called as drun-launch
};

// Checks every flag. Throws UsageError.
[[nodiscard]] Options build_options(const BuildInput& given);

// Decides standalone, c10d or static, the endpoint, the run id and the node rank, once the number
// of nodes is known. Throws UsageError.
void resolve_rendezvous(const BuildInput& given, Options& options);

// The number of workers, their GPUs, CPUs and threads. Throws UsageError.
void build_devices(const BuildInput& given, Options& options);

// The worker's argv from the program as given. Throws UsageError.
void build_command(const BuildInput& given, Options& options);

// drun was called as the older torch.distributed.launch.
[[nodiscard]] bool is_launch(std::string_view program_name);

}  // namespace drun::launcher
