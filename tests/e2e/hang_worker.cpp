// A worker that hangs where it is told to: "hang_worker MODE...", rank N in the N-th mode, the last
// one for all others. Says "ready" when it is about to.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

// Names that a test finds in a stack, and that no optimisation folds away.
#define HANGS extern "C" __attribute__((noinline, used))

namespace {

void say_ready() {
  std::puts("ready");
  std::fflush(stdout);
}

}  // namespace

HANGS void hang_in_a_lock() {
  std::mutex mutex;
  mutex.lock();
  say_ready();
  mutex.lock();
}

HANGS void hang_in_a_recv() {
  std::array<int, 2> ends{};
  (void)::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data());
  char byte = 0;
  say_ready();
  (void)::recv(ends[0], &byte, 1, 0);
}

HANGS void hang_in_a_condition() {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  say_ready();
  for (;;)
    never.wait(lock);
}

HANGS void hang_in_a_sleep() {
  say_ready();
  for (;;)
    ::sleep(1'000);
}

HANGS void hang_in_a_loop() {
  say_ready();
  for (;;)
    __asm__ volatile("");
}

HANGS void hang_in_a_read(const char* file) {
  FILE* in = std::fopen(file, "r");
  say_ready();
  (void)std::fgetc(in);
}

HANGS void hang_in_a_thread() {
  std::thread other(hang_in_a_recv);
  other.join();
}

// More than are looked at.
HANGS void hang_in_many_threads() {
  for (int i = 0; i < 450; ++i)
    std::thread([] { ::pause(); }).detach();
  hang_in_a_sleep();
}

HANGS void hang_in_a_recursion(int depth) {
  if (depth > 0) {
    hang_in_a_recursion(depth - 1);
  } else {
    say_ready();
    ::sleep(1'000'000);
  }
  __asm__ volatile("");  // it is no loop
}

HANGS void hang_without_a_main_thread() {
  std::thread(hang_in_a_recv).detach();
  ::syscall(SYS_exit, 0);
}

HANGS void hang_in_a_child() {
  if (::fork() == 0) hang_in_a_recv();
  for (;;)
    ::pause();
}

namespace hang {

template <typename T>
__attribute__((noinline)) void in_a_template(T /*unused*/) {
  hang_in_a_sleep();
}

}  // namespace hang

int main(int argc, char** argv) {
  const char* rank = std::getenv("RANK");
  const int number = rank == nullptr ? 0 : std::atoi(rank);
  const std::string mode = argc < 2 ? "sleep" : argv[number + 1 < argc ? number + 1 : argc - 1];
  if (mode == "lock") hang_in_a_lock();
  if (mode == "recv") hang_in_a_recv();
  if (mode == "condition") hang_in_a_condition();
  if (mode == "loop") hang_in_a_loop();
  if (mode == "thread") hang_in_a_thread();
  if (mode == "child") hang_in_a_child();
  if (mode == "threads") hang_in_many_threads();
  if (mode == "recursion") hang_in_a_recursion(1'000);
  if (mode == "ended") hang_without_a_main_thread();
  if (mode == "template") hang::in_a_template(1);
  if (mode.starts_with("/")) hang_in_a_read(mode.c_str());
  hang_in_a_sleep();
}
