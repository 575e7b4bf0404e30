#include "launcher/backend/port_holder.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"

namespace drun::launcher {
namespace {

constexpr const char* kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:72D8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
    "4711 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0100007F:72D8 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 "
    "4712 1 0000000000000000 100 0 0 10 0\n"
    "   2: 00000000000000000000000000000000:72D8 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000  1000        0 4713 1 0 100 0 0 10 0\n"
    "   3: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
    "4714 1\n"
    "damaged line\n"
    "   4: nothing 00000000:0000 0A 0 0 0 0 0 4715\n"
    "   5: 0100007F:72D8zz 00000000:0000 0A 0 0 0 0 0 4716\n";

TEST(PortHolderTest, FindsTheListenersOfAPort) {
  using enum SocketKind;
  EXPECT_EQ(inodes_at(kTable, 29400, Listener), (std::set<std::string>{"4711", "4713"}));
  EXPECT_EQ(inodes_at(kTable, 29400, Connection), (std::set<std::string>{"4712"}));
  EXPECT_EQ(inodes_at(kTable, 80, Listener), (std::set<std::string>{"4714"}));
  EXPECT_TRUE(inodes_at(kTable, 80, Connection).empty());
  EXPECT_TRUE(inodes_at(kTable, 81, Listener).empty());
  EXPECT_TRUE(inodes_at("", 80, Listener).empty());
}

// An outgoing connection was given the port: a bind fails there, and a connect is refused.
TEST(PortHolderTest, NamesWhoseConnectionHasThePort) {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const FileDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::getsockname(listener.get(), any, &size), 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(client.get(), any, size), 0);
  ASSERT_EQ(::getsockname(client.get(), any, &size), 0);
  const auto holder = port_holder(ntohs(address.sin_port));
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->find("a connection of process " + std::to_string(::getpid()) + " ("), 0U)
      << *holder;
}

TEST(PortHolderTest, NamesThisProcessWhereItListens) {
  const FileDescriptor socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) GTEST_SKIP() << "this machine has no IPv6";
  ASSERT_EQ(::listen(socket.get(), 1), 0);  // at a port that the system chooses
  sockaddr_in6 address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto holder = port_holder(ntohs(address.sin6_port));
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->find("process " + std::to_string(::getpid()) + " ("), 0U) << *holder;
}

}  // namespace
}  // namespace drun::launcher
