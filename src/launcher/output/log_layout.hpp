// Where log files and error files are: torchrun's layout.
//   <log-dir>/<run id>_<8 random>/attempt_<restart count>/<local rank>/{stdout,stderr}.log
// A round that does not raise the restart count (a node joined or left) gets "attempt_<n>.<k>", so
// that no earlier log is overwritten. "<log-dir>/latest" leads to the newest run.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace drun::launcher {

// The run id as part of a file name: "/" and characters that are special to a shell become "_".
[[nodiscard]] std::string file_name_of(std::string_view run_id);

// The heartbeat file of the worker with this error file: beside it. Empty if that is.
[[nodiscard]] std::string heartbeat_file(std::string_view error_file);

class RunFiles {
 public:
  // An empty `log_dir`: no logs, and error files in a private folder, removed at the end, in the
  // first of `temporary` that can hold one. "/dev/null": no files at all. Creates nothing yet.
  RunFiles(std::string log_dir, std::string run_id, std::vector<std::string> temporary);
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;
  ~RunFiles() { remove_private_folder(); }

  [[nodiscard]] bool keeps_logs() const;

  // The folders below are made on first use; std::system_error names the path that cannot be made.
  [[nodiscard]] std::string run_folder();  // precondition: keeps_logs()
  [[nodiscard]] std::string attempt_folder(int round, int restart_count);
  [[nodiscard]] std::string rank_folder(int round, int restart_count, int local_rank);

  // A path for TORCHELASTIC_ERROR_FILE: nothing is there yet. Empty with "/dev/null".
  [[nodiscard]] std::string error_file(int round, int restart_count, int local_rank);
  // The private folder, empty while there is none: for the process that cleans up if this one is
  // killed.
  [[nodiscard]] const std::string& private_folder() const { return private_folder_; }
  void remove_private_folder() noexcept;

 private:
  std::string log_dir_;
  std::string run_id_;
  std::vector<std::string> temporary_;
  std::string run_folder_;
  std::string private_folder_;
  std::map<int, std::string> attempts_;   // round -> folder
  std::map<int, int> rounds_of_attempt_;  // restart count -> rounds that had it
};

}  // namespace drun::launcher
