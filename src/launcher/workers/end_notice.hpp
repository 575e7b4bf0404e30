// --warn-before: which workers are told now that their job ends. Pure: the time comes in as an
// argument, and so does what is known of the workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/options/options.hpp"
#include "launcher/workers/worker.hpp"

namespace drun::launcher {

class EndNotices {
 public:
  // The job's end is a time of day, by whose clock it is told; clocks of nodes agree well enough.
  using WallTime = std::chrono::system_clock::time_point;
  // So long the workers have time to prepare before the user is told which have not.
  static constexpr std::chrono::seconds kPatience{10};

  // What to do now.
  struct Step {
    std::vector<process::WorkerId> signal;  // send it to these
    std::string say;                        // of the whole job
    std::string warning;                    // of this node's workers
  };

  explicit EndNotices(std::optional<EndNotice> notice) : notice_(notice) {}

  // A round begins. `ends_ms`: as rendezvous::Assignment's.
  void begin(std::int64_t ends_ms, int first_rank);
  // `prepared`: that worker does not die of the signal. One that would gets it as soon as it has
  // prepared: a program that is still starting must not be killed by a warning.
  [[nodiscard]] Step on_time(WallTime now, const Workers& workers,
                             const std::function<bool(const Worker&)>& prepared);
  // When to ask again, as of the last on_time(); nullopt: in this round never.
  [[nodiscard]] std::optional<WallTime> next() const { return next_; }

 private:
  [[nodiscard]] std::string announcement(WallTime now) const;
  [[nodiscard]] std::string unprepared(const Workers& workers) const;

  std::optional<EndNotice> notice_;
  std::optional<WallTime> end_;  // of the job
  std::optional<WallTime> next_;
  int first_rank_ = 0;
  std::set<process::WorkerId> told_;
  bool said_ = false;
  bool warned_ = false;
  WallTime due_{};  // when the first look in this round was at or after the time
};

}  // namespace drun::launcher
