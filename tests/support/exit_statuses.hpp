// How processes end, for tests of what their ends mean.
#pragma once

#include "launcher/process/exit_status.hpp"

namespace drun::launcher::test {

inline process::ExitStatus exited(int code) {
  process::ExitStatus status;
  status.code = code;
  return status;
}

inline process::ExitStatus killed(int signal) {
  process::ExitStatus status;
  status.signal = signal;
  return status;
}

}  // namespace drun::launcher::test
