// A process as a descriptor: it stands for that process even when another gets its number.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/file_descriptor.hpp"

namespace drun {

// Readable once the process has ended; closed at exec. Without one errno says why: there is no such
// process, no descriptor is left, or the kernel is older than 5.3 (ENOSYS).
[[nodiscard]] inline FileDescriptor open_pidfd(pid_t pid) {
  return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace drun
