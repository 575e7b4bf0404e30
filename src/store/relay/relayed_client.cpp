#include "store/relay/relayed_client.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

#include "store/client/token_refusal.hpp"

namespace drun::store {
namespace {

constexpr std::chrono::milliseconds kFirstPause{20};
constexpr std::chrono::milliseconds kLongestPause{1'000};  // torch's clients try as often

}  // namespace

RelayedClient::RelayedClient(const Round& round, FileDescriptor socket)
    : round_(round),
      flow_(round.tls),
      client_(round.io),
      store_(round.io),
      again_(round.io),
      pause_(kFirstPause) {
  client_.socket.assign(socket.release());
}

void RelayedClient::start() {
  stream_ = round_.trunk->join(*this);
  await_trunk();
  round_.trunk->touch();
  on_change();
}

void RelayedClient::reset() {
  over_ = true;
  stream_.reset();
  dialer_.reset();
  again_.cancel();
  close(client_, true);
  close(store_, true);
}

void RelayedClient::close(End& end, bool with_reset) {
  ++end.number;
  if (!end.socket.is_open()) return;
  if (with_reset) {
    const linger now{1, 0};
    (void)::setsockopt(end.socket.native_handle(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  std::error_code ignored;
  end.socket.close(ignored);
}

void RelayedClient::finish(bool with_reset) {
  if (std::exchange(over_, true)) return;
  if (stream_) round_.trunk->leave(*std::exchange(stream_, std::nullopt));
  dialer_.reset();
  again_.cancel();
  close(client_, with_reset);
  close(store_, with_reset);
  round_.gone(*this);
}

// ---- with the trunk ----

void RelayedClient::await_trunk() {
  again_.expires_at(since_ + round_.patience);
  again_.async_wait([self = shared_from_this()](std::error_code cancelled) {
    const bool waits = !cancelled && !self->over_ && self->stream_;
    if (waits && !self->round_.trunk->is_settled()) self->give_up(self->round_.trunk->failure());
  });
}

void RelayedClient::on_renumbered(RelayMux::Stream stream) {
  stream_ = stream;
  if (lost_) round_.trunk->mux().lose(stream);
  if (ended_) round_.trunk->mux().end(stream);
}

void RelayedClient::on_lost() {
  stream_.reset();
  finish(true);
}

void RelayedClient::on_change() {
  const auto self = shared_from_this();
  if (over_ || !stream_) return;
  const RelayMux& mux = round_.trunk->mux();
  send_what_came();
  if (mux.fate(*stream_) == RelayMux::Fate::Own) return go_on_alone();
  if (mux.fate(*stream_) == RelayMux::Fate::Closing && mux.output(*stream_).empty()) {
    if (const std::string& why = mux.reason(*stream_); !why.empty())
      round_.say("a worker's connection to its store was closed: " + why, why);
    return finish(false);
  }
  if (mux.wants(*stream_)) await_readable(Side::Client);
}

void RelayedClient::send_what_came() {
  RelayMux& mux = round_.trunk->mux();
  for (std::string_view bytes = mux.output(*stream_); !bytes.empty();
       bytes = mux.output(*stream_)) {
    const ssize_t n = ::send(client_.socket.native_handle(), bytes.data(), bytes.size(),
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return await_writable(Side::Client);
    if (n < 0) {
      lost_ = true;
      mux.lose(*stream_);
    } else {
      mux.on_sent(*stream_, static_cast<std::size_t>(n));
    }
    round_.trunk->touch();
  }
}

// Once, so that the others have their turns.
void RelayedClient::read_for_trunk() {
  RelayMux& mux = round_.trunk->mux();
  const ssize_t n = ::recv(client_.socket.native_handle(), round_.buffer.data(),
                           round_.buffer.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return await_readable(Side::Client);
  if (n < 0) {
    lost_ = true;
    mux.lose(*stream_);
  }
  if (n <= 0) {
    ended_ = true;
    mux.end(*stream_);
  } else {
    mux.take(*stream_, {round_.buffer.data(), static_cast<std::size_t>(n)});
  }
  round_.trunk->touch();
}

void RelayedClient::go_on_alone() {
  const RelayMux::Stream stream = *std::exchange(stream_, std::nullopt);
  RelayMux& mux = round_.trunk->mux();
  const std::string heard(mux.output(stream));
  flow_.begin_with(mux.take_over(stream), heard);
  round_.trunk->leave(stream);
  again_.cancel();
  since_ = Clock::now();
  if (lost_) flow_.lose_client();
  if (ended_) flow_.end(Side::Client);
  if (has_fault()) return;
  dial();
  pump();
}

// ---- the way to the store, alone ----

void RelayedClient::dial() {
  dialer_.emplace(round_.io, round_.store, [this](Result<FileDescriptor> socket) {
    const auto self = shared_from_this();
    try {
      self->on_dialed(std::move(socket));
    } catch (const std::exception& failed) {  // a lack of memory, say
      self->give_up(failed.what());
    }
  });
}

void RelayedClient::on_dialed(Result<FileDescriptor> socket) {
  if (!socket) return try_again(socket.error().what());
  store_.socket.assign(socket->release());
  dialer_.reset();
  store_.awaits_readable = store_.awaits_writable = false;
  flow_.on_store();
  await_token();
  pump();
}

// A store that stands still accepts connections, and says nothing.
void RelayedClient::await_token() {
  if (flow_.is_open()) return;
  again_.expires_at(since_ + round_.patience);
  again_.async_wait([self = shared_from_this()](std::error_code cancelled) {
    if (!cancelled && !self->over_ && !self->flow_.is_open()) self->give_up("it gives no answer");
  });
}

void RelayedClient::give_up(const std::string& why) {
  round_.say("the workers' store at " + to_string(round_.store) +
                 ": a worker's connection is given up: " + why,
             "given up");
  finish(true);
}

// As a client does that gets no connection.
void RelayedClient::try_again(const std::string& why) {
  const auto now = Clock::now();
  const std::string place = "the workers' store at " + to_string(round_.store);
  if (now - since_ >= round_.patience) return give_up(why);
  round_.say(place + ": " + why + "; trying again", why);
  again_.expires_after(pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  again_.async_wait([self = shared_from_this()](std::error_code cancelled) {
    if (!cancelled && !self->over_) self->dial();
  });
}

// ---- bytes ----

void RelayedClient::pump() {
  if (stream_) return on_change();
  for (const Side side : {Side::Client, Side::Store})
    if (!over_) flush(side);
  if (over_) return;
  if (flow_.is_over() || flow_.is_deserted()) return finish(false);
  for (const Side side : {Side::Client, Side::Store})
    if (end_of(side).socket.is_open() && flow_.wants(side)) await_readable(side);
}

void RelayedClient::flush(Side to) {
  End& end = end_of(to);
  while (end.socket.is_open()) {
    const std::string_view bytes = flow_.output(to);
    if (bytes.empty()) break;
    const ssize_t n =
        ::send(end.socket.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      flow_.on_sent(to, static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      return await_writable(to);
    } else if (errno != EINTR) {
      return on_broken(to);
    }
  }
  if (end.socket.is_open() && flow_.take_end(to)) ::shutdown(end.socket.native_handle(), SHUT_WR);
}

// Once, so that the others have their turns.
void RelayedClient::read(Side from) {
  End& end = end_of(from);
  const ssize_t n =
      ::recv(end.socket.native_handle(), round_.buffer.data(), round_.buffer.size(), MSG_DONTWAIT);
  if (n > 0) {
    flow_.take(from, {round_.buffer.data(), static_cast<std::size_t>(n)});
    if (has_fault()) return;
  } else if (n == 0) {
    if (from == Side::Store && flow_.lost_store()) return redial();
    flow_.end(from);
  } else if (errno != EAGAIN && errno != EINTR) {
    on_broken(from);
    if (from == Side::Client) flow_.end(from);
  }
  if (!over_) pump();
}

bool RelayedClient::has_fault() {
  switch (flow_.fault()) {
    case RelayFlow::Fault::None:
      return false;
    case RelayFlow::Fault::NoTcpStore:
      round_.say("a worker's connection to its store was closed: it is no TCPStore client's",
                 "no TCPStore client");
      break;
    case RelayFlow::Fault::Token:
      round_.say("the workers' store at " + to_string(round_.store) + " " +
                     token_refusal(flow_.token_failure()),
                 "token");
      break;
  }
  finish(true);
  return true;
}

// What the store has said before its end the client has got, or cannot get any more: a reset
// overtakes it. What a client has said before its own may be there still.
void RelayedClient::on_broken(Side side) {
  if (side == Side::Client) return flow_.lose_client();
  if (!flow_.lost_store()) return finish(true);
  redial();
}

void RelayedClient::redial() {
  close(store_, true);
  try_again("the connection was lost");
}

void RelayedClient::await_readable(Side side) {
  End& end = end_of(side);
  if (std::exchange(end.awaits_readable, true)) return;
  end.socket.async_wait(asio::posix::stream_descriptor::wait_read,
                        [self = shared_from_this(), side, number = end.number](std::error_code) {
                          End& mine = self->end_of(side);
                          if (self->over_ || number != mine.number) return;
                          mine.awaits_readable = false;
                          self->stream_ ? self->read_for_trunk() : self->read(side);
                        });
}

void RelayedClient::await_writable(Side side) {
  End& end = end_of(side);
  if (std::exchange(end.awaits_writable, true)) return;
  end.socket.async_wait(asio::posix::stream_descriptor::wait_write,
                        [self = shared_from_this(), side, number = end.number](std::error_code) {
                          End& mine = self->end_of(side);
                          if (self->over_ || number != mine.number) return;
                          mine.awaits_writable = false;
                          self->pump();
                        });
}

}  // namespace drun::store
