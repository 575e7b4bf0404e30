#include "hang/waiting_processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/folder_names.hpp"
#include "base/process_files.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"

namespace drun::hang {
namespace {

constexpr std::size_t kMostProcesses = 256;
constexpr std::size_t kMostThreads = 1'000;
constexpr std::size_t kMostAwaited = 1'024;  // files of one wait

std::string task_of(pid_t pid, pid_t thread) {
  return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread);
}

// Copies from the memory of another process; false: it may not be read.
bool read_memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) {
  iovec here{to, size};
  iovec there{reinterpret_cast<void*>(address), size};
  return ::process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

std::vector<int> files_of_poll(pid_t thread, const SystemCall& call) {
  std::vector<pollfd> entries(std::min<std::size_t>(call.arguments[1], kMostAwaited));
  std::vector<int> files;
  if (entries.empty() ||
      !read_memory(thread, call.arguments[0], entries.data(), entries.size() * sizeof(pollfd)))
    return files;
  for (const pollfd& entry : entries)
    if (entry.fd >= 0 && (entry.events & POLLIN) != 0) files.push_back(entry.fd);
  return files;
}

std::vector<int> files_of_select(pid_t thread, const SystemCall& call) {
  const std::size_t files_named = std::min<std::size_t>(call.arguments[0], FD_SETSIZE);
  fd_set read;
  FD_ZERO(&read);
  std::vector<int> files;
  if (!read_memory(thread, call.arguments[1], &read, (files_named + 7) / 8)) return files;
  for (std::size_t file = 0; file < files_named; ++file)
    if (FD_ISSET(static_cast<int>(file), &read)) files.push_back(static_cast<int>(file));
  return files;
}

// "tfd:        5 events:       19 data: ..."
std::vector<int> files_of_epoll(const std::string& task, std::uint64_t epoll) {
  std::vector<int> files;
  const auto text = read_small_file(task + "/fdinfo/" + std::to_string(epoll));
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty() && files.size() < kMostAwaited) {
    std::string_view line = take_until(rest, '\n');
    if (take_until(line, ':') != "tfd") continue;
    const std::string_view number = trimmed(line);
    if (const auto file = whole_number<int>(number.substr(0, number.find(' '))))
      files.push_back(*file);
  }
  return files;
}

// For which a thread waits to have something.
std::vector<int> awaited_files(pid_t pid, pid_t thread, const SystemCall& call) {
  switch (call.number) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_splice:
      return call.file ? std::vector{*call.file} : std::vector<int>();
    case SYS_ppoll:
#ifdef SYS_poll
    case SYS_poll:
#endif
      return files_of_poll(thread, call);
    case SYS_pselect6:
#ifdef SYS_select
    case SYS_select:
#endif
      return files_of_select(thread, call);
    case SYS_epoll_pwait:
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
      return files_of_epoll(task_of(pid, thread), call.arguments[0]);
    default:
      return {};
  }
}

// Also one that sends: it waits for who receives.
bool is_on_network(pid_t pid, pid_t thread, const SystemCall& call, const std::vector<int>& awaited,
                   Connections& connections) {
  const auto leads_elsewhere = [&](int file) {
    const std::string name = link_target(task_of(pid, thread) + "/fd/" + std::to_string(file));
    return connections.is_connection(name);
  };
  return (call.file && leads_elsewhere(*call.file)) ||
         std::any_of(awaited.begin(), awaited.end(), leads_elsewhere);
}

bool awaits_children(const SystemCall& call) {
  return call.number == SYS_wait4 || call.number == SYS_waitid;
}

bool threads_on_network(pid_t pid, pid_t first, Connections& connections) {
  bool found = false;
  std::size_t looked_at = 0;
  for_each_name("/proc/" + std::to_string(pid) + "/task", [&](std::string_view name) {
    const auto thread = whole_number<pid_t>(name);
    if (found || !thread || *thread == first || ++looked_at > kMostThreads) return;
    const auto call = call_of(pid, *thread);
    found =
        call && is_on_network(pid, *thread, *call, awaited_files(pid, *thread, *call), connections);
  });
  return found;
}

// "flags:	0100001"
bool is_for_writing(const std::string& task, std::string_view file) {
  const auto text = read_small_file(task + "/fdinfo/" + std::string(file));
  const auto at = text ? text->find("flags:") : std::string::npos;
  if (at == std::string::npos) return false;
  std::string_view line = std::string_view(*text).substr(at);
  line = trimmed(take_until(line, '\n').substr(6));
  return (whole_number<unsigned>(line, 8).value_or(0) & O_ACCMODE) != O_RDONLY;
}

// What it has open: to whom it may answer.
void add_files(WaitingProcess& process, const std::string& task, Connections& connections) {
  for_each_name(task + "/fd", [&](std::string_view name) {
    const std::string file = link_target(task + "/fd/" + std::string(name));
    if (connections.is_connection(file)) {
      process.connected = true;
    } else if (file.starts_with("pipe:[")) {
      if (is_for_writing(task, name)) process.answers.insert(file);
    } else if (auto other = connections.other_end_of(file); !other.empty()) {
      process.answers.insert(std::move(other));
    }
  });
}

pid_t parent_of(pid_t pid) {
  const auto text = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  std::string_view rest = text ? stat_from_state(*text) : std::string_view();
  take_until(rest, ' ');
  return whole_number<pid_t>(take_until(rest, ' ')).value_or(0);
}

// Without what it has open.
WaitingProcess waiting_process(pid_t pid, Connections& connections) {
  WaitingProcess process;
  process.parent = parent_of(pid);
  const pid_t thread = first_thread(pid);
  const auto call = call_of(pid, thread);
  if (call) {
    process.awaits_children = awaits_children(*call);
    const auto files = awaited_files(pid, thread, *call);
    process.awaits_network = is_on_network(pid, thread, *call, files, connections);
    for (const int file : files) {
      std::string name = link_target(task_of(pid, thread) + "/fd/" + std::to_string(file));
      if (name.starts_with("pipe:[") || name.starts_with("socket:["))
        process.awaits_files.push_back(std::move(name));
    }
  }
  if (!process.awaits_network && !process.awaits_children && process.awaits_files.empty())
    process.threads_on_network = threads_on_network(pid, thread, connections);
  return process;
}

}  // namespace

pid_t first_thread(pid_t pid) {
  pid_t first = pid;
  const auto has_ended = [&](pid_t thread) {
    const auto stat = read_small_file(task_of(pid, thread) + "/stat");
    return !stat || stat_from_state(*stat).starts_with('Z');
  };
  if (!has_ended(pid)) return pid;
  for_each_name("/proc/" + std::to_string(pid) + "/task", [&](std::string_view name) {
    const auto thread = whole_number<pid_t>(name);
    if (!thread || *thread == pid || (first != pid && *thread > first)) return;
    if (!has_ended(*thread)) first = *thread;
  });
  return first;
}

std::optional<SystemCall> call_of(pid_t pid, pid_t thread) {
  const auto text = read_small_file(task_of(pid, thread) + "/syscall");
  return text ? system_call_in(trimmed(*text)) : std::nullopt;
}

std::string path_of(pid_t thread, const SystemCall& call) {
  constexpr std::size_t kLongestPath = 512;
  constexpr std::uint64_t kPage = 4'096;
  std::uint64_t address = 0;
  switch (call.number) {
    case SYS_openat:
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_unlinkat:
    case SYS_mkdirat:
      address = call.arguments[1];
      break;
#ifdef SYS_open
    case SYS_open:
    case SYS_stat:
      address = call.arguments[0];
      break;
#endif
    default:
      return {};
  }
  std::string path;
  // Page by page: there may be nothing behind the one in which it ends.
  while (path.size() < kLongestPath) {
    const auto size = std::min<std::uint64_t>(kLongestPath - path.size(), kPage - address % kPage);
    std::string piece(size, '\0');
    if (!read_memory(thread, address, piece.data(), size)) return {};
    const auto end = piece.find('\0');
    path += piece.substr(0, end);
    if (end != std::string::npos) return path;
    address += size;
  }
  return path + "...";
}

std::map<pid_t, WaitingProcess> waiting_processes(pid_t worker, const RankLook& rank,
                                                  Connections& connections) {
  std::map<pid_t, WaitingProcess> found;
  WaitingProcess& first = found[worker] = waiting_process(worker, connections);
  if (first.awaits_network || (!first.awaits_children && first.awaits_files.empty())) return found;
  for (const auto& [pid, look] : rank.processes) {
    if (found.size() == kMostProcesses) break;
    if (pid != worker) found.emplace(pid, waiting_process(pid, connections));
  }
  for (auto& [pid, process] : found)
    add_files(process, task_of(pid, first_thread(pid)), connections);
  return found;
}

}  // namespace drun::hang
