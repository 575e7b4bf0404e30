#include "launcher/process/guardian.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/pidfd.hpp"
#include "base/poll_until.hpp"
#include "base/random_bytes.hpp"
#include "base/signal_block.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/detach.hpp"
#include "launcher/process/guardian_impl.hpp"
#include "launcher/process/guardian_loop.hpp"
#include "launcher/process/guardian_watchdog.hpp"
#include "launcher/process/kill_limit.hpp"
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

}  // namespace

// ---- what goes to the guardian, and what comes from it ----

void Guardian::Impl::await_hello() {
  while (guardian_process == 0 && !guardian_gone) {
    (void)await_ready(commands.fd(), POLLIN, kNoDeadline);
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

// ---- the calls ----

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
