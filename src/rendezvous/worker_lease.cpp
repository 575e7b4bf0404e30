#include "rendezvous/worker_lease.hpp"

#include <algorithm>

namespace drun::rendezvous {

void WorkerLease::on_alive(Time sent) {
  alive_ = std::max(alive_.value_or(sent), sent);
}

// What this agent has written in an earlier session is gone, and a store that is older than that
// may have forgotten it: until it is written again, the lease of before is all that the workers
// have.
std::optional<Time> WorkerLease::renew(bool holds_workers) {
  if (!alive_ || alive_ == renewed_ || (is_in_doubt_ && holds_workers)) return std::nullopt;
  renewed_ = alive_;
  return renewed_;
}

bool WorkerLease::may_start(Time now) const {
  return !is_in_doubt_ && !(renewed_ && now >= *renewed_ + keep_alive_);
}

}  // namespace drun::rendezvous
