#include "base/system_call.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/split.hpp"
#include "base/whole_number.hpp"

namespace drun {
namespace {

struct KnownCall {
  long number;
  std::string_view name;
  bool of_file = false;  // its first argument is one
};

constexpr auto kCalls = std::to_array<KnownCall>({
    {SYS_read, "read", true},
    {SYS_write, "write", true},
    {SYS_pread64, "pread64", true},
    {SYS_pwrite64, "pwrite64", true},
    {SYS_readv, "readv", true},
    {SYS_writev, "writev", true},
    {SYS_preadv, "preadv", true},
    {SYS_pwritev, "pwritev", true},
    {SYS_sendfile, "sendfile", true},
    {SYS_splice, "splice", true},
    {SYS_fsync, "fsync", true},
    {SYS_fdatasync, "fdatasync", true},
    {SYS_sync, "sync"},
    {SYS_openat, "openat"},
    {SYS_close, "close", true},
    {SYS_newfstatat, "newfstatat"},
    {SYS_fstat, "fstat", true},
    {SYS_statx, "statx"},
    {SYS_getdents64, "getdents64", true},
    {SYS_unlinkat, "unlinkat"},
    {SYS_renameat2, "renameat2"},
    {SYS_mkdirat, "mkdirat"},
    {SYS_flock, "flock", true},
    {SYS_fcntl, "fcntl", true},
    {SYS_ioctl, "ioctl", true},
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
    {SYS_connect, "connect", true},
    {SYS_accept, "accept", true},
    {SYS_accept4, "accept4", true},
    {SYS_sendto, "sendto", true},
    {SYS_sendmsg, "sendmsg", true},
    {SYS_recvfrom, "recvfrom", true},
    {SYS_recvmsg, "recvmsg", true},
    {SYS_recvmmsg, "recvmmsg", true},
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

}  // namespace

// "45 0x3 0x7ffd ...", "-1 0x7ff..." (in none) or "running"
std::optional<SystemCall> system_call_in(std::string_view text) {
  const auto number = whole_number<long>(take_until(text, ' '));
  if (!number || *number < 0) return std::nullopt;
  SystemCall call{*number, {}, std::nullopt, {}};
  const auto* const found = std::find_if(kCalls.begin(), kCalls.end(),
                                         [&](const auto& each) { return each.number == *number; });
  if (found == kCalls.end()) return call;
  call.name = found->name;
  std::string_view first;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const std::string_view word = take_until(text, ' ');
    if (i == 0) first = word;
    if (word.starts_with("0x"))
      call.arguments[i] = whole_number<std::uint64_t>(word.substr(2), 16).value_or(0);
  }
  if (found->of_file && first.starts_with("0x")) call.file = whole_number<int>(first.substr(2), 16);
  return call;
}

}  // namespace drun
