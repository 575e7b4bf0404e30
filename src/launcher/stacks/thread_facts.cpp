#include "launcher/stacks/thread_facts.hpp"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"

namespace drun::launcher {
namespace {

// Those in which programs wait; of others the number tells enough.
constexpr auto kCalls = std::to_array<std::pair<long, std::string_view>>({
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_preadv, "preadv"},
    {SYS_pwritev, "pwritev"},
    {SYS_sendfile, "sendfile"},
    {SYS_splice, "splice"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_sync, "sync"},
    {SYS_openat, "openat"},
    {SYS_close, "close"},
    {SYS_newfstatat, "newfstatat"},
    {SYS_fstat, "fstat"},
    {SYS_statx, "statx"},
    {SYS_getdents64, "getdents64"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_renameat2, "renameat2"},
    {SYS_mkdirat, "mkdirat"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_ioctl, "ioctl"},
    {SYS_mmap, "mmap"},
    {SYS_munmap, "munmap"},
    {SYS_madvise, "madvise"},
    {SYS_futex, "futex"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect6"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_sched_yield, "sched_yield"},
    {SYS_restart_syscall, "restart_syscall"},
    {SYS_connect, "connect"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_recvmmsg, "recvmmsg"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
    {SYS_semop, "semop"},
    {SYS_semtimedop, "semtimedop"},
    {SYS_msgrcv, "msgrcv"},
    {SYS_msgsnd, "msgsnd"},
    {SYS_mq_timedreceive, "mq_timedreceive"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_io_uring_enter, "io_uring_enter"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_exit_group, "exit_group"},
#ifdef SYS_poll
    {SYS_poll, "poll"},
#endif
#ifdef SYS_select
    {SYS_select, "select"},
#endif
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, "epoll_wait"},
#endif
#ifdef SYS_pause
    {SYS_pause, "pause"},
#endif
#ifdef SYS_open
    {SYS_open, "open"},
#endif
#ifdef SYS_stat
    {SYS_stat, "stat"},
#endif
#ifdef SYS_vfork
    {SYS_vfork, "vfork"},
#endif
});

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
  // "pid (name) state ...": the name may hold anything, the last ')' ends it.
  const auto end = stat.rfind(')');
  return end == std::string_view::npos || end + 2 >= stat.size() ? '?' : stat[end + 2];
}

std::string call_in(std::string_view text) {
  const auto number = whole_number<long>(text.substr(0, text.find(' ')));
  if (!number || *number < 0) return {};  // "running", or "-1 ...": in none
  const auto* found = std::find_if(kCalls.begin(), kCalls.end(),
                                   [&](const auto& each) { return each.first == *number; });
  return found == kCalls.end() ? "number " + std::to_string(*number) : std::string(found->second);
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
  facts.call = call_in(without_end(read_small_file(folder + "/syscall").value_or("")));
  return facts;
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir((folder_of(pid) + "/task").c_str()),
                                                   ::closedir);
  if (!folder) return threads;
  while (const dirent* entry = ::readdir(folder.get()))
    if (const auto thread = whole_number<pid_t>(entry->d_name)) threads.push_back(*thread);
  std::sort(threads.begin(), threads.end(), [pid](pid_t left, pid_t right) {
    return std::pair(left != pid, left) < std::pair(right != pid, right);
  });
  return threads;
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
