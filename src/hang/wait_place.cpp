#include "hang/wait_place.hpp"

#include <string>

#include "base/printable.hpp"
#include "base/process_files.hpp"
#include "base/small_file.hpp"
#include "base/system_call.hpp"
#include "base/trimmed.hpp"
#include "hang/waiting_processes.hpp"

namespace drun::hang {
namespace {

std::string task_file(pid_t pid, pid_t thread, const std::string& name) {
  return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/" + name;
}

// "from 10.0.0.1:29500", "of pipe:[4711]", "of /nfs/data"; empty: nobody knows.
std::string describe_file(pid_t pid, pid_t thread, int file, Connections& connections) {
  const std::string name = link_target(task_file(pid, thread, "fd/" + std::to_string(file)));
  if (name.empty()) return {};
  if (const std::string peer = connections.peer_of(name); !peer.empty()) return " from " + peer;
  return " of " + as_name(name);
}

bool is_stopped(pid_t pid, pid_t thread) {
  const auto stat = read_small_file(task_file(pid, thread, "stat"));
  return stat && stat_from_state(*stat).starts_with('T');
}

WaitPlace place_of(pid_t pid, Connections& connections) {
  WaitPlace found;
  const pid_t thread = first_thread(pid);
  found.stopped = is_stopped(pid, thread);
  if (found.stopped) return found;
  std::string& text = found.call;
  const auto call = call_of(pid, thread);
  if (call && call->name.empty()) {
    text = "system call " + std::to_string(call->number);
  } else if (call) {
    text = call->name;
  }
  const auto channel = read_small_file(task_file(pid, thread, "wchan"));
  const std::string place = channel ? printable(trimmed(*channel)) : "";
  if (!place.empty() && place != "0") text += (text.empty() ? "" : " ") + ("(" + place + ")");
  if (call && call->file) {
    found.file = describe_file(pid, thread, *call->file, connections);
  } else if (const std::string path = call ? path_of(thread, *call) : ""; !path.empty()) {
    found.file = " of " + as_name(path);
  }
  return found;
}

}  // namespace

std::string WaitPlace::text(bool several) const {
  if (stopped) return several ? "are stopped by a signal" : "is stopped by a signal";
  return (several ? "wait in " : "waits in ") + (call.empty() ? "an unknown place" : call) +
         (child.empty() ? "" : " for its child process, which " + child);
}

WaitPlace wait_place(pid_t pid, const RankLook& rank, Connections& connections) {
  const Awaited awaited = whom_it_awaits(pid, waiting_processes(pid, rank, connections));
  WaitPlace found = place_of(awaited.program, connections);
  found.whom = awaited.whom;
  if (awaited.whom == Awaited::Whom::OwnChild && !found.stopped) {
    const WaitPlace child = place_of(awaited.child, connections);
    found.child = child.text();
    found.file = child.file;
  }
  return found;
}

}  // namespace drun::hang
