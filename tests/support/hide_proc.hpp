// A container may hide /proc.
#pragma once

#include <sched.h>
#include <sys/mount.h>

namespace drun::process::test {

// Only for this process and those that it starts. False where that is not allowed.
[[nodiscard]] inline bool hide_proc() {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", "/proc", "tmpfs", MS_RDONLY, nullptr) == 0;
}

}  // namespace drun::process::test
