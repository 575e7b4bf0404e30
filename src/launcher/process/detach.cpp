#include "launcher/process/detach.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/close_descriptors.hpp"
#include "launcher/process/exit_status.hpp"

namespace drun::process {
namespace {

struct KernelSignalSet {
  std::uint64_t bits = 0;
};
// The kernel's struct sigaction; all zero is the default disposition.
struct KernelSignalAction {
  std::uintptr_t words[4] = {};
};

void reset_dispositions() {
  const KernelSignalAction standard;
  for (int signal = 1; signal <= kLastSignal; ++signal)
    ::syscall(SYS_rt_sigaction, signal, &standard, nullptr, sizeof(KernelSignalSet));
}

void standard_streams_to_null() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  for (int fd = 0; fd < 3; ++fd) {
#ifdef DRUN_ASAN
    if (fd == 2) continue;  // the sanitizer's reports go there
#endif
    ::dup2(null, fd);
  }
  if (null > 2) ::close(null);
}

// Empty if it is not known.
std::span<char> find_command_line() {
  FILE* stat = std::fopen("/proc/self/stat", "re");
  if (stat == nullptr) return {};
  char line[2048];
  const std::size_t n = std::fread(line, 1, sizeof line - 1, stat);
  std::fclose(stat);
  line[n] = '\0';
  // Fields 48 and 49 of proc(5), arg_start and arg_end; the second field ends with the last ')'.
  const char* at = std::strrchr(line, ')');
  for (int field = 2; at != nullptr && field < 48; ++field)
    at = std::strchr(at + 1, ' ');
  if (at == nullptr) return {};
  char* end = nullptr;
  const auto begin_address = std::strtoull(at, &end, 10);
  const auto end_address = std::strtoull(end, nullptr, 10);
  if (begin_address == 0 || end_address <= begin_address + 1) return {};
  char* area = reinterpret_cast<char*>(begin_address);  // NOLINT(performance-no-int-to-ptr)
  return {area, end_address - begin_address};
}

}  // namespace

bool adopt_orphans() {
  siginfo_t ignored{};
  if (::waitid(P_ALL, 0, &ignored, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD)
    return false;
  return ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

void detach(std::initializer_list<int> keep, const char* name) {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  reset_dispositions();
  standard_streams_to_null();
  set_apart(keep, name);
}

void set_apart(std::initializer_list<int> keep, const char* name) {
  ::setsid();
  ::prctl(PR_SET_NAME, name);
  std::vector<int> kept(keep);
  std::sort(kept.begin(), kept.end());
  close_descriptors(3, kept);
}

// If the parent has ended already, this process is not stopped, and sees it by itself.
void be_woken_by_parents_end() {
  ::prctl(PR_SET_PDEATHSIG, SIGCONT);
}

void set_command_line(const std::string& title) {
  static const std::span<char> kArea = find_command_line();
  if (kArea.empty()) return;
  std::fill(kArea.begin(), kArea.end(), '\0');
  title.copy(kArea.data(), kArea.size() - 1);
}

}  // namespace drun::process
