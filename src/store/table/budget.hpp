// How many bytes peers make the server hold, against the limits: of all of them, and of each job.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "store/table/job_shares.hpp"

namespace drun::store {

// What a peer is told for whom the limit leaves no room.
inline constexpr const char* kFull = "the store is full";
inline constexpr const char* kJobFull = "the job's share of the store is full (--max-job)";

// Everybody may take up to the limit; the rendezvous may take the reserve as well, so that workers
// who fill the store do not stop it.
class Budget {
 public:
  // `job_limit` is what one job may take of it. 0: all.
  explicit Budget(std::size_t limit, std::size_t reserve = 0, std::size_t job_limit = 0)
      : limit_(limit), reserve_(reserve), shares_(job_limit) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
  ~Budget() = default;

  // While it lives, what is taken is the rendezvous's.
  class WithReserve {
   public:
    explicit WithReserve(Budget& budget)
        : budget_(budget), before_(std::exchange(budget.with_reserve_, true)) {}
    ~WithReserve() { budget_.with_reserve_ = before_; }
    WithReserve(const WithReserve&) = delete;
    WithReserve& operator=(const WithReserve&) = delete;

   private:
    Budget& budget_;
    bool before_;
  };
  // While it lives, jobs may take more than their shares: they had it already.
  class BeyondShares {
   public:
    explicit BeyondShares(Budget& budget) : budget_(budget) { budget_.beyond_shares_ = true; }
    ~BeyondShares() { budget_.beyond_shares_ = false; }
    BeyondShares(const BeyondShares&) = delete;
    BeyondShares& operator=(const BeyondShares&) = delete;

   private:
    Budget& budget_;
  };

  [[nodiscard]] bool fits(std::size_t bytes) {
    refusal_ = kFull;
    const std::size_t most = limit_ + (with_reserve_ ? reserve_ : 0);
    return used_ <= most && bytes <= most - used_;
  }
  // Precondition: fits(bytes).
  void take(std::size_t bytes) { used_ += bytes; }
  bool try_take(std::size_t bytes) {
    if (!fits(bytes)) return false;
    used_ += bytes;
    return true;
  }
  void give_back(std::size_t bytes) { used_ -= bytes; }
  [[nodiscard]] std::size_t used() const { return used_; }

  // ---- the same of what a job makes the server hold ----

  [[nodiscard]] bool fits_job(std::string_view job, std::size_t bytes) {
    if (!fits(bytes)) return false;
    refusal_ = kJobFull;
    return beyond_shares_ || shares_.fits(job, bytes, with_reserve_);
  }
  void take_for(std::string_view job, std::size_t bytes) {
    used_ += bytes;
    shares_.take(job, bytes);
  }
  bool try_take_for(std::string_view job, std::size_t bytes) {
    if (!fits_job(job, bytes)) return false;
    take_for(job, bytes);
    return true;
  }
  void give_back_of(std::string_view job, std::size_t bytes) {
    used_ -= bytes;
    shares_.give_back(job, bytes);
  }
  [[nodiscard]] const JobShares& shares() const { return shares_; }

  // Which limit it was that left no room, the last time.
  [[nodiscard]] const char* refusal() const { return refusal_; }
  [[nodiscard]] bool is_jobs_refusal() const { return refusal_ == kJobFull; }

 private:
  std::size_t limit_;
  std::size_t reserve_;
  std::size_t used_ = 0;
  JobShares shares_;
  const char* refusal_ = kFull;
  bool with_reserve_ = false;
  bool beyond_shares_ = false;
};

}  // namespace drun::store
