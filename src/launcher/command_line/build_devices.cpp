// How many workers, and which GPUs, CPUs and threads they get: the flags; device_placement.hpp
// decides.
#include <algorithm>
#include <array>

#include "base/counted.hpp"
#include "base/trimmed.hpp"
#include "cli/usage_error.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/values.hpp"

namespace drun::launcher {
namespace {

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

// The flag is named as the user gave it: it may have been a variable.
[[noreturn]] void refuse_placement(const cli::GivenFlags& flags, const Error& error) {
  const char* const flag = flag_of(error);
  const cli::Setting* setting = flag == nullptr ? nullptr : flags.find(flag);
  throw cli::UsageError(setting == nullptr ? error.what() : setting->shown + error.what());
}

WorkerCount parse_worker_count(const cli::Setting& setting) {
  static constexpr std::array<std::pair<std::string_view, CountedBy>, 5> kWords{
      {{"auto", CountedBy::Auto},
       {"cpu", CountedBy::Cpu},
       {"gpu", CountedBy::Gpu},
       {"cuda", CountedBy::Gpu},
       {"xpu", CountedBy::Xpu}}};
  if (is_integer(setting.value)) return parse_integer(setting, 1, kMostWorkers);
  for (const auto& [word, what] : kWords)
    if (setting.value == word) return what;
  refuse(setting, "expected a whole number of at least 1, auto, cpu, gpu or xpu");
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

// Elsewhere (srun, docker) --gpus N is a count, and --gpu N looks like one.
void note_a_number_for_a_count(const cli::GivenFlags& flags, Options& options) {
  const cli::Setting* setting = flags.find("gpu-ids");
  if (setting == nullptr) return;
  const auto& shown = setting->shown;
  if (shown != "--gpus" && shown != "--gpu" && shown != "PET_GPUS") return;
  const auto number = cli::lenient_integer(setting->value);
  if (!number || *number < 1) return;
  const std::string value = std::to_string(*number);
  options.notes.push_back(setting->shown + " " + value + " takes the GPU with the number " + value +
                          ", as --gpu-ids " + value + " does; --nproc-per-node " + value +
                          " starts " + counted(*number, "worker") + ", each with a GPU of its own");
}

PlacementRequest read_request(const cli::GivenFlags& flags, Options& options) {
  PlacementRequest request;
  request.devices.virtual_local_rank = options.virtual_local_rank = flags.on("virtual-local-rank");
  request.show_devices = options.report_bindings = flags.on("report-bindings");
  request.devices.gpus = value_of(flags, "gpu-ids");
  note_a_number_for_a_count(flags, options);
  request.devices.include = value_of(flags, "include");
  request.devices.exclude = value_of(flags, "exclude");
  const bool all_groups = options.replica_groups > 0 && options.replica_group < 0;
  request.agents = std::max(1, options.local_nodes) * (all_groups ? options.replica_groups : 1);
  if (const cli::Setting* setting = flags.find("numa-binding")) {
    const auto choice = parse_choice(*setting);
    constexpr std::array kChoices{NumaBinding::Node, NumaBinding::Socket, NumaBinding::Exclusive,
                                  NumaBinding::CoreComplex};
    request.binding = kChoices.at(choice);
  }
  read_threads(flags, options, request);
  if (const cli::Setting* setting = flags.find("nproc-per-node"))
    request.devices.workers = parse_worker_count(*setting);
  return request;
}

}  // namespace

void build_devices(const BuildInput& given, Options& options) {
  PlacementRequest request = read_request(given.flags, options);
  if (!request.asks_for_something()) {
    options.nproc_per_node = request.devices.known_workers();
    return;
  }
  const bool by_host = !request.devices.include.empty() || !request.devices.exclude.empty();
  if (by_host && given.host.host_name) request.devices.host_names = {given.host.host_name()};
  if (!given.host.place_workers) {
    throw cli::UsageError(
        "this machine's devices cannot be listed; give --nproc-per-node a number");
  }
  auto placement = given.host.place_workers(request, given.environment);
  if (!placement) refuse_placement(given.flags, placement.error());
  options.placement = std::move(*placement);
  options.nproc_per_node = static_cast<int>(options.placement.agents.front().size());
  options.notes.insert(options.notes.end(), options.placement.notes.begin(),
                       options.placement.notes.end());
}

}  // namespace drun::launcher
