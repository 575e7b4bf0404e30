// When a stop must be over at the latest: a timer with a descriptor, for an epoll.
#pragma once

#include <chrono>
#include <optional>

#include "drun/base/file_descriptor.hpp"

namespace drun::process {

class StopLimit {
 public:
  using Clock = std::chrono::steady_clock;

  // Throws std::system_error.
  StopLimit();

  // Readable when the limit is over.
  [[nodiscard]] int fd() const { return timer_.get(); }
  // An earlier limit that is set already stays.
  void set(std::chrono::milliseconds from_now);
  void clear();
  // True once when it is over; then no limit is set.
  [[nodiscard]] bool take_expired();

 private:
  void arm() const;

  FileDescriptor timer_;
  std::optional<Clock::time_point> at_;
};

}  // namespace drun::process
