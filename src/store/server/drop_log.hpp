// Says why peers were dropped, without flooding the log when many are.
#pragma once

#include <string>

#include "base/log.hpp"
#include "store/table/sessions.hpp"

namespace drun::store {

class DropLog {
 public:
  static constexpr int kLinesPerPeriod = 20;
  static constexpr Milliseconds kPeriod{10'000};

  // `what` names the peer and the reason.
  void report(const std::string& what, Time now) {
    if (now - period_start_ >= kPeriod) {
      if (withheld_ > 0) log::warning("dropped {} more peers for like reasons", withheld_);
      period_start_ = now;
      lines_ = 0;
      withheld_ = 0;
    }
    if (++lines_ <= kLinesPerPeriod)
      log::warning("{}", what);
    else
      ++withheld_;
  }

 private:
  Time period_start_{};
  int lines_ = 0;
  int withheld_ = 0;
};

}  // namespace drun::store
