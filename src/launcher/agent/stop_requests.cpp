#include "launcher/agent/stop_requests.hpp"

#include <csignal>

namespace drun::launcher {

bool StopRequests::count(int signal, Time now) {
  const bool key = signal == SIGINT || signal == SIGQUIT;
  if (any() && !key && signal == first_ && now - first_at_ < kSameRequest) return false;
  if (!any()) {
    first_ = signal;
    first_at_ = now;
  }
  ++number_;
  last_ = signal;
  return true;
}

}  // namespace drun::launcher
