#include "store/relay/relay_trunk.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

#include <asio/post.hpp>

#include "store/client/token_refusal.hpp"

namespace drun::store {
namespace {

constexpr std::chrono::milliseconds kFirstTrunkPause{20};
constexpr std::chrono::milliseconds kLongestTrunkPause{1'000};

}  // namespace

RelayTrunk::RelayTrunk(asio::io_context& io, Endpoint store,
                       std::shared_ptr<const secure::TlsContext> tls, Buffer& buffer, Say say)
    : io_(io),
      store_(std::move(store)),
      tls_(std::move(tls)),
      buffer_(buffer),
      say_(std::move(say)),
      socket_(io),
      again_(io),
      pause_(kFirstTrunkPause) {}

std::string RelayTrunk::place() const {
  return "the workers' store at " + to_string(store_);
}

// What a lack of memory breaks off must not leave clients that nobody serves.
template <typename Act>  // Act()
void RelayTrunk::safely(Act act) {
  try {
    act();
  } catch (const std::exception& failed) {
    say_("the connection to " + place() + " is lost: " + failed.what(), "lost");
    lose_all();
  }
}

// ---- clients ----

RelayMux::Stream RelayTrunk::join(TrunkClient& client) {
  const RelayMux::Stream stream = mux_.add();
  clients_.emplace(stream, &client);
  const bool is_idle = !socket_.is_open() && !dialer_ && !is_waiting_;
  if (is_idle && !mux_.is_refused()) dial();
  return stream;
}

void RelayTrunk::leave(RelayMux::Stream stream) {
  clients_.erase(stream);
  mux_.forget(stream);
  if (!clients_.empty() || is_settled()) return touch();
  // The next one does not wait for a store that stands still.
  disconnect();
  mux_ = RelayMux();
}

void RelayTrunk::close() {
  is_closed_ = true;
  clients_.clear();
  disconnect();
  again_.cancel();
}

// Behind what is ready in this turn, so that adds of several clients meet.
void RelayTrunk::touch() {
  if (is_closed_ || std::exchange(is_touched_, true)) return;
  asio::post(io_, [self = shared_from_this()] {
    self->is_touched_ = false;
    if (!self->is_closed_) self->safely([&self] { self->pump(); });
  });
}

void RelayTrunk::tell_clients() {
  for (auto changed = mux_.take_changed(); !changed.empty(); changed = mux_.take_changed())
    for (const RelayMux::Stream stream : changed)
      if (const auto it = clients_.find(stream); it != clients_.end()) it->second->on_change();
}

// ---- the way to the store ----

void RelayTrunk::dial() {
  dialer_.emplace(io_, store_, [this](Result<FileDescriptor> socket) {
    const auto self = shared_from_this();
    self->safely([&] { self->on_dialed(std::move(socket)); });
  });
}

void RelayTrunk::on_dialed(Result<FileDescriptor> socket) {
  if (!socket) {
    const std::string why = socket.error().what();
    dialer_.reset();
    return try_again(why);
  }
  auto flow = std::make_unique<RelayFlow>(tls_);
  flow->trust_client();
  flow->on_store();
  flow_ = std::move(flow);
  socket_.assign(socket->release());
  dialer_.reset();
  ++number_;
  awaits_readable_ = awaits_writable_ = false;
  pump();
}

// As a client does that gets no connection; each of them gives up when it likes.
void RelayTrunk::try_again(const std::string& why) {
  failure_ = why;
  if (clients_.empty()) return;
  say_(place() + ": " + why + "; trying again", why);
  is_waiting_ = true;
  again_.expires_after(pause_);
  pause_ = std::min(2 * pause_, kLongestTrunkPause);
  again_.async_wait([self = shared_from_this()](std::error_code cancelled) {
    if (cancelled || self->is_closed_) return;
    self->is_waiting_ = false;
    if (!self->clients_.empty()) self->dial();
  });
}

void RelayTrunk::disconnect() {
  ++number_;
  dialer_.reset();
  std::error_code ignored;
  if (socket_.is_open()) socket_.close(ignored);
}

// Of nobody has anything been sent: a new connection begins with what they have said.
void RelayTrunk::start_over() {
  disconnect();
  const auto clients = std::exchange(clients_, {});
  RelayMux before = std::exchange(mux_, RelayMux());
  for (const auto& [stream, client] : clients) {
    const RelayMux::Stream now = mux_.add();
    clients_.emplace(now, client);
    mux_.take(now, before.take_over(stream));
    client->on_renumbered(now);
  }
}

void RelayTrunk::lose_all() {
  disconnect();
  mux_ = RelayMux();
  for (const auto& [stream, client] : std::exchange(clients_, {}))
    client->on_lost();
}

void RelayTrunk::give_up(const std::string& why, const std::string& kind) {
  say_(place() + " " + why, kind);
  lose_all();
}

// What they have said may have been heard or not.
void RelayTrunk::on_gone() {
  if (mux_.is_open()) return lose_all();
  start_over();
  try_again("the connection was lost");
}

// ---- bytes ----

void RelayTrunk::pump() {
  const auto self = shared_from_this();
  const unsigned number = number_;
  mux_.end_turn();
  flush();
  tell_clients();
  // What they were told may have made room for more of what they say.
  mux_.end_turn();
  if (number != number_ || !socket_.is_open()) return;
  if (mux_.is_refused()) return disconnect();
  flush();
  if (number == number_ && socket_.is_open()) await_readable();
}

void RelayTrunk::flush() {
  while (socket_.is_open()) {
    while (flow_->wants(Side::Client) && !mux_.to_store().empty()) {
      const std::string_view some = std::string_view(mux_.to_store()).substr(0, RelayFlow::kAtOnce);
      const std::size_t size = some.size();
      flow_->take(Side::Client, some);
      mux_.on_store_took(size);
      mux_.end_turn();
    }
    const std::string_view bytes = flow_->output(Side::Store);
    if (bytes.empty()) return;
    const ssize_t n =
        ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      flow_->on_sent(Side::Store, static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      return await_writable();
    } else if (errno != EINTR) {
      // What the store said last may be there to be read.
      return await_readable();
    }
  }
}

// Once, so that the others have their turns.
void RelayTrunk::read() {
  const auto self = shared_from_this();
  const ssize_t n = ::recv(socket_.native_handle(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return await_readable();
  if (n <= 0) return on_gone();
  flow_->take(Side::Store, {buffer_.data(), static_cast<std::size_t>(n)});
  if (flow_->fault() == RelayFlow::Fault::Token)
    return give_up(token_refusal(flow_->token_failure()), "token");
  const std::string_view plain = flow_->output(Side::Client);
  const bool was_open = mux_.is_open();
  mux_.take_from_store(plain);
  flow_->on_sent(Side::Client, plain.size());
  if (mux_.is_broken()) return give_up("does not answer as drun's store does", "broken");
  if (!was_open && mux_.is_open()) pause_ = kFirstTrunkPause;
  pump();
}

void RelayTrunk::await_readable() {
  if (std::exchange(awaits_readable_, true)) return;
  socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [self = shared_from_this(), number = number_](std::error_code) {
                       if (self->is_closed_ || number != self->number_) return;
                       self->awaits_readable_ = false;
                       self->safely([&self] { self->read(); });
                     });
}

void RelayTrunk::await_writable() {
  if (std::exchange(awaits_writable_, true)) return;
  socket_.async_wait(asio::posix::stream_descriptor::wait_write,
                     [self = shared_from_this(), number = number_](std::error_code) {
                       if (self->is_closed_ || number != self->number_) return;
                       self->awaits_writable_ = false;
                       self->safely([&self] { self->pump(); });
                     });
}

}  // namespace drun::store
