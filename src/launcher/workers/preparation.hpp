// What has to be asked of file systems before the workers of a round start: whether their program
// is there, and their log files. It may hang, so it is done in a thread of its own.
#pragma once

#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "drun/base/result.hpp"
#include "launcher/options/options.hpp"
#include "launcher/output/output_files.hpp"
#include "launcher/workers/preflight.hpp"

namespace drun::launcher {

struct PreparedWorker {
  std::optional<LaunchError> refusal;  // why it is not worth a try; nullopt: it is
  WorkerFiles files;
};

struct Preparation {
  std::vector<PreparedWorker> workers;  // in the order of the labels
  bool one_reason = false;              // for all that are refused
  std::string warning;                  // of the program; may be empty
};

// What cannot be made (a full disk, no right to write) refuses all workers that come after.
[[nodiscard]] Preparation prepare(const Program& program, const std::vector<StreamLabel>& labels,
                                  const MakeFiles& make_files);

// No output for a worker: a failure of this node, which the others hear of as of any.
[[nodiscard]] LaunchError no_output(const std::system_error& failed);

}  // namespace drun::launcher
