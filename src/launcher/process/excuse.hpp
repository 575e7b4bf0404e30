// How the guardian keeps its watchdog from helping it: one number in memory that both see, so that
// saying it never waits, and the last word stays true while the guardian stands still.
#pragma once

#include <atomic>

#include "launcher/process/lease.hpp"

namespace drun::process {

// Until when the workers are in good hands although their lease is over. Made before the fork of
// the guardian, which inherits it; each of the two destroys its own.
class Excuse {
 public:
  // Throws std::system_error. At first there is no worker, so for ever.
  Excuse();
  Excuse(const Excuse&) = delete;
  Excuse& operator=(const Excuse&) = delete;
  ~Excuse();

  static constexpr BootTime kForEver = BootTime::max();
  static constexpr BootTime kNone = BootTime::min();

  void set(BootTime until) const { shared_->store(until.count()); }
  [[nodiscard]] BootTime until() const { return BootTime(shared_->load()); }

 private:
  using Shared = std::atomic<BootTime::rep>;
  static_assert(Shared::is_always_lock_free);

  Shared* shared_;
};

}  // namespace drun::process
