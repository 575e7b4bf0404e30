// Says why peers were dropped, without flooding the log when many are.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "store/table/sessions.hpp"

namespace drun::store {

class DropLog {
 public:
  static constexpr int kLinesPerPeriod = 20;
  static constexpr Milliseconds kPeriod{10'000};

  // What is said of those that were left out: their number comes between the two.
  explicit DropLog(std::string before = "dropped ",
                   std::string behind = " more peers for like reasons")
      : before_(std::move(before)), behind_(std::move(behind)) {}

  // `what` names the peer and the reason. With a `kind`, of which there is one line in a period:
  // somebody comes again and again, and it is the same each time.
  void report(const std::string& what, Time now, const std::string& kind = {}) {
    if (now - period_start_ >= kPeriod) {
      if (withheld_ > 0) log::warning("{}{}{}", before_, withheld_, behind_);
      period_start_ = now;
      lines_ = 0;
      withheld_ = 0;
      kinds_.clear();
    }
    if (lines_ >= kLinesPerPeriod || (!kind.empty() && !is_new(kind))) {
      ++withheld_;
    } else {
      ++lines_;
      log::warning("{}", what);
    }
  }

 private:
  [[nodiscard]] bool is_new(const std::string& kind) {
    if (std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end()) return false;
    kinds_.push_back(kind);
    return true;
  }

  const std::string before_;
  const std::string behind_;
  Time period_start_{};
  int lines_ = 0;
  int withheld_ = 0;
  std::vector<std::string> kinds_;  // of lines of this period
};

}  // namespace drun::store
