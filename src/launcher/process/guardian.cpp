#include "launcher/process/guardian.hpp"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <system_error>
#include <utility>

#include "base/fd_limit.hpp"
#include "base/pidfd.hpp"
#include "base/poll_until.hpp"
#include "base/random_bytes.hpp"
#include "base/signal_block.hpp"
#include "launcher/process/channel.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/detach.hpp"
#include "launcher/process/guardian_loop.hpp"
#include "launcher/process/guardian_watchdog.hpp"
#include "launcher/process/kill_limit.hpp"
#include "launcher/process/lease.hpp"
#include "launcher/process/stop_limit.hpp"
#include "launcher/process/suspension.hpp"

namespace drun::process {
namespace {

using std::chrono::milliseconds;

// Of so many workers that wait to be sent, one looks whether the guardian can take more.
constexpr std::size_t kSpawnsPerLook = 8;

constexpr std::size_t kGroupRandom = 12;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Above the standard streams, even if the agent was started without them.
FileDescriptor above_streams(FileDescriptor fd) {
  if (fd.get() > 2) return fd;
  return duplicate(fd.get(), "start the guardian: fcntl");
}

struct SocketPair {
  explicit SocketPair(int type) {
    int ends[2];
    if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0)
      throw_errno("start the guardian: socketpair");
    FileDescriptor first(ends[0]);
    FileDescriptor second(ends[1]);
    mine = above_streams(std::move(first));
    theirs = above_streams(std::move(second));
  }
  FileDescriptor mine;
  FileDescriptor theirs;
};

// A worker has up to four descriptors on their way through the guardian, which needs some for
// itself.
std::size_t spawn_window(const GuardianOptions& options) {
  constexpr rlim_t kMost = 32;
  constexpr rlim_t kOwnDescriptors = 24;
  rlimit limit{};
  if (options.open_files) {
    limit = *options.open_files;
  } else if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return 1;
  }
  if (limit.rlim_cur <= kOwnDescriptors) return 1;
  return std::clamp<rlim_t>((limit.rlim_cur - kOwnDescriptors) / 4, 1, kMost);
}

// What receive() waits for. Made before the fork: if it fails, nothing has begun.
struct Waiting {
  Waiting()
      : events(::epoll_create1(EPOLL_CLOEXEC)), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!events || !wake) throw_errno("start the guardian: epoll_create1 or eventfd");
  }
  FileDescriptor events;  // epoll: everything that receive() must look at
  FileDescriptor wake;    // eventfd: `received` holds something
  StopLimit stop_limit;
};

std::optional<ExitStatus> wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return std::nullopt;
  return from_wait_status(status);
}

// Waits for ever if the limit is negative.
bool await_readable(int fd, milliseconds limit) {
  using std::chrono::steady_clock;
  return await_ready(fd, POLLIN, limit.count() < 0 ? kNoDeadline : steady_clock::now() + limit);
}

}  // namespace

std::string describe(const Exited& exited) {
  return exited.out_of_memory ? "killed: out of memory" : describe(exited.status);
}

std::string describe(const Stopped& stopped) {
  if (stopped.remaining == 0) return {};
  const bool one = stopped.remaining == 1;
  // It may be gone when it is asked who it is.
  const std::string first =
      stopped.first == 0 ? "a process" : "process " + std::to_string(stopped.first);
  return "the workers leave " + first +
         (one ? "" : " and " + std::to_string(stopped.remaining - 1) + " more") +
         " behind: SIGKILL does not end " + (one ? "it" : "them") +
         " (another user's, held by a debugger, or hanging inside the kernel)";
}

std::string describe(const GuardianLost& lost) {
  const auto message = [](int error) {
    const std::error_code code(error, std::generic_category());
    return code.message() + fd_limit_advice(code);
  };
  if (lost.start_error != 0) return "start the guardian: " + message(lost.start_error);
  if (lost.hung) return "drun's guardian process did not answer and was killed";
  if (lost.status.signal == 0 && lost.status.code != 0)
    return "drun's guardian process cannot work: " + message(lost.status.code) +
           (lost.status.code == ENOENT ? " (it needs /dev/null)" : "");
  return "drun's guardian process ended (" + describe(lost.status) + ")";
}

struct Guardian::Impl {
  // A worker that the guardian has not been told of.
  struct Outgoing {
    WorkerId id = 0;
    std::string message;
    std::vector<FileDescriptor> descriptors;
  };

  Impl(Waiting waiting, FileDescriptor command_socket, FileDescriptor watchdog_socket,
       pid_t watchdog_pid, bool sole_parent, GuardianOptions start_options)
      : commands(std::move(command_socket)),
        watchdog(std::move(watchdog_socket)),
        events(std::move(waiting.events)),
        wake(std::move(waiting.wake)),
        watchdog_process(watchdog_pid),
        stop_limit(std::move(waiting.stop_limit)),
        only_children(sole_parent),
        options(std::move(start_options)),
        most_unanswered(spawn_window(options)) {
    watch(EPOLL_CTL_ADD, wake.get(), EPOLLIN);
    watch(EPOLL_CTL_ADD, commands.fd(), EPOLLIN);
    watch(EPOLL_CTL_ADD, watchdog.get(), EPOLLIN);
    watch(EPOLL_CTL_ADD, stop_limit.fd(), EPOLLIN);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  void watch(int operation, int fd, std::uint32_t what) const {
    epoll_event event{};
    event.events = what;
    ::epoll_ctl(events.get(), operation, fd, &event);
  }
  void await_hello();
  void send(std::string message, std::vector<FileDescriptor> descriptors = {});
  void send_spawns();
  void cancel_spawns();
  void wake_receiver();
  void on_event(GuardianEvent event);
  void tell_watchdog(const std::string& message) const;
  void flush();
  void read_commands();
  void on_hello(pid_t guardian);
  void signal_guardian(int signal) const;
  void read_watchdog();
  void on_stop_limit();
  bool await_end_of_watchdog(milliseconds limit) const;
  void end_watchdog();
  void order_end();
  void kill_job();

  Channel commands;
  FileDescriptor watchdog;
  FileDescriptor events;
  FileDescriptor wake;
  pid_t watchdog_process;
  pid_t guardian_process = 0;
  FileDescriptor guardian_pidfd;
  StopLimit stop_limit;
  bool given_up = false;
  bool left_behind = false;  // the helpers are not waited for
  // This process had no children before, so all it ever gets are the job's.
  bool only_children;
  GuardianOptions options;
  LeaseClock clock{std::chrono::steady_clock::now(), boot_now()};
  // The guardian always reads what it is sent, so it is sent no more workers at a time than it can
  // open descriptors for. The rest waits here.
  std::deque<Outgoing> spawns;
  std::size_t unanswered = 0;
  std::size_t most_unanswered;
  bool guardian_gone = false;
  bool watchdog_gone = false;
  bool watchdog_did_its_work = false;
  bool end_ordered = false;
  bool has_farewell = false;
  bool lost_told = false;
  bool watches_write = false;
  bool woken = false;                         // `wake` is readable
  GuardianLost lost{{0, SIGKILL, false}, 0};  // the event to report when it is
  std::vector<GuardianEvent> received;        // for the next receive()
};

void Guardian::Impl::await_hello() {
  while (guardian_process == 0 && !guardian_gone) {
    await_readable(commands.fd(), milliseconds(-1));
    read_commands();
  }
}

void Guardian::Impl::send(std::string message, std::vector<FileDescriptor> descriptors) {
  if (guardian_gone) return;
  commands.send(std::move(message), std::move(descriptors));
  flush();
}

void Guardian::Impl::send_spawns() {
  while (!spawns.empty() && unanswered < most_unanswered) {
    ++unanswered;
    Outgoing next = std::move(spawns.front());
    spawns.pop_front();
    send(std::move(next.message), std::move(next.descriptors));
  }
}

// What was read outside receive() is there for it.
void Guardian::Impl::wake_receiver() {
  if (!received.empty() && !std::exchange(woken, true)) ::eventfd_write(wake.get(), 1);
}

void Guardian::Impl::cancel_spawns() {
  for (const auto& each : std::exchange(spawns, {})) {
    SpawnFailed failed;
    failed.id = each.id;
    failed.error = ECANCELED;
    failed.attempted = kStartCancelled;
    received.emplace_back(std::move(failed));
  }
}

void Guardian::Impl::on_event(GuardianEvent event) {
  const bool answer =
      std::holds_alternative<Spawned>(event) || std::holds_alternative<SpawnFailed>(event);
  if (answer && unanswered > 0) --unanswered;
  // Whatever is not answered by then hangs: its descriptors are the guardian's loss.
  if (std::holds_alternative<Stopped>(event)) unanswered = 0;
  if (std::holds_alternative<Stopped>(event) && !given_up) stop_limit.clear();
  received.push_back(std::move(event));
}

void Guardian::Impl::tell_watchdog(const std::string& message) const {
  if (!watchdog_gone)
    ::send(watchdog.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// A failed write needs no handling: the end of the stream will be read as well, and that is
// handled.
void Guardian::Impl::flush() {
  const bool more = commands.flush() && commands.wants_write();
  if (more == watches_write) return;
  watches_write = more;
  watch(EPOLL_CTL_MOD, commands.fd(), more ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void Guardian::Impl::read_commands() {
  while (!guardian_gone) {
    const auto result = commands.fill();
    while (const auto frame = commands.next()) {
      if (frame->type == wire::Type::Hello)
        on_hello(wire::Reader(frame->payload).number<wire::HelloBody>().pid);
      else if (auto event = wire::decode_event(frame->type, frame->payload))
        on_event(std::move(*event));
    }
    if (result == Channel::Fill::Empty) return;
    if (result != Channel::Fill::Closed) continue;
    guardian_gone = true;
    watch(EPOLL_CTL_DEL, commands.fd(), 0);
    // Its watchdog has to say so. One that is stopped cannot, and one that hangs is not waited for.
    if (!watchdog_gone) ::kill(watchdog_process, SIGCONT);
    if (!given_up) stop_limit.set(kEndLimit);
  }
}

// It has just spoken, so the number is its own; the descriptor keeps it so.
void Guardian::Impl::on_hello(pid_t guardian) {
  guardian_process = guardian;
  guardian_pidfd = open_pidfd(guardian);
}

void Guardian::Impl::signal_guardian(int signal) const {
  if (guardian_pidfd) {
    ::syscall(SYS_pidfd_send_signal, guardian_pidfd.get(), signal, nullptr, 0);
  } else if (guardian_process != 0 && !guardian_gone) {
    ::kill(guardian_process, signal);  // a kernel before 5.3
  }
}

// First the guardian: then its watchdog does the work. If that hangs too, this process does it; but
// after give_up() the watchdog is left to it, which may wait for what SIGKILL does not end.
void Guardian::Impl::on_stop_limit() {
  if (!lost.hung && guardian_process != 0 && !guardian_gone) {
    signal_guardian(SIGKILL);
  } else if (given_up) {
    left_behind = true;
  } else if (!watchdog_gone) {
    ::kill(watchdog_process, SIGKILL);
  }
  lost.hung = true;
  stop_limit.set(given_up ? kGiveUpLimit : kEndLimit);
}

void Guardian::Impl::read_watchdog() {
  WatchdogReport report;
  const ssize_t n = ::recv(watchdog.get(), &report, sizeof report, MSG_DONTWAIT);
  if (n < 0) return;
  if (n != static_cast<ssize_t>(sizeof report)) return end_watchdog();
  lost.status = report.guardian;
  lost.start_error = report.error;
  watchdog_did_its_work = true;
}

// False when it does not come.
bool Guardian::Impl::await_end_of_watchdog(milliseconds limit) const {
  WatchdogReport ignored;
  while (await_readable(watchdog.get(), limit))
    if (::recv(watchdog.get(), &ignored, sizeof ignored, 0) <= 0) return true;
  return false;
}

void Guardian::Impl::end_watchdog() {
  watchdog_gone = true;
  watch(EPOLL_CTL_DEL, watchdog.get(), 0);
  const auto status = wait_for(watchdog_process);
  watchdog_did_its_work = watchdog_did_its_work || (status && status->success());
}

// Does the watchdog's work after the guardian's end, if the watchdog cannot do it any more.
void Guardian::Impl::kill_job() {
  if (watchdog_did_its_work || left_behind) return;
  read_commands();
  const auto group = worker_cgroup(options, find_cgroups());
  if (group) group->kill();
  if (only_children)
    kill_descendants(kKillLimit, [this](const Reaped& reaped) {
      if (reaped.pid == guardian_process) lost.status = reaped.status;
    });
  if (group) group->remove(kRemoveLimit);
}

void Guardian::Impl::order_end() {
  if (std::exchange(end_ordered, true)) return;
  // The end of its stream is the guardian's order to kill everything and end; likewise the
  // watchdog's. One that somebody has stopped is woken.
  send(wire::Writer(wire::Type::End, 0).finish());
  ::shutdown(commands.fd(), SHUT_WR);
  signal_guardian(SIGCONT);
  if (watchdog_gone) return;
  ::shutdown(watchdog.get(), SHUT_WR);
  ::kill(watchdog_process, SIGCONT);
}

Guardian::Impl::~Impl() {
  order_end();
  if (!watchdog_gone) {
    if (left_behind) return;
    if (!await_end_of_watchdog(given_up ? kGiveUpLimit : kEndLimit)) {
      if (given_up) return;
      ::kill(watchdog_process, SIGKILL);
      if (!await_end_of_watchdog(kKillLimit)) return;  // it hangs inside the kernel
    }
    end_watchdog();
  }
  while (!guardian_gone && await_readable(commands.fd(), kEndLimit))
    read_commands();
  kill_job();
}

Guardian::Guardian(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Guardian::Guardian(Guardian&& other) noexcept : impl_(std::move(other.impl_)) {}
Guardian& Guardian::operator=(Guardian&& other) noexcept {
  impl_ = std::move(other.impl_);
  return *this;
}
Guardian::~Guardian() = default;

Guardian Guardian::start(const GuardianOptions& wanted) {
  GuardianOptions options = wanted;
  if (options.cgroup_name.empty()) options.cgroup_name = "drun-" + random_name(kGroupRandom);
  const bool only_children = adopt_orphans();
  Waiting waiting;
  SocketPair commands(SOCK_STREAM);
  SocketPair watchdog(SOCK_SEQPACKET);
  pid_t pid = 0;
  {
    const SignalBlock block;
    pid = ::fork();
    if (pid == 0) watchdog_main(std::move(watchdog.theirs), std::move(commands.theirs), options);
  }
  if (pid < 0) throw_errno("start the guardian: fork");
  commands.theirs.reset();
  watchdog.theirs.reset();
  auto impl = std::make_unique<Impl>(std::move(waiting), std::move(commands.mine),
                                     std::move(watchdog.mine), pid, only_children, options);
  return Guardian(std::move(impl));
}

void Guardian::end() {
  impl_->order_end();
}

int Guardian::fd() const {
  return impl_->events.get();
}

std::vector<GuardianEvent> Guardian::receive() {
  eventfd_t ignored = 0;
  if (std::exchange(impl_->woken, false)) ::eventfd_read(impl_->wake.get(), &ignored);
  if (!impl_->guardian_gone) impl_->flush();
  impl_->read_commands();
  impl_->send_spawns();
  if (!impl_->watchdog_gone) impl_->read_watchdog();
  if (impl_->stop_limit.take_expired()) impl_->on_stop_limit();
  const bool killed_all = impl_->watchdog_gone || impl_->watchdog_did_its_work;
  const bool over = (impl_->guardian_gone && killed_all) || impl_->left_behind;
  auto result = std::exchange(impl_->received, {});
  if (over && !impl_->lost_told) {
    impl_->lost_told = true;
    impl_->kill_job();
    result.emplace_back(impl_->lost);
  }
  return result;
}

void Guardian::share_environment(const std::vector<std::string>& environment) {
  impl_->send(wire::encode_environment(environment));
}

void Guardian::spawn(SpawnRequest request) {
  Impl::Outgoing outgoing;
  outgoing.id = request.id;
  outgoing.message = wire::encode(request);
  for (auto* stream : {&request.standard_input, &request.standard_output, &request.standard_error,
                       &request.service})
    if (stream->valid()) outgoing.descriptors.push_back(std::move(*stream));
  impl_->spawns.push_back(std::move(outgoing));
  impl_->send_spawns();
  // The guardian should not run out of work while the caller prepares more.
  if (impl_->spawns.size() % kSpawnsPerLook != kSpawnsPerLook - 1) return;
  impl_->read_commands();
  impl_->send_spawns();
  impl_->wake_receiver();
}

void Guardian::signal_all(int signal) {
  wire::SignalBody body;
  body.signal = signal;
  std::string message = wire::Writer(wire::Type::SignalAll, 0).number(body).finish();
  if (signal == SIGSTOP || signal == SIGCONT) impl_->tell_watchdog(message);
  impl_->send(std::move(message));
}

void Guardian::signal(WorkerId worker, int signal) {
  wire::SignalBody body;
  body.signal = signal;
  body.worker = worker;
  impl_->send(wire::Writer(wire::Type::Signal, 0).number(body).finish());
}

void Guardian::renew_lease(std::chrono::steady_clock::time_point since, milliseconds length) {
  const auto begin = impl_->clock.at(since, std::chrono::steady_clock::now(), boot_now());
  if (!begin) return;
  wire::RenewBody body;
  body.end_ns = (*begin + length).count();
  body.length_ms = length.count();
  std::string message = wire::Writer(wire::Type::Renew, 0).number(body).finish();
  impl_->tell_watchdog(message);
  impl_->send(std::move(message));
}

void Guardian::wake() {
  impl_->signal_guardian(SIGCONT);
  if (!impl_->watchdog_gone) ::kill(impl_->watchdog_process, SIGCONT);
}

void Guardian::stop(int signal, milliseconds grace) {
  wire::StopBody body;
  body.signal = signal;
  body.grace_ms = grace.count();
  impl_->cancel_spawns();
  impl_->wake_receiver();
  impl_->send(wire::Writer(wire::Type::Stop, 0).number(body).finish());
  impl_->signal_guardian(SIGCONT);
  impl_->stop_limit.set(std::clamp(grace, milliseconds(0), kLongestGrace) + kEndLimit);
}

void Guardian::give_up() {
  impl_->given_up = true;
  impl_->stop_limit.set(kGiveUpLimit);
}

void Guardian::remove_at_end(const std::string& folder) {
  std::string message = wire::Writer(wire::Type::RemoveFolder, 0).bytes(folder).finish();
  impl_->tell_watchdog(message);
  impl_->send(std::move(message));
}

void Guardian::leave_folders() {
  std::string message = wire::Writer(wire::Type::LeaveFolders, 0).finish();
  impl_->tell_watchdog(message);
  impl_->send(std::move(message));
}

void Guardian::say_at_end(const Farewell& farewell) {
  const bool had_one = std::exchange(impl_->has_farewell, !farewell.empty());
  if (!had_one && farewell.empty()) return;
  std::string message = wire::encode(farewell);
  impl_->tell_watchdog(message);
  impl_->send(std::move(message));
}

bool Guardian::acts_by_default(pid_t pid, int signal) const {
  return process::acts_by_default(pid, signal);
}

bool Guardian::suspend(int signal) {
  return suspend_with(*this, signal);
}

pid_t Guardian::pid() const {
  impl_->await_hello();
  return impl_->guardian_process;
}

}  // namespace drun::process
