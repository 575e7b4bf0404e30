#include "launcher/process/spawn.hpp"

#include <elf.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <system_error>

#include "base/printable.hpp"

namespace drun::process {
namespace {

static_assert(sizeof(std::atomic<pid_t>) == sizeof(pid_t) &&
              std::atomic<pid_t>::is_always_lock_free);

constexpr std::size_t kStackSize = 128U << 10;
// This many bytes of a file without "#!" decide whether it is a shell script.
constexpr std::size_t kScriptProbe = 128;
// As much of a script as the kernel looks at.
constexpr std::size_t kInterpreterProbe = 256;

enum class Step { None, Streams, Bind, Exec };

// Everything the child needs, made before it exists, and its error if it fails. It lies in memory
// that both see.
struct ChildContext {
  pid_t parent = 0;
  pid_t agent = 0;
  const SpawnPlan* plan = nullptr;
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  char** shell_argv = nullptr;  // "/bin/sh", <the script>, arguments
  const char* const* candidates = nullptr;

  Step failed = Step::None;
  int error = 0;
  const char* path = nullptr;
  bool interpreter_missing = false;  // the file is there, what runs it is not
};

bool has_text(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char head[kScriptProbe];
  const ssize_t n = ::read(file, head, sizeof head);
  ::close(file);
  for (ssize_t i = 0; i < n && head[i] != '\n'; ++i)
    if (head[i] == '\0') return false;
  return n >= 0;
}

// As execvp: the next element of PATH is tried if this one has no such file, and a file that may
// not be executed is remembered.
void exec_first(ChildContext& context) {
  bool refused = false;
  context.error = ENOENT;
  for (const char* const* candidate = context.candidates; *candidate != nullptr; ++candidate) {
    ::execve(*candidate, context.argv, context.environment);
    int error = errno;
    if (error == ENOEXEC && has_text(*candidate)) {
      context.shell_argv[1] = const_cast<char*>(*candidate);
      ::execve(context.shell_argv[0], context.shell_argv, context.environment);
      error = errno;
    }
    switch (error) {
      case EACCES:
        if (!refused) context.path = *candidate;
        refused = true;
        continue;
      case ENOENT:
      case ENOTDIR:
      case ESTALE:
      case ENODEV:
      case ETIMEDOUT:
        if (refused) continue;
        context.error = error;
        if (::access(*candidate, F_OK) == 0) {
          context.path = *candidate;
          context.interpreter_missing = true;
          return;
        }
        continue;
      default:
        context.path = *candidate;
        context.error = error;
        return;
    }
  }
  if (refused) context.error = EACCES;
}

// The CPUs are mandatory, the memory is advice: containers often forbid memory policies, and then
// pages come from the node of the CPU that touches them first.
bool bind(const SpawnPlan& plan) {
  if (!plan.node_mask.empty()) {
    // From linux/mempolicy.h; the first is known from Linux 5.15 on, the second takes one node.
    constexpr int kPreferredMany = 5;
    constexpr int kPreferred = 1;
    const unsigned long bits = plan.node_mask.size() * 8 * sizeof(unsigned long) + 1;
    if (::syscall(SYS_set_mempolicy, kPreferredMany, plan.node_mask.data(), bits) != 0)
      ::syscall(SYS_set_mempolicy, kPreferred, plan.node_mask.data(), bits);
    errno = 0;
  }
  return plan.cpu_mask.empty() ||
         ::syscall(SYS_sched_setaffinity, 0, plan.cpu_mask.size() * sizeof(unsigned long),
                   plan.cpu_mask.data()) == 0;
}

// Only async-signal-safe calls from here to the exec.
Step prepare_and_exec(ChildContext& context) {
  const SpawnPlan& plan = *context.plan;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != context.parent) ::_exit(127);
  // Where Yama allows only a parent to trace, a process of the agent's may look where this one is.
  // Elsewhere the kernel does not know the call.
  ::prctl(PR_SET_PTRACER, context.agent, 0, 0, 0);
  for (int i = 0; i < 3; ++i)
    if (::dup2(plan.streams[static_cast<std::size_t>(i)], i) < 0) return Step::Streams;
  unsigned first_to_close = STDERR_FILENO + 1;
  if (plan.service >= 0) {
    // Where they are one already, dup2() does nothing, and the exec would close it.
    const int number = STDERR_FILENO + 1;
    if (plan.service == number ? ::fcntl(number, F_SETFD, 0) < 0 : ::dup2(plan.service, number) < 0)
      return Step::Streams;
    ++first_to_close;
  }
  // The parent opens everything with O_CLOEXEC, but an exec may hang, and the parent's sockets must
  // not stay open for as long.
  ::syscall(SYS_close_range, first_to_close, ~0U, 0U);
  if (!bind(plan)) return Step::Bind;
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  exec_first(context);
  return Step::Exec;
}

// Runs on a stack of its own, which AddressSanitizer does not know.
__attribute__((no_sanitize("address", "undefined"))) int child_main(void* argument) {
  auto& context = *static_cast<ChildContext*>(argument);
  if (context.plan == nullptr) {  // a trial
    ::syscall(SYS_exit_group, 0);
    __builtin_unreachable();
  }
  errno = 0;
  const Step failed = prepare_and_exec(context);
  if (context.error == 0) context.error = errno;
  context.failed = failed;
  ::syscall(SYS_exit_group, 127);
  return 127;
}

// The first bytes of a file; empty if it cannot be read.
std::string beginning_of(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  char head[kInterpreterProbe];
  const ssize_t n = ::read(file, head, sizeof head);
  ::close(file);
  return {head, n < 0 ? 0 : static_cast<std::size_t>(n)};
}

// Of an ELF file; -1: it is none.
int machine_of(const std::string& head) {
  constexpr std::size_t kAt = offsetof(Elf64_Ehdr, e_machine);  // as in one of 32 bits
  if (!head.starts_with(std::string_view(ELFMAG, SELFMAG)) || head.size() < kAt + 2) return -1;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(head[at]); };
  const bool big = byte(EI_DATA) == ELFDATA2MSB;
  return byte(kAt + (big ? 0 : 1)) << 8 | byte(kAt + (big ? 1 : 0));
}

std::string machine_name(int machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_386:
      return "x86 of 32 bits";
    case EM_AARCH64:
      return "arm64";
    case EM_ARM:
      return "ARM of 32 bits";
    case EM_PPC64:
      return "POWER";
    case EM_RISCV:
      return "RISC-V";
    case EM_S390:
      return "s390x";
    default:
      return "a machine of number " + std::to_string(machine);
  }
}

// Why the kernel does not take a file for a program. What may be a script has gone to /bin/sh.
std::string why_no_program(const char* path) {
  const std::string head = beginning_of(path);
  if (head.empty()) return "";  // it cannot be read
  const int machine = machine_of(head);
  if (machine < 0) return " (it is neither a program nor a script)";
  const int own = machine_of(beginning_of("/proc/self/exe"));
  if (machine == own) return "";
  return " (it is a program for " + machine_name(machine) + ", this machine is " +
         machine_name(own) + ")";
}

// What the kernel takes for the interpreter of a script: the first word after "#!"; empty if it is
// no script. A line that ends as on Windows has a carriage return in it.
std::string interpreter_of(const char* path) {
  const std::string head = beginning_of(path);
  std::string_view text = head;
  if (!text.starts_with("#!")) return "";
  text.remove_prefix(std::min(text.find_first_not_of(" \t", 2), text.size()));
  text = text.substr(0, text.find_first_of(std::string_view(" \t\n\0", 4)));
  const bool returned = text.ends_with('\r');
  if (returned) text.remove_suffix(1);
  return " '" + printable(text) +
         (returned ? "\\r': the script has DOS line ends, dos2unix mends it" : "'");
}

std::string describe_failure(const ChildContext& context) {
  const SpawnPlan& plan = *context.plan;
  switch (context.failed) {
    case Step::Streams:
      return "connect the standard streams";
    case Step::Bind:
      return "bind to the chosen CPUs";
    default:
      break;
  }
  const char* const path = context.path != nullptr ? context.path : plan.argv[0];
  if (context.error == ENOEXEC) return "exec " + as_name(path) + why_no_program(path);
  return "exec " + as_name(path) +
         (context.interpreter_missing ? " (its interpreter" + interpreter_of(path) + ")" : "");
}

// As clone() with CLONE_VM and CLONE_VFORK, but the child starts in the cgroup. The C library has
// no call that takes both a stack and a cgroup; on a processor for which it is not written out
// here, the child starts with a copy of the memory, as fork() does it, which takes longer. Returns
// the process id, or -errno.
long clone_into_cgroup(int cgroup, void* stack, void* context, std::atomic<pid_t>& child) {
  clone_args arguments{};
  arguments.flags = CLONE_VFORK | CLONE_INTO_CGROUP | CLONE_PARENT_SETTID;
  arguments.parent_tid = reinterpret_cast<std::uintptr_t>(&child);
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<unsigned>(cgroup);
#if defined(__x86_64__) && !defined(__ILP32__)
  arguments.flags |= CLONE_VM;
  arguments.stack = reinterpret_cast<std::uintptr_t>(stack);
  arguments.stack_size = kStackSize;
  long result = SYS_clone3;
  register int (*entry)(void*) __asm__("r8") = child_main;
  register void* argument __asm__("r9") = context;
  __asm__ volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"  // the outermost frame
      "mov %%r9, %%rdi\n\t"
      "call *%%r8\n\t"  // does not return
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(&arguments), "S"(sizeof arguments), "r"(entry), "r"(argument)
      : "rcx", "r11", "memory");
  return result;
#else
  (void)stack;
  const long result = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (result == 0) child_main(context);
  return result < 0 ? -errno : result;
#endif
}

void* map(std::size_t size, int flags) {
  void* result = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
  if (result == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  return result;
}

std::string_view path_of(const std::vector<char*>& environment) {
  for (const char* variable : environment)
    if (std::strncmp(variable, "PATH=", 5) == 0) return variable + 5;
  return kDefaultPath;
}

}  // namespace

std::vector<std::string> exec_candidates(std::string_view program, std::string_view path) {
  std::vector<std::string> result;
  if (program.empty()) return result;
  if (program.find('/') != std::string_view::npos) {
    result.emplace_back(program);
    return result;
  }
  for (;;) {
    const auto colon = path.find(':');
    std::string candidate(path.substr(0, colon));
    if (!candidate.empty() && candidate.back() != '/') candidate += '/';
    if (candidate.empty()) candidate = "./";
    candidate += program;
    result.push_back(std::move(candidate));
    if (colon == std::string_view::npos) return result;
    path.remove_prefix(colon + 1);
  }
}

Spawner::Spawner()
    : stack_(map(kStackSize, MAP_PRIVATE | MAP_STACK)),
      shared_(map(sizeof(ChildContext), MAP_SHARED)) {}

Spawner::~Spawner() {
  ::munmap(stack_, kStackSize);
  ::munmap(shared_, sizeof(ChildContext));
}

bool Spawner::can_start_in(int directory) {
  ChildContext& context = *new (shared_) ChildContext;
  const long pid = clone_into_cgroup(directory, stack_, &context, child_);
  child_ = 0;
  if (pid <= 0) return false;
  int status = 0;
  while (::waitpid(static_cast<pid_t>(pid), &status, __WALL) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status);
}

// The caller sleeps until the child has its program, or has ended.
pid_t Spawner::create_child(void* context) {
  if (cgroup_ >= 0) {
    const long pid = clone_into_cgroup(cgroup_, stack_, context, child_);
    if (pid > 0) return static_cast<pid_t>(pid);
    if (pid == -EAGAIN || pid == -ENOMEM) {
      errno = static_cast<int>(-pid);
      return -1;
    }
    cgroup_ = -1;
  }
  return ::clone(child_main, static_cast<char*>(stack_) + kStackSize,
                 CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, context,
                 reinterpret_cast<pid_t*>(&child_));
}

SpawnResult Spawner::spawn(SpawnPlan plan) {
  const auto paths = exec_candidates(plan.argv.front(), path_of(plan.environment));
  std::vector<const char*> candidates;
  candidates.reserve(paths.size() + 1);
  for (const auto& path : paths)
    candidates.push_back(path.c_str());
  candidates.push_back(nullptr);
  char shell[] = "/bin/sh";
  std::vector<char*> shell_argv{shell, nullptr};
  shell_argv.insert(shell_argv.end(), plan.argv.begin() + 1, plan.argv.end());
  shell_argv.push_back(nullptr);
  plan.argv.push_back(nullptr);
  plan.environment.push_back(nullptr);

  ChildContext& context = *new (shared_) ChildContext;
  context.parent = ::getpid();
  context.agent = ::getppid();
  context.plan = &plan;
  context.argv = plan.argv.data();
  context.environment = plan.environment.data();
  context.shell_argv = shell_argv.data();
  context.candidates = candidates.data();

  SpawnResult result;
  const pid_t pid = create_child(&context);
  if (pid < 0) {
    result.error = errno;
    result.attempted = kFork;
  } else if (context.failed != Step::None) {
    result.error = context.error;
    result.attempted = describe_failure(context);
  } else {
    result.pid = pid;
  }
  return result;
}

}  // namespace drun::process
