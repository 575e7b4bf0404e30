// From what was given on the command line and in PET_* variables to Options: values checked, the
// backend decided, the worker's command built. Pure but for `surroundings`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/command_line/options_scan.hpp"
#include "launcher/command_line/parse.hpp"

namespace drun::launcher {

struct Given {
  const Settings& settings;
  const std::vector<std::string>& program;  // and its arguments
  const std::vector<std::string>& environment;
  const Surroundings& surroundings;
  bool launch = false;  // called as drun-launch
};

// Checks every flag, also those that this version does not support yet. Throws UsageError.
[[nodiscard]] Options build_options(const Given& given);

// Decides standalone, c10d or static, the endpoint, the run id and the node rank, once the number
// of nodes is known. Throws UsageError.
void resolve_rendezvous(const Given& given, Options& options);

// The number of workers, their GPUs, CPUs and threads. Throws UsageError.
void build_devices(const Given& given, Options& options);

// The worker's argv from the program as given. Throws UsageError.
void build_command(const Given& given, Options& options);

// drun was called as the older torch.distributed.launch.
[[nodiscard]] bool is_launch(std::string_view program_name);

}  // namespace drun::launcher
