#include "hang/wait_place.hpp"

#include <sys/syscall.h>

#include <cstddef>
#include <optional>
#include <string>

#include "base/printable.hpp"
#include "base/process_files.hpp"
#include "base/small_file.hpp"
#include "base/system_call.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"

namespace drun::hang {
namespace {

std::string proc_file(pid_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

// "from 10.0.0.1:29500", "of pipe:[4711]", "of /nfs/data"; empty: nobody knows.
std::string describe_file(pid_t pid, int file, Connections& connections) {
  const std::string name = link_target(proc_file(pid, "fd/") + std::to_string(file));
  if (name.empty()) return {};
  if (const std::string peer = connections.peer_of(name); !peer.empty()) return " from " + peer;
  return " of " + as_name(name);
}

std::optional<SystemCall> call_of(pid_t pid) {
  const auto text = read_small_file(proc_file(pid, "syscall"));
  return text ? system_call_in(trimmed(*text)) : std::nullopt;
}

// The process that this one only waits for, if it is the only child of it among `rank`.
std::optional<pid_t> awaited(pid_t pid, const RankLook& rank) {
  const auto call = call_of(pid);
  if (!call || (call->number != SYS_wait4 && call->number != SYS_waitid)) return std::nullopt;
  const auto text = read_small_file("/proc/" + std::to_string(pid) + "/task/" +
                                    std::to_string(pid) + "/children");
  if (!text) return std::nullopt;
  const auto child = whole_number<pid_t>(trimmed(*text));
  return child && rank.processes.contains(*child) ? child : std::nullopt;
}

bool is_stopped(pid_t pid) {
  const auto stat = read_small_file(proc_file(pid, "stat"));
  return stat && stat_from_state(*stat).starts_with('T');
}

}  // namespace

std::string WaitPlace::text(bool several) const {
  if (stopped) return several ? "are stopped by a signal" : "is stopped by a signal";
  return (several ? "wait in " : "waits in ") + (call.empty() ? "an unknown place" : call);
}

WaitPlace wait_place(pid_t pid, const RankLook& rank, Connections& connections) {
  for (std::size_t steps = 0; steps < rank.processes.size(); ++steps) {
    const auto child = awaited(pid, rank);
    if (!child) break;
    pid = *child;
  }
  WaitPlace found;
  found.stopped = is_stopped(pid);
  if (found.stopped) return found;
  std::string& text = found.call;
  const auto call = call_of(pid);
  if (call && call->name.empty()) {
    text = "system call " + std::to_string(call->number);
  } else if (call) {
    text = call->name;
  }
  const auto channel = read_small_file(proc_file(pid, "wchan"));
  const std::string place = channel ? printable(trimmed(*channel)) : "";
  if (!place.empty() && place != "0") text += (text.empty() ? "" : " ") + ("(" + place + ")");
  if (call && call->file) found.file = describe_file(pid, *call->file, connections);
  return found;
}

}  // namespace drun::hang
