#include "launcher/process/spawn_pool.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace drun::process {
namespace {

// With fewer programs for each, a thread costs more than it saves.
constexpr std::size_t kJobsPerThread = 4;
constexpr std::size_t kMostThreads = 8;

}  // namespace

SpawnPool::SpawnPool() : ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!ready_) throw std::system_error(errno, std::generic_category(), "eventfd");
}

bool SpawnPool::use_cgroup(int directory) {
  const bool done = directory < 0 || trial_.can_start_in(directory);
  const std::lock_guard lock(mutex_);
  cgroup_ = done ? directory : -1;
  return done;
}

void SpawnPool::warm_up() {
  const std::lock_guard lock(mutex_);
  grow(1);
}

void SpawnPool::spawn(Ticket ticket, SpawnPlan plan) {
  std::unique_lock lock(mutex_);
  jobs_.push_back({ticket, std::move(plan)});
  const bool somebody = grow(jobs_.size());
  const int error = errno;
  if (somebody) {
    lock.unlock();
    return work_.notify_one();
  }
  jobs_.pop_back();
  Result result;
  result.ticket = ticket;
  result.spawned.error = error;
  result.spawned.attempted = kFork;  // for the user it is the same limit
  if (results_.empty()) ::eventfd_write(ready_.get(), 1);
  results_.push_back(std::move(result));
}

// False, with errno, if there is no thread at all.
bool SpawnPool::grow(std::size_t jobs) {
  auto count = static_cast<std::size_t>(std::count_if(
      helpers_.begin(), helpers_.end(), [](const auto& helper) { return !helper->hangs; }));
  const std::size_t wanted = std::clamp<std::size_t>(jobs / kJobsPerThread, 1, kMostThreads);
  for (; count < wanted; ++count) {
    auto helper = std::make_unique<Helper>();
    try {
      helper->thread = std::thread([this, &made = *helper] { help(made); });
    } catch (const std::system_error& failed) {
      errno = failed.code().value();
      return count > 0;  // the user's limit of threads: it only takes longer
    }
    helpers_.push_back(std::move(helper));
  }
  return true;
}

void SpawnPool::help(Helper& helper) {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return !jobs_.empty(); });
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    helper.ticket = job.ticket;
    helper.spawner.start_in(cgroup_);
    lock.unlock();
    Result result;
    result.ticket = job.ticket;
    result.spawned = helper.spawner.spawn(std::move(job.plan));
    lock.lock();
    helper.ticket.reset();
    helper.hangs = false;
    helper.spawner.forget_child();
    if (results_.empty()) ::eventfd_write(ready_.get(), 1);
    results_.push_back(std::move(result));
  }
}

std::vector<SpawnPool::Result> SpawnPool::take() {
  eventfd_t ignored = 0;
  ::eventfd_read(ready_.get(), &ignored);
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

std::optional<SpawnPool::Ticket> SpawnPool::ticket_of(pid_t child) {
  const std::lock_guard lock(mutex_);
  for (const auto& helper : helpers_)
    if (helper->ticket && helper->spawner.child() == child) return helper->ticket;
  for (const auto& result : results_)
    if (result.spawned.pid == child) return result.ticket;
  return std::nullopt;
}

pid_t SpawnPool::child_of(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  for (const auto& helper : helpers_)
    if (helper->ticket == ticket) return helper->spawner.child();
  for (const auto& result : results_)
    if (result.ticket == ticket) return result.spawned.pid;
  return 0;
}

bool SpawnPool::all_have_children() {
  const std::lock_guard lock(mutex_);
  return std::all_of(helpers_.begin(), helpers_.end(), [](const auto& helper) {
    return !helper->ticket || helper->spawner.child() != 0;
  });
}

std::vector<SpawnPool::Ticket> SpawnPool::cancel() {
  const std::lock_guard lock(mutex_);
  std::vector<Ticket> result;
  for (const auto& job : std::exchange(jobs_, {}))
    result.push_back(job.ticket);
  return result;
}

void SpawnPool::replace_hanging() {
  const std::lock_guard lock(mutex_);
  for (const auto& helper : helpers_)
    helper->hangs = helper->ticket.has_value();
}

}  // namespace drun::process
