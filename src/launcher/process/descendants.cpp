#include "launcher/process/descendants.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/file_descriptor.hpp"
#include "base/folder_names.hpp"
#include "base/pidfd.hpp"
#include "base/process_files.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"
#include "launcher/process/kill_limit.hpp"

namespace drun::process {
namespace {

// How long a sweep waits for a death before it looks for new children again. A death wakes it at
// once; the interval matters only when an orphan arrives from a process that is not its child.
constexpr std::chrono::milliseconds kSweepInterval{10};
constexpr std::size_t kMostAwaited = 16;

void append_pids(std::string_view text, std::vector<pid_t>& out) {
  while (!text.empty()) {
    const auto space = std::min(text.find(' '), text.size());
    if (const auto pid = whole_number<pid_t>(text.substr(0, space))) out.push_back(*pid);
    text.remove_prefix(std::min(space + 1, text.size()));
  }
}

template <typename Visit>
void for_each_number_in(const std::string& path, Visit visit) {
  for_each_name(path, [&](std::string_view name) {
    if (const auto number = whole_number<pid_t>(name)) visit(*number);
  });
}

// Field `number` of proc(5)'s stat, from the fourth on; 0 if the process is gone.
long long stat_field(pid_t pid, int number) {
  const auto stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return 0;
  std::string_view rest = stat_from_state(*stat);
  for (int field = 3; field < number; ++field)
    take_until(rest, ' ');
  return whole_number<long long>(take_until(rest, ' ')).value_or(0);
}

// The parent, or 0 if the process is gone.
pid_t parent_of(pid_t pid) {
  return static_cast<pid_t>(stat_field(pid, 4));
}

// Kernels without CONFIG_PROC_CHILDREN: look at every process.
void append_children_by_scan(pid_t parent, std::vector<pid_t>& out) {
  for_each_number_in("/proc", [&](pid_t pid) {
    if (parent_of(pid) == parent) out.push_back(pid);
  });
}

void append_children_of(pid_t parent, std::vector<pid_t>& out) {
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  bool listed = false;
  for_each_number_in(tasks, [&](pid_t thread) {
    if (const auto text = read_small_file(tasks + "/" + std::to_string(thread) + "/children")) {
      listed = true;
      append_pids(*text, out);
    }
  });
  // A process that has just ended has no list either: scan only if the kernel has none at all.
  if (!listed && ::access("/proc/thread-self/children", F_OK) != 0)
    append_children_by_scan(parent, out);
}

// What is below these, to them.
void append_all_below(std::vector<pid_t>& all) {
  std::unordered_set<pid_t> seen(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<pid_t> next;
    append_children_of(all[i], next);
    for (const pid_t pid : next)
      if (seen.insert(pid).second) all.push_back(pid);
  }
}

// Whether /proc is there and shows the process ids of our own namespace: it may be covered, or come
// from outside.
bool proc_is_ours() {
  char target[24];
  const ssize_t n = ::readlink("/proc/self", target, sizeof target);
  return n > 0 && whole_number<pid_t>({target, static_cast<std::size_t>(n)}) == ::getpid();
}

// A child that nobody has waited for keeps its number, so this stays true until the caller itself
// waits for it.
bool is_child(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

// Without /proc the kernel still tells of any number whether it is a child of ours.
std::vector<pid_t> children_by_number() {
  siginfo_t any{};
  if (::waitid(P_ALL, 0, &any, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0) return {};  // none
  return search_children(::getpid(), is_child);
}

// Whether it is a child of ours that has ended and that we can collect. A zombie that a debugger
// holds cannot be collected.
bool can_be_reaped(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT | __WALL) ==
             0 &&
         info.si_pid != 0;
}

}  // namespace

void await_death(const std::vector<pid_t>& pids, std::chrono::milliseconds limit) {
  std::vector<FileDescriptor> owners;
  std::vector<pollfd> entries;
  for (std::size_t i = 0; i < std::min(pids.size(), kMostAwaited); ++i) {
    owners.push_back(open_pidfd(pids[i]));
    entries.push_back({owners.back().get(), POLLIN, 0});  // a negative descriptor is ignored
  }
  // A process that has ended already but is not ours to collect would end every wait at once.
  ::poll(entries.data(), entries.size(), 0);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].revents == 0) continue;
    if (can_be_reaped(pids[i])) return;
    entries[i].fd = -1;
  }
  ::poll(entries.data(), entries.size(), static_cast<int>(limit.count()));
}

bool reap_children(const OnReaped& on_reaped) {
  for (;;) {
    siginfo_t info{};
    rusage usage{};
    // The C library's function has no place for the usage.
    if (::syscall(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | __WALL, &usage) != 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (info.si_pid == 0) return true;
    Reaped reaped;
    reaped.pid = info.si_pid;
    reaped.usage = from_rusage(usage);
    if (info.si_code == CLD_EXITED) {
      reaped.status.code = info.si_status & 0xff;
    } else {
      reaped.status.signal = info.si_status;
      reaped.status.core_dumped = info.si_code == CLD_DUMPED;
    }
    on_reaped(reaped);
  }
}

std::vector<pid_t> search_children(pid_t self, const std::function<bool(pid_t)>& is_child_of_self) {
  constexpr pid_t kLimit = 4'194'304;  // Linux has no higher process ids
  constexpr pid_t kNear = 32'768;      // the kernel's own default for the highest
  const pid_t near = std::min(self + kNear, kLimit);
  // Children get the numbers after ours, and behind the highest one the lowest again. The others
  // are so many that to ask for each takes seconds.
  const std::pair<pid_t, pid_t> ranges[] = {
      {self + 1, near}, {1, std::min(kNear, self)}, {std::min(kNear, self), self}, {near, kLimit}};
  std::vector<pid_t> result;
  for (const auto& [first, last] : ranges) {
    for (pid_t pid = first; pid < last; ++pid)
      if (is_child_of_self(pid)) result.push_back(pid);
    if (!result.empty()) break;
  }
  return result;
}

std::vector<pid_t> children() {
  if (!proc_is_ours()) return children_by_number();
  std::vector<pid_t> result;
  append_children_of(::getpid(), result);
  return result;
}

std::vector<pid_t> descendants() {
  std::vector<pid_t> result = children();
  if (proc_is_ours()) append_all_below(result);
  return result;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> all;
  append_children_of(pid, all);
  return all;
}

std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> result;
  append_children_of(pid, result);
  append_all_below(result);
  return result;
}

bool is_below(pid_t pid, pid_t above) {
  while (pid > 1 && pid != above)
    pid = parent_of(pid);
  return pid == above;
}

std::optional<std::chrono::nanoseconds> start_of(pid_t pid) {
  const long long ticks = stat_field(pid, 22);
  if (ticks == 0) return std::nullopt;
  return std::chrono::nanoseconds(ticks * (1'000'000'000 / ::sysconf(_SC_CLK_TCK)));
}

bool acts_by_default(pid_t pid, int signal) {
  const auto status = read_small_file("/proc/" + std::to_string(pid) + "/status");
  if (!status) return false;
  for (const std::string_view name : {"\nSigIgn:\t", "\nSigCgt:\t"}) {
    const auto at = status->find(name);
    if (at == std::string::npos) return false;
    const auto mask = std::strtoull(status->c_str() + at + name.size(), nullptr, 16);
    if ((mask >> (signal - 1) & 1) != 0) return false;
  }
  return true;
}

void signal_descendants(const std::vector<pid_t>& all, int signal,
                        const std::function<bool(pid_t)>& wanted) {
  std::unordered_set<pid_t> family(all.begin(), all.end());
  family.insert(::getpid());
  const bool proc = proc_is_ours();
  for (const pid_t pid : all) {
    if (wanted && !wanted(pid)) continue;
    // The descriptor pins the process; if it is still alive when it is signalled, it was the owner
    // of this process id when its parent was read.
    const FileDescriptor pinned = open_pidfd(pid);
    // Without a descriptor (an old kernel, or none is left) the process id has to do.
    if (!pinned && errno != ENOSYS && errno != EMFILE) continue;
    if (!is_child(pid) && !(proc && family.contains(parent_of(pid)))) continue;
    if (pinned) {
      ::syscall(SYS_pidfd_send_signal, pinned.get(), signal, nullptr, 0);
    } else {
      ::kill(pid, signal);
    }
  }
}

bool kill_descendants(std::chrono::milliseconds limit, const OnReaped& on_reaped) {
  KillLimit killing(std::chrono::steady_clock::now(), limit);
  const auto count = [&](const Reaped& reaped) {
    killing.on_death();
    on_reaped(reaped);
  };
  while (reap_children(count)) {
    const auto targets = descendants();
    signal_descendants(targets, SIGKILL);
    if (!reap_children(count)) return true;
    if (killing.is_over(std::chrono::steady_clock::now())) return false;
    killing.on_sweep();
    await_death(targets, kSweepInterval);
  }
  return true;
}

}  // namespace drun::process
