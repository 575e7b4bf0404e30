#include "store/server/connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace drun::store {
namespace {

// A remainder up to this size is copied in front of what comes next; a longer one gets its own
// buffer and is read into.
constexpr std::size_t kCopiedRemainder = 16 * 1024;
constexpr std::size_t kLeastRoom = 64 * 1024;
// Output that may collect before it is sent although more is about to come.
constexpr std::size_t kEagerFlush = 64 * 1024;
// Of a value that several peers are sent, one is sent no more than this before the others have had
// their turn.
constexpr std::size_t kSentAtOnce = 256 * 1024;
// Output memory that a connection may keep for the next time.
constexpr std::size_t kKeptBytes = 1024;

// The kernel counts in ticks, of which this is the longest; what it says may be one too much.
constexpr Milliseconds kTick{10};

// What a peer costs that has not proved yet that it has the token: what OpenSSL keeps of it.
constexpr std::size_t kStrangerBytes = 48 * 1024;
// So many strangers may be in the reserve at a time: who has the token may come to empty a store
// that is full, and who has it not takes little from the rendezvous.
constexpr std::size_t kMostInReserve = 32;
// Plaintext that is encrypted at once, so that little is kept twice.
constexpr std::size_t kEncryptedAtOnce = 64 * 1024;

constexpr const char* kNoMemory = "there is no memory for it";
constexpr const char* kDoesNotRead = "does not read its replies";

// EAGAIN: there is nothing to read.
ssize_t read_some(int fd, char* to, std::size_t room) {
  for (;;) {
    const ssize_t received = ::recv(fd, to, room, 0);
    if (received >= 0 || errno != EINTR) return received;
  }
}

const char* reason_of(secure::TlsEngine::Failure failure) {
  using enum secure::TlsEngine::Failure;
  switch (failure) {
    case OtherToken:
      return "it has another token";
    case Broken:
      return "what it sends was changed on the way";
    case NoCertificate:
      return "it shows no certificate";
    case Untrusted:
      return "the authorities of --tls-ca do not vouch for its certificate";
    case Expired:
      return "its certificate has expired, or is not valid yet";
    case Unfit:
      return "its certificate is for another use: both clientAuth and serverAuth are needed";
    case Refused:
      return "it does not accept this store's certificate";
    default:
      return "it does not open TLS as drun does";
  }
}

ssize_t send_both(int fd, std::string_view first, std::string_view second) {
  std::array parts{iovec{const_cast<char*>(first.data()), first.size()},
                   iovec{const_cast<char*>(second.data()), second.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::sendmsg(fd, &message, MSG_NOSIGNAL);
}

}  // namespace

Connection::Connection(FileDescriptor socket, PeerContext& context, SharedBuffers& shared,
                       ConnectionOwner& owner)
    : EventSource(Kind::Connection),
      Peer(context),
      socket_(std::move(socket)),
      limits_(context.limits),
      budget_(context.budget),
      tls_context_(context.tls),
      shared_(shared),
      owner_(owner),
      serves_strangers_(context.serves_strangers()) {}

Connection::~Connection() {
  leave_reserve();
  charge(0);
}

void Connection::disconnect(Time now) {
  Peer::disconnect(now);
  leave_reserve();
  charge(0);
  socket_.reset();
}

void Connection::enter(ConnectionPhase next) {
  assert(may_follow(phase_, next));
  phase_ = next;
  const bool goes_on = next == ConnectionPhase::Reading || next == ConnectionPhase::Paused;
  if (!goes_on) give_up();
}

void Connection::die() {
  if (!is_dead()) enter(ConnectionPhase::Dead);
}

void Connection::drop(const char* reason) {
  if (is_dead() && *reason_ != '\0') return;
  reason_ = reason;
  die();
}

// A request of one peer may push much to many others before their turn comes, and they may not read
// it: the limits hold at once.
void Connection::on_unasked_output() {
  if (is_lingering() || is_dead()) return discard_output();
  owner_.request_flush(*this);
  if (unsent() <= kEagerFlush) return;
  // What is held once for all takes no memory: its turn comes.
  if (!send_blocked_ && shared_output_.empty()) write(owner_.now());
  settle();
  if (is_dead()) discard_output();
}

void Connection::on_overflow() {
  drop("a change is larger than the limit of unread replies");
  owner_.request_flush(*this);
}

bool Connection::has_room_to_tell(std::size_t bytes) {
  if (unsent() + bytes > limits_.unread_bytes)
    drop(kDoesNotRead);
  else if (!has_room(bytes))
    drop(budget_.refusal());
  else
    return true;
  owner_.request_flush(*this);
  return false;
}

Milliseconds Connection::idle() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return Milliseconds(0);
  return std::max(Milliseconds(0), Milliseconds(info.tcpi_last_data_recv) - kTick);
}

std::size_t Connection::send_directly(std::string_view bytes) {
  if (send_blocked_ || is_dead() || tls_ || !shared_output_.empty()) return 0;
  std::string& out = output();
  const ssize_t result = send_both(fd(), std::string_view(out).substr(sent_), bytes);
  if (result <= 0) return 0;  // write() comes next, and sees why
  const auto sent = static_cast<std::size_t>(result);
  if (sent < unsent()) {
    sent_ += sent;
    return 0;
  }
  const std::size_t beyond = sent - unsent();
  out.clear();
  sent_ = 0;
  return beyond;
}

void Connection::send_later(const std::shared_ptr<const std::string>& bytes, std::size_t from) {
  shared_output_.push(std::exchange(output(), {}), std::exchange(sent_, 0), bytes, from);
}

void Connection::discard_output() {
  shared_output_.clear();
  std::string().swap(output());
  sent_ = 0;
}

bool Connection::receive(Time now, bool has_urgent) {
  if (is_lingering()) return discard_input();
  if (is_paused() && wants_to_read()) return read_ahead(now);
  if (!wants_to_read()) {  // only an error or a hang-up can have been reported
    die();
    return false;
  }
  if (tls_) return receive_secure(now, has_urgent);
  ssize_t received = 0;
  std::size_t room = 0;
  const std::size_t kept = input_.size();
  const bool in_shared = kept <= kCopiedRemainder;
  if (in_shared) {
    char* to = shared_.input.get();
    if (kept > 0) std::memcpy(to, input_.view().data(), kept);
    room = SharedBuffers::kInputBytes - kept;
    received = read_some(fd(), to + kept, room);
  } else {
    input_.reserve(std::min(std::max(needed_, kept + kLeastRoom), 2 * kept + kLeastRoom));
    room = input_.room();
    received = read_some(fd(), input_.tail(), room);
  }
  if (received <= 0) {
    if (received == 0 || errno != EAGAIN) die();
    return false;
  }
  const bool is_first = !std::exchange(has_sent_, true);
  if (is_first && tls_context_ != nullptr && shared_.input[0] == secure::kTlsHello) {
    if (!may_prove_) {
      drop("it has shown no token in time");
      return false;
    }
    if (!begin_secure()) return false;
    take_secure({shared_.input.get(), static_cast<std::size_t>(received)}, now);
    return has_urgent || static_cast<std::size_t>(received) == room;
  }
  if (in_shared) {
    take({shared_.input.get(), kept + static_cast<std::size_t>(received)}, now);
  } else {
    input_.grow(static_cast<std::size_t>(received));
    take(input_.view(), now);
  }
  return has_urgent || static_cast<std::size_t>(received) == room;
}

// A lack of memory costs this connection, and not the server.
bool Connection::begin_secure() {
  try {
    tls_ = std::make_unique<secure::TlsEngine>(tls_context_, secure::TlsEngine::Role::Server);
    return true;
  } catch (const std::bad_alloc&) {
    drop(kNoMemory);
    return false;
  }
}

bool Connection::decrypt(std::string_view bytes, std::string& plain) {
  try {
    tls_->receive(bytes, plain);
    return true;
  } catch (const std::bad_alloc&) {
    drop(kNoMemory);
    return false;
  }
}

bool Connection::receive_secure(Time now, bool has_urgent) {
  const ssize_t received = read_some(fd(), shared_.input.get(), SharedBuffers::kInputBytes);
  if (received <= 0) {
    if (received == 0 || errno != EAGAIN) die();
    return false;
  }
  take_secure({shared_.input.get(), static_cast<std::size_t>(received)}, now);
  return has_urgent || static_cast<std::size_t>(received) == SharedBuffers::kInputBytes;
}

// As receive() has it of plain bytes: little that is left of earlier ones comes in front of the new
// ones, to much they are appended.
void Connection::take_secure(std::string_view bytes, Time now) {
  std::string& plain = shared_.plain;
  const bool appends = input_.size() > kCopiedRemainder || is_paused();
  plain.assign(appends ? std::string_view() : input_.view());
  if (!decrypt(bytes, plain)) return;
  const bool ended = tls_->state() == secure::TlsEngine::State::Ended;
  if (tls_->is_open() && !is_proven()) {
    leave_reserve();
    charge(0);  // it may be a job's from now on
    note_proof(tls_->job());
    has_said_something_ = true;
  }
  if (appends) {
    const std::size_t kept = input_.size();
    input_.reserve(std::max(kept + plain.size(), std::min(needed_, 2 * kept + kLeastRoom)));
    std::memcpy(input_.tail(), plain.data(), plain.size());
    input_.grow(plain.size());
  }
  const std::string_view all = appends ? input_.view() : std::string_view(plain);
  if (tls_->state() == secure::TlsEngine::State::Failed) {
    // It says why. What else was to be sent cannot be encrypted any more.
    const std::string& last = tls_->output();
    if (!last.empty()) (void)!::send(fd(), last.data(), last.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return drop(reason_of(tls_->failure()));
  }
  if (ended && (is_paused() || all.empty() || !is_proven())) return die();
  if (is_paused()) return settle();
  if (is_proven() && !all.empty()) {
    take(all, now);
    if (ended) die();
    return;
  }
  write(now);
  settle();
}

// Encrypts what comes next, if nothing encrypted waits.
void Connection::encrypt_some() {
  if (!tls_->output().empty() || !tls_->is_open()) return;
  if (shared_output_.empty()) {
    const auto next = std::string_view(output()).substr(sent_, kEncryptedAtOnce);
    tls_->send(next);
    sent_ += next.size();
    return;
  }
  const auto [own, all_shared] = shared_output_.front();
  const std::string_view shared = all_shared.substr(0, kEncryptedAtOnce);
  tls_->send(own);
  tls_->send(shared);
  shared_output_.consume(own.size() + shared.size());
}

ssize_t Connection::send_encrypted(std::size_t& asked) {
  try {
    encrypt_some();
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return -1;
  }
  std::string& bytes = tls_->output();
  if (bytes.empty()) {  // it cannot encrypt
    errno = EPROTO;
    return -1;
  }
  asked = bytes.size();
  const ssize_t sent = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent > 0) bytes.erase(0, static_cast<std::size_t>(sent));
  return sent;
}

// Heartbeats of a peer that is slow to read its replies. The end comes again when it goes on.
bool Connection::read_ahead(Time now) {
  const std::size_t room = kReadAhead - read_ahead_;
  if (!tls_) input_.reserve(input_.size() + room);
  char* to = tls_ ? shared_.input.get() : input_.tail();
  const ssize_t received = read_some(fd(), to, room);
  if (received < 0) {
    if (errno != EAGAIN) die();
    return false;
  }
  read_ahead_ = received == 0 ? kReadAhead : read_ahead_ + static_cast<std::size_t>(received);
  if (received > 0) note_life(now);
  if (tls_) {
    take_secure({to, static_cast<std::size_t>(received)}, now);
  } else {
    input_.grow(static_cast<std::size_t>(received));
    settle();
  }
  return false;
}

// `bytes` are all input that is not applied yet, in the shared buffer or in this connection's own.
void Connection::take(std::string_view bytes, Time now) {
  const bool own = !input_.empty() && bytes.data() == input_.view().data();
  std::size_t consumed = 0;
  if (bytes.size() >= needed_) {
    const bool borrowed = output().empty();
    if (borrowed) output().swap(shared_.output);
    const Fed fed = feed(bytes, now);
    consumed = fed.consumed;
    needed_ = fed.needed;
    has_said_something_ = has_said_something_ || consumed > 0 || fed.state != State::Open;
    // While it was fed it may have died of what it was to be sent.
    if (!is_dead() && fed.state == State::Paused) enter(ConnectionPhase::Paused);
    if (!is_dead() && fed.state == State::AwaitsTurn) {
      enter(ConnectionPhase::Paused);
      awaits_turn_ = true;
      owner_.request_turn(*this);
    }
    if (!is_dead() && fed.state == State::Closed) enter(ConnectionPhase::Closing);
    write(now);
    if (borrowed) {
      std::string rest;
      if (unsent() > 0) rest.assign(output(), sent_);
      sent_ = 0;
      output().clear();
      if (output().capacity() > SharedBuffers::kKeptOutputBytes) std::string().swap(output());
      shared_.output.swap(output());
      if (!rest.empty()) output() = std::move(rest);
    }
  }
  const bool takes_more = phase_ == ConnectionPhase::Reading || is_paused();
  if (!takes_more)
    input_.clear();
  else if (own)
    input_.consume(consumed);
  else
    input_.assign(bytes.substr(consumed));
  if (phase_ == ConnectionPhase::Closing && unsent() == 0) begin_lingering(now);
  settle();
}

void Connection::send_waiting(Time now) {
  write(now);
  if (unsent() == 0 && output().capacity() > kKeptBytes) std::string().swap(output());
  if (phase_ == ConnectionPhase::Closing && unsent() == 0) begin_lingering(now);
  settle();
}

void Connection::flush(Time now) {
  send_waiting(now);
  if (!is_paused() || awaits_turn_ || unsent() >= kHighWater) return;
  enter(ConnectionPhase::Reading);
  needed_ = 1;
  read_ahead_ = 0;
  if (!input_.empty()) take(input_.view(), now);
}

void Connection::resume(Time now) {
  awaits_turn_ = false;
  flush(now);
}

// Sends what comes next: `asked` becomes how much that was; returns how much of it went.
ssize_t Connection::send_some(std::size_t& asked) {
  if (tls_) return send_encrypted(asked);
  if (shared_output_.empty()) {
    asked = output().size() - sent_;
    const ssize_t sent = ::send(fd(), output().data() + sent_, asked, MSG_NOSIGNAL);
    if (sent > 0) sent_ += static_cast<std::size_t>(sent);
    return sent;
  }
  const auto [own, all_shared] = shared_output_.front();
  const std::string_view shared = all_shared.substr(0, kSentAtOnce);
  asked = own.size() + shared.size();
  const ssize_t sent = send_both(fd(), own, shared);
  if (sent > 0) shared_output_.consume(static_cast<std::size_t>(sent));
  return sent;
}

void Connection::write(Time now) {
  std::string& out = output();
  std::size_t sent_now = 0;
  bool is_full = false;  // the socket's buffer
  while (unsent() > 0 && !is_full && sent_now < kSentAtOnce) {
    std::size_t asked = 0;
    const ssize_t sent = send_some(asked);
    if (sent < 0) {
      if (errno == EINTR) continue;
      is_full = errno == EAGAIN;
      if (!is_full) die();
      break;
    }
    sent_now += static_cast<std::size_t>(sent);
    is_full = static_cast<std::size_t>(sent) < asked;
  }
  const bool progress = sent_now > 0;
  // If all has gone it may still be paused, and nothing has been in its way until now.
  if (progress || !send_blocked_ || unsent() == 0) blocked_since_ = now;
  // There was no room: the peer has taken something since.
  if (progress && send_blocked_) note_life(now);
  if (unsent() == 0) {
    send_blocked_ = false;
    sent_ = 0;
    out.clear();
    return;
  }
  send_blocked_ = is_full;
  if (sent_ >= out.size() / 2) {
    out.erase(0, sent_);
    sent_ = 0;
  }
}

// Accounts for what is kept until the next event.
void Connection::settle() {
  if (is_dead()) return;
  if (unsent() > limits_.unread_bytes) return drop(kDoesNotRead);
  const std::size_t kept =
      input_.capacity() + unsent() + (tls_ && !is_proven() ? kStrangerBytes : 0);
  if (kept > charged_ && !has_room(kept - charged_)) return drop(budget_.refusal());
  charge(kept);
}

void Connection::charge(std::size_t bytes) {
  const std::size_t before = std::exchange(charged_, bytes);
  if (scope() == nullptr) {
    budget_.give_back(before);
    return budget_.take(bytes);
  }
  budget_.give_back_of(scope()->job(), before);
  budget_.take_for(scope()->job(), bytes);
}

bool Connection::fits(std::size_t bytes) {
  return scope() == nullptr ? budget_.fits(bytes) : budget_.fits_job(scope()->job(), bytes);
}

bool Connection::has_room(std::size_t bytes) {
  // Strangers to a store with a token make room for whoever has it, or may still show it. They have
  // none of a job's share.
  while (!fits_somewhere(bytes))
    if (tls_context_ == nullptr || budget_.is_jobs_refusal() || !owner_.end_a_stranger(*this))
      return false;
  return true;
}

bool Connection::fits_somewhere(std::size_t bytes) {
  if (fits(bytes)) return true;
  const bool is_stranger = tls_ && !is_proven();
  const bool may_come_in =
      is_stranger && (in_reserve_ || shared_.strangers_in_reserve < kMostInReserve);
  if (!is_control() && !may_come_in && !(is_proven() && is_undecided())) return false;
  const Budget::WithReserve reserve(budget_);
  if (!fits(bytes)) return false;
  if (is_stranger && !std::exchange(in_reserve_, true)) ++shared_.strangers_in_reserve;
  return true;
}

void Connection::leave_reserve() {
  if (std::exchange(in_reserve_, false)) --shared_.strangers_in_reserve;
}

// Closing with unread input resets the connection, and the peer may lose what was sent before. So
// the peer is given a moment to read it and to close.
void Connection::begin_lingering(Time now) {
  reason_ = close_reason();
  if (!is_control()) return die();
  enter(ConnectionPhase::Lingering);
  blocked_since_ = now;
  ::shutdown(fd(), SHUT_WR);
}

bool Connection::discard_input() {
  const ssize_t received = read_some(fd(), shared_.input.get(), SharedBuffers::kInputBytes);
  if (received == 0 || (received < 0 && errno != EAGAIN)) die();
  return received == static_cast<ssize_t>(SharedBuffers::kInputBytes);
}

}  // namespace drun::store
