// The end of a job on a host that drun was started on by another drun: starts the agent there as it
// is told over stdin, and drun on further hosts; passes their output back over stdout; and ends
// them when the starter is gone, however it went.
#pragma once

namespace drun::launcher {

// Call before any thread exists. Returns the process's exit code.
int run_remote_end();

}  // namespace drun::launcher
