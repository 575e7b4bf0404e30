#include "launcher/report/core_file.hpp"

#include <glob.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace drun::launcher {
namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string base_name(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// For a limit below a page the kernel writes none at all (min_coredump in fs/binfmt_elf.c);
// sanitizers set one of 1.
constexpr rlim_t kLeastCore = 4'096;

// A program that the pattern pipes cores to gets them whatever the limit is.
std::string why_none(const std::string& core_pattern) {
  rlimit limit{};
  if (core_pattern.starts_with('|') || ::getrlimit(RLIMIT_CORE, &limit) != 0) return {};
  if (limit.rlim_cur >= kLeastCore) return {};
  return "none: the limit is " + std::to_string(limit.rlim_cur) +
         "; `ulimit -c unlimited` before drun allows one";
}

}  // namespace

std::string core_path_pattern(std::string_view core_pattern, bool uses_pid,
                              const CoreNames& names) {
  if (core_pattern.empty() || core_pattern.front() == '|') return {};
  std::string out;
  bool pid_named = false;
  for (std::size_t i = 0; i < core_pattern.size(); ++i) {
    if (core_pattern[i] != '%') {
      out += escaped(core_pattern.substr(i, 1));
      continue;
    }
    if (++i == core_pattern.size()) break;
    switch (core_pattern[i]) {
      case '%':
        out += '%';
        break;
      case 'p':  // ours in every namespace that we see
      case 'P':
        out += std::to_string(names.pid);
        pid_named = true;
        break;
      case 's':
        out += std::to_string(names.signal);
        break;
      case 'h':
        out += escaped(names.host);
        break;
      case 'f':
        out += names.executable.empty() ? "*" : escaped(base_name(names.executable));
        break;
      case 'e':  // the first 15 bytes of a name that the thread may have changed
      case 'E':
      case 't':
      case 'u':
      case 'g':
      case 'd':
      case 'c':
      case 'C':
      case 'i':
      case 'I':
      case 'F':
        out += '*';
        break;
      default:  // unknown to the kernel: nothing
        break;
    }
  }
  if (uses_pid && !pid_named) out += '.' + std::to_string(names.pid);
  if (out.front() == '/') return out;
  return escaped(names.directory) + '/' + out;
}

std::string find_core(const CoreNames& names) {
  const std::string pattern = first_line("/proc/sys/kernel/core_pattern");
  if (!names.dumped) return why_none(pattern);
  if (pattern.empty()) return {};
  if (pattern.front() == '|') {
    const auto end = pattern.find(' ');
    const std::string program =
        base_name(pattern.substr(1, end == std::string::npos ? end : end - 1));
    if (program == "systemd-coredump") return "coredumpctl info " + std::to_string(names.pid);
    return "taken by " + program;
  }
  const bool uses_pid = first_line("/proc/sys/kernel/core_uses_pid") != "0";
  const std::string wanted = core_path_pattern(pattern, uses_pid, names);
  if (wanted.empty()) return {};
  glob_t found{};
  std::string newest;
  time_t newest_time = 0;
  if (::glob(wanted.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      struct stat status {};
      if (::stat(found.gl_pathv[i], &status) != 0 || !S_ISREG(status.st_mode)) continue;
      if (newest.empty() || status.st_mtime >= newest_time) {
        newest = found.gl_pathv[i];
        newest_time = status.st_mtime;
      }
    }
  }
  ::globfree(&found);
  if (!newest.empty()) return newest;
  return "not at " + wanted +
         ": look in the last working directory of the process, or its container";
}

}  // namespace drun::launcher
