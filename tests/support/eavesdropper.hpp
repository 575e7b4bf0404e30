// Listens to what goes between clients and a server.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"

namespace drun::test {

// Passes on what two sides say, and keeps it.
class Eavesdropper {
 public:
  explicit Eavesdropper(int to_port) : to_port_(to_port) {
    sockaddr_in address = local(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  Eavesdropper(const Eavesdropper&) = delete;
  Eavesdropper& operator=(const Eavesdropper&) = delete;
  ~Eavesdropper() { (void)heard(); }

  [[nodiscard]] std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }
  // Ends it. All that went through, both ways.
  const std::string& heard() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return heard_;
  }

 private:
  struct Line {
    FileDescriptor from;
    std::size_t to;  // of lines_
  };

  static sockaddr_in local(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }
  void run() {
    while (!stop_) {
      std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
      for (const Line& line : lines_)
        polled.push_back({line.from ? line.from.get() : -1, POLLIN, 0});
      if (::poll(polled.data(), polled.size(), 20) <= 0) continue;
      for (std::size_t i = 0; i < lines_.size(); ++i)
        if (polled[i + 1].revents != 0) pass_on(i);
      if (polled.front().revents != 0) accept();
    }
  }
  void accept() {
    FileDescriptor caller(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    FileDescriptor store(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = local(to_port_);
    if (::connect(store.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
    lines_.push_back({std::move(caller), lines_.size() + 1});
    lines_.push_back({std::move(store), lines_.size() - 1});
  }
  void pass_on(std::size_t number) {
    std::array<char, 16'384> bytes;
    const ssize_t got = ::recv(lines_[number].from.get(), bytes.data(), bytes.size(), 0);
    const std::size_t to = lines_[number].to;
    if (got <= 0) {
      lines_[number].from.reset();
      lines_[to].from.reset();
      return;
    }
    heard_.append(bytes.data(), static_cast<std::size_t>(got));
    (void)::send(lines_[to].from.get(), bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
  }

  FileDescriptor listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int to_port_;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<Line> lines_;
  std::string heard_;
  std::thread thread_;
};

}  // namespace drun::test
