#include "facts/fact_table.hpp"

#include <algorithm>
#include <array>

namespace drun::facts {
namespace {

constexpr std::string_view kSameSoftware = "give all nodes the same image or environment";
constexpr std::string_view kSameLimits = "set the limit alike where drun is started";

constexpr auto kTable = std::to_array<Fact>({
    {"gpus", "GPUs", Weight::Fatal, false, "look at nvidia-smi there: a GPU may be lost"},
    {"driver", "GPU driver", Weight::Fatal, false, "install the same driver on all nodes"},
    {"torch", "torch", Weight::Fatal, false, kSameSoftware},
    {"cuda", "CUDA", Weight::Fatal, false, kSameSoftware},
    {"nccl", "NCCL", Weight::Fatal, false, kSameSoftware},
    {"program", "program", Weight::Fatal, true, "copy the same program to all nodes"},
    {"drun", "drun", Weight::Warn, false, "install the same drun on all nodes"},
    {"python", "Python", Weight::Warn, false, kSameSoftware},
    {"kernel", "kernel", Weight::Warn, false, "boot the same kernel on all nodes"},
    {"glibc", "glibc", Weight::Warn, false, kSameSoftware},
    {"shm", "/dev/shm", Weight::Warn, false, "mount it alike; in a container give it a size"},
    {"memory", "memory", Weight::Warn, false, "look at the limit of the cgroup or the container"},
    {"cpus", "CPUs", Weight::Warn, false, "look at the limit of the cgroup or the container"},
    {"nofile", "limit of open files", Weight::Warn, false, kSameLimits},
    {"memlock", "limit of locked memory", Weight::Warn, false, kSameLimits},
    {"stack", "limit of the stack", Weight::Warn, false, kSameLimits},
    {"core", "limit of core files", Weight::Warn, false, kSameLimits},
    {"mtu", "MTU", Weight::Warn, false, "set it alike on all interfaces of this network", true},
    {"speed", "network speed", Weight::Warn, false, "look at the cable and the switch's port",
     true},
    {"clock", "clock", Weight::Warn, false, "let chrony or another NTP client keep it"},
});

constexpr auto kPrefixes = std::to_array<std::string_view>(
    {"NCCL_", "GLOO_", "TORCH_NCCL_", "CUDA_", "CUBLAS_", "PYTORCH_", "UCX_", "FI_", "OMP_"});
// By nature different from node to node: names of files, devices and interfaces.
constexpr auto kOwnSuffixes = std::to_array<std::string_view>(
    {"_FILE", "_HOME", "_PATH", "_DIR", "_IFNAME", "_HOSTID", "_HCA", "_DEVICES", "_ADDR"});

}  // namespace

std::span<const Fact> fact_table() {
  return kTable;
}

bool is_compared_variable(std::string_view name) {
  const auto begins = [name](std::string_view prefix) { return name.starts_with(prefix); };
  const auto ends = [name](std::string_view suffix) { return name.ends_with(suffix); };
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), begins) &&
         std::none_of(kOwnSuffixes.begin(), kOwnSuffixes.end(), ends);
}

}  // namespace drun::facts
