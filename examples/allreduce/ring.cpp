#include "ring.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "drun/base/endpoint.hpp"

namespace allreduce {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::generic_category().message(errno));
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

// A numeric address as the socket calls want it.
std::unique_ptr<addrinfo, FreeAddresses> numeric(const drun::Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const int error = ::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) throw std::runtime_error(endpoint.host + ": " + ::gai_strerror(error));
  return std::unique_ptr<addrinfo, FreeAddresses>(list);
}

Socket listen_at(const std::string& host) {
  const auto address = numeric({host, 0});
  Socket server(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!server || ::bind(server.get(), address->ai_addr, address->ai_addrlen) != 0 ||
      ::listen(server.get(), 1) != 0) {
    fail("listen at " + host);
  }
  return server;
}

std::uint16_t port_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  std::array<char, NI_MAXSERV> port{};
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    fail("getsockname");
  ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, nullptr, 0, port.data(), port.size(),
                NI_NUMERICSERV);
  return static_cast<std::uint16_t>(std::stoi(port.data()));
}

Socket connect_to(const drun::Endpoint& endpoint) {
  const auto address = numeric(endpoint);
  Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), address->ai_addr, address->ai_addrlen) != 0)
    fail("connect to " + to_string(endpoint));
  return socket;
}

void prepare(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
}

}  // namespace

Ring::Ring(drun::store::Client& store, int rank, int size, std::chrono::milliseconds timeout)
    : rank_(rank), size_(size), timeout_(timeout) {
  if (size == 1) return;
  // The address under which this machine reaches the store is one that the others can reach.
  const std::string host = store.local_endpoint().host;
  const Socket server = listen_at(host);
  const std::string mine = to_string(drun::Endpoint{host, port_of(server)});
  const auto all = store.exchange(rank, size, mine, timeout).value();
  const std::string& next = all[static_cast<std::size_t>((rank + 1) % size)];
  right_ = connect_to(drun::parse_endpoint(next, 0).value());

  pollfd incoming{server.get(), POLLIN, 0};
  if (::poll(&incoming, 1, static_cast<int>(timeout.count())) == 0)
    throw std::runtime_error("the left neighbour did not connect in time");
  left_ = Socket(::accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!left_) fail("accept");
  prepare(left_);
  prepare(right_);
}

void Ring::all_reduce(std::span<double> values) {
  std::vector<double> received(piece(values, 0).size());
  // First every piece goes once around and collects: after size - 1 steps this worker holds the
  // complete sum of piece rank + 1.
  for (int step = 0; step < size_ - 1; ++step) {
    const auto mine = piece(values, rank_ - step - 1);
    const auto theirs = std::span(received).first(mine.size());
    exchange(piece(values, rank_ - step), theirs);
    for (std::size_t i = 0; i < mine.size(); ++i)
      mine[i] += theirs[i];
  }
  // Then the complete pieces go around.
  for (int step = 0; step < size_ - 1; ++step) {
    exchange(piece(values, rank_ + 1 - step), piece(values, rank_ - step));
  }
}

std::span<double> Ring::piece(std::span<double> values, int index) const {
  const auto size = static_cast<std::size_t>(size_);
  const auto at = static_cast<std::size_t>((index % size_ + size_) % size_);
  const std::size_t length = (values.size() + size - 1) / size;
  const std::size_t begin = std::min(at * length, values.size());
  return values.subspan(begin, std::min(length, values.size() - begin));
}

void Ring::exchange(std::span<const double> to_right, std::span<double> from_left) {
  auto out = std::as_bytes(to_right);
  auto in = std::as_writable_bytes(from_left);
  while (!out.empty() || !in.empty()) {
    std::array<pollfd, 2> set = {pollfd{out.empty() ? -1 : right_.get(), POLLOUT, 0},
                                 pollfd{in.empty() ? -1 : left_.get(), POLLIN, 0}};
    const int ready = ::poll(set.data(), set.size(), static_cast<int>(timeout_.count()));
    if (ready == 0) throw std::runtime_error("a neighbour is silent");
    if (ready < 0 && errno != EINTR) fail("poll");
    if (set[0].revents != 0) {
      const auto n = ::send(right_.get(), out.data(), out.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN) fail("send to the right neighbour");
      if (n > 0) out = out.subspan(static_cast<std::size_t>(n));
    }
    if (set[1].revents != 0) {
      const auto n = ::recv(left_.get(), in.data(), in.size(), 0);
      if (n == 0) throw std::runtime_error("the left neighbour has gone");
      if (n < 0 && errno != EAGAIN) fail("receive from the left neighbour");
      if (n > 0) in = in.subspan(static_cast<std::size_t>(n));
    }
  }
}

}  // namespace allreduce
