// Connecting, with real sockets: localhost has an address of either kind, of which one may refuse
// or say nothing.
#include "store/client/dialer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <optional>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "support/patience.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Port 0: any. nullopt: there is no such address here, or no such port.
std::optional<FileDescriptor> bound(int family, std::uint16_t port) {
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  int failed = 0;
  if (family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    address.sin6_port = htons(port);
    failed = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    failed = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  if (failed != 0) return std::nullopt;
  return socket;
}

std::uint16_t port_of(const FileDescriptor& socket) {
  sockaddr_in6 address{};  // the port is where that of sockaddr_in is
  socklen_t size = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin6_port);
}

// A dialer and what it has said.
struct Dial {
  Dial(asio::io_context& loop, const Endpoint& endpoint, std::size_t first = 0)
      : io(loop),
        dialer(
            loop, endpoint,
            [this](Result<FileDescriptor> result) { results.push_back(std::move(result)); },
            first) {}
  [[nodiscard]] bool until_over() {
    return test::eventually([this] {
      io.restart();
      io.run_one_for(1ms);
      return !results.empty();
    });
  }
  asio::io_context& io;
  std::vector<Result<FileDescriptor>> results;
  Dialer dialer;
};

// Of localhost one address has the port and does not listen, the other one may.
class DialerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 100 && !(six_ && four_); ++i) {
      six_ = bound(AF_INET6, 0);
      if (!six_) GTEST_SKIP() << "no IPv6 on the loopback interface";
      four_ = bound(AF_INET, port_of(*six_));
    }
    ASSERT_TRUE(four_);
    endpoint_ = {"localhost", port_of(*six_)};
    // Which of them is tried first.
    ::listen(six_->get(), 4);
    Dial dial(io_, endpoint_);
    ASSERT_TRUE(dial.until_over());
    six_first_ = dial.results[0].ok() && dial.dialer.address() == 0;
    const std::uint16_t port = port_of(*six_);
    six_.reset();
    six_ = bound(AF_INET6, port);
    ASSERT_TRUE(six_);
  }
  FileDescriptor& first() { return six_first_ ? *six_ : *four_; }
  FileDescriptor& second() { return six_first_ ? *four_ : *six_; }

  asio::io_context io_{1};
  std::optional<FileDescriptor> six_;
  std::optional<FileDescriptor> four_;
  bool six_first_ = true;
  Endpoint endpoint_;
};

TEST_F(DialerTest, TriesOneAddressAfterTheOther) {
  ASSERT_EQ(::listen(second().get(), 4), 0);
  Dial dial(io_, endpoint_);
  EXPECT_TRUE(dial.results.empty()) << "nobody is called from inside the constructor";
  ASSERT_TRUE(dial.until_over());
  ASSERT_TRUE(dial.results[0]) << dial.results[0].error().what();
  EXPECT_EQ(dial.dialer.address(), 1U);
  const FileDescriptor accepted(::accept(second().get(), nullptr, nullptr));
  EXPECT_EQ(::send(dial.results[0]->get(), "x", 1, 0), 1);
  char byte = 0;
  EXPECT_EQ(::recv(accepted.get(), &byte, 1, 0), 1);
  io_.restart();
  io_.run();  // nothing is waited for any more
  EXPECT_EQ(dial.results.size(), 1U);
}

TEST_F(DialerTest, BeginsWithTheAddressThatItIsTold) {
  ASSERT_EQ(::listen(first().get(), 4), 0);
  ASSERT_EQ(::listen(second().get(), 4), 0);
  Dial dial(io_, endpoint_, 1);
  ASSERT_TRUE(dial.until_over());
  ASSERT_TRUE(dial.results[0]);
  EXPECT_EQ(dial.dialer.address(), 1U);
  Dial none(io_, endpoint_, 2);
  ASSERT_TRUE(none.until_over());
  EXPECT_FALSE(none.results[0]);
}

TEST_F(DialerTest, TellsTheCauseOfTheLastAddress) {
  Dial dial(io_, endpoint_);
  ASSERT_TRUE(dial.until_over());
  ASSERT_FALSE(dial.results[0]);
  EXPECT_EQ(dial.results[0].error().code(), std::errc::connection_refused);
  EXPECT_EQ(dial.results[0].error().what(), "Connection refused");
}

TEST_F(DialerTest, WhoIsCancelledIsNotCalled) {
  ASSERT_EQ(::listen(first().get(), 4), 0);
  bool called = false;
  {
    const Dialer dialer(io_, endpoint_, [&](Result<FileDescriptor>) { called = true; });
  }
  io_.restart();
  io_.run();
  EXPECT_FALSE(called);
  {
    const Dialer dialer(io_, {"no-such-name.invalid", 1},
                        [&](Result<FileDescriptor>) { called = true; });
  }
  io_.restart();
  io_.run();
  EXPECT_FALSE(called);
}

// As behind a firewall that drops what it does not like.
TEST_F(DialerTest, AnAddressThatSaysNothingIsLeftAfterSomeTime) {
  ASSERT_EQ(::listen(first().get(), 0), 0);
  ASSERT_EQ(::listen(second().get(), 4), 0);
  // Its queue is full, and the kernel drops whoever else comes.
  std::vector<FileDescriptor> queued;
  sockaddr_in6 place{};
  socklen_t size = sizeof place;
  ASSERT_EQ(::getsockname(first().get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
  for (int i = 0; i < 4; ++i) {
    queued.emplace_back(::socket(place.sin6_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::connect(queued.back().get(), reinterpret_cast<const sockaddr*>(&place), size);
  }
  const auto begun = Clock::now();
  Dial dial(io_, endpoint_);
  ASSERT_TRUE(dial.until_over());
  EXPECT_TRUE(dial.results[0]) << dial.results[0].error().what();
  EXPECT_EQ(dial.dialer.address(), 1U);
  EXPECT_GE(Clock::now() - begun, 5s);
  EXPECT_LT(Clock::now() - begun, 30s);
}

}  // namespace
}  // namespace drun::store
