#include "store/client/control_query.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include "base/poll_until.hpp"
#include "base/random_bytes.hpp"
#include "drun/store/errors.hpp"
#include "store/client/backoff.hpp"
#include "store/client/client_calls.hpp"
#include "store/client/connect_policy.hpp"
#include "store/client/socket.hpp"
#include "store/client/token_refusal.hpp"

namespace drun::store {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 65536;

bool ends_attempts(const Error& error) {
  return is_final(error) || error.code() == Errc::VersionRefused;
}

}  // namespace

ControlQuery::ControlQuery(Endpoint endpoint, SecureSocket socket)
    : endpoint_(std::move(endpoint)), socket_(std::move(socket)) {}

Result<ControlQuery> ControlQuery::open(const Endpoint& endpoint, Deadline deadline, bool retry,
                                        const Tls& tls) {
  Backoff backoff(kFirstPause, kLongestPause, random_seed());
  const auto start = steady_clock::now();
  for (;;) {
    auto query = attempt(endpoint, deadline, tls);
    if (query) return query;
    const Error& error = query.error();
    const auto now = steady_clock::now();
    const bool again = retry || is_crowded(tls != nullptr, error, start, now);
    if (!again || ends_attempts(error) || now >= deadline) {
      return Error(error.code(), "connect to " + to_string(endpoint) + ": " + error.what());
    }
    std::this_thread::sleep_until(std::min<Deadline>(now + backoff.next(), deadline));
  }
}

Result<ControlQuery> ControlQuery::attempt(const Endpoint& endpoint, Deadline deadline,
                                           const Tls& tls) {
  const auto addresses = resolve(endpoint, deadline);
  if (!addresses) return addresses.error();
  Result<ControlQuery> query =
      Error(std::make_error_code(std::errc::host_unreachable), "the name has no address");
  for (const SocketAddress& address : *addresses) {
    query = attempt(endpoint, address, deadline, tls);
    if (query || ends_attempts(query.error())) break;
  }
  return query;
}

Result<ControlQuery> ControlQuery::attempt(const Endpoint& endpoint, const SocketAddress& address,
                                           Deadline deadline, const Tls& tls) {
  auto socket =
      connect_to(address, std::min<Deadline>(deadline, steady_clock::now() + kConnectLimit));
  if (!socket) return socket.error();
  ControlQuery query(endpoint, SecureSocket(std::move(*socket), tls));
  if (const Status met = query.handshake(deadline); !met) return met.error();
  return query;
}

Status ControlQuery::handshake(Deadline deadline) {
  std::string opening;
  control::encode_opening(opening);
  const Status sent = socket_.send_all(opening, deadline);
  if (!sent) return socket_.is_secure() ? Status(handshake_failure(sent.error())) : sent;
  const auto reply = receive(0, deadline);
  if (reply && std::holds_alternative<control::Welcome>(*reply)) return Done{};
  if (reply) {
    if (const auto* refused = std::get_if<control::VersionRefused>(&*reply)) {
      return Error(Errc::VersionRefused, "it speaks the control protocol's versions " +
                                             std::to_string(refused->lowest) + " to " +
                                             std::to_string(refused->highest));
    }
  }
  if (!reply && reply.error().code() == Errc::Timeout) {
    return Error(Errc::Timeout, "it accepts the connection but does not answer");
  }
  if (!reply && reply.error().code() == Errc::WrongToken) return reply.error();
  if (!reply && reply.error().code() == Errc::Closed && socket_.is_secure())
    return handshake_failure(reply.error());
  // PyTorch's own servers close on bytes that are none of their requests.
  if (!reply && reply.error().code() == Errc::Closed && input_.empty()) {
    return Error(Errc::NotAStore,
                 "this is not a drun store: it closes the connection when it is greeted (this "
                 "command needs drun's own store)");
  }
  return Error(Errc::NotAStore, "this is not a drun store: it answered " + quote_bytes(input_));
}

Error ControlQuery::named(const Error& error) const {
  return Error(error.code(), "the store at " + to_string(endpoint_) + ": " + error.what());
}

Result<std::uint64_t> ControlQuery::send(const control::Request& request, Deadline deadline) {
  std::string bytes;
  control::encode(bytes, next_request_, request);
  if (const Status sent = socket_.send_all(bytes, deadline); !sent) {
    return named(sent.error());
  }
  return next_request_++;
}

Status ControlQuery::wait_readable(Deadline deadline) {
  if (output_ < 0 || socket_.has_unread()) return Done{};
  // Of the output only its end is of interest, which poll() reports unasked.
  pollfd both[2] = {{socket_.fd(), POLLIN, 0}, {output_, 0, 0}};
  if (poll_until(both, deadline) < 0) return network_error(errno);
  if ((both[1].revents & (POLLERR | POLLHUP)) == 0) return Done{};  // receive_some() knows
  no_reader_ = true;
  return Error(Errc::Closed, "nobody reads the output");
}

Result<control::Reply> ControlQuery::receive(std::uint64_t request, Deadline deadline) {
  input_.erase(0, std::exchange(used_, 0));
  for (;;) {
    const auto result =
        control::next_frame(std::string_view(input_).substr(used_), control::kLongestReply);
    if (result.status == control::FrameStatus::NeedMore) {
      if (const Status ready = wait_readable(deadline); !ready) return ready.error();
      std::array<char, kReadBytes> bytes;
      const auto n = socket_.receive_some(bytes.data(), bytes.size(), deadline);
      if (!n && n.error().code() == Errc::WrongToken) return n.error();
      if (!n) return named(n.error());
      input_.append(bytes.data(), *n);
      continue;
    }
    control::Reply reply;
    if (result.status != control::FrameStatus::Complete ||
        control::decode_reply(result.frame, reply) != control::DecodeStatus::Ok) {
      return named(Error(Errc::Malformed, "it sent a malformed message"));
    }
    used_ += result.size;
    if (const auto* error = std::get_if<control::Error>(&reply)) {
      if (const auto refusal = token_refusal(error->code))
        return Error(Errc::WrongToken, "it " + std::string(*refusal));
      return named(Error(Errc::LimitExceeded, std::string(error->text)));
    }
    if (result.frame.request == request) return reply;
  }
}

}  // namespace drun::store
