// Which signal an end of the job stands for. Pure.
#pragma once

#include <signal.h>

#include <algorithm>
#include <array>

#include "base/exit_codes.hpp"

namespace drun::rendezvous {

// The signal that has asked drun to stop the job, which then ends with 128 + its number; 0: none
// has. What kills a process, or ends one that crashes, asks for nothing.
[[nodiscard]] inline int requested_signal(int exit_code) {
  constexpr std::array kOfDeaths{SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGABRT,
                                 SIGFPE,  SIGILL,  SIGSYS,  SIGTRAP};
  const int signal = signal_of_exit_code(exit_code);
  const bool is_death = std::find(kOfDeaths.begin(), kOfDeaths.end(), signal) != kOfDeaths.end();
  return is_death || signal > SIGRTMAX ? 0 : signal;
}

}  // namespace drun::rendezvous
