// A command of the user's that runs beside the job: for --events exec: and --on-event. It is no
// worker: the guardian knows nothing of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "drun/base/result.hpp"

namespace drun::launcher {

struct SideCommand {
  pid_t pid = 0;
  FileDescriptor pidfd;  // readable when it has ended
};

// Runs it by sh -c: in a process group of its own, with `standard_input` (-1: /dev/null), its
// output on drun's stderr, and no other descriptor of this process. `environment`: "NAME=value", in
// front of this process's own. Any thread; it waits for the exec, which a file system may hold up.
[[nodiscard]] Result<SideCommand> start_side_command(const std::string& command,
                                                     const std::vector<std::string>& environment,
                                                     int standard_input);

// What it was, once it has ended: "exit code 3", "killed by SIGTERM"; empty: exit code 0. Somebody
// else may have collected it: then empty, too.
[[nodiscard]] std::string collect(const SideCommand& command);

// Collects what has ended of a process group and is this process's to collect. True: no child of
// this process is left in it.
[[nodiscard]] bool reap_group(pid_t group);

// All of its process group.
void signal_group(const SideCommand& command, int signal);

// Waits until it has ended. If it has not by then, its group gets SIGTERM, and SIGKILL a second
// later or when it has ended. As collect().
[[nodiscard]] std::string end_side_command(const SideCommand& command,
                                           std::chrono::steady_clock::time_point deadline);

}  // namespace drun::launcher
