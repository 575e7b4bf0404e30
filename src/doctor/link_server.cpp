#include "doctor/link_server.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <list>
#include <system_error>
#include <utility>

#include "base/poll_until.hpp"
#include "base/signal_block.hpp"

namespace drun::doctor {
namespace {

constexpr std::chrono::seconds kSilence{10};
constexpr std::size_t kMostConnections = 4'096;
// For want of descriptors: those who wait stay in the kernel's queue.
constexpr std::chrono::milliseconds kPause{100};

// Of one node, which may have several.
struct LinkClient {
  FileDescriptor socket;
  std::atomic<bool> over = false;
  std::thread thread;
};

void join_ended(std::list<LinkClient>& connections) {
  connections.remove_if([](LinkClient& each) {
    if (each.over) each.thread.join();
    return each.over.load();
  });
}

// Up to `size` bytes; less: the other end has closed, or says nothing, or it is time to stop.
std::size_t receive(int socket, int stop, char* to, std::size_t size, bool all) {
  std::size_t got = 0;
  const auto deadline = std::chrono::steady_clock::now() + kSilence;
  while (got < size) {
    std::array<pollfd, 2> entries{{{socket, POLLIN, 0}, {stop, POLLIN, 0}}};
    if (poll_until(entries, deadline) <= 0 || entries[1].revents != 0) return got;
    const auto n = ::recv(socket, to + got, size - got, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return got;
    got += static_cast<std::size_t>(n);
    if (!all) return got;
  }
  return got;
}

void put_stamp(std::int64_t value, char* to) {
  for (std::size_t i = 0; i < kStampSize; ++i)
    to[i] = static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * (kStampSize - 1 - i)));
}

void serve_link(int socket, int stop, const std::string& token) {
  std::array<char, kTokenSize + 1> head{};
  if (receive(socket, stop, head.data(), head.size(), true) < head.size()) return;
  if (std::string_view(head.data(), kTokenSize) != token) return;
  const int on = 1;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (head.back() == kLinkEcho) {
    char byte = 0;
    std::array<char, kStampSize> stamp{};
    while (receive(socket, stop, &byte, 1, true) == 1) {
      put_stamp(wall_clock_us(), stamp.data());
      if (::send(socket, stamp.data(), stamp.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(stamp.size()))
        return;
    }
  } else if (head.back() == kLinkSink) {
    std::vector<char> buffer(std::size_t{256} * 1024);
    while (receive(socket, stop, buffer.data(), buffer.size(), false) > 0) {
    }
    (void)::send(socket, "E", 1, MSG_NOSIGNAL);
  }
}

}  // namespace

std::int64_t wall_clock_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

LinkServer::LinkServer(std::string token)
    : token_(std::move(token)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  sockaddr_storage place{};
  socklen_t size = sizeof(sockaddr_in6);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&place);
  six->sin6_family = AF_INET6;
  six->sin6_addr = in6addr_any;
  listener_.reset(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener_) {  // a machine without IPv6
    place = {};
    place.ss_family = AF_INET;
    size = sizeof(sockaddr_in);
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  const int off = 0;
  (void)::setsockopt(listener_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  auto* const address = reinterpret_cast<sockaddr*>(&place);
  if (!stop_ || !listener_ || ::bind(listener_.get(), address, size) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0 ||
      ::getsockname(listener_.get(), address, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "listen for the other nodes");
  port_ = ntohs(place.ss_family == AF_INET6 ? six->sin6_port
                                            : reinterpret_cast<sockaddr_in*>(&place)->sin_port);
  const SignalBlock no_signals;  // they belong to the main thread
  thread_ = std::thread([this] { accept_all(); });
}

LinkServer::~LinkServer() {
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void LinkServer::accept_all() {
  std::list<LinkClient> connections;
  while (true) {
    std::array<pollfd, 2> entries{{{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    if (poll_until(entries, kNoDeadline) < 0 || entries[1].revents != 0) break;
    join_ended(connections);
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) {
      (void)await_ready(stop_.get(), POLLIN, std::chrono::steady_clock::now() + kPause);
      continue;
    }
    if (connections.size() >= kMostConnections) continue;
    LinkClient& added = connections.emplace_back();
    added.socket = std::move(socket);
    added.thread = std::thread([this, &added] {
      serve_link(added.socket.get(), stop_.get(), token_);
      (void)::shutdown(added.socket.get(), SHUT_RDWR);
      added.over = true;
    });
  }
  for (LinkClient& each : connections)
    each.thread.join();
}

}  // namespace drun::doctor
