// What the connections of a store inherit from the socket that it listens on.
#include "store/server/listen_socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "store/client/resolve.hpp"
#include "store/client/socket.hpp"
#include "support/patience.hpp"

namespace drun::store {
namespace {

int option(int socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, level, name, &value, &size) == 0 ? value : -1;
}

TEST(ListenSocketTest, BothEndsOfAConnectionFindOutThatTheOtherHasVanished) {
  const auto sockets = bind_endpoint({"127.0.0.1", 0});
  ASSERT_TRUE(sockets) << sockets.error().what();
  const int listener = sockets->front().get();
  ASSERT_TRUE(start_listening(listener));
  const SocketAddress address = literal_addresses(local_endpoint(listener).value()).at(0);
  const auto client = connect_to(address, std::chrono::steady_clock::now() + drun::test::kPatience);
  ASSERT_TRUE(client) << client.error().what();
  const FileDescriptor accepted(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted);
  for (const int end : {client->get(), accepted.get()}) {
    EXPECT_EQ(option(end, IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(option(end, SOL_SOCKET, SO_KEEPALIVE), 1);
  }
  // After two minutes: a minute of silence, then four probes.
  EXPECT_EQ(option(accepted.get(), IPPROTO_TCP, TCP_KEEPIDLE), 60);
  EXPECT_EQ(option(accepted.get(), IPPROTO_TCP, TCP_KEEPINTVL), 15);
  EXPECT_EQ(option(accepted.get(), IPPROTO_TCP, TCP_KEEPCNT), 4);
  // A store that is started again at once finds its port free though its clients hold their ends.
  EXPECT_EQ(option(accepted.get(), SOL_SOCKET, SO_REUSEADDR), 1);
}

}  // namespace
}  // namespace drun::store
