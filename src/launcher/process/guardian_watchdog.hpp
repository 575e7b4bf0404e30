// The watchdog: the guardian's parent and the second line of defence. It does nothing but wait.
// When the guardian dies, every descendant becomes the watchdog's, and it kills them all. When the
// agent dies, the guardian kills them and does the agent's last will; the watchdog sees to it that
// the guardian is awake and ends, and does what is left if it does not, or is killed meanwhile.
#pragma once

#include "base/file_descriptor.hpp"
#include "launcher/process/exit_status.hpp"
#include "launcher/process/guardian.hpp"

namespace drun::process {

// What the watchdog sends, once, while the agent lives: it could not start the guardian, or the
// guardian is gone. Then it waits for the agent's end. In the other direction go RemoveFolder,
// LeaveFolders and Farewell of wire.hpp.
struct WatchdogReport {
  int error = 0;        // errno: it could not begin, or not fork the guardian
  ExitStatus guardian;  // how it ended; everything below it is gone
};

// The whole life of the watchdog process, from just after its fork: `agent` is its end of a
// SOCK_SEQPACKET pair, `commands` the guardian's end of its own socket. Never returns.
[[noreturn]] void watchdog_main(FileDescriptor agent, FileDescriptor commands,
                                const GuardianOptions& options) noexcept;

}  // namespace drun::process
