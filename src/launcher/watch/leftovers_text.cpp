#include "launcher/watch/leftovers_text.hpp"

#include <algorithm>
#include <cstddef>

#include "base/counted.hpp"
#include "base/duration_text.hpp"
#include "base/size_text.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kMostNames = 3;
constexpr std::chrono::seconds kWorthALine{1};

}  // namespace

std::string swept_text(const process::SharedMemory::Swept& swept) {
  const std::size_t count = swept.names.size();
  if (count == 0) return "";
  std::string names;
  for (std::size_t i = 0; i < std::min(count, kMostNames); ++i)
    names += (i == 0 ? "" : ", ") + swept.names[i];
  if (count > kMostNames) names += ", ...";
  return "removed " + counted(count, "file") + " (" + size_text(swept.bytes) +
         ") that the workers left in /dev/shm: " + names;
}

GpuNote gpu_note(const GpuAnswer& answer, std::chrono::milliseconds waited,
                 std::chrono::milliseconds limit) {
  if (!answer.can_tell)
    return {true,
            "the GPUs' driver does not say any more whether it has given back the memory of the "
            "last round; the new workers start, and nobody waits for it again"};
  if (answer.gpu >= 0)
    return {true, "GPU " + std::to_string(answer.gpu) +
                      " has not given back the memory of process " + std::to_string(answer.pid) +
                      " of the last round within " + describe_duration(limit.count()) +
                      "; the new workers start without it"};
  if (waited < kWorthALine) return {};
  return {false, "waited " + describe_duration(waited.count()) +
                     " until the GPUs had given back the memory of the last round"};
}

}  // namespace drun::launcher
