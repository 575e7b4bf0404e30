// What /proc says of a process and its threads. All of it is a moment's truth.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace drun::launcher {

struct ThreadFacts {
  std::string name;
  char state = '?';  // R, S, D, T, t, Z; '?' if it is gone
  std::string wait;  // the function of the kernel that it waits in; empty: none, or not known
  std::string call;  // the system call that it is in, by name; empty likewise
};
[[nodiscard]] ThreadFacts facts_of(pid_t pid, pid_t thread);

// Ascending: the first thread has the number of the process. Empty if it is gone.
[[nodiscard]] std::vector<pid_t> threads_of(pid_t pid);

// The first one that has not ended, of those; `pid` if there is none.
[[nodiscard]] pid_t first_living(pid_t pid, const std::vector<pid_t>& threads);

// All of its user ids are those of this process.
[[nodiscard]] bool is_own_process(pid_t pid);

// Where in the kernel a thread is, innermost first; empty unless the system shows it to this user.
[[nodiscard]] std::vector<std::string> kernel_frames(pid_t pid, pid_t thread);

// ---- pure ----

// The state in the text of /proc/PID/stat.
[[nodiscard]] char state_in(std::string_view stat);
// The functions in the text of /proc/PID/stack.
[[nodiscard]] std::vector<std::string> kernel_frames_in(std::string_view text);

}  // namespace drun::launcher
