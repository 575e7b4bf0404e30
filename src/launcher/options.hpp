// drun's command line and environment, read once. Nobody else calls getenv or sees argv.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"

namespace drun::launcher {

enum class Backend { Standalone, C10d, Static };
enum class WorkerStore { Agent, Rank0 };

// --rdzv-conf, with torchrun's names where they exist.
struct RendezvousConf {
  std::chrono::milliseconds join_timeout{600'000};
  std::chrono::milliseconds last_call_timeout{30'000};
  std::chrono::milliseconds close_timeout{30'000};
  std::chrono::milliseconds keep_alive_interval{2'000};
  int keep_alive_max_attempt = 3;
  std::chrono::milliseconds read_timeout{60'000};
  std::optional<bool> is_host;
};

struct Options {
  int min_nodes = 1;
  int max_nodes = 1;
  int nproc_per_node = 1;
  Backend backend = Backend::Standalone;
  Endpoint endpoint;  // for C10d and Static
  std::string run_id;
  RendezvousConf conf;
  std::optional<int> node_rank;
  std::optional<std::string> local_addr;
  std::optional<std::uint16_t> master_port;
  int max_restarts = 0;
  std::string role = "default";
  WorkerStore worker_store = WorkerStore::Agent;
  int local_nodes = 0;  // > 0: this many agents on this machine
  bool dry_run = false;
  bool verbose = false;

  std::chrono::milliseconds shutdown_timeout{30'000};

  std::vector<std::string> command;    // argv of a worker, interpreter included
  std::vector<std::string> inherited;  // drun's own environment, "NAME=value"
};

// Either run with these options, or print `text` (help, version: stdout, code 0; usage error:
// stderr, code 2) and leave.
struct Parsed {
  std::optional<Options> options;
  std::string text;
  int exit_code = 0;
};

// Pure: everything comes in as arguments. `environment` as "NAME=value".
[[nodiscard]] Parsed parse_options(const std::vector<std::string>& arguments,
                                   const std::vector<std::string>& environment);

}  // namespace drun::launcher
