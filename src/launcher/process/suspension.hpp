// Ctrl-Z: how drun, and the workers with it, stop until a shell lets them go on.
#pragma once

#include <signal.h>

#include "launcher/process/guardian.hpp"

namespace drun::process {

// Whether a Ctrl-Z stops this process, as any program's: not if its process group is orphaned (drun
// leads the session: ssh -t HOST drun, docker run -it), because no shell could resume it then.
// Starts a process for a moment, and may be called from any thread.
[[nodiscard]] bool can_be_suspended();

// Ctrl-Z for this process alone; returns when it goes on, at once if it cannot be suspended.
// SIGTTIN instead of SIGTSTP: the shell says that it waits for input.
void suspend(int signal = SIGTSTP);

// Ctrl-Z: the workers and all that they have started stop and go on with this process. Returns when
// it goes on; false, and nothing is done, if it cannot be suspended.
bool suspend_with(Guardian& guardian, int signal = SIGTSTP);

}  // namespace drun::process
