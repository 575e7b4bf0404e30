// Parses command lines for tests on a machine that is made up.
#pragma once

#include <string>
#include <vector>

#include "launcher/command_line/parse.hpp"

namespace drun::launcher::test {

// Twelve CPUs, each a core, in two NUMA nodes; four GPUs, two at each node.
inline MachineFacts made_up_facts() {
  MachineFacts facts;
  Topology topology;
  for (int cpu = 0; cpu < 12; ++cpu) {
    facts.usable.cpus.push_back(cpu);
    facts.cores[cpu] = cpu;
    topology.cpus.push_back({cpu, cpu, cpu < 6 ? 0 : 6, cpu / 6, cpu / 6});
  }
  facts.topology = topology;
  for (int gpu = 0; gpu < 4; ++gpu) {
    const std::string number = std::to_string(gpu);
    facts.inventory.nvidia.push_back(
        {Vendor::Nvidia, gpu, "GPU-" + number, "0000:0" + number + ":00.0", gpu / 2, number});
  }
  return facts;
}

inline Host made_up_machine() {
  Host machine;
  machine.fresh_id = [] { return std::string("fresh-id"); };
  machine.host_name = [] { return std::string("node7"); };
  machine.place_workers = [](const PlacementRequest& request,
                             const std::vector<std::string>& environment) {
    return place_workers(request, made_up_facts(), environment);
  };
  machine.interface_address = [](const std::string& name) -> std::optional<std::string> {
    if (name == "eth1") return "10.1.2.3";
    return std::nullopt;
  };
  machine.read_file = [](const std::string& path) -> Result<std::string> {
    if (path == "/nodes") return std::string("node7\nnode7\nnode8\nnode8\n");
    if (path == "/hosts") return std::string("node7 slots=2 max_slots=4\nnode8 slots=4\n");
    if (path == "/topology")
      return std::string(
          "SwitchName=leaf1 Nodes=node[7-9]\nSwitchName=leaf2 Nodes=n[8-9]\n"
          "SwitchName=core Switches=leaf[1-2]\n");
    if (path == "/variables") return std::string("FROM_FILE=1\n");
    return Error(std::make_error_code(std::errc::no_such_file_or_directory), "it is not there");
  };
  machine.working_directory = [] { return std::string("/here"); };
  machine.program_file = [] { return std::string("/opt/drun"); };
  machine.by_pmi = [](int fd, bool first, const std::string& text) -> Result<cluster::PmiAnswer> {
    if (fd == 6) return cluster::PmiAnswer{first ? text : "node0", "17_kvs"};
    return Error(std::make_error_code(std::errc::protocol_error), "PMI_FD: nobody answers");
  };
  return machine;
}

// Of Slurm's second node.
inline std::vector<std::string> step_of_two_nodes() {
  return {"SLURM_JOB_ID=4711",
          "SLURM_JOB_NUM_NODES=2",
          "SLURM_JOB_NODELIST=n[1-2]",
          "SLURM_STEP_ID=0",
          "SLURM_STEP_NUM_NODES=2",
          "SLURM_STEP_NODELIST=n[1-2]",
          "SLURM_STEP_NUM_TASKS=2",
          "SLURM_STEP_TASKS_PER_NODE=1(x2)",
          "SLURM_NODEID=1",
          "SLURM_PROCID=1",
          "SLURM_LOCALID=0"};
}

// `arguments` as a shell would split them at blanks.
inline std::vector<std::string> words(const std::string& arguments) {
  std::vector<std::string> result;
  std::string word;
  for (const char c : arguments + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      result.push_back(word);
      word.clear();
    }
  }
  return result;
}

inline Parsed parse(std::vector<std::string> arguments, std::vector<std::string> environment = {},
                    const std::string& name = "drun") {
  arguments.insert(arguments.begin(), name);
  return parse_options(arguments, environment, made_up_machine());
}

inline Parsed parse_line(const std::string& line, std::vector<std::string> environment = {}) {
  return parse(words(line), std::move(environment));
}

// Stops the test with drun's message where the line is refused.
inline Options options_of(const std::string& line, std::vector<std::string> environment = {}) {
  Parsed parsed = parse_line(line, std::move(environment));
  if (!parsed.options) throw std::runtime_error("refused: " + parsed.text);
  return *parsed.options;
}

}  // namespace drun::launcher::test
