#include "base/tcp_calls.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/patience.hpp"

namespace drun {
namespace {

TEST(TcpCallsTest, EachAddressIsFoundOnce) {
  EXPECT_THAT(look_up("127.0.0.1"), testing::ElementsAre("127.0.0.1"));
  EXPECT_THAT(look_up("::1"), testing::ElementsAre("::1"));
}

TEST(TcpCallsTest, ConnectsToAPortOfIpv4) {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  auto* const address = reinterpret_cast<sockaddr*>(&place);
  ASSERT_EQ(::bind(listener.get(), address, size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), address, &size), 0);
  const auto socket = begin_connect({"127.0.0.1", ntohs(place.sin_port)});
  ASSERT_TRUE(socket) << socket.error().what();
  EXPECT_TRUE(end_connect(socket->get(), std::chrono::steady_clock::now() + test::kPatience));
}

TEST(TcpCallsTest, ConnectsToAPortOfIpv6) {
  const FileDescriptor listener(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 place{};
  place.sin6_family = AF_INET6;
  place.sin6_addr = in6addr_loopback;
  socklen_t size = sizeof place;
  auto* const address = reinterpret_cast<sockaddr*>(&place);
  if (::bind(listener.get(), address, size) != 0) GTEST_SKIP() << "this machine has no IPv6";
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), address, &size), 0);
  const auto socket = begin_connect({"::1", ntohs(place.sin6_port)});
  ASSERT_TRUE(socket) << socket.error().what();
  EXPECT_TRUE(end_connect(socket->get(), std::chrono::steady_clock::now() + test::kPatience));
}

TEST(TcpCallsTest, ANameIsNoAddress) {
  EXPECT_FALSE(begin_connect({"localhost.", 1}));
}

// TCP joins the ends of one socket if a client is given the very port that it connects to.
TEST(TcpCallsTest, ASocketThatIsConnectedToItselfIsRefused) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  auto* const address = reinterpret_cast<sockaddr*>(&place);
  ASSERT_EQ(::bind(socket.get(), address, size), 0);
  ASSERT_EQ(::getsockname(socket.get(), address, &size), 0);
  ASSERT_EQ(::connect(socket.get(), address, size), 0);
  const Status connected =
      end_connect(socket.get(), std::chrono::steady_clock::now() + test::kPatience);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code(), std::errc::connection_refused);
}

}  // namespace
}  // namespace drun
