#include "store/client_connection.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "drun/store/errors.hpp"
#include "store/backoff.hpp"

namespace drun::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint32_t kMagic = 0x3C85F7CE;
constexpr milliseconds kFirstPause{5};
constexpr milliseconds kLongestPause{2000};
// An address that swallows packets must not use up the time of the others.
constexpr milliseconds kConnectLimit{5000};
// A server that thousands of clients have just reached may need long for its answer.
constexpr milliseconds kHandshakeLimit{30'000};
// A store with more keys than this has not been seen; "HTTP/1.1" as a number is far above.
constexpr std::int64_t kPlausibleKeys = std::int64_t{1} << 40;

Error no_store(std::string_view bytes) {
  return Error(Errc::NotAStore, "this is not a TCPStore server: it answered " + quote_bytes(bytes));
}

bool closed_by_peer(const Error& error) {
  return error.code() == Errc::Closed;
}

}  // namespace

// One attempt after the other until the deadline.
class Connector {
 public:
  Connector(const Endpoint& endpoint, SteadyTime deadline, const ClientOptions& options)
      : endpoint_(endpoint), deadline_(deadline), options_(options) {}

  Result<std::unique_ptr<ClientConnection>> run() {
    const SteadyTime start = steady_clock::now();
    Backoff backoff(kFirstPause, kLongestPause, std::random_device{}());
    for (;;) {
      auto connection = attempt();
      if (connection) return connection;
      const Error& error = connection.error();
      const SteadyTime now = steady_clock::now();
      if (error.code() == Errc::NotAStore || !options_.retry || now >= deadline_) {
        std::string text = "connect to " + to_string(endpoint_) + ": " + error.what();
        if (options_.retry && now >= deadline_) {
          text += " (gave up after " + to_text(now - start) + ")";
        }
        return Error(error.code(), std::move(text));
      }
      std::this_thread::sleep_until(std::min(now + backoff.next(), deadline_));
    }
  }

 private:
  using Opened = Result<std::unique_ptr<ClientConnection>>;

  Opened attempt() {
    auto addresses = resolve(endpoint_, deadline_);
    if (!addresses) return addresses.error();
    Error last(std::make_error_code(std::errc::host_unreachable), "the name has no address");
    for (const SocketAddress& address : *addresses) {
      Opened opened = attempt(address);
      if (opened || opened.error().code() == Errc::NotAStore) return opened;
      last = opened.error();
    }
    return last;
  }

  Opened attempt(const SocketAddress& address) {
    if (options_.dialect) return attempt(address, *options_.dialect);
    Opened opened = attempt(address, Dialect::C);
    // A server of dialect A closes on the handshake of C; one that is going away does it too.
    if (opened || !closed_in_handshake_) return opened;
    Opened older = attempt(address, Dialect::A);
    return older || older.error().code() == Errc::NotAStore ? std::move(older) : std::move(opened);
  }

  Opened attempt(const SocketAddress& address, Dialect dialect) {
    closed_in_handshake_ = false;
    auto socket = connect_to(address, std::min(deadline_, steady_clock::now() + kConnectLimit));
    if (!socket) return socket.error();
    auto connection =
        std::make_unique<ClientConnection>(std::move(*socket), dialect, options_.max_value_bytes);
    const Status greeted =
        connection->handshake(std::min(deadline_, steady_clock::now() + kHandshakeLimit));
    if (greeted) return connection;
    const Error& error = greeted.error();
    if (error.code() == Errc::Timeout) {
      return Error(error.code(), "it accepts the connection but does not answer");
    }
    if (closed_by_peer(error)) {
      closed_in_handshake_ = true;
      return Error(error.code(), "it closes the connection in the handshake");
    }
    return error;
  }

  const Endpoint& endpoint_;
  SteadyTime deadline_;
  const ClientOptions& options_;
  bool closed_in_handshake_ = false;  // how the last attempt ended
};

ClientConnection::ClientConnection(FileDescriptor socket, Dialect dialect,
                                   std::size_t max_value_bytes)
    : socket_(std::move(socket)), dialect_(dialect), max_value_bytes_(max_value_bytes) {}

Result<std::unique_ptr<ClientConnection>> ClientConnection::open(const Endpoint& endpoint,
                                                                 SteadyTime deadline,
                                                                 const ClientOptions& options) {
  return Connector(endpoint, deadline, options).run();
}

Status ClientConnection::handshake(SteadyTime deadline) {
  std::string hello;
  RequestWriter writer(hello);
  if (dialect_ != Dialect::C) {  // there is no greeting: ask for something harmless
    writer.byte(*opcode(Call::NumKeys, dialect_));
    if (const Status sent = send(hello, deadline); !sent) return sent;
    const auto keys = receive(ReplyShape::Integer, 0, deadline);
    if (!keys) return keys.error();
    if (keys->integer >= 0 && keys->integer < kPlausibleKeys) return Done{};
    std::string bytes;
    RequestWriter(bytes).i64(keys->integer);
    return no_store(bytes);
  }
  // A server of dialect A takes these ten bytes for a SET. With this byte in the nonce the key that
  // it announces is so long that no server tries to allocate it.
  const std::uint32_t nonce = static_cast<std::uint32_t>(::getpid()) | 0x00FF0000U;
  writer.byte(*opcode(Call::Validate, dialect_)).u32(kMagic);
  writer.byte(*opcode(Call::Ping, dialect_)).u32(nonce);
  if (const Status sent = send(hello, deadline); !sent) return sent;
  const auto echo = receive(ReplyShape::Nonce, 0, deadline);
  if (!echo) return echo.error();
  if (echo->integer == nonce) return Done{};
  std::string bytes;
  RequestWriter(bytes).u32(static_cast<std::uint32_t>(echo->integer));
  return no_store(bytes);
}

Status ClientConnection::send(std::string_view bytes, SteadyTime deadline) {
  return send_all(socket_.get(), bytes, deadline);
}

Result<Reply> ClientConnection::receive(ReplyShape shape, std::size_t count, SteadyTime deadline) {
  ReplyReader reader(shape, count, max_value_bytes_);
  for (;;) {
    std::size_t taken = 0;
    const auto state = reader.read({buffer_.data() + begin_, end_ - begin_}, taken);
    begin_ += taken;
    switch (state) {
      case ReplyReader::State::Done:
        return std::move(reader.reply());
      case ReplyReader::State::TooLarge:
        return Error(Errc::LimitExceeded, "the reply is longer than max_value_bytes");
      case ReplyReader::State::Malformed:
        return Error(Errc::Malformed, "the reply makes no sense in this protocol");
      case ReplyReader::State::NeedMore:
        break;
    }
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
    const auto received =
        receive_some(socket_.get(), buffer_.data() + end_, buffer_.size() - end_, deadline);
    if (!received) return received.error();
    end_ += *received;
  }
}

void ClientConnection::close(std::string why) {
  socket_.reset();
  why_closed_ = std::move(why);
}

Endpoint ClientConnection::local_endpoint() const {
  return local_endpoint_of(socket_.get());
}

std::string to_text(std::chrono::steady_clock::duration duration) {
  const auto ms = std::chrono::duration_cast<milliseconds>(duration).count();
  if (ms < 1000) return std::to_string(std::max<decltype(ms)>(ms, 0)) + " ms";
  const std::string tenths = ms % 1000 < 100 ? "" : "." + std::to_string(ms % 1000 / 100);
  return std::to_string(ms / 1000) + tenths + " s";
}

std::string quote_bytes(std::string_view bytes) {
  constexpr std::size_t kLongest = 80;
  std::string_view start = bytes.substr(0, kLongest);
  if (const auto end = start.find_first_of("\r\n"); end != start.npos && end > 0) {
    start = start.substr(0, end);  // of a text: its first line
  }
  std::string text;
  if (std::all_of(start.begin(), start.end(), [](char c) { return c >= ' ' && c <= '~'; })) {
    text = "'" + std::string(start) + "'";
  } else {
    text = "0x";
    for (const char c : start) {
      char hex[3];
      std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(c));
      text += hex;
    }
  }
  return bytes.size() > start.size() ? text + "..." : text;
}

}  // namespace drun::store
