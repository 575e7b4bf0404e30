// Jobs that look for their store, as their agents say: until when they are waited for. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.hpp"
#include "store/table/sessions.hpp"

namespace drun::store {

class SoughtJobs {
 public:
  // That a job looks for a store counts for so long,
  static constexpr Milliseconds kSought{2'500};
  // and of no more jobs.
  static constexpr std::size_t kMost = 1024;

  void hear(std::string_view job, Time now) {
    (void)forget(now);
    if (jobs_.size() < kMost) jobs_.insert_or_assign(std::string(job), now + kSought);
  }
  // Those that have not looked for it again; how many they are.
  std::size_t forget(Time now) {
    return std::erase_if(jobs_, [now](const auto& each) { return now >= each.second; });
  }
  // It is waited for until then; nullopt: it is not.
  [[nodiscard]] std::optional<Time> until(std::string_view job) const {
    const auto found = jobs_.find(job);
    return found == jobs_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] bool is_sought(std::string_view job, Time now) const {
    const auto end = until(job);
    return end && now < *end;
  }
  // forget() is due.
  [[nodiscard]] std::optional<Time> next_deadline() const {
    EarliestDeadline next;
    for (const auto& [job, until] : jobs_)
      next.include(until);
    return next.time();
  }

 private:
  std::map<std::string, Time, std::less<>> jobs_;  // until when
};

}  // namespace drun::store
