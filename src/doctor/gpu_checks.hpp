// What NVIDIA's management library says of the health of this machine's GPUs. It is loaded in a
// child process: it leaves threads behind, and a sick driver may never answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/check.hpp"

namespace drun::doctor {

// nullopt: the library or the GPU does not tell.
struct GpuHealth {
  bool lost = false;                                // it has a number, and does not answer
  std::optional<std::uint64_t> uncorrected_errors;  // of its memory, since the driver was loaded
  std::optional<bool> remap_pending;                // of a row: needs a reset
  std::optional<bool> remap_failed;                 // no spare row was left
  std::optional<bool> retirement_pending;           // of a page: the same of older GPUs

  bool operator==(const GpuHealth&) const = default;
};

// By NVML's number. nullopt: there is no driver, or it gives no answer within 30 seconds. Call it
// before any thread exists.
[[nodiscard]] std::optional<std::vector<GpuHealth>> ask_gpu_health();

// `devices`: how many the kernel has, under /dev; 0: none, and there is nothing to say.
[[nodiscard]] std::vector<Check> judge_gpus(const std::optional<std::vector<GpuHealth>>& gpus,
                                            int devices);
// /dev/nvidia0 and so on.
[[nodiscard]] int count_gpu_devices(const std::string& root);

}  // namespace drun::doctor
