// Starts N times /bin/true and collects all exits: through a Guardian, in a bare loop of fork and
// exec, and with mpiexec.hydra where it is installed. The runs of the contenders alternate, so that
// a change in the machine's load meets all of them; the table gives medians and ratios to the loop.
//
//   spawn_bench [runs] [program]
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/process/guardian.hpp"

extern char** environ;

namespace {

using Clock = std::chrono::steady_clock;
using drun::process::Guardian;

double seconds_of(const std::function<void()>& work) {
  const auto before = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - before).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void bare_loop(int count, const char* program) {
  for (int i = 0; i < count; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      char* const argv[] = {const_cast<char*>(program), nullptr};
      ::execve(program, argv, environ);
      ::_exit(127);
    }
    if (pid < 0) std::exit(1);
  }
  while (::wait(nullptr) > 0) {
  }
}

// In a process of its own, as small as such a program is.
void bare_process(int count, const char* program) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    bare_loop(count, program);
    ::_exit(0);
  }
  ::waitpid(pid, nullptr, 0);
}

void through_guardian(Guardian& guardian, int count, const std::string& program,
                      const std::vector<std::string>& environment) {
  static drun::process::WorkerId next = 0;
  guardian.share_environment(environment);
  for (int i = 0; i < count; ++i) {
    drun::process::SpawnRequest request;
    request.id = next++;
    request.argv = {program};
    guardian.spawn(std::move(request));
  }
  int exited = 0;
  while (exited < count) {
    pollfd entry{guardian.fd(), POLLIN, 0};
    ::poll(&entry, 1, -1);
    for (const auto& event : guardian.receive()) {
      if (std::holds_alternative<drun::process::Exited>(event)) ++exited;
      if (std::holds_alternative<drun::process::SpawnFailed>(event) ||
          std::holds_alternative<drun::process::GuardianLost>(event)) {
        std::fprintf(stderr, "spawn_bench: a worker could not be started\n");
        std::exit(1);
      }
    }
  }
}

void run_command(const std::string& command) {
  if (std::system(command.c_str()) != 0) {
    std::fprintf(stderr, "spawn_bench: %s failed\n", command.c_str());
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  const std::string program = argc > 2 ? argv[2] : "/bin/true";
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.emplace_back(*variable);
  drun::process::GuardianOptions options;
  options.use_cgroup = std::getenv("SPAWN_BENCH_CGROUP") != nullptr;
  Guardian guardian = Guardian::start(options);
  const bool hydra = std::system("command -v mpiexec.hydra >/dev/null 2>&1") == 0;

  std::printf("%8s %12s %12s %7s %12s %7s   (ms, median of %d)\n", "workers", "bare loop",
              "guardian", "ratio", "hydra", "ratio", runs);
  for (const int count : {1, 8, 64, 256}) {
    std::vector<double> bare, ours, theirs, start;
    for (int run = 0; run < runs; ++run) {
      bare.push_back(seconds_of([&] { bare_process(count, program.c_str()); }));
      ours.push_back(seconds_of([&] { through_guardian(guardian, count, program, environment); }));
      if (hydra)
        theirs.push_back(seconds_of(
            [&] { run_command("mpiexec.hydra -n " + std::to_string(count) + " " + program); }));
    }
    std::printf("%8d %12.2f %12.2f %7.2f", count, 1e3 * median(bare), 1e3 * median(ours),
                median(ours) / median(bare));
    if (hydra) std::printf(" %12.2f %7.2f", 1e3 * median(theirs), median(theirs) / median(bare));
    std::printf("\n");
  }
  std::vector<double> start;
  for (int run = 0; run < runs; ++run)
    start.push_back(seconds_of([] { Guardian::start(); }));
  std::printf("start and end of a guardian without workers: %.2f ms\n", 1e3 * median(start));
  return 0;
}
