// Where a process waits: the system call, where in the kernel, and for whom. May hang where the
// process does: for a thread of its own.
#pragma once

#include <sys/types.h>

#include <string>

#include "hang/awaited_process.hpp"
#include "hang/connections.hpp"
#include "hang/process_look.hpp"

namespace drun::hang {

struct WaitPlace {
  std::string call;      // "recvfrom (wait_woken)"; empty: the kernel does not say
  std::string file{};    // " from 10.0.0.1:29500" or " of /nfs/data"; empty: of none
  bool stopped = false;  // by a signal; then the rest is empty
  Awaited::Whom whom = Awaited::Whom::Unknown;
  // Of OwnChild: where that process waits, whose `file` it is then: "waits in futex (...)".
  std::string child{};
  // "waits in recvfrom (wait_woken)", "wait in ..." of several; without the file.
  [[nodiscard]] std::string text(bool several = false) const;
  bool operator==(const WaitPlace&) const = default;
};

// Of the first thread of the worker, or of the program for which alone it waits, as a shell does.
// `connections`: of this network namespace, all of them; for several processes, the same.
[[nodiscard]] WaitPlace wait_place(pid_t pid, const RankLook& rank, Connections& connections);

}  // namespace drun::hang
