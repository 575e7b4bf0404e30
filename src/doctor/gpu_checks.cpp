#include "doctor/gpu_checks.hpp"

#include <chrono>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/child_answer.hpp"
#include "base/loaded_library.hpp"
#include "base/whole_number.hpp"

namespace drun::doctor {
namespace {

constexpr std::chrono::seconds kDriverLimit{30};
constexpr std::string_view kNvidia = "nvidia";

// The part of nvml.h that is used; every function returns 0 for success. All but the first four
// may be missing, or say that a GPU of this kind does not know.
using GpuHandle = void*;
struct HealthLibrary {
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, GpuHandle*) = nullptr;
  int (*ecc_errors)(GpuHandle, int type, int counter, unsigned long long*) = nullptr;
  int (*remapped_rows)(GpuHandle, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                       unsigned* failed) = nullptr;
  int (*retirement_pending)(GpuHandle, int*) = nullptr;
};
constexpr int kUncorrected = 1;  // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr int kVolatile = 0;     // NVML_VOLATILE_ECC

std::string word(bool known, unsigned long long value) {
  return known ? std::to_string(value) + " " : "- ";
}

// A line for each GPU: "lost", or five words, "-" for what is not known.
std::optional<std::string> list_health() {
  HealthLibrary nvml;
  LoadedLibrary file({"libnvidia-ml.so.1", "the health of GPUs", "2", "libnvidia-ml1"});
  file.need("nvmlInit_v2", nvml.init);
  file.need("nvmlDeviceGetCount_v2", nvml.count);
  file.need("nvmlDeviceGetHandleByIndex_v2", nvml.by_index);
  file.find("nvmlDeviceGetTotalEccErrors", nvml.ecc_errors);
  file.find("nvmlDeviceGetRemappedRows", nvml.remapped_rows);
  file.find("nvmlDeviceGetRetiredPagesPendingStatus", nvml.retirement_pending);
  unsigned count = 0;
  if (!file.status() || nvml.init() != 0 || nvml.count(&count) != 0) return {};
  std::string result;
  for (unsigned i = 0; i < count; ++i) {
    GpuHandle gpu = nullptr;
    if (nvml.by_index(i, &gpu) != 0) {
      result += "lost\n";
      continue;
    }
    unsigned long long errors = 0;
    unsigned corrected = 0;
    unsigned uncorrected = 0;
    unsigned pending = 0;
    unsigned failed = 0;
    int retirement = 0;
    const bool ecc =
        nvml.ecc_errors != nullptr && nvml.ecc_errors(gpu, kUncorrected, kVolatile, &errors) == 0;
    const bool rows = nvml.remapped_rows != nullptr &&
                      nvml.remapped_rows(gpu, &corrected, &uncorrected, &pending, &failed) == 0;
    const bool pages =
        nvml.retirement_pending != nullptr && nvml.retirement_pending(gpu, &retirement) == 0;
    result += word(ecc, errors) + word(rows, pending) + word(rows, failed) +
              word(pages, retirement != 0 ? 1 : 0) + "\n";
  }
  return result;
}

std::optional<std::uint64_t> take_number(std::istream& words) {
  std::string text;
  words >> text;
  return whole_number<std::uint64_t>(text);
}

std::optional<bool> take_flag(std::istream& words) {
  const auto number = take_number(words);
  return number ? std::optional(*number != 0) : std::nullopt;
}

Check judge_gpu(std::size_t number, const GpuHealth& gpu) {
  const std::string name = "GPU " + std::to_string(number);
  constexpr const char* kReset = "reset it (nvidia-smi -r) or restart the machine";
  if (gpu.lost) return failed(name, "it gives no answer", kReset);
  if (gpu.remap_failed == true)
    return failed(name, "a row of its memory could not be replaced", "have the GPU exchanged");
  if (gpu.uncorrected_errors.value_or(0) > 0)
    return failed(name,
                  std::to_string(*gpu.uncorrected_errors) + " uncorrected errors of its memory",
                  kReset);
  if (gpu.remap_pending == true || gpu.retirement_pending == true)
    return failed(name, "a part of its memory waits to be replaced", kReset);
  return passed(name,
                gpu.uncorrected_errors ? "no uncorrected errors" : "it does not count errors");
}

}  // namespace

std::optional<std::vector<GpuHealth>> ask_gpu_health() {
  const auto text = answer_of_child(list_health, kDriverLimit);
  if (!text) return {};
  std::vector<GpuHealth> gpus;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    GpuHealth& gpu = gpus.emplace_back();
    gpu.lost = line == "lost";
    if (gpu.lost) continue;
    std::istringstream words(line);
    gpu.uncorrected_errors = take_number(words);
    gpu.remap_pending = take_flag(words);
    gpu.remap_failed = take_flag(words);
    gpu.retirement_pending = take_flag(words);
  }
  return gpus;
}

std::vector<Check> judge_gpus(const std::optional<std::vector<GpuHealth>>& gpus, int devices) {
  std::vector<Check> checks;
  if (!gpus) {
    if (devices > 0)
      checks.push_back(failed("GPUs",
                              std::to_string(devices) + " in /dev, and the driver gives no answer",
                              "look at nvidia-smi and dmesg"));
    return checks;
  }
  const auto count = static_cast<int>(gpus->size());
  // A container may have been given fewer devices than the driver knows.
  if (count < devices)
    checks.push_back(failed(
        "GPUs", std::to_string(devices) + " in /dev, the driver has " + std::to_string(count),
        "a GPU may have fallen off its bus: look at dmesg"));
  for (std::size_t i = 0; i < gpus->size(); ++i)
    checks.push_back(judge_gpu(i, (*gpus)[i]));
  return checks;
}

int count_gpu_devices(const std::string& root) {
  int count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at(root + "/dev", error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(kNvidia) && name.size() > kNvidia.size() &&
        name.find_first_not_of("0123456789", kNvidia.size()) == name.npos)
      ++count;
  }
  return count;
}

}  // namespace drun::doctor
