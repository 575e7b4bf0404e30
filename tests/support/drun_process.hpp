// Starts the real drun (or any program) in a test, and finds whatever it leaves behind: every
// process is started with a mark in its environment, which all descendants inherit, also those that
// change session or are adopted by init. Waits are for conditions, each with a deadline. One
// thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "support/patience.hpp"

namespace drun::test {

using std::chrono::milliseconds;

// A fresh directory, removed with all it holds at the end.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Writes a file and returns its path. `executable`: for scripts.
  std::string write(const std::string& name, const std::string& content,
                    bool executable = false) const;

 private:
  std::filesystem::path path_;
};

[[nodiscard]] std::string read_file(const std::filesystem::path& path);
[[nodiscard]] std::vector<std::string> split_lines(const std::string& text);
// What drun said, line by line, but for the lines that only say that it waits: how many of those
// there are depends on how fast the machine is.
[[nodiscard]] std::vector<std::string> lines_but_waiting(const std::string& err);

// A TCP port of this machine that nobody else is given while this object lives: bound on all
// interfaces with SO_REUSEADDR and never listening, so that drun can bind it too.
class ReservedPort {
 public:
  ReservedPort();
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] std::string endpoint() const { return "127.0.0.1:" + std::to_string(number_); }

 private:
  FileDescriptor socket_;
  int number_ = 0;
};

using Arguments = std::vector<std::string>;

inline Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// Where and with what a program is started.
struct Launch {
  Arguments argv;                        // argv[0] is a path
  std::vector<std::string> environment;  // "NAME=value" sets; "NAME" alone removes
  std::filesystem::path directory;       // empty: the test's own
  bool own_group = false;                // a process group of its own, as a shell's jobs have
};

// How a program ended. `code` is what a shell would give: 128 + signal for a signal.
struct Finished {
  int code = -1;  // -1: it was still running at the deadline, and has been killed
  std::string out;
  std::string err;
  std::vector<std::string> survivors;  // "pid command line" of what it had started and left running
};

class DrunProcess {
 public:
  // drun with these arguments. Variables that would steer it (PET_*, RANK, MASTER_ADDR, SLURM_*
  // ...) are not taken over from the test's environment. stdin is /dev/null.
  explicit DrunProcess(std::vector<std::string> arguments, Launch launch = {});
  // Any program: launch.argv is complete.
  explicit DrunProcess(Launch launch);
  DrunProcess(const DrunProcess&) = delete;
  DrunProcess& operator=(const DrunProcess&) = delete;
  ~DrunProcess();  // kills it and everything it started

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;

  // Until the text has appeared; false when the deadline passes or the program ends without it.
  [[nodiscard]] bool wait_for_out(const std::string& text, milliseconds patience = kPatience);
  [[nodiscard]] bool wait_for_err(const std::string& text, milliseconds patience = kPatience);
  // Until it ends. After that code() is valid, and both outputs are complete.
  [[nodiscard]] bool wait(milliseconds patience = kPatience);
  // All of it: waits, kills at the deadline, collects.
  Finished finish(milliseconds patience = kPatience);

  [[nodiscard]] bool running() const { return running_; }
  [[nodiscard]] int code() const { return code_; }
  [[nodiscard]] const std::string& out() const { return out_; }
  [[nodiscard]] const std::string& err() const { return err_; }

  // Processes of this run that are alive now (not the program itself), "pid command line".
  [[nodiscard]] std::vector<std::string> survivors() const;
  // Waits until there are none.
  [[nodiscard]] bool survivors_gone(milliseconds patience) const;
  // Those whose environment has this entry ("RANK=3").
  [[nodiscard]] std::vector<pid_t> pids_with(const std::string& variable) const;
  // The one that has it, once there is one alone: none is seen to have it while it executes its
  // program. -1: not in time.
  [[nodiscard]] pid_t wait_for_pid_with(const std::string& variable) const;

 private:
  void start(const Launch& launch);
  bool pump(const std::function<bool()>& done, milliseconds patience);
  [[nodiscard]] std::vector<pid_t> marked(const std::string& variable = {}) const;

  std::string mark_;
  pid_t pid_ = -1;
  bool running_ = false;
  int code_ = -1;
  FileDescriptor pidfd_;
  FileDescriptor out_pipe_;
  FileDescriptor err_pipe_;
  std::string out_;
  std::string err_;
};

// Runs drun to its end.
Finished run_drun(std::vector<std::string> arguments, Launch launch = {},
                  milliseconds patience = kPatience);

// The drun under test: $DRUN_UNDER_TEST, else the one of this build.
[[nodiscard]] std::string drun_path();
// A Python interpreter that has torch ($PYTHON_EXEC, python3 in PATH, /usr/bin/python3), or empty.
// Found without importing torch.
[[nodiscard]] std::string python_with_torch();

}  // namespace drun::test
