// A worker that leaves a process of a difficult kind behind: what a launcher must still find and
// kill. Prints "ready" when that process has become what it should be.
//
//   survivor KIND stay        then waits for ever
//   survivor KIND exit CODE   then ends, the other process stays
//   survivor --kinds          prints the kinds, one a line
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern char** environ;

namespace {

const char* self = nullptr;  // this program's path

[[noreturn]] void wait_for_ever() {
  for (;;)
    ::pause();
}

void say_ready() {
  (void)!::write(1, "ready\n", 6);
}

// True in the child.
bool fork_child() {
  const pid_t pid = ::fork();
  if (pid < 0) std::abort();
  return pid == 0;
}

// Blocks and ignores all that can be.
void be_stubborn() {
  for (int signal = 1; signal < NSIG; ++signal)
    ::signal(signal, SIG_IGN);
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
}

[[noreturn]] void ready_and_wait() {
  say_ready();
  wait_for_ever();
}

void child() {
  if (fork_child()) ready_and_wait();
}

// An orphan: its parent ends at once.
void grandchild() {
  if (!fork_child()) return;
  if (!fork_child()) ::_exit(0);
  ready_and_wait();
}

void deep() {
  for (int level = 0; level < 10; ++level)
    if (!fork_child()) {
      if (level > 0) wait_for_ever();
      return;
    }
  ready_and_wait();
}

void session() {
  if (!fork_child()) return;
  ::setsid();
  ready_and_wait();
}

void group() {
  if (!fork_child()) return;
  ::setpgid(0, 0);
  ready_and_wait();
}

// As daemon(3) and then more: fork, session, fork, root directory, no streams.
void daemonised() {
  if (!fork_child()) return;
  ::setsid();
  if (!fork_child()) ::_exit(0);
  if (::chdir("/") != 0) ::_exit(1);
  say_ready();
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd)
    ::dup2(null, fd);
  wait_for_ever();
}

void stopped() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setsid();
    ::raise(SIGSTOP);
    wait_for_ever();
  }
  int status = 0;
  ::waitpid(pid, &status, WUNTRACED);
  say_ready();
}

void stubborn() {
  if (!fork_child()) return;
  ::setsid();
  be_stubborn();
  ready_and_wait();
}

// The worker itself, too.
void all_stubborn() {
  be_stubborn();
  if (!fork_child()) return;
  ready_and_wait();
}

// Each one lives just long enough to start the next, in a session of its own.
void respawner() {
  if (!fork_child()) return;
  say_ready();
  for (;;) {
    const pid_t pid = ::fork();
    if (pid > 0) ::_exit(0);
    if (pid == 0) ::setsid();
  }
}

// A supervisor that replaces what dies.
void brood() {
  if (!fork_child()) return;
  ::setsid();
  be_stubborn();
  ::signal(SIGCHLD, SIG_DFL);
  for (int i = 0; i < 8; ++i)
    if (fork_child()) wait_for_ever();
  say_ready();
  for (;;) {
    ::wait(nullptr);
    if (fork_child()) wait_for_ever();
  }
}

// So many that killing them takes a moment.
void herd() {
  for (int i = 0; i < 60; ++i) {
    if (!fork_child()) continue;
    ::setsid();
    wait_for_ever();
  }
  say_ready();
}

void closes_all() {
  if (!fork_child()) return;
  say_ready();
  ::syscall(SYS_close_range, 0U, ~0U, 0U);
  wait_for_ever();
}

// Another program with an empty environment.
void clears_environment() {
  if (!fork_child()) return;
  ::setsid();
  char name[] = "unrelated";
  char mode[] = "--just-wait";
  char* const argv[] = {name, mode, nullptr};
  char* const none[] = {nullptr};
  ::execve(self, argv, none);
  ::_exit(1);
}

// A parent-death signal of its own, which a new parent must not need.
void clone_without_signal() {
  // No SIGCHLD when it ends: a plain wait() does not see it.
  const long pid = ::syscall(SYS_clone, 0UL, nullptr, nullptr, nullptr, 0UL);
  if (pid == 0) {
    ::setsid();
    ready_and_wait();
  }
}

const struct {
  const char* name;
  void (*make)();
} kKinds[] = {
    {"child", child},
    {"grandchild", grandchild},
    {"deep", deep},
    {"session", session},
    {"group", group},
    {"daemon", daemonised},
    {"stopped", stopped},
    {"stubborn", stubborn},
    {"all-stubborn", all_stubborn},
    {"respawner", respawner},
    {"brood", brood},
    {"herd", herd},
    {"closes-all", closes_all},
    {"clears-environment", clears_environment},
    {"no-exit-signal", clone_without_signal},
};

}  // namespace

int main(int argc, char** argv) {
  self = argv[0];
  if (argc == 2 && std::strcmp(argv[1], "--just-wait") == 0) ready_and_wait();
  if (argc == 2 && std::strcmp(argv[1], "--kinds") == 0) {
    for (const auto& kind : kKinds)
      std::puts(kind.name);
    return 0;
  }
  if (argc < 3) return 2;
  for (const auto& kind : kKinds) {
    if (std::strcmp(kind.name, argv[1]) != 0) continue;
    kind.make();
    if (std::strcmp(argv[2], "exit") != 0) wait_for_ever();
    return argc > 3 ? std::atoi(argv[3]) : 0;
  }
  return 2;
}
