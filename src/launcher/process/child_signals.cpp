#include "launcher/process/child_signals.hpp"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace drun::process {

ChildSignals::ChildSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  fd_ = FileDescriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw std::system_error(errno, std::generic_category(), "signalfd");
}

void ChildSignals::clear() const {
  signalfd_siginfo ignored[16];
  while (::read(fd_.get(), ignored, sizeof ignored) > 0) {
  }
}

}  // namespace drun::process
