#include "launcher/runnable.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "launcher/environment.hpp"
#include "launcher/options_scan.hpp"
#include "launcher/process/spawn.hpp"

namespace drun::launcher {
namespace {

// 0 or errno, asked with the rights that an exec or an open would have.
int access_error(const std::string& path, int mode) {
  return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0 ? 0 : errno;
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool not_there(int error) {
  return error == ENOENT || error == ENOTDIR;
}

int script_error(const std::string& path) {
  if (const int error = access_error(path, R_OK); error != 0) return error;
  if (!is_directory(path)) return 0;
  return access_error(path + "/__main__.py", R_OK) == 0 ? 0 : EISDIR;
}

// The first element of PATH that has it decides; one that may not be executed is passed over, but
// remembered.
int interpreter_error(const std::string& program, const std::vector<std::string>& environment) {
  const char* path = variable(environment, "PATH");
  int result = ENOENT;
  for (const auto& candidate :
       process::exec_candidates(program, path == nullptr ? process::kDefaultPath : path)) {
    const int error = is_directory(candidate) ? EACCES : access_error(candidate, X_OK);
    if (error == 0) return 0;
    if (!not_there(error)) result = error;
  }
  return result;
}

}  // namespace

int exit_code_of_spawn_error(int error) {
  return not_there(error) ? 127 : 126;
}

int Unrunnable::exit_code() const {
  return exit_code_of_spawn_error(error);
}

std::string Unrunnable::text() const {
  return "cannot " + attempted + ": " + std::generic_category().message(error) + advice;
}

std::optional<Unrunnable> unreadable_script(const Options& options, int local_rank) {
  if (options.script_at == 0) return std::nullopt;
  const std::string path = worker_command(options, local_rank).at(options.script_at);
  const int error = script_error(path);
  if (error == 0) return std::nullopt;
  return Unrunnable{error, "open " + path, ""};
}

std::optional<Unrunnable> unrunnable_python(const Options& options) {
  if (!options.python) return std::nullopt;
  if (const int error = interpreter_error(options.command.front(), options.inherited); error != 0)
    return Unrunnable{error, "exec " + options.command.front(),
                      "; PYTHON_EXEC names another interpreter"};
  for (int local_rank = 0; local_rank < options.nproc_per_node; ++local_rank) {
    if (auto found = unreadable_script(options, local_rank)) return found;
  }
  return std::nullopt;
}

}  // namespace drun::launcher
