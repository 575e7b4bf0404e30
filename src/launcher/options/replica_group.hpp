// What one replica group of a job must not share with the others gets its number.
#pragma once

#include <filesystem>
#include <string>

#include "launcher/options/options.hpp"

namespace drun::launcher {

// "job7" and "report.json" of group 1 are "job7.group1" and "report.group1.json".
inline void belong_to_group(Options& options, int group) {
  const std::string suffix = ".group" + std::to_string(group);
  options.replica_group = group;
  options.run_id += suffix;
  const std::filesystem::path file = options.report_file;
  if (file.has_filename() && !options.report_file.starts_with("/dev/"))
    options.report_file =
        (file.parent_path() / (file.stem().string() + suffix + file.extension().string())).string();
}

}  // namespace drun::launcher
