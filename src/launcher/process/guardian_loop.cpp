#include "launcher/process/guardian_loop.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "launcher/process/descendants.hpp"
#include "launcher/process/detach.hpp"

namespace drun::process {
namespace {

using std::chrono::milliseconds;

// For ever, but safe to add to a time.
constexpr milliseconds kLongestGrace = std::chrono::hours(24 * 365);
// The most workers that are started at once; fewer if the limit of open descriptors is low: each
// worker has up to three descriptors on their way through this process, which needs some for
// itself.
constexpr rlim_t kMostPending = 16;
constexpr rlim_t kOwnDescriptors = 24;
// While killing, how often to look for orphans that arrive without the death of a child.
constexpr int kKillIntervalMs = 10;

FileDescriptor open_child_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  FileDescriptor fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) throw std::system_error(errno, std::generic_category(), "signalfd");
  return fd;
}

std::size_t most_pending() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= kOwnDescriptors) return 1;
  return std::clamp<rlim_t>((limit.rlim_cur - kOwnDescriptors) / 3, 1, kMostPending);
}

// `count` numbers as a bit mask in the kernel's form; numbers that no machine has are left out.
std::vector<unsigned long> read_mask(wire::Reader& reader, std::uint32_t count) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  constexpr std::int32_t kMostNumber = 65'535;
  std::vector<unsigned long> mask;
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    const auto number = reader.number<std::int32_t>();
    if (number < 0 || number > kMostNumber) continue;
    const auto bit = static_cast<std::size_t>(number);
    if (mask.size() <= bit / kBits) mask.resize(bit / kBits + 1);
    mask[bit / kBits] |= 1UL << (bit % kBits);
  }
  return mask;
}

}  // namespace

GuardianLoop::GuardianLoop(FileDescriptor agent, const GuardianOptions& options)
    : agent_(std::move(agent)),
      child_signals_(open_child_signals()),
      null_(::open("/dev/null", O_RDWR | O_CLOEXEC)),
      options_(options),
      most_pending_(most_pending()) {
  if (!null_) throw std::system_error(errno, std::generic_category(), "open /dev/null");
  agent_.send(wire::Writer(wire::Type::Hello, 0).number(wire::HelloBody{::getpid()}).finish());
}

void GuardianLoop::set_up_cgroups() {
  const auto place = find_cgroups();
  out_of_memory_ = OutOfMemoryCount(place);
  group_ = worker_cgroup(options_, place, ::getpid());
  enter_next_group();
}

void GuardianLoop::enter_next_group() {
  if (!group_) return;
  if (group_->next_round() && spawners_.use_cgroup(group_->fd())) return;
  // Without a group of their own the workers start where this process is.
  spawners_.use_cgroup(-1);
  group_->remove(milliseconds(0));
  group_.reset();
}

void GuardianLoop::run() {
  if (!agent_.flush()) return;
  set_command_line("drun-guardian");
  set_up_cgroups();
  for (;;) {
    if (!agent_.flush()) return;
    pollfd entries[] = {
        {agent_.fd(), static_cast<short>(POLLIN | (agent_.wants_write() ? POLLOUT : 0)), 0},
        {child_signals_.get(), POLLIN, 0},
    };
    ::poll(entries, 2, poll_timeout());
    if ((entries[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !read_agent()) return;
    if ((entries[1].revents & POLLIN) != 0) reap();
    if (stop_) advance_stop();
  }
}

int GuardianLoop::poll_timeout() const {
  if (!stop_) return -1;
  if (stop_->killing) return kKillIntervalMs;
  const auto left = std::chrono::ceil<milliseconds>(stop_->deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

// Collects all requests that have arrived, so that workers asked for together start together.
bool GuardianLoop::read_agent() {
  auto result = Channel::Fill::More;
  while (result == Channel::Fill::More && pending_.size() < most_pending_) {
    result = agent_.fill();
    while (auto frame = agent_.next())
      handle(std::move(*frame));
  }
  start_pending();
  return result != Channel::Fill::Closed;
}

void GuardianLoop::handle(Frame frame) {
  if (frame.type == wire::Type::Spawn) {
    Pending pending;
    pending.payload = frame.payload;
    pending.descriptors = std::move(frame.descriptors);
    pending.descriptors_missing = frame.descriptors_missing;
    return pending_.push_back(std::move(pending));
  }
  start_pending();
  wire::Reader reader(frame.payload);
  switch (frame.type) {
    case wire::Type::Environment:
      handle_environment(frame.payload);
      break;
    case wire::Type::SignalAll: {
      const auto body = reader.number<wire::SignalBody>();
      for (const auto& [id, pid] : workers_)
        ::kill(-pid, body.signal);
      break;
    }
    case wire::Type::Stop: {
      const auto body = reader.number<wire::StopBody>();
      handle_stop(body.signal, milliseconds(body.grace_ms));
      break;
    }
    default:
      break;
  }
}

void GuardianLoop::handle_environment(std::string_view payload) {
  shared_text_ = payload;
  shared_environment_.clear();
  for (char* at = shared_text_.data(); at < shared_text_.data() + shared_text_.size();
       at += std::strlen(at) + 1)
    shared_environment_.push_back(at);
}

std::optional<SpawnPlan> GuardianLoop::plan(Pending& pending, WorkerId& id) {
  wire::Reader reader(pending.payload);
  const auto body = reader.number<wire::SpawnBody>();
  id = body.id;
  SpawnFailed failed;
  failed.id = body.id;
  if (stop_) {
    failed.error = ECANCELED;
    failed.attempted = "start a worker while the others are being stopped";
    return emit(failed), std::nullopt;
  }
  if (pending.descriptors_missing) {
    failed.error = EMFILE;
    failed.attempted = "connect the standard streams";
    return emit(failed), std::nullopt;
  }
  SpawnPlan plan;
  plan.argv.reserve(body.arguments + 1);
  plan.environment.reserve(shared_environment_.size() + body.variables + 1);
  plan.environment = shared_environment_;
  for (std::uint32_t i = 0; i < body.arguments; ++i)
    plan.argv.push_back(const_cast<char*>(reader.text()));
  for (std::uint32_t i = 0; i < body.variables; ++i)
    plan.environment.push_back(const_cast<char*>(reader.text()));
  plan.cpu_mask = read_mask(reader, body.cpus);
  plan.node_mask = read_mask(reader, body.memory_nodes);
  if (!reader.ok() || plan.argv.empty()) {
    failed.error = EINVAL;
    failed.attempted = "start a worker without a program";
    return emit(failed), std::nullopt;
  }
  std::size_t next = 0;
  for (unsigned i = 0; i < 3; ++i)
    plan.streams[i] =
        (body.which & (1U << i)) != 0 ? pending.descriptors[next++].get() : null_.get();
  return plan;
}

void GuardianLoop::start_pending() {
  if (pending_.empty()) return;
  auto batch = std::exchange(pending_, {});
  std::vector<WorkerId> ids;
  std::vector<SpawnPlan> plans;
  for (auto& pending : batch) {
    WorkerId id = 0;
    auto made = plan(pending, id);
    if (!made) continue;
    ids.push_back(id);
    plans.push_back(std::move(*made));
  }
  auto results = spawners_.spawn(std::move(plans));
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto& result = results[i];
    if (result.pid == 0) {
      SpawnFailed failed;
      failed.id = ids[i];
      failed.error = result.error;
      failed.attempted = std::move(result.attempted);
      emit(failed);
      continue;
    }
    any_child_ = true;
    workers_[ids[i]] = result.pid;
    ids_[result.pid] = ids[i];
    Spawned spawned;
    spawned.id = ids[i];
    spawned.pid = result.pid;
    emit(spawned);
  }
}

void GuardianLoop::handle_stop(int signal, milliseconds grace) {
  const auto deadline = Clock::now() + std::clamp(grace, milliseconds(0), kLongestGrace);
  if (!stop_) {
    stop_.emplace();
    stop_->deadline = deadline;
  } else if (!stop_->killing) {
    stop_->deadline = std::min(stop_->deadline, deadline);
  }
  reap();
  if (any_child_ && !stop_->killing) {
    // SIGKILL leaves nobody a grace.
    if (signal == SIGKILL) stop_->deadline = Clock::now();
    if (stop_->deadline > Clock::now()) signal_everything(signal);
  }
  advance_stop();
}

// Signals each group of a living worker as a whole; then, one by one, the processes that have left
// these groups or have outlived their worker. SIGCONT wakes stopped ones, so that they can act on
// the signal.
void GuardianLoop::signal_everything(int signal) {
  for (const int each : {signal, SIGCONT})
    for (const auto& [id, pid] : workers_)
      ::kill(-pid, each);
  const auto outside = [this](pid_t pid) { return !ids_.contains(::getpgid(pid)); };
  const auto all = descendants();
  for (const int each : {signal, SIGCONT})
    signal_descendants(all, each, outside);
}

void GuardianLoop::reap() {
  signalfd_siginfo ignored[16];
  while (::read(child_signals_.get(), ignored, sizeof ignored) > 0) {
  }
  any_child_ = reap_children([this](const Reaped& reaped) {
    if (stop_ && stop_->killing) stop_->killing->on_death();
    const bool killed_here =
        stop_ && reaped.status.signal == SIGKILL && stop_->killed.contains(reaped.pid);
    if (killed_here) ++stop_->count;
    const auto found = ids_.find(reaped.pid);
    if (found == ids_.end()) return;
    Exited exited;
    exited.id = found->second;
    exited.pid = reaped.pid;
    exited.status = reaped.status;
    // A SIGKILL that this process did not send may be the kernel's; its counter tells.
    exited.out_of_memory = reaped.status.signal == SIGKILL && !killed_here && out_of_memory_.take();
    workers_.erase(found->second);
    ids_.erase(found);
    emit(exited);
  });
}

void GuardianLoop::advance_stop() {
  if (stop_ && any_child_ && !stop_->killing && Clock::now() >= stop_->deadline)
    stop_->killing.emplace(Clock::now(), kKillLimit);
  if (stop_ && any_child_ && stop_->killing) {
    stop_->killing->on_sweep();
    kill_pass();
  }
  if (!any_child_) return finish_stop({});
  if (stop_->killing && stop_->killing->is_over(Clock::now())) finish_stop(descendants());
}

void GuardianLoop::kill_pass() {
  const auto targets = descendants();
  // What dies of SIGKILL from here on counts as killed by this stop.
  stop_->killed.insert(targets.begin(), targets.end());
  if (group_) group_->kill();
  signal_descendants(targets, SIGKILL);
  for (const auto& [id, pid] : workers_)
    ::kill(-pid, SIGKILL);  // with what it has forked since `targets` was read
  reap();
}

void GuardianLoop::finish_stop(const std::vector<pid_t>& remaining) {
  Stopped stopped;
  stopped.killed = stop_->count;
  // A child is left even if the list of descendants does not show it.
  const std::uint32_t least = any_child_ ? 1 : 0;
  stopped.remaining = std::max(least, static_cast<std::uint32_t>(remaining.size()));
  if (!remaining.empty()) stopped.first = remaining.front();
  // The kernel may kill at once what is started into a group that was killed (cgroup.hpp).
  if (stop_->killing && stopped.remaining == 0) enter_next_group();
  stop_.reset();
  out_of_memory_.forget();
  emit(stopped);
}

void GuardianLoop::emit(const GuardianEvent& event) {
  agent_.send(wire::encode(event));
}

std::optional<WorkerCgroup> worker_cgroup(const GuardianOptions& options, const CgroupPaths& place,
                                          pid_t guardian) {
  if (!options.use_cgroup) return std::nullopt;
  if (!options.cgroup_parent.empty()) return WorkerCgroup(options.cgroup_parent, guardian);
  if (const auto parent = find_delegated(place)) return WorkerCgroup(*parent, guardian);
  return std::nullopt;
}

void kill_job(const WorkerCgroup* group) {
  if (group != nullptr) group->kill();
  kill_descendants(kKillLimit, [](const Reaped&) {});
  if (group != nullptr) group->remove(kRemoveLimit);
}

void guardian_main(FileDescriptor agent, const GuardianOptions& options) noexcept {
  std::optional<GuardianLoop> loop;
  int error = 0;
  try {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    detach({agent.get()}, "drun-guardian");
    if (options.open_files) ::setrlimit(RLIMIT_NOFILE, &*options.open_files);
    loop.emplace(std::move(agent), options);
    loop->run();
  } catch (const std::system_error& failed) {
    error = failed.code().value();
  } catch (...) {
    error = ENOMEM;  // all other exceptions mean a lack of memory
  }
  // The workers must not outlive their guardian.
  kill_job(loop ? loop->group() : nullptr);
  ::_exit(error);
}

}  // namespace drun::process
