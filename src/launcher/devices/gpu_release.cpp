#include "launcher/devices/gpu_release.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <sstream>

#include "base/split.hpp"
#include "base/standard_streams.hpp"
#include "base/whole_number.hpp"
#include "launcher/devices/nvml_processes.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// NVML has no call that waits for a process to go.
constexpr std::chrono::milliseconds kPause{20};
constexpr std::chrono::milliseconds kQuestionLimit{10'000};
constexpr std::size_t kLongestQuestion = 1U << 20;

// Its number may be another's by now, which is none of those that are waited for.
bool lives(pid_t pid) {
  return ::kill(pid, 0) == 0 || errno != ESRCH;
}

GpuAnswer look_for(const NvmlProcesses& nvml, const std::vector<pid_t>& gone) {
  GpuAnswer answer;
  const auto processes = nvml.list();
  if (!processes) return answer;
  answer.can_tell = true;
  for (const GpuProcess& each : *processes) {
    if (std::find(gone.begin(), gone.end(), each.pid) == gone.end() || lives(each.pid)) continue;
    answer.gpu = each.gpu;
    answer.pid = each.pid;
    break;
  }
  return answer;
}

}  // namespace

GpuAnswer await_release(const GpuQuestion& question) {
  const auto nvml = NvmlProcesses::load();
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
