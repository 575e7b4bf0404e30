// The exit codes of drun, drun-store and drunctl themselves, beside those of the workers: they are
// timeout(1)'s and the shell's.
#pragma once

namespace drun {

inline constexpr int kUsageError = 2;     // the command line is wrong
inline constexpr int kDoNotRequeue = 93;  // another run would fail, too (--no-requeue-on)
inline constexpr int kUnfit = 94;  // this machine is not as the job's others (--preflight strict)
inline constexpr int kTimeLimit = 124;   // a limit of time is over
inline constexpr int kDrunFailed = 125;  // the store, the rendezvous, drun itself
inline constexpr int kCannotRun = 126;   // the program is there, but cannot be run
inline constexpr int kNotFound = 127;    // there is no such program

// For a process that a signal ended.
[[nodiscard]] constexpr int exit_code_of_signal(int signal) {
  return 128 + signal;
}
// Its inverse; 0: the code stands for no signal.
[[nodiscard]] constexpr int signal_of_exit_code(int code) {
  return code > 128 ? code - 128 : 0;
}

}  // namespace drun
