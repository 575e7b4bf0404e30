// How long drun takes to start N workers that do nothing and to leave again, beside mpiexec.hydra,
// torchrun and a bare loop of fork and exec; with --restart, how long after the SIGKILL of a worker
// its successor runs. The contenders take turns, so that a change in the machine's load meets all
// of them.
//
//   launch_bench [--restart] [--runs N] [--counts 1,8,64,256] [--program FILE] [--drun FILE]
//                [--torchrun-runs N]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/processes.hpp"
#include "bench/restart_probe.hpp"
#include "support/places.hpp"

namespace {

using namespace drun::bench;

struct Arguments {
  bool restart = false;
  int runs = 15;
  int torchrun_runs = 3;
  std::vector<int> counts;
  std::string program = "/bin/true";
  std::string drun = drun::places::program("drun");
};

struct Contender {
  std::string name;
  std::string missing;  // why it does not take part; empty: it does
  int runs = 0;
  std::vector<std::string> before_count;  // the command is this, the count, `after_count`
  std::vector<std::string> after_count;
  std::vector<Cost> costs;

  [[nodiscard]] std::vector<std::string> command(int count) const {
    auto result = before_count;
    result.push_back(std::to_string(count));
    result.insert(result.end(), after_count.begin(), after_count.end());
    return result;
  }
  template <typename Field>
  [[nodiscard]] std::vector<double> all(Field field) const {
    std::vector<double> values;
    for (const auto& cost : costs)
      values.push_back(cost.*field);
    return values;
  }
};

Arguments parse(int argc, char** argv) {
  Arguments result;
  std::string counts;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--restart") {
      result.restart = true;
      continue;
    }
    if (++i == argc) throw std::runtime_error(flag + " needs a value");
    if (flag == "--runs") {
      result.runs = std::max(1, std::atoi(argv[i]));
    } else if (flag == "--torchrun-runs") {
      result.torchrun_runs = std::max(0, std::atoi(argv[i]));
    } else if (flag == "--counts") {
      counts = argv[i];
    } else if (flag == "--program") {
      result.program = argv[i];
    } else if (flag == "--drun") {
      result.drun = argv[i];
    } else {
      throw std::runtime_error("unknown argument " + flag);
    }
  }
  if (counts.empty()) counts = result.restart ? "1,8" : "1,8,64,256";
  std::istringstream list(counts);
  for (std::string count; std::getline(list, count, ',');)
    result.counts.push_back(std::max(1, std::atoi(count.c_str())));
  return result;
}

// torch 1.13's torchrun; its way to read --redirects and --tee does not work with Python 3.11.
constexpr const char* kTorchrun =
    "from torch.distributed.elastic.multiprocessing.api import Std\n"
    "Std.from_str = staticmethod(lambda text: Std(int(text)))\n"
    "from torch.distributed.run import main\n"
    "main()";

std::string torchrun_missing(const Arguments& arguments) {
  if (arguments.torchrun_runs == 0) return "not asked for";
  return std::system("/usr/bin/python3 -c 'import torch.distributed.run' 2>/dev/null") == 0
             ? ""
             : "no torch for /usr/bin/python3";
}

std::vector<Contender> launchers(const Arguments& arguments) {
  Contender loop{
      "loop", "", arguments.runs, {drun::places::test_program("fork_loop")}, {arguments.program},
      {}};
  Contender drun{"drun",
                 "",
                 arguments.runs,
                 {arguments.drun, "--standalone", "--nproc-per-node"},
                 {arguments.program},
                 {}};
  Contender hydra{
      "mpiexec.hydra",     installed("mpiexec.hydra") ? "" : "not installed (package mpich)",
      arguments.runs,      {"mpiexec.hydra", "-n"},
      {arguments.program}, {}};
  Contender torchrun{
      "torchrun",
      torchrun_missing(arguments),
      arguments.torchrun_runs,
      {"/usr/bin/python3", "-W", "ignore", "-c", kTorchrun, "--standalone", "--nproc_per_node"},
      {"--no_python", arguments.program},
      {}};
  return {loop, drun, hydra, torchrun};
}

// A peer that fails now and then on a machine under load may try again; drun may not.
Cost measure(const Contender& each, int count) {
  constexpr int kTries = 4;
  for (int left = each.name == "drun" ? 1 : kTries;;) {
    try {
      return drun::bench::run(each.command(count));
    } catch (const std::exception&) {
      if (--left == 0) throw;
    }
  }
}

void print_row(const Contender& each, double loop, double hydra) {
  if (each.costs.empty()) {
    std::printf("%14s  %s\n", each.name.c_str(), each.missing.c_str());
    return;
  }
  const double wall = median(each.all(&Cost::wall_ms));
  std::printf("%14s %10.2f %10.2f %8.2f", each.name.c_str(), wall,
              minimum(each.all(&Cost::wall_ms)), wall / loop);
  hydra > 0 ? std::printf(" %8.2f", wall / hydra) : std::printf(" %8s", "-");
  std::printf(" %10.2f %9.1f\n", median(each.all(&Cost::cpu_ms)), median(each.all(&Cost::rss_mib)));
}

void compare_launches(const Arguments& arguments) {
  for (const int count : arguments.counts) {
    auto contenders = launchers(arguments);
    if (count > 8) contenders.back().missing = "only with 1 and 8 workers";
    const auto longest = std::max(arguments.runs, arguments.torchrun_runs);
    for (int run = 0; run < longest; ++run)
      for (auto& each : contenders)
        if (each.missing.empty() && run < each.runs) each.costs.push_back(measure(each, count));
    std::printf("%d worker%s of %s\n", count, count == 1 ? "" : "s", arguments.program.c_str());
    std::printf("%14s %10s %10s %8s %8s %10s %9s\n", "", "wall ms", "least", "to loop", "to Hydra",
                "CPU ms", "RSS MiB");
    const double loop = median(contenders[0].all(&Cost::wall_ms));
    const auto& hydra = contenders[2];
    for (const auto& each : contenders)
      print_row(each, loop, hydra.costs.empty() ? 0 : median(hydra.all(&Cost::wall_ms)));
    std::fflush(stdout);
  }
}

void compare_restarts(const Arguments& arguments, const std::string& self) {
  const std::string no_torch = torchrun_missing(arguments);
  const std::vector<std::string> torchrun{
      "/usr/bin/python3", "-W",           "ignore",           "-c",
      kTorchrun,          "--standalone", "--max_restarts=1", "--no_python"};
  auto often = torchrun;
  often.emplace_back("--monitor_interval=0.1");
  struct Row {
    std::string name;
    std::string missing;
    int runs;
    std::vector<std::string> command;
  };
  const std::vector<Row> rows{
      {"drun", "", arguments.runs, {arguments.drun, "--standalone", "--max-restarts=1"}},
      {"torchrun", no_torch, arguments.torchrun_runs, torchrun},
      {"torchrun, monitor_interval 0.1", no_torch, arguments.torchrun_runs, often},
  };
  std::printf("from SIGKILL of a worker to its successor, ms\n%32s %8s %10s %10s\n", "", "workers",
              "median", "least");
  for (const int count : arguments.counts) {
    for (const auto& row : rows) {
      if (!row.missing.empty()) {
        std::printf("%32s  %s\n", row.name.c_str(), row.missing.c_str());
        continue;
      }
      auto command = row.command;
      command.push_back("--nproc_per_node=" + std::to_string(count));
      command.emplace_back(self);
      std::vector<double> times;
      for (int run = 0; run < row.runs; ++run)
        times.push_back(restart_milliseconds(command, count));
      std::printf("%32s %8d %10.2f %10.2f\n", row.name.c_str(), count, median(times),
                  minimum(times));
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (is_restart_worker(argc, argv)) return run_restart_worker(argv);
    const auto arguments = parse(argc, argv);
    if (arguments.restart) {
      compare_restarts(arguments, std::filesystem::read_symlink("/proc/self/exe"));
    } else {
      compare_launches(arguments);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "launch_bench: %s\n", error.what());
    return 1;
  }
}
