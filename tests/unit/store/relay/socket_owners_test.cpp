#include "store/relay/socket_owners.hpp"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "support/hide_proc.hpp"
#include "support/in_child.hpp"

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

constexpr int kNotHere = 77;

// Whether the kernel takes questions for sockets.
bool kernel_answers() {
  const FileDescriptor kernel(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  struct {
    nlmsghdr header{};
    inet_diag_req_v2 request{};
  } all;
  all.header.nlmsg_len = sizeof all;
  all.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  all.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  all.request.sdiag_family = AF_INET;
  all.request.sdiag_protocol = IPPROTO_TCP;
  all.request.idiag_states = ~0U;
  alignas(nlmsghdr) char bytes[8192];
  if (::send(kernel.get(), &all, sizeof all, 0) != sizeof all) return false;
  const ssize_t size = ::recv(kernel.get(), bytes, sizeof bytes, 0);
  return size >= static_cast<ssize_t>(sizeof(nlmsghdr)) &&
         reinterpret_cast<const nlmsghdr*>(bytes)->nlmsg_type != NLMSG_ERROR;
}

// Its answer is enough: there is no list here.
TEST(SocketOwnersTest, AsksTheKernelForTheOneSocket) {
  const int result = process::test::in_child([] {
    if (!process::test::hide_proc() || !kernel_answers()) return kNotHere;
    SocketOwners owners;
    const SocketOwner own{::geteuid(), true};
    Connected one("127.0.0.1");
    const Connected other("127.0.0.1");
    if (owners.of_peer(one.accepted.get()) != own) return 1;
    if (owners.of_peer(other.accepted.get()) != own) return 2;
    one.other.reset();
    const auto gone = owners.of_peer(one.accepted.get());
    return gone && gone->is_open ? 3 : 0;
  });
  if (result == kNotHere)
    GTEST_SKIP() << "/proc cannot be hidden, or the kernel takes no questions";
  EXPECT_EQ(result, 0);
}

// A network of this process's own, where it may do as it likes.
bool has_own_network() {
  if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  const FileDescriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  loopback.ifr_name[0] = 'l';
  loopback.ifr_name[1] = 'o';
  loopback.ifr_flags = IFF_UP;
  return ::ioctl(any.get(), SIOCSIFFLAGS, &loopback) == 0;
}

// The kernel finds it where there is no such connection; it is somebody else's, maybe.
TEST(SocketOwnersTest, WhoListensAtThePlaceOfAnEndThatIsGoneIsNotItsOwner) {
  const int result = process::test::in_child([] {
    if (!has_own_network() || !kernel_answers()) return kNotHere;
    Connected connected("127.0.0.1");
    const SocketAddress place = local_address_of(connected.other.get());
    // Closed like this it says nothing, and leaves nothing behind.
    const int repair = 1;
    if (::setsockopt(connected.other.get(), IPPROTO_TCP, TCP_REPAIR, &repair, sizeof repair) != 0)
      return kNotHere;
    connected.other.reset();
    const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listener.get(), place.get(), place.length) != 0 || ::listen(listener.get(), 1) != 0)
      return 1;
    return SocketOwners().of_peer(connected.accepted.get()) ? 2 : 0;
  });
  if (result == kNotHere) GTEST_SKIP() << "no network of its own, or the kernel takes no questions";
  EXPECT_EQ(result, 0);
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

// As where the list is longer than what was read of it.
TEST(SocketOwnersTest, ALineThatIsCutOffSaysNothing) {
  const std::string table = kTable;
  const auto user = table.find(" 1000 ") + 1;
  for (const auto end : {user, user + 4, table.find(" 2 ", user)})
    EXPECT_EQ(in(table.substr(0, end).c_str(), "127.0.0.1", 40'000), std::nullopt)
        << table.substr(0, end);
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
