// Something that is to be done before the survivors of a failure are stopped. Implemented by the
// agent; tests put a fake in its place.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace drun::launcher {

class BeforeStop {
 public:
  using Time = std::chrono::steady_clock::time_point;

  BeforeStop() = default;
  BeforeStop(const BeforeStop&) = delete;
  BeforeStop& operator=(const BeforeStop&) = delete;
  virtual ~BeforeStop() = default;

  // A worker of the round has failed, and others run, or, if it `hangs`, itself. When they are
  // stopped at the latest; nullopt: now, there is nothing to do. `over` is called from the loop
  // when it is done, unless that comes later; then the group's on_time() is due.
  [[nodiscard]] virtual std::optional<Time> begin(bool hangs, Time now,
                                                  std::function<void()> over) = 0;
};

}  // namespace drun::launcher
