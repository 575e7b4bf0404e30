#include "store/server/deserted_jobs.hpp"

#include <algorithm>

namespace drun::store {

void DesertedJobs::add(const std::string& name, bool kept, Time now, const DueAt& due_at) {
  if (jobs_.empty()) {
    look_at_ = now;
    due_ = Time::max();
  }
  Job& job = jobs_.emplace(name, Job{now, false}).first->second;
  due_ = std::min(due_, due_at(name, {now, kept}));
  job.kept = job.kept || kept;
}

std::size_t DesertedJobs::look(Time now, const IsOver& is_over, const DueAt& due_at) {
  looked_away_ = now < look_at_ && now < due_;
  if (looked_away_ || jobs_.empty()) return 0;
  const std::size_t over = std::erase_if(
      jobs_, [&is_over](const auto& each) { return is_over(each.first, each.second); });
  look_at_ = now + kLookPause;
  due_ = Time::max();
  for (const auto& [name, job] : jobs_)
    due_ = std::min(due_, due_at(name, job));
  return over;
}

std::optional<Time> DesertedJobs::next_deadline() const {
  if (jobs_.empty()) return std::nullopt;
  return looked_away_ ? look_at_ : due_;
}

}  // namespace drun::store
