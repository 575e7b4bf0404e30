// What one replica group of a job must not share with the others gets its number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "launcher/options/options.hpp"

namespace drun::launcher {

inline std::string group_suffix(int group) {
  return ".group" + std::to_string(group);
}

// "job7" and "report.json" of group 1 are "job7.group1" and "report.group1.json"; its status page
// is one port higher than that of group 0. A group restarts while the others run, which may have
// handed it names in /dev/shm without keeping the files open.
inline void belong_to_group(Options& options, int group) {
  const std::string suffix = group_suffix(group);
  options.replica_group = group;
  options.run_id += suffix;
  if (options.status_endpoint && options.status_endpoint->port != 0)
    options.status_endpoint->port =
        static_cast<std::uint16_t>(options.status_endpoint->port + group);
  if (!options.status_socket.empty()) options.status_socket += suffix;
  for (const char* handed : {"torch_*", "psm_*", "sem.mp-*"})
    options.keep_shm.emplace_back(handed);
  for (std::string* name : {&options.report_file, &options.metrics_file}) {
    const std::filesystem::path file = *name;
    if (file.has_filename() && !name->starts_with("/dev/"))
      *name = (file.parent_path() / (file.stem().string() + suffix + file.extension().string()))
                  .string();
  }
}

}  // namespace drun::launcher
