// How many workers, and which GPUs, CPUs and threads they get: the flags; placement.hpp decides.
#include <algorithm>
#include <array>

#include "base/trimmed.hpp"
#include "cli/usage_error.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/values.hpp"

namespace drun::launcher {
namespace {

constexpr int kMostWorkers = 10'000;  // of one node; times the nodes it stays an int

bool is_integer(std::string_view text) {
  text = trimmed(text);
  return !text.empty() && text.find_first_not_of("+-0123456789") == std::string_view::npos;
}

std::string value_of(const cli::GivenFlags& flags, std::string_view name) {
  const cli::Setting* setting = flags.find(name);
  if (setting == nullptr) return "";
  if (setting->value.empty()) refuse(*setting, "expected a list such as 0,2 or localhost:0,2");
  return setting->value;
}

// The rules below name the flags; here a variable may have given the value.
[[noreturn]] void refuse_placement(const cli::GivenFlags& flags, std::string text) {
  for (const std::string_view name :
       {"nproc-per-node", "gpus", "include", "exclude", "numa-binding", "virtual-local-rank"}) {
    const std::string flag = "--" + std::string(name);
    const cli::Setting* setting = flags.find(name);
    if (setting == nullptr || !text.starts_with(flag)) continue;
    if (text.size() > flag.size() && (text[flag.size()] == ' ' || text[flag.size()] == ':')) {
      text.replace(0, flag.size(), setting->shown);
    }
    break;
  }
  throw cli::UsageError(text);
}

void read_threads(const cli::GivenFlags& flags, Options& options, PlacementRequest& request) {
  const cli::Setting* setting = flags.find("omp-threads");
  if (setting == nullptr) return;
  request.divide_threads = setting->value == "auto";
  if (request.divide_threads) return;
  if (!is_integer(setting->value))
    refuse(*setting, "expected a whole number of at least 1, or auto");
  options.omp_threads = parse_integer(*setting, 1, 1'000'000);
}

}  // namespace

void build_devices(const BuildInput& given, Options& options) {
  const cli::GivenFlags& flags = given.flags;
  PlacementRequest request;
  request.devices.virtual_local_rank = options.virtual_local_rank = flags.on("virtual-local-rank");
  request.show_devices = options.report_bindings = flags.on("report-bindings");
  request.devices.gpus = value_of(flags, "gpus");
  request.devices.include = value_of(flags, "include");
  request.devices.exclude = value_of(flags, "exclude");
  request.agents = std::max(1, options.local_nodes);
  if (const cli::Setting* setting = flags.find("numa-binding")) {
    const auto choice = parse_choice(*setting, {"node", "socket", "exclusive", "core-complex"});
    constexpr std::array kChoices{NumaBinding::Node, NumaBinding::Socket, NumaBinding::Exclusive,
                                  NumaBinding::CoreComplex};
    request.binding = options.numa_binding = kChoices.at(choice);
  }
  read_threads(flags, options, request);

  bool counted = false;  // the machine says how many workers
  if (const cli::Setting* setting = flags.find("nproc-per-node")) {
    request.devices.workers = setting->value;
    counted = !is_integer(setting->value);
    if (!counted) {
      options.nproc_per_node = parse_integer(*setting, 1, kMostWorkers);
      request.devices.workers = std::to_string(options.nproc_per_node);
    } else if (setting->value.empty()) {
      refuse(*setting, "expected a whole number of at least 1, auto, cpu, gpu or xpu");
    }
  }
  if (!counted && !request.asks_for_something()) return;
  const bool by_host = !request.devices.include.empty() || !request.devices.exclude.empty();
  if (by_host && given.host.host_name) {
    request.devices.host_names = {given.host.host_name()};
  }
  if (!given.host.place_workers) {
    throw cli::UsageError(
        "this machine's devices cannot be listed; give --nproc-per-node a number");
  }
  auto placement = given.host.place_workers(request, given.environment);
  if (!placement) refuse_placement(flags, placement.error().what());
  options.placement = std::move(*placement);
  options.nproc_per_node = options.placement.workers;
  options.notes.insert(options.notes.end(), options.placement.notes.begin(),
                       options.placement.notes.end());
}

}  // namespace drun::launcher
