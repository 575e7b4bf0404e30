// Something that is to be over before the workers of a round start. Implemented by the agent; tests
// put a fake in its place.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace drun::launcher {

class BeforeStart {
 public:
  using Time = std::chrono::steady_clock::time_point;

  BeforeStart() = default;
  BeforeStart(const BeforeStart&) = delete;
  BeforeStart& operator=(const BeforeStart&) = delete;
  virtual ~BeforeStart() = default;

  // A round is about to begin. When its workers are started at the latest; nullopt: there is
  // nothing to wait for. `over` is called from the loop when that is over, unless that comes later;
  // then the group's on_time() is due.
  [[nodiscard]] virtual std::optional<Time> begin(Time now, std::function<void()> over) = 0;
};

}  // namespace drun::launcher
