#include "launcher/workers/preflight.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/closest_word.hpp"
#include "base/environment_variable.hpp"
#include "base/exit_codes.hpp"
#include "base/file_worker.hpp"
#include "base/printable.hpp"
#include "launcher/process/spawn.hpp"
#include "launcher/workers/environment.hpp"

namespace drun::launcher {
namespace {

// 0 or errno, asked with the rights that an exec or an open would have. If a container forbids the
// question (EPERM), the attempt will tell.
int access_error(const std::string& path, int mode) {
  if (::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0 || errno == EPERM) return 0;
  return errno;
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool not_there(int error) {
  return error == ENOENT || error == ENOTDIR;
}

int script_error(const std::string& path) {
  about_to("open " + path);
  if (const int error = access_error(path, R_OK); error != 0) return error;
  if (!is_directory(path)) return 0;
  return access_error(path + "/__main__.py", R_OK) == 0 ? 0 : EISDIR;
}

bool is_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_marked_executable(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 &&
         (status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
}

// As far as its beginning tells: "#!" with a python, or else a line that imports something.
enum class Python { No, Marked, Unmarked };
Python looks_like_python(const std::string& path) {
  char head[4096];
  std::ifstream file(path);
  file.read(head, sizeof head);
  std::string_view text(head, static_cast<std::size_t>(file.gcount()));
  if (text.find('\0') != std::string_view::npos) return Python::No;
  if (text.starts_with("#!")) {
    const bool python = text.substr(0, text.find('\n')).find("python") != std::string_view::npos;
    return python ? Python::Marked : Python::No;
  }
  while (!text.empty()) {
    if (text.starts_with("import ") || text.starts_with("from ")) return Python::Unmarked;
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return Python::No;
}

int program_error(const std::string& path) {
  about_to("exec " + path);
  return is_directory(path) ? EISDIR : access_error(path, X_OK);
}

// The files beside `path`; of a folder with many only some.
std::vector<std::string> neighbours(const std::string& path) {
  constexpr std::size_t kMost = 4'096;
  std::vector<std::string> result;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  std::filesystem::directory_iterator at(folder.empty() ? "." : folder, error);
  for (; !error && at != std::filesystem::directory_iterator() && result.size() < kMost;
       at.increment(error)) {
    std::error_code of_one;
    if (at->is_regular_file(of_one)) result.push_back(at->path().filename());
  }
  std::sort(result.begin(), result.end());
  return result;
}

// "; did you mean ./train.py?" or nothing. `before` is what the user left out.
std::string likely_file(const std::string& path, const char* before = "") {
  const std::string meant =
      mistyped_word(std::filesystem::path(path).filename().string(), neighbours(path));
  if (meant.empty()) return "";
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  return "; did you mean " + as_name(before + folder + meant) + "?";
}

// Pasted from a document that has made a dash of two hyphens: an en dash, an em dash, a minus.
bool has_typeset_dash(const std::string& word) {
  for (const char* dash : {"\xE2\x80\x90", "\xE2\x80\x91", "\xE2\x80\x92", "\xE2\x80\x93",
                           "\xE2\x80\x94", "\xE2\x80\x95", "\xE2\x88\x92"})
    if (word.starts_with(dash)) return true;
  return false;
}

// "LR=1", as a shell has it before a program.
bool is_variable(const std::string& word) {
  const auto name = word.substr(0, word.find('='));
  return name.size() < word.size() && !name.empty() && (name[0] < '0' || name[0] > '9') &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

// What to do about it. A user who gives a name without a slash for a file of the working directory
// forgot the "./".
std::string advice_about(const Program& program, const std::string& path, int error) {
  if (program.python) return "; PYTHON_EXEC names another interpreter";
  if (not_there(error) && has_typeset_dash(path))
    return "; it begins with a typeset dash: a flag begins with hyphens";
  if (not_there(error) && is_variable(path)) {
    const std::string next = program.command.size() > 1 ? program.command[1] : "PROGRAM";
    return "; to set a variable for the workers: drun env " + as_name(path) + " " + as_name(next);
  }
  if (not_there(error) && path.find(' ') != std::string::npos)
    return "; program and arguments are separate words";
  if (path.find('/') == std::string::npos && not_there(error))
    return " in PATH" + likely_file(path, "./");
  if (error == ENOENT) return likely_file(path);
  if (error == EISDIR && access_error(path + "/__main__.py", R_OK) == 0)
    return "; --run-path runs it with Python";
  if (error != EACCES || !is_file(path) || is_marked_executable(path)) return "";
  switch (looks_like_python(path)) {
    case Python::No:
      break;
    case Python::Marked:
      return "; chmod +x makes it a program, --run-path runs it with Python";
    case Python::Unmarked:
      return "; --run-path runs it with Python";
  }
  return "; chmod +x makes it a program";
}

// The first file that an exec would take; empty: there is none.
std::string executable(const Program& program) {
  const auto path = environment_variable(program.inherited, "PATH");
  for (auto& candidate : process::exec_candidates(
           program.command.front(), path ? std::string_view(*path) : process::kDefaultPath)) {
    if (program_error(candidate) == 0) return candidate;
  }
  return "";
}

}  // namespace

LaunchError of_spawn(int error, const std::string& attempted) {
  LaunchError result;
  result.error = error;
  result.attempted = attempted;
  result.of_drun = attempted == process::kFork;
  if (result.of_drun && error == EAGAIN)
    result.advice = "; a limit on processes is reached: ulimit -u, or pids.max of a cgroup";
  return result;
}

int LaunchError::exit_code() const {
  if (of_drun) return kDrunFailed;
  return not_there(error) ? kNotFound : kCannotRun;
}

std::string LaunchError::text() const {
  if (!no_answer.empty()) return no_answer;
  return attempted + ": " + std::generic_category().message(error) + advice;
}

LaunchError without_answer(const Error& error, bool opening) {
  LaunchError result;
  result.error = error.code().value();
  result.no_answer = error.what();
  result.of_drun = opening || error.code() != std::errc::timed_out;
  return result;
}

std::optional<LaunchError> check_script(const Program& program, int local_rank) {
  if (program.script_at == 0) return std::nullopt;
  const std::string path = worker_command(program, local_rank).at(program.script_at);
  const int error = script_error(path);
  if (error == 0) return std::nullopt;
  return LaunchError{error, "open " + as_name(path), error == ENOENT ? likely_file(path) : "",
                     false, ""};
}

std::optional<LaunchError> check_program(const Program& program) {
  const std::string& name = program.command.front();
  const bool looked_up = name.find('/') == std::string::npos;
  const auto path = environment_variable(program.inherited, "PATH");
  std::string named = name;
  int result = ENOENT;
  for (const auto& candidate :
       process::exec_candidates(name, path ? std::string_view(*path) : process::kDefaultPath)) {
    const int error = program_error(candidate);
    if (error == 0) return std::nullopt;
    // A name that is looked up can only mean a file.
    if (looked_up && (not_there(error) || !not_there(result) || !is_file(candidate))) continue;
    result = error;
    named = candidate;
  }
  return LaunchError{result, "exec " + as_name(named), advice_about(program, named, result), false,
                     ""};
}

std::string shell_warning(const Program& program) {
  if (program.python) return "";
  const std::string path = executable(program);
  if (!is_file(path) || looks_like_python(path) != Python::Unmarked) return "";
  return path + " looks like Python but does not begin with #!, so /bin/sh runs it; --run-path " +
         "runs it with Python";
}

std::optional<LaunchError> check_launch(const Program& program, int workers) {
  if (auto found = check_program(program)) return found;
  if (program.script_at == 0) return std::nullopt;
  for (int local_rank = 0; local_rank < workers; ++local_rank) {
    if (auto found = check_script(program, local_rank)) return found;
  }
  return std::nullopt;
}

ProgramFiles program_files(const Program& program) {
  ProgramFiles result;
  const std::string path = executable(program);
  const std::string name = std::filesystem::path(path).filename();
  const bool python = program.python || name.starts_with("python");
  if (python) {
    result.interpreter = path;
  } else {
    Program any = program;
    any.command = {"python3"};
    result.interpreter = executable(any);
    if (!path.empty()) result.files.push_back(path);
  }
  const bool runs_script = python || name.ends_with("sh");
  if (program.script_at != 0) {
    result.files.push_back(worker_command(program, 0).at(program.script_at));
  } else if (runs_script) {
    for (std::size_t i = 1; i < program.command.size(); ++i)
      if (is_file(program.command[i])) {
        result.files.push_back(program.command[i]);
        break;
      }
  }
  return result;
}

FirstLook look_at_program(const Program& program, int workers) {
  // A thread that hangs keeps its own.
  const auto look = ask_files<FirstLook>(kFilesLimit, [own = Program(program), workers] {
    FirstLook result;
    result.warning = shell_warning(own);
    result.error = check_launch(own, workers);
    return result;
  });
  if (look) return *look;
  return {"", without_answer(look.error(), false)};
}

}  // namespace drun::launcher
