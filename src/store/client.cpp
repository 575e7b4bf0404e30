#include "drun/store/client.hpp"

#include <algorithm>

#include "drun/store/errors.hpp"
#include "store/client_connection.hpp"
#include "store/tcpstore_call.hpp"

namespace drun::store {
namespace {

using std::chrono::milliseconds;

// How long a server may take for the answer to a cancelled wait.
constexpr milliseconds kCancelLimit{5000};
constexpr std::int64_t kWaitReleased = 0;
constexpr std::int64_t kWaitCancelled = 1;

bool timed_out(const Error& error) {
  return error.code() == Errc::Timeout;
}

bool closed(const Error& error) {
  return error.code() == Errc::Closed;
}

// Servers never say why they close.
std::string_view hint(Call call) {
  switch (call) {
    case Call::Add:
      return " (a store does so when the key holds something other than a number)";
    case Call::Barrier:
      return " (a store does so when the key holds something other than a number, and when it is "
             "older than torch 2.14)";
    case Call::ListKeys:
      return " (a store older than torch 2.14 does not know this request)";
    case Call::QueuePush:
    case Call::QueuePop:
    case Call::QueueLen:
      return " (a store older than torch 2.8, or built without libuv, does not know this request)";
    case Call::Ping:
      return " (a store older than torch 2.5 does not know this request)";
    default:
      return "";
  }
}

std::string quote_keys(const std::vector<std::string>& keys) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, keys.size()); ++i) {
    text += (i == 0 ? " " : ", ") + quote_bytes(keys[i]);
  }
  if (keys.size() > kShown) text += " and " + std::to_string(keys.size() - kShown) + " more";
  return text;
}

}  // namespace

class Client::Impl {
 public:
  Impl(Endpoint endpoint, ClientOptions options, std::unique_ptr<ClientConnection> connection)
      : endpoint_(std::move(endpoint)),
        options_(std::move(options)),
        connection_(std::move(connection)) {}

  // A request under construction and the time it has.
  struct Request {
    Call call;
    std::string about;  // its keys, for messages
    Deadline deadline;
    milliseconds limit;
    std::string bytes;
  };

  Request request(Call call, std::string about, Timeout timeout) const {
    const milliseconds limit = timeout.value_or(options_.timeout);
    // Longer than any program runs, and short enough for the clock's arithmetic.
    const milliseconds safe = std::min<milliseconds>(limit, std::chrono::hours(24 * 365 * 100));
    Request request{call, std::move(about), Clock::now() + safe, limit, {}};
    if (const auto code = opcode(call, connection_->dialect())) {
      RequestWriter(request.bytes).byte(*code);
    }
    return request;
  }

  Request keyed(Call call, std::string_view key, Timeout timeout) const {
    Request result = request(call, " " + quote_bytes(key), timeout);
    RequestWriter(result.bytes).bytes(full_key(key));
    return result;
  }

  Request keyed(Call call, const std::vector<std::string>& keys, Timeout timeout) const {
    Request result = request(call, quote_keys(keys), timeout);
    RequestWriter(result.bytes).u64(keys.size());
    for (const std::string& key : keys)
      RequestWriter(result.bytes).bytes(full_key(key));
    return result;
  }

  bool supports(Call call) const { return opcode(call, connection_->dialect()).has_value(); }

  Error unsupported(const Request& request) const {
    return Error(Errc::Unsupported, where(request) + "a store of this age has no such request");
  }

  Result<Reply> exchange(const Request& request, ReplyShape shape, std::size_t count = 0) {
    if (const Status sent = send(request); !sent) return sent.error();
    if (shape == ReplyShape::None) return Reply{};
    auto reply = connection_->receive(shape, count, request.deadline);
    if (!reply) return broken(request, reply.error());
    return reply;
  }

  Status send_only(const Request& request) {
    const auto reply = exchange(request, ReplyShape::None);
    if (!reply) return reply.error();
    return Done{};
  }

  Result<std::int64_t> integer(const Request& request) {
    const auto reply = exchange(request, ReplyShape::Integer);
    if (!reply) return reply.error();
    return reply->integer;
  }

  Result<std::string> value(const Request& request) {
    auto reply = exchange(request, ReplyShape::Value);
    if (!reply) return reply.error();
    return std::move(reply->values.front());
  }

  Result<std::optional<std::string>> popped(const Request& request) {
    auto reply = exchange(request, ReplyShape::Popped);
    if (!reply) return reply.error();
    if (reply->values.empty()) return std::optional<std::string>();
    return std::optional<std::string>(std::move(reply->values.front()));
  }

  // WAIT and BARRIER: one byte, perhaps much later.
  Status waiting(const Request& request) {
    if (const Status sent = send(request); !sent) return sent;
    const auto reply = connection_->receive(ReplyShape::Byte, 0, request.deadline);
    if (reply) return reply->integer == kWaitReleased ? Status(Done{}) : nonsense(request);
    const auto cancel = opcode(Call::CancelWait, connection_->dialect());
    if (!timed_out(reply.error()) || !cancel) return broken(request, reply.error());
    return cancel_wait(request, *cancel);
  }

  std::string full_key(std::string_view key) const {
    std::string full = key_prefix();
    return full.append(key);
  }

  // What stands before each of this client's keys on the server.
  std::string key_prefix() const {
    std::string prefix = options_.raw_keys ? "" : "/";
    if (!options_.prefix.empty()) prefix.append(options_.prefix).append("/");
    return prefix;
  }

  const ClientConnection& connection() const { return *connection_; }
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  std::string where(const Request& request) const {
    return std::string(name(request.call)) + request.about + " at " + to_string(endpoint_) + ": ";
  }

  Status send(const Request& request) {
    if (!connection_->connected()) {
      return Error(Errc::Closed, where(request) + "the connection is closed, after '" +
                                     connection_->why_closed() + "'");
    }
    if (!supports(request.call)) return unsupported(request);
    if (const Status sent = connection_->send(request.bytes, request.deadline); !sent) {
      return broken(request, sent.error());
    }
    return Done{};
  }

  Error late(const Request& request) const {
    return Error(Errc::Timeout, where(request) + "timed out after " + to_text(request.limit));
  }

  // The replies that follow cannot be told apart any more.
  Error broken(const Request& request, const Error& cause) {
    const Error error =
        timed_out(cause)
            ? late(request)
            : Error(cause.code(), where(request) + cause.what() +
                                      std::string(closed(cause) ? hint(request.call) : ""));
    connection_->close(error.what());
    return error;
  }

  Error nonsense(const Request& request) {
    return broken(request, Error(Errc::Malformed, "the reply makes no sense in this protocol"));
  }

  // Two bytes come if the wait ended in this moment: then it has succeeded.
  Status cancel_wait(const Request& request, std::uint8_t cancel) {
    const Deadline deadline = Clock::now() + kCancelLimit;
    const char byte = static_cast<char>(cancel);
    if (const Status sent = connection_->send({&byte, 1}, deadline); !sent) {
      return broken(request, sent.error());
    }
    for (bool released = false;;) {
      const auto reply = connection_->receive(ReplyShape::Byte, 0, deadline);
      if (!reply) return broken(request, reply.error());
      if (reply->integer == kWaitCancelled) return released ? Status(Done{}) : late(request);
      if (reply->integer != kWaitReleased || released) return nonsense(request);
      released = true;
    }
  }

  Endpoint endpoint_;
  ClientOptions options_;
  std::unique_ptr<ClientConnection> connection_;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(const Endpoint& endpoint, Deadline deadline, ClientOptions options) {
  auto connection = ClientConnection::open(endpoint, deadline, options);
  if (!connection) return connection.error();
  return Client(std::make_unique<Impl>(endpoint, std::move(options), std::move(*connection)));
}

Status Client::set(std::string_view key, std::string_view value, Timeout timeout) {
  auto request = impl_->keyed(Call::Set, key, timeout);
  RequestWriter(request.bytes).bytes(value);
  return impl_->send_only(request);
}

Result<std::string> Client::get(std::string_view key, Timeout timeout) {
  const auto wait = impl_->keyed(Call::Wait, std::vector<std::string>{std::string(key)}, timeout);
  if (const Status there = impl_->waiting(wait); !there) return there.error();
  auto get = impl_->keyed(Call::Get, key, timeout);
  get.deadline = wait.deadline;
  return impl_->value(get);
}

Result<std::optional<std::string>> Client::try_get(std::string_view key, Timeout timeout) {
  const auto there = check({std::string(key)}, timeout);
  if (!there) return there.error();
  if (!*there) return std::optional<std::string>();
  auto value = impl_->value(impl_->keyed(Call::Get, key, timeout));
  if (!value) return value.error();
  return std::optional<std::string>(std::move(*value));
}

Result<std::int64_t> Client::add(std::string_view key, std::int64_t amount, Timeout timeout) {
  auto request = impl_->keyed(Call::Add, key, timeout);
  RequestWriter(request.bytes).i64(amount);
  return impl_->integer(request);
}

Result<std::string> Client::compare_set(std::string_view key, std::string_view expected,
                                        std::string_view desired, Timeout timeout) {
  auto request = impl_->keyed(Call::CompareSet, key, timeout);
  RequestWriter(request.bytes).bytes(expected).bytes(desired);
  return impl_->value(request);
}

Result<bool> Client::check(const std::vector<std::string>& keys, Timeout timeout) {
  const auto reply = impl_->exchange(impl_->keyed(Call::Check, keys, timeout), ReplyShape::Byte);
  if (!reply) return reply.error();
  return reply->integer == 0;
}

Status Client::wait(const std::vector<std::string>& keys, Timeout timeout) {
  return impl_->waiting(impl_->keyed(Call::Wait, keys, timeout));
}

Result<std::int64_t> Client::num_keys(Timeout timeout) {
  return impl_->integer(impl_->request(Call::NumKeys, "", timeout));
}

Result<bool> Client::delete_key(std::string_view key, Timeout timeout) {
  const auto deleted = impl_->integer(impl_->keyed(Call::DeleteKey, key, timeout));
  if (!deleted) return deleted.error();
  return *deleted > 0;
}

Status Client::append(std::string_view key, std::string_view value, Timeout timeout) {
  auto request = impl_->keyed(Call::Append, key, timeout);
  RequestWriter(request.bytes).bytes(value);
  return impl_->send_only(request);
}

Result<std::vector<std::string>> Client::multi_get(const std::vector<std::string>& keys,
                                                   Timeout timeout) {
  auto get = impl_->keyed(Call::MultiGet, keys, timeout);
  if (!impl_->supports(Call::MultiGet)) return impl_->unsupported(get);
  if (const Status there = wait(keys, timeout); !there) return there.error();
  auto reply = impl_->exchange(get, ReplyShape::Values, keys.size());
  if (!reply) return reply.error();
  return std::move(reply->values);
}

Status Client::multi_set(const std::vector<std::pair<std::string, std::string>>& keys_and_values,
                         Timeout timeout) {
  auto request = impl_->request(Call::MultiSet, "", timeout);
  RequestWriter writer(request.bytes);
  writer.u64(keys_and_values.size());
  for (const auto& [key, value] : keys_and_values)
    writer.bytes(impl_->full_key(key)).bytes(value);
  return impl_->send_only(request);
}

Status Client::ping(Timeout timeout) {
  auto request = impl_->request(Call::Ping, "", timeout);
  RequestWriter(request.bytes).u32(0);
  const auto reply = impl_->exchange(request, ReplyShape::Nonce);
  if (!reply) return reply.error();
  return Done{};
}

Status Client::queue_push(std::string_view queue, std::string_view value, Timeout timeout) {
  auto request = impl_->keyed(Call::QueuePush, queue, timeout);
  RequestWriter(request.bytes).bytes(value);
  return impl_->send_only(request);
}

Result<std::optional<std::string>> Client::queue_pop(std::string_view queue, Timeout timeout) {
  auto pop = impl_->keyed(Call::QueuePop, queue, timeout);
  if (!impl_->supports(Call::QueuePop)) return impl_->unsupported(pop);
  if (const Status there = wait({std::string(queue)}, timeout); !there) return there.error();
  return impl_->popped(pop);
}

Result<std::optional<std::string>> Client::queue_try_pop(std::string_view queue, Timeout timeout) {
  return impl_->popped(impl_->keyed(Call::QueuePop, queue, timeout));
}

Result<std::int64_t> Client::queue_len(std::string_view queue, Timeout timeout) {
  return impl_->integer(impl_->keyed(Call::QueueLen, queue, timeout));
}

Result<std::vector<std::string>> Client::list_keys(Timeout timeout) {
  auto reply = impl_->exchange(impl_->request(Call::ListKeys, "", timeout), ReplyShape::Keys);
  if (!reply) return reply.error();
  const std::string prefix = impl_->key_prefix();
  std::vector<std::string> keys;
  for (std::string& key : reply->values) {
    if (key.starts_with(prefix)) keys.push_back(key.substr(prefix.size()));
  }
  return keys;
}

Status Client::barrier(std::string_view key, std::int64_t world_size, Timeout timeout) {
  auto request = impl_->keyed(Call::Barrier, key, timeout);
  RequestWriter(request.bytes).i64(world_size);
  return impl_->waiting(request);
}

Result<std::int64_t> Client::announce(Timeout timeout) {
  auto request = impl_->request(Call::Add, " 'init/'", timeout);
  RequestWriter(request.bytes).bytes("init/").i64(1);
  return impl_->integer(request);
}

bool Client::connected() const {
  return impl_->connection().connected();
}

Dialect Client::dialect() const {
  return impl_->connection().dialect();
}

Endpoint Client::local_endpoint() const {
  return impl_->connection().local_endpoint();
}

const Endpoint& Client::endpoint() const {
  return impl_->endpoint();
}

}  // namespace drun::store
