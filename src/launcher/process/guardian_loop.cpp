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
// What start_of() leaves out.
constexpr milliseconds kTick{10};
// How often at most to look for processes that were forked while the others were being stopped.
constexpr int kMostLooks = 10;
// How long a thread may take to make the process of a worker.
constexpr milliseconds kSpawnLimit{1000};

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
        !read_agent([this](Frame frame) { handle(std::move(frame)); }))
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
  (void)read_agent([this](const Frame& frame) { hear(frame); });
}

void GuardianLoop::hear(const Frame& frame) {
  if (frame.type == wire::Type::End) ended_in_order_ = true;
  will_.take(frame.type, frame.payload);
}

void GuardianLoop::handle(Frame frame) {
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

void GuardianLoop::handle_environment(std::string_view payload) {
  shared_environment_ = std::make_shared<SharedEnvironment>();
  std::string& text = shared_environment_->text;
  text = payload;
  for (char* at = text.data(); at < text.data() + text.size(); at += std::strlen(at) + 1)
    shared_environment_->variables.push_back(at);
}

void GuardianLoop::handle_spawn(Frame frame) {
  Starting starting;
  WorkerId id = 0;
  auto made = plan(starting, frame, id);
  if (!made) return;
  starting.descriptors = std::move(frame.descriptors);
  starting_.insert_or_assign(id, std::move(starting));
  only_hanging_ = false;
  excuse_itself();
  spawners_.spawn(id, std::move(*made));
}

std::optional<SpawnPlan> GuardianLoop::plan(Starting& starting, const Frame& frame, WorkerId& id) {
  // On the heap, so that its bytes stay where they are when `starting` moves.
  starting.payload = std::make_unique<std::string>(frame.payload);
  starting.environment = shared_environment_;
  wire::Reader reader(*starting.payload);
  const auto body = reader.number<wire::SpawnBody>();
  id = body.id;
  if (stop_) return refuse(id, ECANCELED, kStartCancelled);
  if (lease_.over(boot_now())) {
    emit(LeaseOver());
    return refuse(id, ECANCELED, kStartUnleased);
  }
  if (frame.descriptors_missing) return refuse(id, EMFILE, "connect the standard streams");
  SpawnPlan plan;
  plan.argv.reserve(body.arguments + 1);
  plan.environment.reserve(shared_environment_->variables.size() + body.variables + 1);
  plan.environment = shared_environment_->variables;
  for (std::uint32_t i = 0; i < body.arguments; ++i)
    plan.argv.push_back(const_cast<char*>(reader.text()));
  for (std::uint32_t i = 0; i < body.variables; ++i)
    plan.environment.push_back(const_cast<char*>(reader.text()));
  plan.cpu_mask = read_mask(reader, body.cpus);
  plan.node_mask = read_mask(reader, body.memory_nodes);
  if (!reader.ok() || plan.argv.empty())
    return refuse(id, EINVAL, "start a worker without a program");
  std::size_t next = 0;
  for (unsigned i = 0; i < 3; ++i)
    plan.streams[i] = (body.which & (1U << i)) != 0 ? frame.descriptors[next++].get() : null_.get();
  static_assert(kServiceDescriptor == 3);
  if ((body.which & (1U << kServiceDescriptor)) != 0) plan.service = frame.descriptors[next].get();
  return plan;
}

std::nullopt_t GuardianLoop::refuse(WorkerId id, int error, std::string attempted) {
  fail(id, error, std::move(attempted));
  return std::nullopt;
}

void GuardianLoop::fail(WorkerId id, int error, std::string attempted) {
  SpawnFailed failed;
  failed.id = id;
  failed.error = error;
  failed.attempted = std::move(attempted);
  emit(failed);
}

void GuardianLoop::take_started() {
  for (const auto& result : spawners_.take())
    on_started(result.ticket, result.spawned);
}

void GuardianLoop::on_started(WorkerId id, const SpawnResult& result) {
  const auto found = starting_.find(id);
  if (found == starting_.end()) return;
  const Starting starting = std::move(found->second);
  starting_.erase(found);
  if (result.pid == 0) {
    if (!starting.forgotten) fail(id, result.error, result.attempted);
    return;
  }
  Spawned spawned;
  spawned.id = id;
  spawned.pid = result.pid;
  emit(spawned);
  // It may have ended before its start was heard of here.
  if (starting.end) return on_exit(id, *starting.end);
  any_child_ = true;
  workers_[id] = result.pid;
  ids_[result.pid] = id;
  // Those that came while it was being started, and had no process id to go to.
  for (const int signal : starting.signals)
    signal_group(result.pid, signal);
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

// Before the leader of a group gets the stop's signal. One that catches it and dies of it later
// wanted that: it has reset the signal and sent it to itself.
void GuardianLoop::note_answer(pid_t leader) {
  if (acts_by_default(leader, stop_->signal)) {
    stop_->unprepared.insert(leader);
  } else {
    stop_->unprepared.erase(leader);
  }
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

void GuardianLoop::handle_stop(int signal, milliseconds grace) {
  begin_stop(signal, grace, true);
}

void GuardianLoop::begin_stop(int signal, milliseconds grace, bool asked_for) {
  const auto deadline = Clock::now() + std::clamp(grace, milliseconds(0), kLongestGrace);
  if (!stop_) {
    stop_.emplace();
    stop_->deadline = deadline;
  } else if (!stop_->killing) {
    // A second stop may shorten the grace and never lengthens it.
    stop_->deadline = std::min(stop_->deadline, deadline);
  }
  stop_->asked_for |= asked_for;
  cancel_spawns();
  take_started();
  reap();
  if ((any_child_ || is_starting()) && !stop_->killing) {
    // SIGKILL leaves nobody a grace.
    if (signal == SIGKILL) stop_->deadline = Clock::now();
    if (stop_->deadline > Clock::now()) {
      stop_->signal = signal;
      stop_->signalled = boot_now();
      signal_everything(signal);
    }
  }
  advance_stop();
}

void GuardianLoop::cancel_spawns() {
  for (const auto id : spawners_.cancel()) {
    starting_.erase(id);
    fail(id, ECANCELED, kStartCancelled);
  }
}

void GuardianLoop::end_spawns() {
  (void)spawners_.cancel();
  const auto deadline = Clock::now() + kSpawnLimit;
  while (!spawners_.all_have_children() && Clock::now() < deadline)
    ::poll(nullptr, 0, 1);
}

// A process may still come of it.
bool GuardianLoop::is_starting() const {
  return std::any_of(starting_.begin(), starting_.end(),
                     [](const auto& each) { return !each.second.forgotten; });
}

// Signals each group of a living worker as a whole; then, one by one, the processes that have left
// these groups or have outlived their worker. SIGCONT wakes stopped ones, so that they can act on
// the signal.
void GuardianLoop::signal_everything(int signal) {
  for (const int each : {signal, SIGCONT})
    signal_groups(each);
  const auto all = descendants();
  // A worker that is being started is among these, or gets the signal when it has a process; not
  // both, because what it starts upon the first would get the second.
  const std::unordered_set<pid_t> found(all.begin(), all.end());
  for (auto& [id, starting] : starting_)
    if (!found.contains(spawners_.child_of(id)))
      starting.signals.insert(starting.signals.end(), {signal, SIGCONT});
  for (const int each : {signal, SIGCONT})
    signal_descendants(all, each, [this, each, signal](pid_t pid) {
      const pid_t group = ::getpgid(pid);
      if (ids_.contains(group)) return false;
      if (group == pid && each == signal) note_answer(pid);
      return true;
    });
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

bool GuardianLoop::killed_here(pid_t pid, const ExitStatus& status) const {
  return stop_ && status.signal == SIGKILL && stop_->killed.contains(pid);
}

// A signal came while a worker had no process yet.
bool GuardianLoop::is_owing() const {
  return std::any_of(starting_.begin(), starting_.end(), [](const auto& each) {
    return !each.second.signals.empty() && !each.second.end && !each.second.forgotten;
  });
}

// Its process may hang before it becomes the program, and before it has a group of its own.
void GuardianLoop::signal_late_children() {
  for (auto& [id, starting] : starting_) {
    if (starting.end || starting.forgotten) continue;
    const pid_t child = spawners_.child_of(id);
    if (child == 0) continue;
    for (const int signal : std::exchange(starting.signals, {}))
      if (::kill(-child, signal) != 0) ::kill(child, signal);
  }
}

// A shell blocks signals while it forks. If a stop's signal waits for that, the kernel gives it to
// the shell alone, whose new child then outlives it without having been told. What a worker starts
// in its handler of the signal is left alone: see note_answer().
void GuardianLoop::signal_missed() {
  const auto groups = std::exchange(stop_->orphaned, {});
  if (groups.empty() || stop_->killing) return;
  for (const pid_t child : children()) {
    if (!groups.contains(::getpgid(child))) continue;
    const auto start = start_of(child);
    if (!start || *start + kTick < stop_->signalled) continue;
    for (const int each : {stop_->signal, SIGCONT})
      signal_descendants({child}, each);
  }
}

void GuardianLoop::advance_stop() {
  if (!stop_) return;
  signal_late_children();
  signal_missed();
  if ((any_child_ || is_starting()) && !stop_->killing && Clock::now() >= stop_->deadline)
    stop_->killing.emplace(Clock::now(), kKillLimit);
  if (any_child_ && stop_->killing) {
    stop_->killing->on_sweep();
    excuse_itself();
    kill_pass();
  }
  if (!any_child_ && !is_starting()) return finish_stop({});
  if (stop_->killing && stop_->killing->is_over(Clock::now())) finish_stop(descendants());
}

void GuardianLoop::kill_pass() {
  const auto targets = descendants();
  excuse_itself();  // of many it takes a while to read them
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
  // What has not become a program by now hangs, and is killed if it ever does.
  for (auto& [id, starting] : starting_) {
    starting.forgotten = true;
    starting.signals = {SIGKILL};
  }
  if (!starting_.empty()) spawners_.replace_hanging();
  only_hanging_ = stopped.remaining > 0;
  // The kernel may kill at once what is started into a group that was killed (cgroup.hpp).
  if (stop_->killing && stopped.remaining == 0) enter_next_group();
  const bool asked_for = stop_->asked_for;
  stop_.reset();
  out_of_memory_.forget();
  if (asked_for) emit(stopped);
}

void GuardianLoop::emit(const GuardianEvent& event) {
  agent_.send(wire::encode(event));
}

std::optional<WorkerCgroup> worker_cgroup(const GuardianOptions& options,
                                          const CgroupPaths& place) {
  if (!options.use_cgroup) return std::nullopt;
  if (!options.cgroup_parent.empty())
    return WorkerCgroup(options.cgroup_parent, options.cgroup_name);
  if (const auto parent = find_delegated(place)) return WorkerCgroup(*parent, options.cgroup_name);
  return std::nullopt;
}

bool kill_job(const WorkerCgroup* group, milliseconds limit) {
  if (group != nullptr) group->kill();
  const bool gone = kill_descendants(limit, [](const Reaped&) {});
  if (group != nullptr) group->remove(std::min(limit, kRemoveLimit));
  return gone;
}

namespace {

// Not this process's parent any more: it is gone.
void signal_watchdog(pid_t watchdog, int signal) {
  if (::getppid() == watchdog) ::kill(watchdog, signal);
}

}  // namespace

void guardian_main(FileDescriptor agent, const GuardianOptions& options, const CgroupPaths& place,
                   pid_t watchdog, const Excuse& excuse) noexcept {
  std::optional<GuardianLoop> loop;
  int error = 0;
  try {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    be_woken_by_parents_end();
    set_apart({agent.get()}, "drun-guardian");
    if (options.open_files) ::setrlimit(RLIMIT_NOFILE, &*options.open_files);
    loop.emplace(std::move(agent), options, place, excuse);
    loop->run();
  } catch (const std::system_error& failed) {
    error = failed.code().value();
  } catch (...) {
    error = ENOMEM;  // all other exceptions mean a lack of memory
  }
  // The workers must not outlive their guardian.
  signal_watchdog(watchdog, SIGCONT);
  if (loop) loop->end_spawns();
  const bool gone = kill_job(loop ? loop->group() : nullptr, kKillLimit);
  // After an error the agent still lives, and hears of it.
  if (error == 0 && loop) {
    if (gone) say(loop->will().farewell());
    loop->will().remove_folders();
    // There is nothing left to do for it, and nobody would wake it if it was stopped after this
    // process's end.
    if (!loop->ended_in_order()) signal_watchdog(watchdog, SIGKILL);
  }
  ::_exit(error);
}

}  // namespace drun::process
