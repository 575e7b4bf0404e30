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

#include "bench/processes.hpp"
#include "launcher/process/guardian.hpp"

extern char** environ;

namespace {

using Clock = std::chrono::steady_clock;
using drun::bench::fork_exec_loop;
using drun::bench::median;
using drun::process::Guardian;

double seconds_of(const std::function<void()>& work) {
  const auto before = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - before).count();
}

// In a process of its own, as small as such a program is.
void bare_process(int count, const char* program) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    fork_exec_loop(count, program);
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
  const bool hydra = drun::bench::installed("mpiexec.hydra");

  std::printf("%8s %12s %12s %7s %12s %7s   (ms, median of %d)\n", "workers", "bare loop",
              "guardian", "ratio", "hydra", "ratio", runs);
  for (const int count : {1, 8, 64, 256}) {
    std::vector<double> bare, ours, theirs;
    for (int run = 0; run < runs; ++run) {
      bare.push_back(seconds_of([&] { bare_process(count, program.c_str()); }));
      ours.push_back(seconds_of([&] { through_guardian(guardian, count, program, environment); }));
      if (hydra)
        theirs.push_back(
            1e-3 *
            drun::bench::run({"mpiexec.hydra", "-n", std::to_string(count), program}).wall_ms);
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
