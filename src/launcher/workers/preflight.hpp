// Whether the workers' command line can be run on this machine at all: a program or a Python file
// that is not there is the user's mistake, reported once and not for each worker.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drun/base/result.hpp"
#include "launcher/options/options.hpp"

namespace drun::launcher {

// What would keep a worker from starting.
struct LaunchError {
  int error = 0;          // errno
  std::string attempted;  // "open train.py", "exec ./train"
  std::string advice;     // may be empty
  bool of_drun = false;   // drun itself cannot do it, whatever the program
  std::string no_answer;  // "open /nfs/train.py: no answer for 30 s": all that is known; else empty

  // As a shell: kNotFound or kCannotRun; kDrunFailed if it is drun's own.
  [[nodiscard]] int exit_code() const;
  // "open train.py: No such file or directory", and what to do about it.
  [[nodiscard]] std::string text() const;
};

// As process::SpawnFailed has it. That no process could be made is not the program's fault.
[[nodiscard]] LaunchError of_spawn(int error, const std::string& attempted);

// The file systems gave no answer. `opening`: the program was there.
[[nodiscard]] LaunchError without_answer(const Error& error, bool opening);

// Looks at the Python file of this worker, relative to the working directory: readable, and either
// no directory or one that Python can run (it has a __main__.py). Nothing if the program is not a
// Python file: only Python knows what a module's name means.
[[nodiscard]] std::optional<LaunchError> check_script(const Program& program, int local_rank);

// Looks at the program itself (the interpreter of a Python file or module), which is looked up in
// the workers' PATH as a shell does. Errors that only an exec finds, such as a missing interpreter
// after "#!", are not looked for.
[[nodiscard]] std::optional<LaunchError> check_program(const Program& program);

// What to tell the user of a program that will run, but hardly as meant; may be empty.
[[nodiscard]] std::string shell_warning(const Program& program);

// check_program() and check_script(), for all of this node's `workers`.
[[nodiscard]] std::optional<LaunchError> check_launch(const Program& program, int workers);

// What a program is made of, as far as its command line tells: for digests and versions.
struct ProgramFiles {
  std::string interpreter;         // the Python that runs it; empty: none is known
  std::vector<std::string> files;  // the program, or the script of a shell or of Python
};
[[nodiscard]] ProgramFiles program_files(const Program& program);

struct FirstLook {
  std::string warning;               // of shell_warning()
  std::optional<LaunchError> error;  // of check_launch(), or that it got no answer
};
// Before anything is started: waits for the answer, but not longer than kFilesLimit for a step.
[[nodiscard]] FirstLook look_at_program(const Program& program, int workers);

}  // namespace drun::launcher
