#include "launcher/process/spawn_pool.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace drun::process {
namespace {

// With fewer programs for each, a thread costs more than it saves.
constexpr std::size_t kPlansPerThread = 4;
constexpr std::size_t kMostHelpers = 7;

}  // namespace

SpawnPool::~SpawnPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_all();
  for (const auto& helper : helpers_)
    helper->thread.join();
}

bool SpawnPool::use_cgroup(int directory) {
  const bool done = own_.use_cgroup(directory);
  cgroup_ = done ? directory : -1;
  for (const auto& helper : helpers_)
    helper->spawner.start_in(cgroup_);
  return done;
}

std::vector<SpawnResult> SpawnPool::spawn(std::vector<SpawnPlan> plans) {
  grow(plans.size());
  std::unique_lock lock(mutex_);
  plans_ = std::move(plans);
  results_.assign(plans_.size(), SpawnResult());
  next_ = finished_ = 0;
  if (plans_.size() > 1) work_.notify_all();
  take_plans(own_, lock);
  done_.wait(lock, [this] { return finished_ == plans_.size(); });
  plans_.clear();
  next_ = 0;
  return std::exchange(results_, {});
}

void SpawnPool::grow(std::size_t batch) {
  const std::size_t wanted = std::min(kMostHelpers, batch / kPlansPerThread);
  while (helpers_.size() < wanted) {
    auto helper = std::make_unique<Helper>();
    helper->spawner.start_in(cgroup_);
    try {
      helper->thread = std::thread([this, &spawner = helper->spawner] { help(spawner); });
    } catch (const std::system_error&) {
      return;  // the user's limit of threads: it only takes longer
    }
    helpers_.push_back(std::move(helper));
  }
}

void SpawnPool::help(Spawner& spawner) {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    take_plans(spawner, lock);
    work_.wait(lock, [this] { return ending_ || next_ < plans_.size(); });
  }
}

void SpawnPool::take_plans(Spawner& spawner, std::unique_lock<std::mutex>& lock) {
  while (next_ < plans_.size()) {
    const std::size_t index = next_++;
    SpawnPlan plan = std::move(plans_[index]);
    // The spawner sleeps until its child has its program; the other threads go on meanwhile.
    lock.unlock();
    auto result = spawner.spawn(std::move(plan));
    lock.lock();
    results_[index] = std::move(result);
    if (++finished_ == plans_.size()) done_.notify_one();
  }
}

}  // namespace drun::process
