// How many bytes each of drun's jobs makes the server hold, against what one of them may.
#pragma once

#include <cassert>
#include <cstddef>
#include <string>
#include <string_view>

#include "store/table/table_client.hpp"

namespace drun::store {

// The keys of the job NAME are drun/NAME/..., and drun-stacks/NAME/... while somebody asks for
// stacks.
inline constexpr std::string_view kJobsRoot = "drun/";
inline constexpr std::string_view kStacksRoot = "drun-stacks/";

// The name of the job that has the key. Empty: none; those keys count together, as one job's.
[[nodiscard]] constexpr std::string_view job_of(std::string_view key) {
  for (const std::string_view root : {kJobsRoot, kStacksRoot}) {
    if (!key.starts_with(root)) continue;
    const std::string_view rest = key.substr(root.size());
    const auto end = rest.find('/');
    if (end != std::string_view::npos) return rest.substr(0, end);
  }
  return {};
}

class JobShares {
 public:
  // 0: they may take all there is, and are not counted.
  explicit JobShares(std::size_t limit) : limit_(limit) {}

  [[nodiscard]] bool are_limited() const { return limit_ > 0; }
  // The rendezvous of a job may take a quarter more, as that of all jobs together may.
  [[nodiscard]] bool fits(std::string_view job, std::size_t bytes, bool with_reserve) const {
    if (!are_limited()) return true;
    const std::size_t most = limit_ + (with_reserve ? limit_ / 4 : 0);
    const std::size_t used = used_by(job);
    return used <= most && bytes <= most - used;
  }
  void take(std::string_view job, std::size_t bytes) {
    if (!are_limited() || bytes == 0) return;
    const auto found = used_.find(job);
    if (found != used_.end())
      found->second += bytes;
    else
      used_.emplace(std::string(job), bytes);
  }
  void give_back(std::string_view job, std::size_t bytes) {
    if (!are_limited() || bytes == 0) return;
    const auto found = used_.find(job);
    assert(found != used_.end() && found->second >= bytes);
    found->second -= bytes;
    if (found->second == 0) used_.erase(found);
  }
  [[nodiscard]] std::size_t used_by(std::string_view job) const {
    const auto found = used_.find(job);
    return found == used_.end() ? 0 : found->second;
  }

 private:
  std::size_t limit_;
  KeyMap<std::size_t> used_;  // none is 0
};

}  // namespace drun::store
