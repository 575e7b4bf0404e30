// What the guardian's events say to people.
#include <cerrno>
#include <string>
#include <system_error>

#include "base/fd_limit.hpp"
#include "launcher/process/guardian.hpp"

namespace drun::process {

std::string describe(const Exited& exited) {
  return exited.out_of_memory ? "killed: out of memory" : describe(exited.status);
}

std::string describe(const Stopped& stopped) {
  if (stopped.remaining == 0) return {};
  const bool one = stopped.remaining == 1;
  // It may be gone when it is asked who it is.
  const std::string first =
      stopped.first == 0 ? "a process" : "process " + std::to_string(stopped.first);
  return "the workers leave " + first +
         (one ? "" : " and " + std::to_string(stopped.remaining - 1) + " more") +
         " behind: SIGKILL does not end " + (one ? "it" : "them") +
         " (another user's, held by a debugger, or hanging inside the kernel)";
}

std::string describe(const GuardianLost& lost) {
  const auto message = [](int error) {
    const std::error_code code(error, std::generic_category());
    return code.message() + fd_limit_advice(code);
  };
  if (lost.start_error != 0) return "start the guardian: " + message(lost.start_error);
  if (lost.hung) return "drun's guardian process did not answer and was killed";
  if (lost.status.signal == 0 && lost.status.code != 0)
    return "drun's guardian process cannot work: " + message(lost.status.code) +
           (lost.status.code == ENOENT ? " (it needs /dev/null)" : "");
  return "drun's guardian process ended (" + describe(lost.status) + ")";
}

}  // namespace drun::process
