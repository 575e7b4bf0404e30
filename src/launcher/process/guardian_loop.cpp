#include "launcher/process/guardian_loop.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/detach.hpp"

namespace drun::process {
namespace {

using std::chrono::milliseconds;

// While killing, how often to look for orphans that arrive without the death of a child.
constexpr int kKillIntervalMs = 10;
// How often at most to look for processes that were forked while the others were being stopped.
constexpr int kMostLooks = 10;

}  // namespace

GuardianLoop::GuardianLoop(FileDescriptor agent, const GuardianOptions& options,
                           const CgroupPaths& place, const Excuse& excuse)
    : agent_(std::move(agent)),
      null_(::open("/dev/null", O_RDWR | O_CLOEXEC)),
      options_(options),
      place_(place),
      excuse_(excuse),
      shared_environment_(std::make_shared<SharedEnvironment>()) {
  if (!null_) throw std::system_error(errno, std::generic_category(), "open /dev/null");
  agent_.send(wire::Writer(wire::Type::Hello, 0).number(wire::HelloBody{::getpid()}).finish());
}

void GuardianLoop::set_up_cgroups() {
  out_of_memory_ = OutOfMemoryCount(place_);
  group_ = worker_cgroup(options_, place_);
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
  if (!agent_.flush()) return hear_last_words();
  set_command_line("drun-guardian");
  set_up_cgroups();
  spawners_.warm_up();
  for (;;) {
    if (!agent_.flush()) return hear_last_words();
    excuse_itself();
    pollfd entries[] = {
        {agent_.fd(), static_cast<short>(POLLIN | (agent_.wants_write() ? POLLOUT : 0)), 0},
        {child_signals_.fd(), POLLIN, 0},
        {spawners_.fd(), POLLIN, 0},
        {lease_timer_.fd(), POLLIN, 0},
    };
    ::poll(entries, 4, poll_timeout());
    if ((entries[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 &&
        !read_agent([this](GuardianFrame frame) { handle(std::move(frame)); }))
      return;
    if ((entries[2].revents & POLLIN) != 0) take_started();
    if ((entries[1].revents & POLLIN) != 0) reap();
    if (entries[3].revents != 0) lease_timer_.clear();
    keep_lease();
    if (stop_) advance_stop();
  }
}

// The watchdog helps only where this process does nothing although there is something to do.
void GuardianLoop::excuse_itself() const {
  const bool idle = only_hanging_ || (!any_child_ && !is_starting());
  const bool kills = stop_ && stop_->killing;
  excuse_.set(idle ? Excuse::kForEver : kills ? boot_now() + kGuardianLate : Excuse::kNone);
}

int GuardianLoop::poll_timeout() const {
  if (!stop_) return -1;
  if (stop_->killing) return kKillIntervalMs;
  const int left = poll_limit(time_left(stop_->deadline));
  return is_owing() ? std::min(left, kKillIntervalMs) : left;
}

// Collects all requests that have arrived, so that workers asked for together start together.
template <typename Take>
bool GuardianLoop::read_agent(Take take) {
  auto result = Channel::Fill::More;
  while (result == Channel::Fill::More) {
    result = agent_.fill();
    while (auto frame = agent_.next())
      take(std::move(*frame));
  }
  return result != Channel::Fill::Closed;
}

// The agent is gone, and nothing can be told to it. What it said before that may not have been read
// yet: an agent may be killed before this process is ready. No worker is started any more.
void GuardianLoop::hear_last_words() {
  (void)read_agent([this](const GuardianFrame& frame) { hear(frame); });
}

void GuardianLoop::hear(const GuardianFrame& frame) {
  if (frame.type == wire::Type::End) ended_in_order_ = true;
  will_.take(frame.type, frame.payload);
}

void GuardianLoop::handle(GuardianFrame frame) {
  wire::Reader reader(frame.payload);
  switch (frame.type) {
    case wire::Type::Spawn:
      return handle_spawn(std::move(frame));
    case wire::Type::Environment:
      return handle_environment(frame.payload);
    case wire::Type::SignalAll:
      return signal_all(reader.number<wire::SignalBody>().signal);
    case wire::Type::Signal: {
      const auto body = reader.number<wire::SignalBody>();
      const auto worker = workers_.find(body.worker);
      if (worker != workers_.end()) ::kill(worker->second, body.signal);
      return;
    }
    case wire::Type::Stop: {
      const auto body = reader.number<wire::StopBody>();
      return handle_stop(body.signal, milliseconds(body.grace_ms));
    }
    case wire::Type::Renew:
      return renew(BootTime(reader.number<wire::RenewBody>().end_ns));
    default:
      return hear(frame);
  }
}

void GuardianLoop::renew(BootTime end) {
  const bool go_on = lease_.renew(end, boot_now());
  lease_timer_.set(lease_.next_deadline());
  if (go_on) signal_all(SIGCONT);
}

// Workers that are being stopped run for that, so the lease ends them, suspended before or not.
void GuardianLoop::keep_lease() {
  const auto now = boot_now();
  if (!lease_.broken(now) && !(stop_ && lease_.over(now))) return;
  if (stop_ ? stop_->killing.has_value() : !any_child_ && !is_starting()) return;
  emit(LeaseOver());
  begin_stop(SIGKILL, milliseconds(0), false);
}

void GuardianLoop::signal_all(int signal) {
  if (signal == SIGSTOP) lease_.suspend();
  if (signal == SIGCONT && !lease_.resume(boot_now())) return;
  // These while the workers do nothing: the end of one would hide its orphans from this look.
  if (signal == SIGCONT) signal_outside_groups(signal);
  signal_groups(signal);
  for (auto& [id, starting] : starting_)
    starting.signals.push_back(signal);
  if (signal == SIGSTOP) signal_outside_groups(signal);
}

void GuardianLoop::signal_group(pid_t leader, int signal) {
  if (stop_ && signal == stop_->signal) note_answer(leader);
  ::kill(-leader, signal);
}

void GuardianLoop::signal_groups(int signal) {
  for (const auto& [id, pid] : workers_)
    signal_group(pid, signal);
}

// To the processes that have left the workers' groups or have outlived their worker. What has
// stopped forks no more: the last look finds nothing new.
void GuardianLoop::signal_outside_groups(int signal) const {
  std::unordered_set<pid_t> told;
  for (int look = 0; look < kMostLooks; ++look) {
    const auto before = told.size();
    signal_descendants(descendants(), signal, [&](pid_t pid) {
      return !ids_.contains(::getpgid(pid)) && told.insert(pid).second;
    });
    if (told.size() == before || signal != SIGSTOP) return;
  }
}

void GuardianLoop::reap() {
  child_signals_.clear();
  any_child_ = reap_children([this](const Reaped& reaped) { on_reaped(reaped); });
}

void GuardianLoop::on_reaped(const Reaped& reaped) {
  if (stop_ && stop_->killing) stop_->killing->on_death();
  if (killed_here(reaped.pid, reaped.status)) ++stop_->count;
  if (stop_ && stop_->unprepared.erase(reaped.pid) != 0 && reaped.status.signal == stop_->signal &&
      ::kill(-reaped.pid, 0) == 0)
    stop_->orphaned.insert(reaped.pid);
  if (const auto found = ids_.find(reaped.pid); found != ids_.end()) {
    const WorkerId id = found->second;
    workers_.erase(id);
    ids_.erase(found);
    return on_exit(id, reaped);
  }
  if (starting_.empty()) return;
  // Its exec is over, but the thread that waited for it has not said so yet.
  if (const auto id = spawners_.ticket_of(reaped.pid)) starting_[*id].end = reaped;
}

void GuardianLoop::on_exit(WorkerId id, const Reaped& worker) {
  Exited exited;
  exited.id = id;
  exited.pid = worker.pid;
  exited.status = worker.status;
  exited.usage = worker.usage;
  exited.killed_by_stop = killed_here(worker.pid, worker.status);
  // A SIGKILL that this process did not send may be the kernel's; its counter tells.
  exited.out_of_memory =
      worker.status.signal == SIGKILL && !exited.killed_by_stop && out_of_memory_.take();
  emit(exited);
}

void GuardianLoop::emit(const GuardianEvent& event) {
  agent_.send(wire::encode(event));
}

}  // namespace drun::process
