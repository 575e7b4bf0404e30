#include "launcher/output/output_files.hpp"

#include "base/atomic_file.hpp"
#include "base/file_worker.hpp"
#include "launcher/output/output_route.hpp"

namespace drun::launcher {

WorkerFiles OutputFiles::open(const StreamLabel& label) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) {
    about_to("create the workers' files, as an earlier round tries in vain");
    lock.lock();
  }
  WorkerFiles files;
  files.standard_output = open(label, false);
  files.standard_error = open(label, true);
  files.error_file = folders_.error_file(label.round, label.restart_count, label.local_rank);
  files.private_folder = folders_.private_folder();
  return files;
}

std::string OutputFiles::write(const std::string& name, std::string_view content) {
  std::string path;
  {
    const std::lock_guard lock(mutex_);
    if (!folders_.keeps_logs()) return {};
    path = folders_.run_folder() + "/" + name;
  }
  about_to("write " + path);
  if (const Status written = write_whole_file(path, content); !written)
    throw ResultError(written.error());
  return path;
}

bool OutputFiles::remove_private_folder() {
  // A thread that hangs has the lock for ever; its folder is removed by who cleans up.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) folders_.remove_private_folder();
  return lock.owns_lock();
}

StreamFiles OutputFiles::open(const StreamLabel& label, bool error) {
  const Route route = route_of(choices_, label.local_rank, error, folders_.keeps_logs());
  StreamFiles files;
  if (route.log) {
    files.log = folders_.rank_folder(label.round, label.restart_count, label.local_rank) +
                (error ? "/stderr.log" : "/stdout.log");
    if (route.direct) {
      files.direct = create_log(files.log);
    } else {
      files.kept = std::make_unique<LogFile>(files.log, choices_.log_max_size);
    }
  }
  if (route.filter) files.filter = filter(label, error);
  return files;
}

std::shared_ptr<FilterFile> OutputFiles::filter(const StreamLabel& label, bool error) {
  auto& shared = filters_[{label.round, error}];
  if (auto open = shared.lock()) return open;
  const std::string folder = folders_.attempt_folder(label.round, label.restart_count);
  auto made = std::make_shared<FilterFile>(
      folder + (error ? "/filtered_stderr.log" : "/filtered_stdout.log"),
      error ? choices_.duplicate_stderr_filters : choices_.duplicate_stdout_filters);
  shared = made;
  return made;
}

}  // namespace drun::launcher
