#include "store/relay/socket_owners.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace drun::store {
namespace {

// A connection within this host: the end that was accepted, and the other.
struct Connected {
  explicit Connected(const char* host) {
    SocketAddress address = numeric_address({host, 0});
    const int family = address.storage.ss_family;
    FileDescriptor listener(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener.get(), address.get(), address.length), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    address = local_address_of(listener.get());
    other.reset(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(other.get(), address.get(), address.length), 0);
    accepted.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  FileDescriptor accepted;
  FileDescriptor other;
};

TEST(SocketOwnersTest, SaysWhoseTheOtherEndIs) {
  SocketOwners owners;
  const Connected connected("127.0.0.1");
  EXPECT_EQ(owners.of_peer(connected.accepted.get()), (SocketOwner{::geteuid(), true}));
}

TEST(SocketOwnersTest, WhoSaysNothingMoreIsStillThere) {
  SocketOwners owners;
  const Connected connected("127.0.0.1");
  ASSERT_EQ(::shutdown(connected.other.get(), SHUT_WR), 0);
  EXPECT_EQ(owners.of_peer(connected.accepted.get()), (SocketOwner{::geteuid(), true}));
}

TEST(SocketOwnersTest, SaysThatTheOtherEndHasGone) {
  SocketOwners owners;
  Connected connected("127.0.0.1");
  connected.other.reset();
  const auto owner = owners.of_peer(connected.accepted.get());
  EXPECT_FALSE(owner && owner->is_open);
}

TEST(SocketOwnersTest, KnowsNothingOfWhatIsNotConnected) {
  SocketOwners owners;
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(owners.of_peer(socket.get()), std::nullopt);
}

constexpr const char* kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     7        0 1 "
    "1 0000000000000000 100 0 0 10 0\n"
    "   1: 0100007F:9C40 0100007F:1F90 05 00000000:00000000 00:00000000 00000000  1000        0 2 "
    "1 0000000000000000 20 4 30 10 -1\n"
    "   2: 0100007F:9C41 0100007F:1F90 05 00000000:00000000 00:00000000 00000000     0        0 0 "
    "1 0000000000000000 20 4 30 10 -1\n";
constexpr const char* kTable6 =
    "  sl  local_address                         remote_address                        st\n"
    "   0: 00000000000000000000000001000000:9C42 00000000000000000000000001000000:1F90 01 "
    "00000000:00000000 00:00000000 00000000  1001        0 4 1 0000000000000000 20 4 30 10 -1\n"
    "   1: 0000000000000000FFFF00000100007F:9C43 0000000000000000FFFF00000100007F:1F90 08 "
    "00000000:00000000 00:00000000 00000000  1002        0 5 1 0000000000000000 20 4 30 10 -1\n";

std::optional<SocketOwner> in(const char* table, const std::string& host, std::uint16_t port) {
  return owner_in_table(table, numeric_address({host, port}), numeric_address({host, 8080}));
}

TEST(SocketOwnersTest, FindsASocketInTheListOfAll) {
  EXPECT_EQ(in(kTable, "127.0.0.1", 40'000), (SocketOwner{1000, true}));
  EXPECT_EQ(in(kTable, "127.0.0.1", 40'001), (SocketOwner{0, false}));
  EXPECT_EQ(in(kTable, "127.0.0.1", 40'002), std::nullopt);
  EXPECT_EQ(in(kTable6, "::1", 40'002), (SocketOwner{1001, true}));
  EXPECT_EQ(in(kTable6, "127.0.0.1", 40'003), (SocketOwner{1002, true}));
  EXPECT_EQ(in("", "127.0.0.1", 40'000), std::nullopt);
}

}  // namespace
}  // namespace drun::store
