// The log files and the error file of a worker. All that the output asks a file system before a
// worker starts is here, apart from what the agent's loop may do: it may take for ever.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"
#include "launcher/options/options.hpp"
#include "launcher/output/log_layout.hpp"
#include "launcher/output/output_log_file.hpp"

namespace drun::launcher {

// What one worker's streams are called and where they go.
struct StreamLabel {
  std::uint32_t worker = 0;  // process::WorkerId
  int rank = 0;
  int local_rank = 0;
  int round = 0;
  int restart_count = 0;
  std::string role;
};

// The files of one stream; whatever is not wanted is empty.
struct StreamFiles {
  std::string log;                     // the path
  FileDescriptor direct;               // the log, which the worker writes itself
  std::unique_ptr<LogFile> kept;       // the log, which drun writes
  std::shared_ptr<FilterFile> filter;  // one for all ranks of a round
};

struct WorkerFiles {
  StreamFiles standard_output;
  StreamFiles standard_error;
  // TORCHELASTIC_ERROR_FILE; nothing is there yet. Empty with --log-dir /dev/null.
  std::string error_file;
  // The folder of the error files without --log-dir, else empty: for the process that cleans up if
  // this one is killed.
  std::string private_folder;
};

// Throws std::system_error.
using MakeFiles = std::function<WorkerFiles(const StreamLabel&)>;

// Any thread may use it: one that hangs in it does so alone, and the next one waits for it.
class OutputFiles {
 public:
  // As of OutputOptions.
  OutputFiles(OutputChoices choices, std::string run_id, std::vector<std::string> temporary)
      : choices_(std::move(choices)),
        folders_(choices_.log_dir, std::move(run_id), std::move(temporary)) {}

  // Throws std::system_error, which names the path, when a file or folder cannot be made.
  [[nodiscard]] WorkerFiles open(const StreamLabel& label);
  // Writes a file of this name into the folder of the run's logs; its path, or empty if there are
  // no logs. Throws an exception that names the path.
  std::string write(const std::string& name, std::string_view content);
  // When no worker needs it any more. False: it was not tried, so that something else must
  // remove it. After true nothing need try: it would find it gone, or hang on its file system too.
  [[nodiscard]] bool remove_private_folder();

 private:
  [[nodiscard]] StreamFiles open(const StreamLabel& label, bool error);
  [[nodiscard]] std::shared_ptr<FilterFile> filter(const StreamLabel& label, bool error);

  const OutputChoices choices_;
  std::mutex mutex_;  // guards what follows
  RunFiles folders_;
  // By round and stream; the last stream that uses one closes it.
  std::map<std::pair<int, bool>, std::weak_ptr<FilterFile>> filters_;
};

}  // namespace drun::launcher
