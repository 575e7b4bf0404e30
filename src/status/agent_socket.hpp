// The socket at which an agent tells its status on its host. It lies in Linux's abstract namespace:
// each network namespace has its own, and nothing is left behind by an agent that is killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::status {

// The name of a new one, without the NUL byte before it:
// "drun/agent/1000/cbf29ce484222325/k3m81x0qz7a5e2wd". The user, so that each finds their own; a
// digest of the job's id, so that an agent that answers no more can be told from those of other
// jobs. No process id: containers of one pod see the same sockets, and each has a process 1.
[[nodiscard]] std::string new_socket_name(uid_t user, std::string_view job);

// The name of one that gives the key of a job, for whose token nobody but drun knows:
// "drun/key/1000/cbf29ce484222325/k3m81x0qz7a5e2wd".
[[nodiscard]] std::string new_key_socket_name(uid_t user, std::string_view job);

// Whose sockets are looked for. Root finds those of all users.
struct Sought {
  uid_t user = 0;
  std::optional<std::string> job;  // nullopt: any
};
// The names of agents in the text of /proc/net/unix. Pure.
[[nodiscard]] std::vector<std::string> sockets_in(std::string_view table, const Sought& sought);
// The same of those that give keys, of this user alone, also root: others' may give what they like.
[[nodiscard]] std::vector<std::string> key_sockets_in(std::string_view table, const Sought& sought);
// Those of this host, for the user that runs this program.
[[nodiscard]] std::vector<std::string> find_key_sockets(const std::optional<std::string>& job);
[[nodiscard]] std::vector<std::string> find_sockets(const std::optional<std::string>& job);

// What is asked for. The client says it by the name of its own end of the socket, so that an agent
// knows it at once and reads nothing. One that does not know a question tells its status.
enum class Question {
  Status,
  Stacks,          // of its workers
  QuickStacks,     // the same from /proc alone: no process is stopped
  JobStacks,       // of the workers of all nodes of its job
  QuickJobStacks,  // likewise
  Job,             // the documents of its job, as it reads them
  Usage,           // what its workers have used so far
};
// All that the agent there says, `longest` bytes at most. Errors: nobody there, no answer in time,
// or somebody else's process that has taken the name.
[[nodiscard]] Result<std::string> ask(const std::string& name,
                                      std::chrono::steady_clock::time_point deadline,
                                      Question question = Question::Status,
                                      std::size_t longest = std::size_t{1} << 20);
// Of all of them, a few hundred at a time, in this thread: those that stand still take no time from
// the others, and those of other users none at all.
[[nodiscard]] std::vector<Result<std::string>> ask_all(
    const std::vector<std::string>& names, std::chrono::steady_clock::time_point deadline,
    Question question = Question::Status, std::size_t longest = std::size_t{1} << 20);
// What the other end of this socket asks for.
[[nodiscard]] Question question_of(int socket);

// An agent of `self` tells its own user, and root, what it knows. Root's tells nobody else.
[[nodiscard]] constexpr bool may_ask(uid_t self, uid_t asker) {
  return asker == self || asker == 0;
}
// A user believes their own agents and root's; root believes those of all users.
[[nodiscard]] constexpr bool may_answer(uid_t self, uid_t agent) {
  return agent == self || agent == 0 || self == 0;
}
// Whether the other end may be given a secret: only its own user's processes and root's, and they
// must be in no other container, though it may share this one's network, and so its sockets.
[[nodiscard]] bool may_know(int socket);
// The effective user of the process at the other end; none that exists, if that is not known.
[[nodiscard]] uid_t user_at(int socket);

}  // namespace drun::status
