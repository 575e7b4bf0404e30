// What the user reads of what workers have left behind. Pure.
#pragma once

#include <chrono>
#include <string>

#include "launcher/devices/gpu_release.hpp"
#include "launcher/process/shared_memory.hpp"

namespace drun::launcher {

// "removed 2 files (1.5 GiB) that the workers left in /dev/shm: torch_1, torch_2"; empty: none was.
[[nodiscard]] std::string swept_text(const process::SharedMemory::Swept& swept);

struct GpuNote {
  bool warns = false;
  std::string text;  // empty: nothing is worth a line
};
// What became of a wait of so long. An answer that cannot tell: the driver hangs, or has gone.
[[nodiscard]] GpuNote gpu_note(const GpuAnswer& answer, std::chrono::milliseconds waited,
                               std::chrono::milliseconds limit);

}  // namespace drun::launcher
