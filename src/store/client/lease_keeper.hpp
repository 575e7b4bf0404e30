// Holds a lease that was taken: counts its key up from a thread of its own, and knows until when
// the others must believe in it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "drun/base/result.hpp"
#include "drun/store/client.hpp"
#include "store/client/lease_claim.hpp"

namespace drun::store {

class LeaseKeeper {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `client` is this one's until release(), and outlives it.
  LeaseKeeper(Client& client, LeaseKeys keys, TakenLease taken,
              std::chrono::milliseconds time_to_live, std::function<void(const Error&)> on_lost);
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;
  ~LeaseKeeper() { (void)release(); }

  [[nodiscard]] bool held() const;  // any thread
  [[nodiscard]] std::int64_t term() const { return term_; }
  // Ends the thread and gives the lease back; afterwards the client is its owner's again.
  Status release();

 private:
  void run(const std::stop_token& stop);
  void set_valid_until(Time time) { valid_until_.store(time.time_since_epoch().count()); }
  [[nodiscard]] Time valid_until() const { return Time(Time::duration(valid_until_.load())); }
  // What of the time to live the holder itself counts with.
  [[nodiscard]] std::chrono::milliseconds believed() const { return time_to_live_ * 9 / 10; }

  Client& client_;
  LeaseKeys keys_;
  std::int64_t term_;
  std::chrono::milliseconds time_to_live_;
  std::function<void(const Error&)> on_lost_;
  std::atomic<Time::duration::rep> valid_until_;
  std::optional<Error> lost_;  // the thread's, until it has been joined
  std::mutex mutex_;           // the condition's: nothing else is under it
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

}  // namespace drun::store
