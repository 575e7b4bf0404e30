// Whether GPUs have given back what processes that are gone had of them, as NVIDIA's library says.
// The library leaves threads behind, and a sick driver may never answer: so drun starts itself anew
// for that, with kGpuHelperFlag as its only argument.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drun::launcher {

inline constexpr std::string_view kGpuHelperFlag = "--await-gpus";

struct GpuQuestion {
  std::vector<pid_t> gone;            // in this process's pid namespace
  std::chrono::milliseconds limit{};  // that they are waited for
};
struct GpuAnswer {
  // False: no library, no driver, one that does not list processes, or numbers of another
  // namespace.
  bool can_tell = false;
  // Of the gone that are still listed, and on which GPU, as nvidia-smi counts; -1: none is.
  int gpu = -1;
  pid_t pid = 0;
};

// What the helper is given, a line, and what it says.
[[nodiscard]] std::string encode(const GpuQuestion& question);
[[nodiscard]] std::string encode(const GpuAnswer& answer);
[[nodiscard]] std::optional<GpuAnswer> decode_gpu_answer(std::string_view text);

// Until no process that is gone is listed, or the limit is over. Loads the library for good.
[[nodiscard]] GpuAnswer await_release(const GpuQuestion& question);

// Reads a question from standard input, does that, and writes the answer to standard output. The
// exit code.
[[nodiscard]] int run_gpu_helper();

}  // namespace drun::launcher
