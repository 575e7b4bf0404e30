// What a worker has used so far if it is a shell that waits for the program.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include "launcher/process/usage.hpp"
#include "support/guardian_driver.hpp"
#include "support/in_child.hpp"

namespace drun::process::test {
namespace {

constexpr std::int64_t kTickMs = 20;  // more than the kernel may round off
constexpr std::int64_t kUsedMs = 100;
constexpr std::size_t kUsedKib = 256 * 1'024;

// It ends with who started it.
pid_t start() {
  const pid_t pid = ::fork();
  if (pid == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return pid;
}

// Uses a processor and memory, says so, and stays.
[[noreturn]] void use_and_stay(int done) {
  const std::size_t bytes = kUsedKib * 1'024;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) ::_exit(1);
  std::memset(memory, 1, bytes);
  while (std::clock() < kUsedMs * CLOCKS_PER_SEC / 1'000) {
  }
  (void)!::write(done, "x", 1);
  for (;;)
    ::pause();
}

TEST(UsageOfFamilyTest, CountsTheProgramsBelowAsWell) {
  EXPECT_EQ(in_child([] {
              Pipe done;
              const pid_t shell = start();
              if (shell == 0) {
                if (start() == 0) use_and_stay(done.write.get());
                for (;;)
                  ::pause();
              }
              char byte = 0;
              if (::read(done.read.get(), &byte, 1) != 1) return 1;
              const auto alone = usage_so_far("/proc/" + std::to_string(shell));
              const auto all = usage_with_descendants(shell);
              if (!alone || !all) return 2;
              if (all->cpu_ms < alone->cpu_ms + kUsedMs - kTickMs) return 3;
              if (all->peak_kib < static_cast<std::int64_t>(kUsedKib)) return 4;
              return all->switches > alone->switches ? 0 : 5;
            }),
            0);
}

TEST(UsageOfFamilyTest, WhatIsGoneHasNone) {
  EXPECT_EQ(in_child([] {
              const pid_t pid = ::fork();
              if (pid == 0) ::_exit(0);
              (void)::waitpid(pid, nullptr, 0);
              return usage_with_descendants(pid) ? 1 : 0;
            }),
            0);
}

}  // namespace
}  // namespace drun::process::test
