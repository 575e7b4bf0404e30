// SIGCHLD as a descriptor, for a poll.
#pragma once

#include "base/file_descriptor.hpp"

namespace drun::process {

class ChildSignals {
 public:
  // Throws std::system_error if there is none to be had.
  ChildSignals();

  // Readable when a child has ended, stopped or gone on. The signal must be blocked.
  [[nodiscard]] int fd() const { return fd_.get(); }
  // Readable no more, until the next signal.
  void clear() const;

 private:
  FileDescriptor fd_;
};

}  // namespace drun::process
