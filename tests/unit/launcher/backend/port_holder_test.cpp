#include "launcher/backend/port_holder.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "drun/base/file_descriptor.hpp"

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
  EXPECT_EQ(listening_inodes(kTable, 29400), (std::set<std::string>{"4711", "4713"}));
  EXPECT_EQ(listening_inodes(kTable, 80), (std::set<std::string>{"4714"}));
  EXPECT_TRUE(listening_inodes(kTable, 81).empty());
  EXPECT_TRUE(listening_inodes("", 80).empty());
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
