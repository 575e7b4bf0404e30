// How many workers, and which GPUs, CPUs and threads they get.
#include <algorithm>
#include <charconv>
#include <numeric>

#include "launcher/options_build.hpp"
#include "launcher/options_values.hpp"

namespace drun::launcher {
namespace {

constexpr int kMostWorkers = 10'000;  // of one node; times the nodes it stays an int

bool is_integer(std::string_view text) {
  return !text.empty() && text.find_first_not_of("+-0123456789") == std::string_view::npos;
}

int counted(const Setting& setting, DeviceKind kind, const Given& given) {
  const auto& count_devices = given.surroundings.count_devices;
  if (!count_devices) refuse(setting, "this machine's devices cannot be counted; give a number");
  const auto count = count_devices(kind, given.environment);
  if (!count) refuse(setting, count.error().what());
  return std::min(*count, kMostWorkers);
}

std::string_view before_dot(std::string_view name) {
  return name.substr(0, name.find('.'));
}

bool is_this_host(std::string_view name, const Given& given) {
  if (name == "localhost" || name == "127.0.0.1") return true;
  const std::string own =
      given.surroundings.host_name ? given.surroundings.host_name() : std::string();
  return !own.empty() && (name == own || name == before_dot(own));
}

// DeepSpeed's "worker-0@worker-1:0,2": the devices of this host; {} means all of them, nullopt that
// the host is not named.
std::optional<std::string> devices_of_this_host(const Setting& setting, const Given& given) {
  for (const std::string& item : split(setting.value, '@')) {
    const auto colon = item.find(':');
    const std::string host = item.substr(0, colon);
    if (host.empty()) refuse(setting, "expected HOST:LIST, as in localhost:1,3");
    if (!is_this_host(host, given)) continue;
    return colon == std::string::npos ? "" : item.substr(colon + 1);
  }
  return std::nullopt;
}

// The GPUs that drun itself may use, as CUDA_VISIBLE_DEVICES names them.
std::vector<std::string> visible_gpus(const Setting& setting, const Given& given) {
  const int count = counted(setting, DeviceKind::Gpu, given);
  std::vector<std::string> names;
  if (const char* mask = variable(given.environment, "CUDA_VISIBLE_DEVICES")) {
    for (const std::string& item : split(mask, ',')) {
      const auto first = item.find_first_not_of(' ');
      const auto last = item.find_last_not_of(' ');
      names.push_back(first == std::string::npos ? "" : item.substr(first, last - first + 1));
    }
  } else {
    for (int i = 0; i < count; ++i)
      names.push_back(std::to_string(i));
  }
  names.resize(std::min(names.size(), static_cast<std::size_t>(count)));
  return names;
}

// "1,3,5": places in the list of visible GPUs, in the order given.
std::vector<std::size_t> places(const Setting& setting, const std::string& list,
                                std::size_t count) {
  std::vector<std::size_t> result;
  for (const std::string& item : split(list, ',')) {
    std::size_t place = 0;
    const auto [end, ec] = std::from_chars(item.data(), item.data() + item.size(), place);
    if (item.empty() || ec != std::errc() || end != item.data() + item.size()) {
      refuse(setting, quote(item) + " is no GPU number; expected a list such as 0,2");
    }
    if (place >= count) {
      refuse(setting, "there is no GPU " + item + ": " +
                          (count == 1 ? "only GPU 0 is visible"
                                      : "visible are 0 to " + std::to_string(count - 1)));
    }
    if (std::find(result.begin(), result.end(), place) != result.end()) {
      refuse(setting, "GPU " + item + " is listed twice");
    }
    result.push_back(place);
  }
  return result;
}

void choose_gpus(const Given& given, Options& options) {
  const Setting* chosen = nullptr;
  for (const char* name : {"gpus", "include", "exclude"}) {
    const Setting* setting = given.settings.find(name);
    if (setting == nullptr) continue;
    if (chosen != nullptr) {
      throw UsageError(chosen->shown + " and " + setting->shown +
                       " both choose GPUs: give one of them");
    }
    chosen = setting;
  }
  if (chosen == nullptr) return;
  const bool exclude = chosen->flag->name == "exclude";
  std::string list = chosen->value;
  if (chosen->flag->name != "gpus") {
    const auto here = devices_of_this_host(*chosen, given);
    if (!here && exclude) return;
    if (!here) refuse(*chosen, "this host is not named");
    list = *here;
  }
  const auto visible = visible_gpus(*chosen, given);
  std::vector<std::size_t> all(visible.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  auto wanted =
      list.empty() && chosen->flag->name != "gpus" ? all : places(*chosen, list, visible.size());
  if (exclude) {
    std::erase_if(all, [&](std::size_t place) {
      return std::find(wanted.begin(), wanted.end(), place) != wanted.end();
    });
    wanted = all;
    if (wanted.empty()) refuse(*chosen, "no GPU is left");
  }
  for (const std::size_t place : wanted)
    options.gpus.push_back(visible[place]);
}

int workers(const Setting& setting, const Given& given, const Options& options) {
  const std::string& text = setting.value;
  const bool gpu = text == "gpu" || text == "cuda";
  const bool automatic = text == "auto";
  if ((gpu || automatic) && !options.gpus.empty()) return static_cast<int>(options.gpus.size());
  if (automatic) return counted(setting, DeviceKind::Auto, given);
  if (gpu) return counted(setting, DeviceKind::Gpu, given);
  if (text == "cpu") return counted(setting, DeviceKind::Cpu, given);
  if (text == "xpu") return counted(setting, DeviceKind::Xpu, given);
  if (is_integer(text)) return parse_integer(setting, 1, kMostWorkers);
  refuse(setting, "expected a whole number of at least 1, auto, cpu, gpu or xpu");
}

// Every local rank needs a device of its own.
void check_virtual_rank(const Given& given, const Options& options) {
  if (!options.virtual_local_rank) return;
  std::size_t devices = options.gpus.size();
  const char* mask = variable(given.environment, "CUDA_VISIBLE_DEVICES");
  if (devices == 0 && mask == nullptr) return;
  if (devices == 0) devices = split(mask, ',').size();
  if (static_cast<std::size_t>(options.nproc_per_node) > devices) {
    throw UsageError("--virtual-local-rank: " + std::to_string(options.nproc_per_node) +
                     " workers need a GPU each, and " + std::to_string(devices) +
                     (devices == 1 ? " is visible" : " are visible"));
  }
}

}  // namespace

void build_devices(const Given& given, Options& options) {
  const Settings& settings = given.settings;
  options.virtual_local_rank = settings.on("virtual-local-rank");
  options.report_bindings = settings.on("report-bindings");
  choose_gpus(given, options);
  if (const Setting* setting = settings.find("nproc-per-node")) {
    options.nproc_per_node = workers(*setting, given, options);
  } else if (!options.gpus.empty()) {
    options.nproc_per_node = static_cast<int>(options.gpus.size());
  }
  check_virtual_rank(given, options);
  if (const Setting* setting = settings.find("numa-binding")) {
    const auto choice = parse_choice(*setting, {"node", "socket", "exclusive", "core-complex"});
    options.numa_binding = static_cast<NumaBinding>(choice + 1);
  }
  if (const Setting* setting = settings.find("omp-threads")) {
    if (setting->value == "auto") {
      const int cpus = counted(*setting, DeviceKind::Cpu, given);
      options.omp_threads =
          std::max(1, cpus / (options.nproc_per_node * std::max(1, options.local_nodes)));
    } else if (is_integer(setting->value)) {
      options.omp_threads = parse_integer(*setting, 1, 1'000'000);
    } else {
      refuse(*setting, "expected a whole number of at least 1, or auto");
    }
  }
}

}  // namespace drun::launcher
