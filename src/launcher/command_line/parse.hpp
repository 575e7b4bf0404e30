// drun's command line and environment, read once. Nobody else calls getenv or sees argv.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "drun/base/result.hpp"
#include "launcher/cluster/pmi_exchange.hpp"
#include "launcher/devices/device_placement.hpp"
#include "launcher/options/options.hpp"

namespace drun::launcher {

// Either run with these options, or print `text` (help, version: stdout, code 0; usage error:
// stderr, code 2) and leave. `text` ends in a newline.
struct Parsed {
  std::optional<Options> options;
  std::string text;
  int exit_code = 0;
  // Of a usage error: what is wrong, --report and --timestamps, if that much is known.
  std::string mistake{};
  std::string report_file{};
  bool timestamps = false;
};

// What parsing may have to ask of this machine and process. Only what is needed is asked for; a
// missing function means that there is no answer.
struct Host {
  // A run id that nobody else has, for a job with a private store.
  std::function<std::string()> fresh_id;
  // This machine's CPUs and devices, for a process with this environment.
  std::function<Result<Placement>(const PlacementRequest&,
                                  const std::vector<std::string>& environment)>
      place_workers;
  std::function<std::string()> host_name;
  // The address of a network interface, by the interface's name; nullopt: there is no such one.
  std::function<std::optional<std::string>(const std::string& name)> interface_address;
  // A file that the user or a scheduler's variables name; the error says why it cannot be read.
  std::function<Result<std::string>(const std::string& path)> read_file;
  std::function<std::string()> working_directory;
  std::function<std::string()> program_file;  // drun's own
  // What the task of rank 0 of an MPI launcher tells all others: see exchange_by_pmi().
  std::function<Result<cluster::PmiAnswer>(int fd, bool first, const std::string& text)> by_pmi;
};

// This machine.
[[nodiscard]] Host this_host();

// Pure but for `host`: everything comes in as arguments. `arguments` with argv[0] in front
// ("drun-launch" keeps the contract of torch.distributed.launch), `environment` as "NAME=value".
[[nodiscard]] Parsed parse_options(const std::vector<std::string>& arguments,
                                   const std::vector<std::string>& environment, const Host& host);
// On this machine.
[[nodiscard]] Parsed parse_options(const std::vector<std::string>& arguments,
                                   const std::vector<std::string>& environment);

}  // namespace drun::launcher
