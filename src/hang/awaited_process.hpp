// Whom a rank waits for: a process that it has started itself, or perhaps another rank. Pure.
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace drun::hang {

// A process of a rank. Files are pipes and sockets, by the names that /proc/PID/fd has for them:
// "pipe:[4711]".
struct WaitingProcess {
  pid_t parent = 0;
  // What its first thread is in: a wait for any child, or for one of these files to have something.
  bool awaits_children = false;
  std::vector<std::string> awaits_files;
  bool awaits_network = false;      // the first thread waits for a TCP connection
  bool threads_on_network = false;  // another thread does
  bool connected = false;           // it has a TCP connection: it may take part in the job
  std::set<std::string> answers;    // the files of others that have something when it writes
};

struct Awaited {
  enum class Whom {
    Unknown,
    OwnChild,  // a process of its own, which waits for nobody else that is known
    Others     // it, or who it waits for, waits for a connection: perhaps to another rank
  };
  Whom whom = Whom::Unknown;
  // Who stands for the rank: the worker, or the program for which alone a shell waits.
  pid_t program = 0;
  pid_t child = 0;  // of OwnChild: the one at the end of the chain
  bool operator==(const Awaited&) const = default;
};

// `processes`: all that are known of the rank whose worker is `worker`.
[[nodiscard]] Awaited whom_it_awaits(pid_t worker,
                                     const std::map<pid_t, WaitingProcess>& processes);

}  // namespace drun::hang
