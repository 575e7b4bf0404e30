// A server of HTTP that does with each request what a test says. A thread of its own.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.hpp"

namespace drun::etcd::test {

class HttpServer {
 public:
  // The whole answer to a request for this path; nullopt: the connection is closed instead.
  using Answers = std::function<std::optional<std::string>(const std::string& path)>;

  // At a free port of the loopback address. In a machine without IPv6 it does not listen.
  explicit HttpServer(int family, Answers answers)
      : answers_(std::move(answers)),
        listener_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        over_(::eventfd(0, EFD_CLOEXEC)) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_addr = in6addr_loopback;
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool is_six = family == AF_INET6;
    auto* const address =
        is_six ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
    socklen_t length = is_six ? sizeof six : sizeof four;
    listens_ = ::bind(listener_.get(), address, length) == 0 && ::listen(listener_.get(), 16) == 0;
    if (!listens_) return;
    ::getsockname(listener_.get(), address, &length);
    port_ = ntohs(is_six ? six.sin6_port : four.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer() {
    ::eventfd_write(over_.get(), 1);
    if (thread_.joinable()) thread_.join();
  }

  [[nodiscard]] bool listens() const { return listens_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // How many requests for it have come.
  [[nodiscard]] int asked(const std::string& path) {
    const std::lock_guard lock(mutex_);
    return asked_[path];
  }

  static std::string ok(const std::string& body) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

 private:
  struct Connection {
    FileDescriptor socket;
    std::string received;
  };

  void serve() {
    for (;;) {
      std::vector<pollfd> entries = {{over_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const auto& each : connections_)
        entries.push_back({each.socket.get(), POLLIN, 0});
      ::poll(entries.data(), entries.size(), -1);
      if (entries[0].revents != 0) return;
      std::vector<Connection> kept;
      for (std::size_t i = 0; i < connections_.size(); ++i) {
        if (entries[i + 2].revents == 0 || read(connections_[i]))
          kept.push_back(std::move(connections_[i]));
      }
      connections_ = std::move(kept);
      if (entries[1].revents != 0)
        connections_.push_back({FileDescriptor(::accept(listener_.get(), nullptr, nullptr)), ""});
    }
  }

  // False: it is to be closed.
  bool read(Connection& connection) {
    char bytes[4096];
    const ssize_t count = ::recv(connection.socket.get(), bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    connection.received.append(bytes, static_cast<std::size_t>(count));
    const auto head = connection.received.find("\r\n\r\n");
    if (head == std::string::npos) return true;
    const auto at = connection.received.find("Content-Length: ");
    const std::size_t length =
        at < head ? std::stoul(connection.received.substr(at + 16, head - at - 16)) : 0;
    if (connection.received.size() < head + 4 + length) return true;
    const auto begin = connection.received.find(' ') + 1;
    const std::string path =
        connection.received.substr(begin, connection.received.find(' ', begin) - begin);
    connection.received.clear();
    {
      const std::lock_guard lock(mutex_);
      ++asked_[path];
    }
    const auto answer = answers_(path);
    if (!answer) return false;
    return ::send(connection.socket.get(), answer->data(), answer->size(), MSG_NOSIGNAL) > 0;
  }

  const Answers answers_;
  const FileDescriptor listener_;
  const FileDescriptor over_;
  bool listens_ = false;
  std::uint16_t port_ = 0;
  std::vector<Connection> connections_;  // the thread's
  std::mutex mutex_;                     // guards what follows
  std::map<std::string, int> asked_;
  std::thread thread_;
};

}  // namespace drun::etcd::test
