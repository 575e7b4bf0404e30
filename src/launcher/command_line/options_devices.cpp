// How many workers, and which GPUs, CPUs and threads they get: the flags; placement.hpp decides.
#include <algorithm>
#include <array>

#include "base/trimmed.hpp"
#include "launcher/command_line/options_build.hpp"
#include "launcher/command_line/options_values.hpp"

namespace drun::launcher {
namespace {

constexpr int kMostWorkers = 10'000;  // of one node; times the nodes it stays an int

bool is_integer(std::string_view text) {
  text = trimmed(text);
  return !text.empty() && text.find_first_not_of("+-0123456789") == std::string_view::npos;
}

std::string value_of(const Settings& settings, std::string_view name) {
  const Setting* setting = settings.find(name);
  if (setting == nullptr) return "";
  if (setting->value.empty()) refuse(*setting, "expected a list such as 0,2 or localhost:0,2");
  return setting->value;
}

// The rules below name the flags; here a variable may have given the value.
[[noreturn]] void refuse_placement(const Settings& settings, std::string text) {
  for (const std::string_view name :
       {"nproc-per-node", "gpus", "include", "exclude", "numa-binding", "virtual-local-rank"}) {
    const std::string flag = "--" + std::string(name);
    const Setting* setting = settings.find(name);
    if (setting == nullptr || !text.starts_with(flag)) continue;
    if (text.size() > flag.size() && (text[flag.size()] == ' ' || text[flag.size()] == ':')) {
      text.replace(0, flag.size(), setting->shown);
    }
    break;
  }
  throw UsageError(text);
}

void read_threads(const Settings& settings, Options& options, PlacementRequest& request) {
  const Setting* setting = settings.find("omp-threads");
  if (setting == nullptr) return;
  request.divide_threads = setting->value == "auto";
  if (request.divide_threads) return;
  if (!is_integer(setting->value))
    refuse(*setting, "expected a whole number of at least 1, or auto");
  options.omp_threads = parse_integer(*setting, 1, 1'000'000);
}

}  // namespace

void build_devices(const Given& given, Options& options) {
  const Settings& settings = given.settings;
  PlacementRequest request;
  request.devices.virtual_local_rank = options.virtual_local_rank =
      settings.on("virtual-local-rank");
  request.show_devices = options.report_bindings = settings.on("report-bindings");
  request.devices.gpus = value_of(settings, "gpus");
  request.devices.include = value_of(settings, "include");
  request.devices.exclude = value_of(settings, "exclude");
  request.agents = std::max(1, options.local_nodes);
  if (const Setting* setting = settings.find("numa-binding")) {
    const auto choice = parse_choice(*setting, {"node", "socket", "exclusive", "core-complex"});
    constexpr std::array kChoices{NumaBinding::Node, NumaBinding::Socket, NumaBinding::Exclusive,
                                  NumaBinding::CoreComplex};
    request.binding = options.numa_binding = kChoices.at(choice);
  }
  read_threads(settings, options, request);

  bool counted = false;  // the machine says how many workers
  if (const Setting* setting = settings.find("nproc-per-node")) {
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
  if (by_host && given.surroundings.host_name) {
    request.devices.host_names = {given.surroundings.host_name()};
  }
  if (!given.surroundings.place_workers) {
    throw UsageError("this machine's devices cannot be listed; give --nproc-per-node a number");
  }
  auto placement = given.surroundings.place_workers(request, given.environment);
  if (!placement) refuse_placement(settings, placement.error().what());
  options.placement = std::move(*placement);
  options.nproc_per_node = options.placement.workers;
  options.notes.insert(options.notes.end(), options.placement.notes.begin(),
                       options.placement.notes.end());
}

}  // namespace drun::launcher
