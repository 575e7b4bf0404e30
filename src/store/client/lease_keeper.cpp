#include "store/client/lease_keeper.hpp"

#include <utility>

#include "base/signal_block.hpp"
#include "drun/store/errors.hpp"
#include "store/client/client_calls.hpp"

namespace drun::store {
namespace {

using Clock = Client::Clock;
using std::chrono::milliseconds;

}  // namespace

LeaseKeeper::LeaseKeeper(Client& client, LeaseKeys keys, TakenLease taken,
                         milliseconds time_to_live, std::function<void(const Error&)> on_lost)
    : client_(client),
      keys_(std::move(keys)),
      term_(taken.term),
      time_to_live_(time_to_live),
      on_lost_(std::move(on_lost)),
      valid_until_((taken.asked + believed()).time_since_epoch().count()) {
  const SignalBlock block;  // signals are the program's own threads'
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

bool LeaseKeeper::held() const {
  return Clock::now() < valid_until();
}

void LeaseKeeper::run(const std::stop_token& stop) {
  Time next = valid_until() - believed() + time_to_live_ / 3;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      stopped_.wait_until(lock, stop, next, [] { return false; });
    }
    if (stop.stop_requested()) return;
    const Time now = Clock::now();
    const auto left = std::chrono::floor<milliseconds>(valid_until() - now);
    Result<std::int64_t> counted =
        left.count() > 0 ? client_.add(keys_.beat(term_), 1, left)
                         : Result<std::int64_t>(Error(Errc::Timeout, "this process had no turn"));
    // An answer that comes too late proves nothing: others may have taken the lease before it.
    if (counted && held()) {
      set_valid_until(now + believed());
      next = now + time_to_live_ / 3;
      continue;
    }
    set_valid_until(Time::min());
    lost_ = Error(counted ? make_error_code(Errc::Timeout) : counted.error().code(),
                  "lease " + quote_bytes(keys_.name) + " is lost: " +
                      (counted ? "the store's answer came too late" : counted.error().what()));
    if (on_lost_) on_lost_(*lost_);
    return;
  }
}

Status LeaseKeeper::release() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
    if (!lost_ && held()) {
      set_valid_until(Time::min());
      const Status told = client_.set(keys_.over(term_), "", time_to_live_);
      if (!told) lost_ = told.error();
    } else if (!lost_) {
      lost_ = Error(Errc::Timeout,
                    "lease " + quote_bytes(keys_.name) + " is lost: this process had no turn");
    }
  }
  if (lost_) return *lost_;
  return Done{};
}

}  // namespace drun::store
