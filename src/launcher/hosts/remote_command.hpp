// How a drun on another host is started, and why it was not. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::launcher::hosts {

// --launcher: "ssh", "ssh -p 2222", "kubectl exec -i {host} --".
struct Launcher {
  std::vector<std::string> words;  // not empty; in one of them may be {host}

  // Takes the host and one word for the shell there, as ssh does.
  [[nodiscard]] bool is_like_ssh() const;
  // It is ssh itself.
  [[nodiscard]] bool is_ssh() const;
  // It is Slurm's srun, without a host: a step of one task is started on each.
  [[nodiscard]] bool is_srun() const;
  bool operator==(const Launcher&) const = default;
};

// Words with blanks between, quoted as for a shell. The error says what is missing.
[[nodiscard]] Result<Launcher> parse_launcher(std::string_view text);

// A copy of this program for hosts that have none of this version (--copy-self).
struct SelfOffer {
  std::string name;    // of its file there: changes with its bytes; empty: none is offered
  std::size_t size{};  // in bytes
};
// Exit code of a host that cannot take it.
inline constexpr int kCopyFailed = 73;

// The command that starts the drun at `drun`, or if that is not there the one in PATH, on `host`,
// with kRemoteEndFlag. ssh asks no questions, since many would at once. What a shell there reads is
// right for sh, bash, csh and fish. With an offer a drun of another version is as good as none: the
// one in the user's cache there is started, and if it is not there, it is asked for (kCopyMark).
[[nodiscard]] std::vector<std::string> remote_command(const Launcher& launcher,
                                                      const std::string& host,
                                                      const std::string& drun,
                                                      const SelfOffer& offer = {});

// What became of a launcher.
struct Attempt {
  const Launcher& launcher;
  const std::string& host;
  const std::string& drun;
  int code = 0;            // as a shell gives it
  std::string stderr_end;  // what it said last, as it is
  bool copied{};           // the host has asked for a copy of drun
  std::string noise{};     // on its stdout, before any drun
  std::string given_up{};  // why drun itself has ended it; empty: it has not
};

// A sentence for the user: why no drun has answered there, and what to do. One line that is safe to
// print.
[[nodiscard]] std::string why_not_reached(const Attempt& attempt);
// The same for one that had answered.
[[nodiscard]] std::string why_lost(const Attempt& attempt);

}  // namespace drun::launcher::hosts
