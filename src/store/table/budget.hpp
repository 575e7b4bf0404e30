// How many bytes peers make the server hold, against the limit.
#pragma once

#include <cstddef>

namespace drun::store {

class Budget {
 public:
  explicit Budget(std::size_t limit) : limit_(limit) {}

  [[nodiscard]] bool fits(std::size_t bytes) const { return bytes <= limit_ - used_; }
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
  std::size_t used_ = 0;
};

}  // namespace drun::store
