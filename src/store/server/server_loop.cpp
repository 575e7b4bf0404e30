#include "store/server/server_loop.hpp"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/deadline.hpp"
#include "base/log.hpp"
#include "base/random_bytes.hpp"
#include "base/signal_block.hpp"

namespace drun::store {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxEvents = 512;
constexpr Milliseconds kBlockedCheck{500};
constexpr Milliseconds kLingerTime{2'000};
// While there may be unread input that renews sessions none is ended, but for so many rounds at
// most.
constexpr int kMaxRoundsBehind = 64;
// What is asked of epoll while a connection is to be read. Its end, and urgent data, may come with
// other bytes in one event.
constexpr std::uint32_t kReadable = EPOLLIN | EPOLLPRI | EPOLLRDHUP;
constexpr std::uint32_t kEnded = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

// What the limit of descriptors leaves for connections.
std::size_t room_for_connections(const Limits& limits) {
  rlimit open{};
  if (::getrlimit(RLIMIT_NOFILE, &open) != 0 || open.rlim_cur == RLIM_INFINITY)
    return limits.connections;
  const std::size_t spare = std::min<std::size_t>(limits.spare_descriptors, open.rlim_cur / 4 * 3);
  return std::min<std::size_t>(limits.connections, open.rlim_cur - spare);
}

control::Token random_token() {
  control::Token token{};
  fill_with_random_bytes(std::as_writable_bytes(std::span(token)));
  return token;
}

FileDescriptor opened(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return FileDescriptor(fd);
}

std::optional<Endpoint> peer_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return std::nullopt;
  return Endpoint{host, parse_port(port).ok() ? parse_port(port).value() : std::uint16_t{0}};
}

std::string peer_name(int fd) {
  const auto peer = peer_of(fd);
  return peer ? to_string(*peer) : "a peer";
}

}  // namespace

ServerLoop::ServerLoop(const ServerOptions& options)
    : limits_(options.limits),
      budget_(limits_.total_bytes, limits_.reserved_bytes, limits_.job_bytes),
      job_table_(budget_),
      worker_table_(budget_),
      sessions_(job_table_, budget_),
      succession_({options.successor, options.quorum, options.job, options.founders,
                   options.founding, options.listening},
                  job_table_),
      job_context_{limits_,       budget_,     job_table_,
                   job_table_,    sessions_,   succession_,
                   counters_,     turn_,       options.old_clients_are_2_1,
                   &random_token, options.tls, options.workers_need_token},
      worker_context_{limits_,       budget_,     worker_table_,
                      job_table_,    sessions_,   succession_,
                      counters_,     turn_,       options.old_clients_are_2_1,
                      &random_token, options.tls, options.workers_need_token},
      epoll_(opened(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      stop_event_(opened(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      now_(Clock::now()) {
  limits_.connections = room_for_connections(limits_);
  if (options.forget_ended > Milliseconds(0))
    ended_.emplace(job_table_, options.ended_root, options.ended_mark, options.forget_ended);
  if (options.deaths) succession_.recall(*options.deaths, now_);
  sessions_.tell_ends([this](SessionId session) { succession_.ended(session, now_); });
  watch(stop_event_.get(), stop_source_, EPOLLIN);
  watch(mailbox_.fd(), mailbox_source_, EPOLLIN);
}

ServerLoop::~ServerLoop() {
  for (const auto& connection : connections_)
    connection->disconnect(now_);
}

void ServerLoop::watch(int fd, EventSource& source, std::uint32_t events, bool again) {
  if (!try_watch(fd, source, events, again))
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

bool ServerLoop::try_watch(int fd, EventSource& source, std::uint32_t events, bool again) {
  if (source.epoll_events == events && !again) return true;
  epoll_event event{};
  event.events = events;
  event.data.ptr = &source;
  const int operation = source.epoll_events == 0 ? EPOLL_CTL_ADD
                        : events == 0            ? EPOLL_CTL_DEL
                                                 : EPOLL_CTL_MOD;
  if (::epoll_ctl(epoll_.get(), operation, fd, &event) != 0) return false;
  source.epoll_events = events;
  return true;
}

// ---- connections ----

void ServerLoop::add_connection(FileDescriptor socket, Listener& listener) {
  if (connections_.size() >= limits_.connections && !make_room()) {
    ++counters_.dropped;
    return;
  }
  PeerContext& context = listener.table == Table::Job ? job_context_ : worker_context_;
  auto connection = std::make_unique<Connection>(std::move(socket), context, shared_, *this);
  connection->index = connections_.size();
  if (!try_watch(connection->fd(), *connection, kReadable | EPOLLET)) {
    refuse(connection->fd(), std::generic_category().message(errno));
    return connection->disconnect(now_);
  }
  connection->number = newcomers_.came(*connection, now_, context.tls != nullptr);
  connections_.push_back(std::move(connection));
  ++counters_.accepted;
  counters_.connections = connections_.size();
}

bool ServerLoop::end_oldest_stranger(const Connection* asking) {
  Connection* const stranger = newcomers_.oldest_stranger(asking);
  if (stranger != nullptr) make_go(*stranger, "it shows no token, and there is no room");
  return stranger != nullptr;
}

bool ServerLoop::make_room() {
  say_full();
  if (end_oldest_stranger(nullptr)) return true;
  Connection* const silent = newcomers_.newest_silent(now_);
  if (silent != nullptr) make_go(*silent, "it says nothing, and there is no room");
  return silent != nullptr;
}

void ServerLoop::make_go(Connection& connection, const char* why) {
  connection.drop(why);
  connection.is_reported = true;
  ++counters_.dropped;
  remove(connection);
}

void ServerLoop::say_full() {
  if (full_said_at_ != Time::min() && now_ - full_said_at_ < DropLog::kPeriod) return;
  full_said_at_ = now_;
  log::warning("too many connections ({}): those that say nothing are closed, then new ones",
               limits_.connections);
}

void ServerLoop::refuse(int fd, const std::string& why) {
  ++counters_.dropped;
  drop_log_.report("refused " + peer_name(fd) + ": " + why, now_);
}

void ServerLoop::request_flush(Connection& connection) {
  if (connection.is_listed) return;
  connection.is_listed = true;
  listed_.push_back(&connection);
}

void ServerLoop::request_turn(Connection& connection) {
  (connection.has_session() ? waiting_sessions_ : waiting_).push(connection);
}

void ServerLoop::serve_waiting(TurnQueue& waiting) {
  while (!waiting.empty() && turn_.has_room()) {
    auto& connection = static_cast<Connection&>(waiting.pop());
    connection.resume(now_);
    after_event(connection);
  }
}

void ServerLoop::flush_listed() {
  for (Connection* connection : listed_) {
    connection->is_listed = false;
    if (connection->fd() < 0) continue;
    connection->send_waiting(now_);
    after_event(*connection);
  }
  listed_.clear();
}

void ServerLoop::after_event(Connection& connection, bool unread) {
  if (connection.is_dead()) return remove(connection);
  if (connection.is_lingering()) report(connection);
  const std::uint32_t events = EPOLLET | (connection.wants_to_read() ? kReadable : 0U) |
                               (connection.wants_to_write() ? std::uint32_t{EPOLLOUT} : 0U);
  // Edge-triggered: what has happened already is reported again only after a modification.
  watch(connection.fd(), connection, events, unread || connection.gave_way());
  if (connection.is_blocked())
    next_blocked_check_ = std::min(next_blocked_check_, now_ + kBlockedCheck);
}

void ServerLoop::report(Connection& connection) {
  if (connection.is_reported) return;
  connection.is_reported = true;
  ++counters_.dropped;
  const std::string reason = ": " + std::string(connection.reason());
  // Of a host with another token, or none, one line is enough, however often it tries.
  const bool about_token = !connection.is_welcome() || is_about_token(connection.reason());
  const auto peer = about_token ? peer_of(connection.fd()) : std::nullopt;
  drop_log_.report("dropped " + peer_name(connection.fd()) + reason, now_,
                   about_token ? (peer ? peer->host : "") + reason : "");
}

void ServerLoop::remove(Connection& connection) {
  if (!connection.reason().empty()) report(connection);
  // Closing does not end the events while a forked process has the descriptor too.
  watch(connection.fd(), connection, 0);
  connection.disconnect(now_);
  connection.leave_queue();
  newcomers_.left(connection.number);
  const std::size_t index = connection.index;
  std::swap(connections_[index], connections_.back());
  connections_[index]->index = index;
  // Events of this round, and the list of those to be flushed, may still point to it.
  removed_.push_back(std::move(connections_.back()));
  connections_.pop_back();
  counters_.connections = connections_.size();
}

void ServerLoop::check_blocked() {
  if (next_blocked_check_ > now_) return;
  next_blocked_check_ = Time::max();
  for (std::size_t i = 0; i < connections_.size();) {
    Connection& connection = *connections_[i];
    if (connection.is_blocked()) {
      const Milliseconds limit = connection.is_lingering() ? kLingerTime : limits_.unread_time;
      if (now_ - connection.blocked_since() >= limit) {
        connection.drop(connection.is_lingering() ? connection.close_reason()
                                                  : "does not read its replies");
        remove(connection);
        continue;
      }
      next_blocked_check_ = now_ + kBlockedCheck;
    }
    ++i;
  }
}

void ServerLoop::end_unwelcome() {
  while (Connection* const connection = newcomers_.take_overdue(now_, limits_.proof_time)) {
    connection->end_proving();
    if (connection->is_welcome()) continue;
    connection->drop("it has shown no token in time");
    remove(*connection);
  }
}

// ---- the loop ----

int ServerLoop::timeout_ms() const {
  if (!waiting_sessions_.empty() || !waiting_.empty()) return 0;
  Time next = next_blocked_check_;
  if (const std::optional<Time> deadline = sessions_.next_deadline())
    next = std::min(next, *deadline);
  for (const auto& listener : listeners_)
    if (listener->paused_until) next = std::min(next, *listener->paused_until);
  if (const std::optional<Time> overdue = newcomers_.next_overdue(limits_.proof_time))
    next = std::min(next, *overdue);
  next = std::min(next, next_snapshot_);
  if (ended_) next = std::min(next, ended_->next_check());
  if (const std::optional<Time> deadline = succession_.next_deadline())
    next = std::min(next, *deadline);
  if (next == Time::max()) return -1;
  return poll_limit(time_left(next));
}

// Sessions first: whoever is late there is given up. What they ask for takes none of the others'
// turn, but waits for one of their own if it is much. In each turn those come first who have
// waited.
void ServerLoop::handle_all(std::span<epoll_event> events) {
  const auto is_session = [](const epoll_event& event) {
    const auto& source = *static_cast<EventSource*>(event.data.ptr);
    return source.kind == EventSource::Kind::Connection &&
           static_cast<const Connection&>(source).has_session();
  };
  turn_.begin();
  serve_waiting(waiting_sessions_);
  for (epoll_event& event : events) {
    if (is_stopping_) return;
    if (!is_session(event)) continue;
    handle(event);
    event.data.ptr = nullptr;
  }
  turn_.begin();
  serve_waiting(waiting_);
  for (const epoll_event& event : events)
    if (event.data.ptr != nullptr && !is_stopping_) handle(event);
}

void ServerLoop::handle(const epoll_event& event) {
  auto& source = *static_cast<EventSource*>(event.data.ptr);
  switch (source.kind) {
    case EventSource::Kind::Connection: {
      auto& connection = static_cast<Connection&>(source);
      if (connection.fd() < 0) return;  // removed in this round
      const bool was_silent = !connection.has_said_something();
      if ((event.events & EPOLLOUT) != 0) connection.flush(now_);
      bool unread = false;
      if ((event.events & ~std::uint32_t{EPOLLOUT}) != 0 && !connection.is_dead())
        unread = connection.receive(now_, (event.events & EPOLLPRI) != 0) ||
                 (event.events & kEnded) != 0;
      if (was_silent && connection.has_said_something()) newcomers_.has_spoken(connection.number);
      return after_event(connection, unread);
    }
    case EventSource::Kind::Listener:
      (void)accept(static_cast<Listener&>(source));
      return;
    case EventSource::Kind::Stop:
      is_stopping_ = true;
      return;
    case EventSource::Kind::Signal:
      return take_signal();
    case EventSource::Kind::Mailbox:
      return run_commands();
  }
}

void ServerLoop::stop_on(const sigset_t& signals) {
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signals_ = opened(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
  watch(signals_.get(), signal_source_, EPOLLIN);
}

void ServerLoop::take_signal() {
  signalfd_siginfo signal{};
  if (::read(signals_.get(), &signal, sizeof signal) != sizeof signal) return;
  const char* name = ::sigabbrev_np(static_cast<int>(signal.ssi_signo));
  log::info("ending on SIG{}", name != nullptr ? name : "?");
  is_stopping_ = true;
}

void ServerLoop::run_commands() {
  while (const std::unique_ptr<Command> command = mailbox_.receive())
    (*command)();
}

void ServerLoop::run() {
  std::optional<SignalBlock> no_signals;
  if (!signals_) no_signals.emplace();  // they are another thread's

  std::vector<epoll_event> events(kMaxEvents);
  int rounds_behind = 0;
  succession_.start(Clock::now());
  while (!is_stopping_) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), kMaxEvents, timeout_ms());
    if (count < 0) {
      if (errno == EINTR) continue;
      throw std::system_error(errno, std::generic_category(), "epoll_wait");
    }
    now_ = Clock::now();
    handle_all({events.data(), static_cast<std::size_t>(count)});
    // After this process was suspended all sessions look silent, although their heartbeats are
    // waiting to be read: read those first.
    rounds_behind = count == kMaxEvents ? rounds_behind + 1 : 0;
    if (rounds_behind % kMaxRoundsBehind == 0) sessions_.expire(now_, Turn::kRoom);
    if (ended_) ended_->check(now_);
    succession_.on_time(now_);
    flush_listed();
    check_blocked();
    end_unwelcome();
    resume_listeners();
    save_snapshot_if_due();
    removed_.clear();
  }
  run_commands();
  save_last_snapshot();
}

bool ServerLoop::stop_unless(const std::function<bool(std::string_view key)>& needed) {
  if (is_stopping_) return true;
  bool is_needed = false;
  job_table_.for_each(
      [&](std::string_view key, std::string_view, SessionId) { is_needed |= needed(key); });
  is_stopping_ |= !is_needed;
  return !is_needed;
}

void ServerLoop::stop() {
  const std::uint64_t one = 1;
  // Cannot fail: the counter is far from full.
  [[maybe_unused]] const ssize_t written = ::write(stop_event_.get(), &one, sizeof one);
}

void ServerLoop::post(Command command) {
  mailbox_.post(std::make_unique<Command>(std::move(command)));
}

}  // namespace drun::store
