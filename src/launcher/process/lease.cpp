#include "launcher/process/lease.hpp"

#include <algorithm>
#include <ctime>

namespace drun::process {
namespace {

using std::chrono::nanoseconds;

// The two clocks are not read in the same moment: on a busy machine they differ by some time even
// if it was not suspended.
constexpr std::chrono::milliseconds kApart{100};

}  // namespace

BootTime boot_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

bool RunLease::renew(BootTime end, BootTime now) {
  end_ = end_ ? std::max(*end_, end) : end;
  if (workers_ != Workers::Wait || over(now)) return false;
  workers_ = Workers::Run;
  return true;
}

bool RunLease::resume(BootTime now) {
  workers_ = over(now) ? Workers::Wait : Workers::Run;
  return workers_ == Workers::Run;
}

std::optional<BootTime> LeaseClock::at(std::chrono::steady_clock::time_point then,
                                       std::chrono::steady_clock::time_point steady,
                                       BootTime boot) {
  const BootTime offset = boot - steady.time_since_epoch();
  if (std::chrono::abs(offset - offset_) > kApart) {
    offset_ = offset;
    valid_from_ = steady;
  }
  if (then < valid_from_) return std::nullopt;
  return then.time_since_epoch() + offset_;
}

}  // namespace drun::process
