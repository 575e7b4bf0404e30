// How many bytes peers make the server hold, against the limit.
#pragma once

#include <cstddef>
#include <utility>

namespace drun::store {

// What a peer is told for whom the limit leaves no room.
inline constexpr const char* kFull = "the store is full";

// Everybody may take up to the limit; the rendezvous may take the reserve as well, so that workers
// who fill the store do not stop it.
class Budget {
 public:
  explicit Budget(std::size_t limit, std::size_t reserve = 0)
      : limit_(limit), reserve_(reserve), most_(limit) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
  ~Budget() = default;

  // While it lives, what is taken is the rendezvous's.
  class WithReserve {
   public:
    explicit WithReserve(Budget& budget)
        : budget_(budget), before_(std::exchange(budget.most_, budget.limit_ + budget.reserve_)) {}
    ~WithReserve() { budget_.most_ = before_; }
    WithReserve(const WithReserve&) = delete;
    WithReserve& operator=(const WithReserve&) = delete;

   private:
    Budget& budget_;
    std::size_t before_;
  };

  [[nodiscard]] bool fits(std::size_t bytes) const {
    return used_ <= most_ && bytes <= most_ - used_;
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

 private:
  std::size_t limit_;
  std::size_t reserve_;
  std::size_t most_;  // now
  std::size_t used_ = 0;
};

}  // namespace drun::store
