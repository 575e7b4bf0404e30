#include "support/store_thread.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace drun::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// What is there, from one end to the other; false when the end has closed.
bool carry(const FileDescriptor& from, const FileDescriptor& to) {
  char bytes[65536];
  const ssize_t n = ::recv(from.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN;
  return n > 0 && ::send(to.get(), bytes, static_cast<std::size_t>(n), MSG_NOSIGNAL) == n;
}

}  // namespace

StoreThread::StoreThread(std::uint16_t port, store::ServerOptions options)
    : server_(std::make_unique<store::Server>(options)) {
  const auto bound = server_->add_listener({"127.0.0.1", port}, store::Table::Job);
  if (!bound) throw std::runtime_error(bound.error().what());
  endpoint_ = *bound;
  thread_ = std::thread([this] { server_->run(); });
}

StoreThread::~StoreThread() {
  server_->stop();
  thread_.join();
}

Wire::Wire(Endpoint to) : to_(std::move(to)) {
  listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_.get(), 64) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "listen");
  }
  endpoint_ = {"127.0.0.1", ntohs(address.sin_port)};
  thread_ = std::thread([this] { run(); });
}

Wire::~Wire() {
  over_ = true;
  thread_.join();
}

void Wire::accept_one() {
  Pair pair;
  pair.client.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  pair.server.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(to_.port);
  if (::connect(pair.server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    return;  // the client sees its connection close
  }
  const int on = 1;
  ::setsockopt(pair.client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(pair.server.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  pairs_.push_back(std::move(pair));
}

void Wire::run() {
  constexpr int kTurn = 5;  // milliseconds: how soon cut(), freeze() and the end are seen
  while (!over_) {
    if (cuts_.exchange(false)) pairs_.clear();
    std::vector<pollfd> entries;
    if (!frozen_) {
      entries.push_back({listener_.get(), POLLIN, 0});
      for (const Pair& pair : pairs_) {
        entries.push_back({pair.client.get(), POLLIN, 0});
        entries.push_back({pair.server.get(), POLLIN, 0});
      }
    }
    ::poll(entries.data(), entries.size(), kTurn);
    if (frozen_) continue;
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      const Pair& pair = pairs_[i];
      if (!carry(pair.client, pair.server) || !carry(pair.server, pair.client)) {
        pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (!entries.empty() && (entries[0].revents & POLLIN) != 0) accept_one();
  }
}

}  // namespace drun::test
