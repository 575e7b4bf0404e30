#include "launcher/output/log_layout.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file_worker.hpp"
#include "base/random_bytes.hpp"

namespace drun::launcher {
namespace {

constexpr mode_t kShared = 0777;  // less the user's umask
constexpr mode_t kPrivate = 0700;
constexpr std::size_t kRandom = 8;
constexpr std::string_view kErrorFile = "error.json";

[[noreturn]] void fail(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), "create folder " + path);
}

void make_folder(const std::string& path) {
  about_to("create folder " + path);
  if (::mkdir(path.c_str(), kShared) != 0 && errno != EEXIST) fail(path);
}

void make_folders(const std::string& path) {
  about_to("create folder " + path);
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1))
    ::mkdir(path.substr(0, slash).c_str(), kShared);  // what is wrong shows below
  make_folder(path);
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
    errno = ENOTDIR;
    fail(path);
  }
}

// Empty: it could not be made, and errno says why.
std::string try_unique_folder(const std::string& prefix, mode_t mode) {
  for (;;) {
    std::string path = prefix + random_name(kRandom);
    if (::mkdir(path.c_str(), mode) == 0) return path;
    if (errno != EEXIST) return {};
  }
}

// In the first of `folders` in which it can be made.
std::string make_private_folder(const std::vector<std::string>& folders) {
  std::string tried;
  for (const std::string& folder : folders) {
    std::error_code no_directory;  // there is no working directory to begin a relative path at
    const auto place = std::filesystem::absolute(folder, no_directory).lexically_normal();
    if (!no_directory) {
      about_to("create a temporary folder in " + place.string());
      std::string path = try_unique_folder((place / "drun_").string(), kPrivate);
      if (!path.empty()) return path;
    }
    tried += (tried.empty() ? "" : ", ") + folder;
  }
  throw std::system_error(
      errno, std::generic_category(),
      "create a temporary folder (in any of " + tried + "; set TMPDIR to one that can be written)");
}

// `folder`/latest leads to `name`. A file system without links gets none.
void point_latest_to(const std::string& folder, const std::string& name) {
  const std::string temporary = folder + "/.latest." + random_name(kRandom);
  const std::string link = folder + "/latest";
  about_to("create " + link);
  if (::symlink(name.c_str(), temporary.c_str()) != 0) return;
  if (::rename(temporary.c_str(), link.c_str()) != 0) ::unlink(temporary.c_str());
}

}  // namespace

std::string file_name_of(std::string_view run_id) {
  std::string name;
  for (const char c : run_id) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '+' || c == '@' || c == ':' ||
                       c == '=' || (static_cast<unsigned char>(c) >= 0x80);
    name += plain ? c : '_';
  }
  if (name.starts_with('.')) name.front() = '_';
  if (name.size() > 200) name.resize(200);
  return name;
}

std::string heartbeat_file(std::string_view error_file) {
  if (error_file.empty()) return {};
  if (error_file.ends_with(kErrorFile)) error_file.remove_suffix(kErrorFile.size());
  return std::string(error_file) + "heartbeat";
}

RunFiles::RunFiles(std::string log_dir, std::string run_id, std::vector<std::string> temporary)
    : log_dir_(std::move(log_dir)), run_id_(std::move(run_id)), temporary_(std::move(temporary)) {
  // Workers may change their directory.
  if (!log_dir_.empty()) {
    std::error_code gone;
    log_dir_ = std::filesystem::absolute(log_dir_, gone).lexically_normal();
    if (gone)
      throw std::system_error(gone, "--log-dir: the current folder does not exist any more");
  }
  while (log_dir_.size() > 1 && log_dir_.back() == '/')
    log_dir_.pop_back();
}

void RunFiles::remove_private_folder() noexcept {
  if (!private_folder_.empty()) remove_folder(std::exchange(private_folder_, {}));
}

bool RunFiles::keeps_logs() const {
  return !log_dir_.empty() && log_dir_ != "/dev/null";
}

std::string RunFiles::run_folder() {
  if (run_folder_.empty()) {
    make_folders(log_dir_);
    const std::string prefix = log_dir_ + "/" + file_name_of(run_id_) + "_";
    run_folder_ = try_unique_folder(prefix, kShared);
    if (run_folder_.empty()) fail(prefix + "*");
    point_latest_to(log_dir_, run_folder_.substr(log_dir_.size() + 1));
  }
  return run_folder_;
}

std::string RunFiles::attempt_folder(int round, int restart_count) {
  std::string& folder = attempts_[round];
  if (folder.empty()) {
    std::string path = run_folder() + "/attempt_" + std::to_string(restart_count);
    const int earlier = rounds_of_attempt_[restart_count]++;
    if (earlier > 0) path += "." + std::to_string(earlier);
    make_folder(path);
    folder = std::move(path);
  }
  return folder;
}

std::string RunFiles::rank_folder(int round, int restart_count, int local_rank) {
  std::string path = attempt_folder(round, restart_count) + "/" + std::to_string(local_rank);
  make_folder(path);
  return path;
}

std::string RunFiles::error_file(int round, int restart_count, int local_rank) {
  if (log_dir_ == "/dev/null") return {};
  if (keeps_logs())
    return rank_folder(round, restart_count, local_rank) + "/" + std::string(kErrorFile);
  if (private_folder_.empty()) private_folder_ = make_private_folder(temporary_);
  return private_folder_ + "/" + std::to_string(round) + "_" + std::to_string(local_rank) + "_" +
         std::string(kErrorFile);
}

}  // namespace drun::launcher
