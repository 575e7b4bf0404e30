// How a process ended.
#pragma once

#include <string>
#include <string_view>

#include "base/exit_codes.hpp"

namespace drun::process {

struct ExitStatus {
  int code = 0;    // 0..255, when signal == 0
  int signal = 0;  // the signal that killed it, or 0
  bool core_dumped = false;

  [[nodiscard]] bool success() const { return code == 0 && signal == 0; }
  // As a shell gives it: the code, or exit_code_of_signal(signal).
  [[nodiscard]] int shell_code() const { return signal != 0 ? exit_code_of_signal(signal) : code; }
  bool operator==(const ExitStatus&) const = default;
};

// The signals are 1 to 64, including those that the C library keeps for itself and hides in its
// functions.
inline constexpr int kLastSignal = 64;

// What waitpid() said of a process that has ended.
[[nodiscard]] ExitStatus from_wait_status(int status);
// "SIGTERM"; "SIGRTMIN+3"; "signal 77" for one without a name.
[[nodiscard]] std::string signal_name(int signal);
// "TERM", "SIGTERM" or "15" -> 15; 0 when there is no such signal.
[[nodiscard]] int parse_signal(std::string_view text);
// "exit code 7", "killed by SIGSEGV".
[[nodiscard]] std::string describe(const ExitStatus& status);

}  // namespace drun::process
