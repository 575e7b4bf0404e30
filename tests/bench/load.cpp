#include "bench/load.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

#include "store/client/socket.hpp"
#include "store/protocol/tcpstore_codec.hpp"

namespace drun::bench {
namespace {

using Clock = std::chrono::steady_clock;
using store::TcpStoreVersion;
using store::tcpstore::encode;
using store::tcpstore::Op;

constexpr std::size_t kHelloReply = 4;
constexpr std::size_t kConnecting = 2000;  // at once: a server's backlog must not overflow
constexpr auto kStuck = std::chrono::seconds(60);

std::uint64_t nanoseconds(Duration duration) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
}

std::string hello(TcpStoreVersion version) {
  std::string bytes;
  if (version == TcpStoreVersion::Torch2_2) {
    encode(bytes, version, {.op = Op::Validate});
    encode(bytes, version, {.op = Op::Ping, .nonce = 1});
  }
  return bytes;
}

// A connection that is sent bytes in the order of send(), and that counts what comes back.
struct Connection {
  FileDescriptor socket;
  std::string outgoing;  // not sent yet, from `sent` on
  std::size_t sent = 0;
  bool connected = false;
  bool wants_writable = false;
  std::size_t received = 0;                // bytes of the reply that is on its way
  std::vector<Clock::time_point> started;  // of the requests in flight, a ring
  std::size_t oldest = 0;
};

class Swarm {
 public:
  // Called with a connection's number and the bytes that came.
  using Received = std::function<void(std::size_t, std::string_view)>;

  explicit Swarm(const ServerProcess& server) {
    epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    address_ = store::literal_addresses(server.endpoint()).at(0);
    buffer_.resize(std::size_t{1} << 18);
  }

  ~Swarm() {
    // A reset leaves no TIME_WAIT behind: thousands of those would fill the port range.
    const linger now{1, 0};
    for (Connection& c : connections_) {
      if (c.socket) ::setsockopt(c.socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
  }

  void reserve(std::size_t count) { connections_.reserve(count); }
  std::size_t size() const { return connections_.size(); }
  Connection& at(std::size_t number) { return connections_[number]; }
  std::size_t connecting() const { return connecting_; }

  void connect() {
    auto socket = store::begin_connect(address_);
    if (!socket) throw std::runtime_error("connect: " + socket.error().what());
    Connection connection;
    connection.socket = std::move(*socket);
    connection.wants_writable = true;
    connections_.push_back(std::move(connection));
    ++connecting_;
    watch(size() - 1, EPOLL_CTL_ADD);
  }

  void send(std::size_t number, std::string_view bytes) {
    Connection& c = at(number);
    if (c.connected && c.outgoing.empty()) {
      const ssize_t n = ::send(c.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN) broken(errno);
      bytes.remove_prefix(n > 0 ? static_cast<std::size_t>(n) : 0);
    }
    if (bytes.empty()) return;
    c.outgoing.append(bytes);
    if (!c.wants_writable) {
      c.wants_writable = true;
      watch(number, EPOLL_CTL_MOD);
    }
  }

  // One turn: waits at most until `until`.
  void turn(Clock::time_point until, const Received& received) {
    std::array<epoll_event, 512> events;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               static_cast<int>(std::max<decltype(left)>(left, 0)));
    for (int i = 0; i < n; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const std::size_t number = event.data.u64;
      if ((event.events & EPOLLOUT) != 0) writable(number);
      if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) readable(number, received);
    }
  }

 private:
  [[noreturn]] static void broken(int error) {
    throw std::runtime_error(error == 0 ? "the server closed a connection" : std::strerror(error));
  }

  void watch(std::size_t number, int operation) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (at(number).wants_writable) event.events |= EPOLLOUT;
    event.data.u64 = number;
    ::epoll_ctl(epoll_.get(), operation, at(number).socket.get(), &event);
  }

  void writable(std::size_t number) {
    Connection& c = at(number);
    if (!c.connected) {
      if (const Status status = store::connect_error(c.socket.get()); !status) {
        throw std::runtime_error("connect: " + status.error().what());
      }
      c.connected = true;
      --connecting_;
    }
    if (!c.outgoing.empty()) {
      const ssize_t n = ::send(c.socket.get(), c.outgoing.data() + c.sent,
                               c.outgoing.size() - c.sent, MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN) broken(errno);
      c.sent += n > 0 ? static_cast<std::size_t>(n) : 0;
      if (c.sent < c.outgoing.size()) return;
      c.outgoing.clear();
      c.sent = 0;
    }
    c.wants_writable = false;
    watch(number, EPOLL_CTL_MOD);
  }

  void readable(std::size_t number, const Received& received) {
    const ssize_t n = ::recv(at(number).socket.get(), buffer_.data(), buffer_.size(), 0);
    if (n > 0) {
      received(number, {buffer_.data(), static_cast<std::size_t>(n)});
    } else if (n == 0 || errno != EAGAIN) {
      broken(n == 0 ? 0 : errno);
    }
  }

  SocketAddress address_;
  FileDescriptor epoll_;
  std::vector<Connection> connections_;
  std::size_t connecting_ = 0;
  std::vector<char> buffer_;
};

void forget_sizes(LimitSizes& sizes, TcpStoreVersion version) {
  sizes.hello_bytes = hello(version).size();
  sizes.hello_reply = kHelloReply;
  sizes.request_bytes = 0;
  sizes.reply_bytes = 0;
  sizes.release_at = 0;
  ++sizes.load;
}

// Connects `count` more and waits for the answer to their greeting (torch 2.2 has one).
void open_connections(Swarm& swarm, std::size_t count, TcpStoreVersion version) {
  const std::string greeting = hello(version);
  const std::size_t total = swarm.size() + count;
  std::size_t greeted = greeting.empty() ? total : swarm.size();
  const auto limit = Clock::now() + kStuck;
  while (swarm.size() < total || greeted < total || swarm.connecting() > 0) {
    while (swarm.size() < total && swarm.connecting() < kConnecting) {
      swarm.connect();
      swarm.send(swarm.size() - 1, greeting);
    }
    swarm.turn(limit, [&](std::size_t number, std::string_view bytes) {
      Connection& c = swarm.at(number);
      c.received += bytes.size();
      if (c.received < kHelloReply) return;
      c.received = 0;
      ++greeted;
    });
    if (Clock::now() > limit) throw std::runtime_error("connecting takes too long");
  }
}

// Sends what has no reply, and a question behind it: its answer says that the first has been done.
void prepare(Swarm& swarm, const std::string& request, TcpStoreVersion version) {
  std::string question;
  encode(question, version, {.op = Op::Check});
  swarm.send(0, request + question);
  bool answered = false;
  while (!answered) {
    swarm.turn(Clock::now() + kStuck, [&](std::size_t, std::string_view) { answered = true; });
  }
}

// Closed loop, with `depth` requests in flight on each connection.
class RequestLoad {
 public:
  RequestLoad(Swarm& swarm, const Workload& workload, TcpStoreVersion version, bool checked)
      : swarm_(swarm), workload_(workload), checked_(checked && !workload.reply_begins.empty()) {
    requests_.reserve(workload.connections);
    for (std::size_t i = 0; i < workload.connections; ++i) {
      requests_.push_back(workload.request(i, version));
    }
  }

  void start() {
    for (std::size_t i = 0; i < workload_.connections; ++i) {
      Connection& c = swarm_.at(i);
      c.started.assign(workload_.depth, Clock::now());
      send(i, workload_.depth);
    }
  }

  void run(Clock::time_point until) {
    for (auto now = Clock::now(); now < until; now = Clock::now()) {
      swarm_.turn(until,
                  [this](std::size_t number, std::string_view bytes) { received(number, bytes); });
    }
  }

  void begin_measuring() {
    latency_ = {};
    replies_ = 0;
  }
  const Histogram& latency() const { return latency_; }
  std::uint64_t replies() const { return replies_; }

 private:
  void send(std::size_t number, std::size_t count) {
    const std::string& request = requests_[number];
    if (count == 1) {
      swarm_.send(number, request);
      return;
    }
    batch_.clear();
    for (std::size_t i = 0; i < count; ++i)
      batch_ += request;
    swarm_.send(number, batch_);
  }

  void received(std::size_t number, std::string_view bytes) {
    Connection& c = swarm_.at(number);
    const auto now = Clock::now();
    std::size_t complete = 0;
    while (!bytes.empty()) {
      const std::size_t here = std::min(bytes.size(), workload_.reply_bytes - c.received);
      if (checked_) check(c, bytes.substr(0, here));
      c.received += here;
      bytes.remove_prefix(here);
      if (c.received < workload_.reply_bytes) break;
      c.received = 0;
      latency_.add(nanoseconds(now - c.started[c.oldest]));
      c.started[c.oldest] = now;  // of the request that takes its place
      c.oldest = (c.oldest + 1) % workload_.depth;
      ++complete;
    }
    replies_ += complete;
    if (complete > 0) send(number, complete);
  }

  void check(const Connection& c, std::string_view bytes) {
    const std::string& wanted = workload_.reply_begins;
    if (c.received >= wanted.size()) return;
    const std::size_t length = std::min(bytes.size(), wanted.size() - c.received);
    if (bytes.substr(0, length) != std::string_view(wanted).substr(c.received, length)) {
      throw std::runtime_error("a wrong reply to " + workload_.name);
    }
  }

  Swarm& swarm_;
  const Workload& workload_;
  bool checked_;
  std::vector<std::string> requests_;
  std::string batch_;
  Histogram latency_;
  std::uint64_t replies_ = 0;
};

std::string wait_request(TcpStoreVersion version, std::string_view key) {
  std::string bytes;
  encode(bytes, version, {.op = Op::Wait, .keys = {key}});
  return bytes;
}

std::string set_request(TcpStoreVersion version, std::string_view key, std::string_view value) {
  std::string bytes;
  encode(bytes, version, {.op = Op::Set, .key = key, .value = value});
  return bytes;
}

// The limit's server releases `waiters` when one more connection has set the key.
void hold_replies(LimitSizes& sizes, std::size_t waiters, TcpStoreVersion version,
                  std::string_view key) {
  sizes.request_bytes = wait_request(version, key).size();
  sizes.reply_bytes = 1;
  sizes.release_at = waiters * sizes.request_bytes + set_request(version, key, "1").size();
}

std::string round_key(std::uint64_t round) {
  std::string digits = std::to_string(round);
  return "/bench/round/" + std::string(10 - digits.size(), '0') + digits;
}

// Connections 1 to n wait for `key`; connection 0 sets it when `may_set` says so. Returns when all
// have been released; `released` is called for each.
template <typename Released>
Clock::time_point pass_barrier(Swarm& swarm, TcpStoreVersion version, const std::string& key,
                               Clock::time_point limit, const Released& released) {
  const std::string wait = wait_request(version, key);
  std::size_t left = swarm.size() - 1;
  for (std::size_t i = 1; i < swarm.size(); ++i)
    swarm.send(i, wait);
  const auto set_at = Clock::now();
  swarm.send(0, set_request(version, key, "1"));
  while (left > 0) {
    if (Clock::now() > limit) throw std::runtime_error("the barrier takes too long");
    swarm.turn(limit, [&](std::size_t, std::string_view bytes) {
      if (bytes.size() != 1) throw std::runtime_error("a wrong reply to wait");
      released(Clock::now() - set_at);
      --left;
    });
  }
  return set_at;
}

template <typename Body>
Measurement guarded(const Body& body) {
  Measurement result;
  try {
    body(result);
    result.ok = true;
  } catch (const std::exception& error) {
    result.problem = error.what();
  }
  return result;
}

}  // namespace

Measurement run_requests(const ServerProcess& server, LimitSizes& sizes, const Workload& workload,
                         Duration time) {
  return guarded([&](Measurement& result) {
    const TcpStoreVersion version = server.version();
    forget_sizes(sizes, version);
    sizes.request_bytes = workload.request(0, version).size();
    sizes.reply_bytes = workload.reply_bytes;
    Swarm swarm(server);
    swarm.reserve(workload.connections);
    open_connections(swarm, workload.connections, version);
    const bool is_store = !limit_kind(server.name());
    if (workload.prepare && is_store) prepare(swarm, workload.prepare(version), version);
    RequestLoad load(swarm, workload, version, is_store);
    load.start();
    load.run(Clock::now() + time / 5);
    load.begin_measuring();
    const std::uint64_t cpu = server.cpu_time();
    const auto start = Clock::now();
    load.run(start + time);
    // Longer on a machine on which the server has not had its turn in that time.
    while (load.replies() == 0 && Clock::now() < start + kStuck)
      load.run(Clock::now() + time);
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    result.server_cpu = server.cpu_time() - cpu;
    result.operations = load.replies() * workload.operations;
    result.latency = load.latency();
    if (result.operations == 0) throw std::runtime_error("no reply in a minute");
  });
}

Measurement run_waits(const ServerProcess& server, LimitSizes& sizes, std::size_t connections,
                      Duration time) {
  return guarded([&](Measurement& result) {
    const TcpStoreVersion version = server.version();
    forget_sizes(sizes, version);
    hold_replies(sizes, connections, version, round_key(0));
    static std::uint64_t round = 0;  // keys of earlier loads exist already
    Swarm swarm(server);
    swarm.reserve(connections + 1);
    open_connections(swarm, connections + 1, version);
    const auto pass = [&] {
      pass_barrier(swarm, version, round_key(++round), Clock::now() + kStuck,
                   [&](Duration latency) { result.latency.add(nanoseconds(latency)); });
    };
    for (const auto end = Clock::now() + time / 5; Clock::now() < end;)
      pass();
    result.latency = {};
    const std::uint64_t cpu = server.cpu_time();
    const auto start = Clock::now();
    do
      pass();
    while (Clock::now() < start + time);
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    result.server_cpu = server.cpu_time() - cpu;
    result.operations = result.latency.count();
  });
}

Measurement run_storm(const ServerProcess& server, LimitSizes& sizes, std::size_t connections,
                      Duration limit) {
  return guarded([&](Measurement& result) {
    const TcpStoreVersion version = server.version();
    forget_sizes(sizes, version);
    static std::uint64_t storm = 0;
    const std::string key = "/bench/storm/" + std::to_string(++storm);
    std::string greeting = hello(version);
    const std::size_t hello_reply = greeting.empty() ? 0 : kHelloReply;
    encode(greeting, version, {.op = Op::Add, .key = "init/", .number = 1});
    sizes.request_bytes = greeting.size() - sizes.hello_bytes;
    sizes.reply_bytes = 8;

    Swarm swarm(server);
    swarm.reserve(connections + 1);
    open_connections(swarm, 1, version);  // the one that will set the key
    const std::size_t memory = server.memory();
    const std::uint64_t cpu = server.cpu_time();
    const auto start = Clock::now();
    std::size_t counted = 0;
    while (counted < connections) {
      while (swarm.size() <= connections && swarm.connecting() < kConnecting) {
        swarm.connect();
        swarm.send(swarm.size() - 1, greeting);
      }
      swarm.turn(start + limit, [&](std::size_t number, std::string_view bytes) {
        Connection& c = swarm.at(number);
        c.received += bytes.size();
        if (c.received < hello_reply + 8) return;
        ++counted;
        result.latency.add(nanoseconds(Clock::now() - start));
      });
      if (Clock::now() > start + limit) {
        throw std::runtime_error("only " + std::to_string(counted) + " connected in time");
      }
    }
    const auto connected = Clock::now();
    result.memory_per_connection =
        (static_cast<double>(server.memory()) - static_cast<double>(memory)) /
        static_cast<double>(connections);

    hold_replies(sizes, connections, version, key);
    pass_barrier(swarm, version, key, start + limit, [](Duration) {});
    const auto end = Clock::now();
    result.seconds = std::chrono::duration<double>(connected - start).count();
    result.barrier_seconds = std::chrono::duration<double>(end - connected).count();
    result.server_cpu = server.cpu_time() - cpu;
    result.operations = connections;
  });
}

}  // namespace drun::bench
