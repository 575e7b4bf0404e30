#include "launcher/services/peer_ports.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/store_thread.hpp"

namespace drun::launcher {
namespace {

using Places = PeerDirectory::Places;

// A node of a round of two; what it is told.
struct Node {
  explicit Node(int group_rank, const Endpoint& store) {
    assignment.group_rank = group_rank;
    assignment.group_world_size = 2;
    assignment.world_size = 3;
    assignment.master_address = store.host;
    assignment.master_port = store.port;
    ports.set_address("10.0.0." + std::to_string(group_rank + 1));
  }
  void ask(int workers) {
    ports.ask(assignment, workers, [this](Result<Places> answer) {
      heard = answer ? *answer : Places{answer.error().what()};
    });
  }

  asio::io_context io;
  rendezvous::Assignment assignment;
  Places heard;
  int served = 0;
  PeerPorts ports{io, [this] { ++served; }};
};

bool is_free(const std::string& place) {
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(parse_endpoint(place, 0)->port);
  const FileDescriptor socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
}

TEST(PeerPortsTest, NodesTellOneAnotherTheirsThroughTheWorkersStore) {
  const test::StoreThread store;
  Node first(0, store.endpoint());
  Node second(1, store.endpoint());
  first.ask(2);
  EXPECT_TRUE(first.heard.empty());
  second.ask(1);
  while (first.heard.empty() || second.heard.empty()) {
    first.io.restart();
    second.io.restart();
    first.io.run_one_for(std::chrono::milliseconds(10));
    second.io.run_one_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(first.heard, second.heard);
  ASSERT_EQ(first.heard.size(), 3U);
  EXPECT_TRUE(first.heard[0].starts_with("10.0.0.1:"));
  EXPECT_TRUE(first.heard[2].starts_with("10.0.0.2:"));
  EXPECT_EQ(first.served, 1);
  // Held until the workers start.
  EXPECT_FALSE(is_free(first.heard[0]) || is_free(first.heard[1]) || is_free(first.heard[2]));
  first.ports.let_go();
  EXPECT_TRUE(is_free(first.heard[0]) && is_free(first.heard[1]));
  EXPECT_FALSE(is_free(first.heard[2]));
}

TEST(PeerPortsTest, OneNodeNeedsNoStore) {
  Node alone(0, {"127.0.0.1", 1});
  alone.assignment.group_world_size = 1;
  alone.ask(3);
  EXPECT_TRUE(alone.heard.empty()) << "from inside the call";
  alone.io.run();
  EXPECT_EQ(alone.heard.size(), 3U);
}

TEST(PeerPortsTest, WhoHasLetGoIsNotAnswered) {
  Node alone(0, {"127.0.0.1", 1});
  alone.assignment.group_world_size = 1;
  alone.ask(3);
  alone.ports.let_go();
  alone.io.run();
  EXPECT_TRUE(alone.heard.empty());
  EXPECT_EQ(alone.served, 0);
}

}  // namespace
}  // namespace drun::launcher
