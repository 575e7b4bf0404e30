#include "launcher/devices/gpu_release.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <sstream>

#include "base/loaded_library.hpp"
#include "base/process_files.hpp"
#include "base/split.hpp"
#include "base/standard_streams.hpp"
#include "base/whole_number.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// NVML has no call that waits for a process to go.
constexpr std::chrono::milliseconds kPause{20};
constexpr std::chrono::milliseconds kQuestionLimit{10'000};
constexpr std::size_t kLongestQuestion = 1U << 20;
constexpr std::size_t kMostProcesses = 4'096;  // on a GPU

// The part of nvml.h that is used; every function returns 0 for success.
using Gpu = void*;
struct ProcessInfo {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
struct ProcessLibrary {
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Gpu*) = nullptr;
  int (*processes)(Gpu, unsigned* count, ProcessInfo*) = nullptr;
};

// Nothing if there is none that lists processes: drivers before 450 have other records.
std::optional<ProcessLibrary> load_process_library() {
  ProcessLibrary nvml;
  LoadedLibrary file({"libnvidia-ml.so.1", "the processes of GPUs", "2", "libnvidia-ml1"});
  file.need("nvmlInit_v2", nvml.init);
  file.need("nvmlDeviceGetCount_v2", nvml.count);
  file.need("nvmlDeviceGetHandleByIndex_v2", nvml.by_index);
  file.find("nvmlDeviceGetComputeRunningProcesses_v3", nvml.processes);
  if (nvml.processes == nullptr)
    file.need("nvmlDeviceGetComputeRunningProcesses_v2", nvml.processes);
  if (!file.status() || nvml.init() != 0) return std::nullopt;
  return nvml;
}

// NVML counts processes as the host does: in another pid namespace its numbers are strangers'. The
// kernel's first one has this name, everywhere.
bool counts_as_the_host() {
  return link_target("/proc/self/ns/pid") == "pid:[4026531836]";
}

// Its number may be another's by now, which is none of those that are waited for.
bool lives(pid_t pid) {
  return ::kill(pid, 0) == 0 || errno != ESRCH;
}

GpuAnswer look_for(const ProcessLibrary& nvml, const std::vector<pid_t>& gone) {
  GpuAnswer answer;
  unsigned gpus = 0;
  if (nvml.count(&gpus) != 0) return answer;
  std::vector<ProcessInfo> list(kMostProcesses);
  for (unsigned i = 0; i < gpus; ++i) {
    Gpu gpu = nullptr;
    auto count = static_cast<unsigned>(list.size());
    if (nvml.by_index(i, &gpu) != 0 || nvml.processes(gpu, &count, list.data()) != 0) continue;
    answer.can_tell = true;
    for (unsigned k = 0; k < std::min<std::size_t>(count, list.size()); ++k) {
      const auto pid = static_cast<pid_t>(list[k].pid);
      if (std::find(gone.begin(), gone.end(), pid) == gone.end() || lives(pid)) continue;
      answer.gpu = static_cast<int>(i);
      answer.pid = pid;
      return answer;
    }
  }
  return answer;
}

}  // namespace

GpuAnswer await_release(const GpuQuestion& question) {
  if (!counts_as_the_host()) return {};
  const auto nvml = load_process_library();
  if (!nvml) return {};
  const auto deadline = Clock::now() + question.limit;
  for (;;) {
    const GpuAnswer answer = look_for(*nvml, question.gone);
    if (answer.gpu < 0 || Clock::now() >= deadline) return answer;
    ::poll(nullptr, 0, static_cast<int>(kPause.count()));
  }
}

std::string encode(const GpuQuestion& question) {
  std::string text = std::to_string(question.limit.count());
  for (const pid_t pid : question.gone)
    text += " " + std::to_string(pid);
  return text + "\n";
}

std::string encode(const GpuAnswer& answer) {
  if (!answer.can_tell) return "unknown\n";
  if (answer.gpu < 0) return "free\n";
  return "held " + std::to_string(answer.gpu) + " " + std::to_string(answer.pid) + "\n";
}

std::optional<GpuAnswer> decode_gpu_answer(std::string_view text) {
  GpuAnswer answer;
  if (text == "unknown\n") return answer;
  answer.can_tell = true;
  if (text == "free\n") return answer;
  if (take_until(text, ' ') != "held") return std::nullopt;
  const auto gpu = whole_number<int>(take_until(text, ' '));
  if (!text.ends_with('\n')) return std::nullopt;
  text.remove_suffix(1);
  const auto pid = whole_number<pid_t>(text);
  if (!gpu || *gpu < 0 || !pid) return std::nullopt;
  answer.gpu = *gpu;
  answer.pid = *pid;
  return answer;
}

int run_gpu_helper() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string text =
      read_standard_input_line(kLongestQuestion, Clock::now() + kQuestionLimit);
  std::string_view rest(text);
  if (!rest.ends_with('\n')) return 1;
  rest.remove_suffix(1);
  const auto limit = whole_number<std::int64_t>(take_until(rest, ' '));
  GpuQuestion question;
  while (!rest.empty())
    if (const auto pid = whole_number<pid_t>(take_until(rest, ' '))) question.gone.push_back(*pid);
  if (!limit || *limit < 0) return 1;
  question.limit = std::chrono::milliseconds(*limit);
  const GpuAnswer answer = await_release(question);
  return write_standard_output(encode(answer)) ? 0 : 1;
}

}  // namespace drun::launcher
