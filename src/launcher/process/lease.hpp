// The lease: until when workers may run. The agent renews it with each answer of the store;
// guardian and watchdog both keep it, and kill at its end, whatever the agent does or does not do.
#pragma once

#include <chrono>
#include <optional>

namespace drun::process {

// CLOCK_BOOTTIME: the same for all processes of a machine, and it goes on while that is suspended.
using BootTime = std::chrono::nanoseconds;
[[nodiscard]] BootTime boot_now();

// Pure. Without an end until it is renewed for the first time.
class RunLease {
 public:
  // `late`: it counts as broken so long after its end.
  explicit RunLease(std::chrono::milliseconds late = {}) : late_(late) {}

  // Never shortens it. True if workers that waited for it may go on now.
  bool renew(BootTime end, BootTime now);
  // The workers are stopped by job control: they may exist, since they do not run.
  void suspend() { workers_ = Workers::Suspended; }
  // They are to go on: true if they may. Else they wait for renew().
  [[nodiscard]] bool resume(BootTime now);

  [[nodiscard]] bool over(BootTime now) const { return end_ && now >= *end_; }
  // Over for long enough, and the workers run.
  [[nodiscard]] bool broken(BootTime now) const {
    return workers_ == Workers::Run && end_ && now >= *end_ + late_;
  }
  // When it breaks.
  [[nodiscard]] std::optional<BootTime> next_deadline() const {
    return end_ ? std::optional(*end_ + late_) : std::nullopt;
  }

 private:
  enum class Workers { Run, Suspended, Wait };

  std::chrono::milliseconds late_;
  std::optional<BootTime> end_;
  Workers workers_ = Workers::Run;
};

// Gives a moment of the steady clock, which a suspended machine does not count, as a BootTime.
class LeaseClock {
 public:
  LeaseClock(std::chrono::steady_clock::time_point steady, BootTime boot)
      : offset_(boot - steady.time_since_epoch()) {}

  // `then`, a moment not long ago; the other two are now. Nothing if the machine was suspended
  // between the two, or may have been: nobody can say how long. A moment from before this clock
  // was made is given by others, by what has passed since: that no suspension makes longer.
  [[nodiscard]] std::optional<BootTime> at(std::chrono::steady_clock::time_point then,
                                           std::chrono::steady_clock::time_point steady,
                                           BootTime boot);

 private:
  BootTime offset_;
  // The machine was not suspended since.
  std::chrono::steady_clock::time_point valid_from_ = std::chrono::steady_clock::time_point::min();
};

}  // namespace drun::process
