// A timer with a descriptor, for a poll.
#pragma once

#include <chrono>
#include <ctime>
#include <optional>

#include "base/file_descriptor.hpp"

namespace drun::process {

class TimerFd {
 public:
  // Throws std::system_error if there is none to be had.
  explicit TimerFd(clockid_t clock);

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Readable from this moment of its clock on, at once if that is over; nullopt: never.
  void set(std::optional<std::chrono::nanoseconds> when) const;
  // Readable no more, until the next set().
  void clear() const;

 private:
  FileDescriptor fd_;
};

}  // namespace drun::process
