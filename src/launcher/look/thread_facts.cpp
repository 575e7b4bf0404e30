#include "launcher/look/thread_facts.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/folder_names.hpp"
#include "base/process_files.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/system_call.hpp"
#include "base/whole_number.hpp"

namespace drun::launcher {
namespace {

std::string folder_of(pid_t pid) {
  return "/proc/" + std::to_string(pid);
}

std::string_view without_end(std::string_view text) {
  while (text.ends_with('\n'))
    text.remove_suffix(1);
  return text;
}

}  // namespace

char state_in(std::string_view stat) {
  const std::string_view rest = stat_from_state(stat);
  return rest.empty() ? '?' : rest.front();
}

std::vector<std::string> kernel_frames_in(std::string_view text) {
  std::vector<std::string> frames;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');  // "[<0>] fuse_wait+0x12/0x100"
    const auto start = line.find("] ");
    if (start == std::string_view::npos) continue;
    line.remove_prefix(start + 2);
    frames.push_back(std::string(line.substr(0, line.find('+'))) + " (kernel)");
  }
  return frames;
}

ThreadFacts facts_of(pid_t pid, pid_t thread) {
  const std::string folder = folder_of(pid) + "/task/" + std::to_string(thread);
  ThreadFacts facts;
  facts.name = without_end(read_small_file(folder + "/comm").value_or(""));
  facts.state = state_in(read_small_file(folder + "/stat").value_or(""));
  const std::string wait = read_small_file(folder + "/wchan").value_or("");
  if (wait != "0") facts.wait = without_end(wait);
  const std::string text = read_small_file(folder + "/syscall").value_or("");
  if (const auto call = system_call_in(without_end(text)))
    facts.call =
        call->name.empty() ? "number " + std::to_string(call->number) : std::string(call->name);
  return facts;
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  for_each_name(folder_of(pid) + "/task", [&](std::string_view name) {
    if (const auto thread = whole_number<pid_t>(name)) threads.push_back(*thread);
  });
  std::sort(threads.begin(), threads.end(), [pid](pid_t left, pid_t right) {
    return std::pair(left != pid, left) < std::pair(right != pid, right);
  });
  return threads;
}

pid_t first_living(pid_t pid, const std::vector<pid_t>& threads) {
  const auto living = std::find_if(threads.begin(), threads.end(), [pid](pid_t thread) {
    const char state = facts_of(pid, thread).state;
    return state != 'Z' && state != '?';
  });
  return living == threads.end() ? pid : *living;
}

bool is_own_process(pid_t pid) {
  const auto status = read_small_file(folder_of(pid) + "/status");
  const auto at = status ? status->find("\nUid:\t") : std::string::npos;
  if (at == std::string::npos) return false;
  std::string_view ids = std::string_view(*status).substr(at + 6);
  ids = ids.substr(0, ids.find('\n'));
  while (!ids.empty())
    if (whole_number<uid_t>(take_until(ids, '\t')) != ::geteuid()) return false;
  return true;
}

std::vector<std::string> kernel_frames(pid_t pid, pid_t thread) {
  return kernel_frames_in(
      read_small_file(folder_of(pid) + "/task/" + std::to_string(thread) + "/stack").value_or(""));
}

}  // namespace drun::launcher
