#include "base/tcp_calls.hpp"

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <system_error>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"
#include "support/patience.hpp"

namespace drun {
namespace {

// At any free port of that address; empty: this machine has none such.
FileDescriptor bound_to(const std::string& host) {
  const SocketAddress address = numeric_address({host, 0});
  FileDescriptor socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(socket.get(), address.get(), address.length) != 0) socket.reset();
  return socket;
}

TEST(TcpCallsTest, EachAddressIsFoundOnce) {
  EXPECT_THAT(look_up("127.0.0.1"), testing::ElementsAre("127.0.0.1"));
  EXPECT_THAT(look_up("::1"), testing::ElementsAre("::1"));
}

TEST(TcpCallsTest, ConnectsToAPortOfIpv4) {
  const FileDescriptor listener = bound_to("127.0.0.1");
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const auto socket = begin_connect(to_endpoint(local_address_of(listener.get())));
  ASSERT_TRUE(socket) << socket.error().what();
  EXPECT_TRUE(end_connect(socket->get(), std::chrono::steady_clock::now() + test::kPatience));
}

TEST(TcpCallsTest, ConnectsToAPortOfIpv6) {
  const FileDescriptor listener = bound_to("::1");
  if (!listener) GTEST_SKIP() << "this machine has no IPv6";
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const auto socket = begin_connect(to_endpoint(local_address_of(listener.get())));
  ASSERT_TRUE(socket) << socket.error().what();
  EXPECT_TRUE(end_connect(socket->get(), std::chrono::steady_clock::now() + test::kPatience));
}

// In more pieces than a socket takes at once.
TEST(TcpCallsTest, AllOfItIsSentAndReceived) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  const auto deadline = std::chrono::steady_clock::now() + test::kPatience;
  const std::string sent(4'000'000, 'x');
  std::thread peer([&] { EXPECT_TRUE(send_all(theirs.get(), sent + "y", deadline)); });
  std::string got(sent.size() + 1, ' ');
  EXPECT_TRUE(receive_all(ours.get(), got.data(), got.size(), deadline));
  ours.reset();  // it must not hang if that has failed
  peer.join();
  EXPECT_TRUE(got == sent + "y");
  const auto refused = send_all(theirs.get(), "z", deadline);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), std::errc::broken_pipe);
}

TEST(TcpCallsTest, WhatDoesNotComeIsNotWaitedForForEver) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  char byte = ' ';
  const auto late = receive_all(ours.get(), &byte, 1, std::chrono::steady_clock::now());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), std::errc::timed_out);
  theirs.reset();
  const auto gone =
      receive_all(ours.get(), &byte, 1, std::chrono::steady_clock::now() + test::kPatience);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), std::errc::connection_reset);
  const auto closed = receive_all(-1, &byte, 1, std::chrono::steady_clock::now());
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code(), std::errc::bad_file_descriptor);
}

TEST(TcpCallsTest, ANameIsNoAddress) {
  EXPECT_FALSE(begin_connect({"localhost.", 1}));
}

// TCP joins the ends of one socket if a client is given the very port that it connects to.
TEST(TcpCallsTest, ASocketThatIsConnectedToItselfIsRefused) {
  const FileDescriptor socket = bound_to("127.0.0.1");
  const SocketAddress own = local_address_of(socket.get());
  ASSERT_EQ(::connect(socket.get(), own.get(), own.length), 0);
  const Status connected =
      end_connect(socket.get(), std::chrono::steady_clock::now() + test::kPatience);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code(), std::errc::connection_refused);
}

}  // namespace
}  // namespace drun
