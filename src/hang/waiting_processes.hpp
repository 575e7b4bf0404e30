// Reads through /proc what the processes of a rank wait for. May hang where a process does: for a
// thread of its own.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>

#include "base/system_call.hpp"
#include "hang/awaited_process.hpp"
#include "hang/connections.hpp"
#include "hang/process_look.hpp"

namespace drun::hang {

// The first thread, or, if it has ended and others go on, the oldest of these.
[[nodiscard]] pid_t first_thread(pid_t pid);
// Nullopt: it is in none, or the kernel does not say.
[[nodiscard]] std::optional<SystemCall> call_of(pid_t pid, pid_t thread);
// What a call names that opens a file or asks about one; empty: it is another call.
[[nodiscard]] std::string path_of(pid_t thread, const SystemCall& call);

// The worker, and, if it waits for a process and not for a connection or a lock, all others of the
// rank.
[[nodiscard]] std::map<pid_t, WaitingProcess> waiting_processes(pid_t worker, const RankLook& rank,
                                                                Connections& connections);

}  // namespace drun::hang
