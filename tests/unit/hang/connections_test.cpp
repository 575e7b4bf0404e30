#include "hang/connections.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "support/patience.hpp"

namespace drun::hang {
namespace {

std::string link_of(const FileDescriptor& file) {
  std::array<char, 64> text{};
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

// Two ends of a connection over loopback.
class ConnectionsTest : public testing::Test {
 protected:
  void SetUp() override {
    const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(listener.get(), any, size), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener.get(), any, &size), 0);
    port_ = ntohs(address.sin_port);
    near_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(near_.get(), any, size), 0);
    far_.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(far_);
    if (!Connections(0).known()) GTEST_SKIP() << "this kernel does not tell of connections";
  }
  static std::uint64_t bytes(const FileDescriptor& file, std::uint16_t left_out = 0) {
    return Connections(left_out).bytes_of(link_of(file));
  }

  std::uint16_t port_ = 0;
  FileDescriptor near_;
  FileDescriptor far_;
};

TEST_F(ConnectionsTest, WhoListensIsKnown) {
  EXPECT_EQ(user_listening_at({"127.0.0.1", port_}), std::nullopt) << "the listener is closed";
  for (const char* host : {"127.0.0.1", "::1"}) {
    const bool six = host[0] == ':';
    const FileDescriptor listener(
        ::socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (six && !listener) continue;
    ASSERT_EQ(::listen(listener.get(), 1), 0);  // at all addresses, and a free port
    sockaddr_in6 address{};
    socklen_t size = sizeof address;
    ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    const std::uint16_t port = ntohs(address.sin6_port);
    EXPECT_EQ(user_listening_at({host, port}), ::geteuid()) << host;
    if (!six) continue;
    EXPECT_EQ(user_listening_at({"127.0.0.1", port}), ::geteuid()) << "of both families";
  }
  EXPECT_EQ(user_listening_at({"a name", port_}), std::nullopt);
}

TEST_F(ConnectionsTest, WhatIsSentCountsAtBothEnds) {
  const std::uint64_t sent = bytes(near_);
  const std::uint64_t received = bytes(far_);
  ASSERT_EQ(::send(near_.get(), "0123456789", 10, 0), 10);
  EXPECT_TRUE(test::eventually([&] { return bytes(far_) == received + 10; }));
  EXPECT_TRUE(test::eventually([&] { return bytes(near_) == sent + 10; }));
}

TEST_F(ConnectionsTest, ThePeerIsNamed) {
  EXPECT_EQ(Connections(0).peer_of(link_of(near_)), "127.0.0.1:" + std::to_string(port_));
  EXPECT_EQ(Connections(0).peer_of("/tmp/file"), "");
}

TEST_F(ConnectionsTest, APortMayBeLeftOut) {
  ASSERT_EQ(::send(near_.get(), "0123456789", 10, 0), 10);
  ASSERT_TRUE(test::eventually([&] { return bytes(far_) >= 10; }));
  EXPECT_EQ(bytes(far_, port_), 0U);
  EXPECT_EQ(bytes(near_, port_), 0U);
}

TEST_F(ConnectionsTest, WhatIsNoConnectionHasNoBytes) {
  Connections connections(0);
  for (const char* file : {"", "pipe:[1]", "socket:[1]x", "socket:[]", "socket:[x]", "/dev/null"})
    EXPECT_EQ(connections.bytes_of(file), 0U) << file;
}

}  // namespace
}  // namespace drun::hang
