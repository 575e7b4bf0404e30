#include "base/bound_port.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(BoundPortTest, AnyFreePortAndNobodyElseCanHaveIt) {
  const FileDescriptor first = bind_everywhere(0);
  ASSERT_TRUE(first);
  const std::uint16_t port = bound_port(first.get());
  ASSERT_GT(port, 0);
  EXPECT_FALSE(bind_everywhere(port));
  EXPECT_EQ(errno, EADDRINUSE);
}

TEST(BoundPortTest, APortThatIsTakenForIpv4IsTaken) {
  const FileDescriptor v4(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  ASSERT_EQ(::bind(v4.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  EXPECT_FALSE(bind_everywhere(bound_port(v4.get())));
}

TEST(BoundPortTest, ASocketThatIsNotBoundHasNone) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(bound_port(socket.get()), 0);
  EXPECT_EQ(bound_port(-1), 0);
}

}  // namespace
}  // namespace drun
