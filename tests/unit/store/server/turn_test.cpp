// How requests that take much share a turn of the server's loop with the others.
#include "store/server/turn.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "store/server/tcpstore_handler.hpp"
#include "support/test_peer.hpp"

namespace drun::store {
namespace {

using tcpstore::Op;
using tcpstore::Request;
using test::PeerWorld;
using test::TestPeer;

std::string encoded(const Request& request) {
  std::string bytes;
  tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
  return bytes;
}
std::string encoded(Op op, std::string_view key = {}, std::string_view value = {}) {
  Request request;
  request.op = op;
  request.key = key;
  request.value = value;
  return encoded(request);
}

class TurnTest : public testing::Test {
 protected:
  TurnTest() {
    for (int i = 0; i < kKeys; ++i)
      EXPECT_TRUE(world.job.put("key/" + std::to_string(i), ""));
    EXPECT_TRUE(world.job.put("long", std::string(2 << 20, 'v')));
  }
  // More work than there is room for in a turn.
  static constexpr int kKeys = 20'000;

  PeerWorld world;
};

TEST_F(TurnTest, OneListHasRoomInATurnAndEveryCheapRequest) {
  TestPeer first(world);
  TestPeer second(world);
  TestPeer cheap(world);
  for (TestPeer* peer : {&first, &second, &cheap})
    peer->send(tcpstore::kHandshake);
  world.turn.begin();
  first.send_in_turn(encoded(Op::ListKeys));
  second.send_in_turn(encoded(Op::ListKeys) + encoded(Op::GetNumKeys));
  cheap.send_in_turn(encoded(Op::GetNumKeys) + encoded(Op::Get, "key/1"));
  EXPECT_FALSE(first.awaits_turn());
  EXPECT_GT(first.take().size(), std::size_t{kKeys});
  EXPECT_TRUE(second.awaits_turn());
  EXPECT_EQ(second.take(), "") << "nor what is behind it";
  EXPECT_FALSE(cheap.awaits_turn());
  EXPECT_EQ(cheap.take().size(), 16U);
  second.resume();
  EXPECT_FALSE(second.awaits_turn());
  EXPECT_GT(second.take().size(), std::size_t{kKeys});
}

TEST_F(TurnTest, WhatWasServedBeforeIsNotCountedAgain) {
  TestPeer list(world);
  TestPeer peer(world);
  Request many;
  many.op = Op::MultiSet;
  many.keys.assign(5000, "key/1");
  many.values.assign(5000, "");
  list.send(tcpstore::kHandshake);
  peer.send(std::string(tcpstore::kHandshake) + encoded(many) + encoded(Op::GetNumKeys));
  EXPECT_EQ(peer.take().size(), 8U);
  world.turn.begin();
  list.send_in_turn(encoded(Op::ListKeys));
  peer.send_in_turn(encoded(Op::GetNumKeys));
  EXPECT_FALSE(peer.awaits_turn()) << "the keys were another request's";
  EXPECT_EQ(peer.take().size(), 8U);
}

TEST_F(TurnTest, WhatTakesMuchIsKnownBeforeItIsDone) {
  Request many;
  many.op = Op::MultiGet;
  const std::vector<std::string_view> few{"key/1", "none"};
  many.keys = few;
  const auto much = [&](Op op, std::string_view key = {}) {
    Request request;
    request.op = op;
    request.key = key;
    return tcpstore::takes_much(world.job, request);
  };
  EXPECT_TRUE(much(Op::ListKeys));
  EXPECT_TRUE(much(Op::Get, "long"));
  EXPECT_TRUE(much(Op::CompareSet, "long"));
  EXPECT_FALSE(much(Op::Get, "key/1"));
  EXPECT_FALSE(much(Op::Get, "none"));
  EXPECT_FALSE(much(Op::Set, "long"));
  EXPECT_FALSE(much(Op::GetNumKeys));
  EXPECT_FALSE(tcpstore::takes_much(world.job, many));
  many.keys.push_back("long");
  EXPECT_TRUE(tcpstore::takes_much(world.job, many));
  for (const Op op : {Op::MultiGet, Op::MultiSet, Op::Check, Op::Wait}) {
    many.op = op;
    many.keys.assign(5000, "none");
    many.values.assign(5000, "");
    EXPECT_TRUE(tcpstore::takes_much(world.job, many));
  }
  many.op = Op::Add;
  EXPECT_FALSE(tcpstore::takes_much(world.job, many));
  PeerWorld small;
  EXPECT_FALSE(tcpstore::takes_much(small.job, Request{.op = Op::ListKeys}));
}

TEST_F(TurnTest, ASessionDoesNotWaitForItsTurn) {
  const auto watch = [](std::uint64_t id) {
    std::string bytes;
    control::encode(bytes, id, control::Request(control::Watch{"", true}));
    control::encode(bytes, id + 1, control::Request(control::Unwatch{id}));
    return bytes;
  };
  std::string opening;
  control::encode_opening(opening);
  TestPeer session(world);
  TestPeer other(world);
  session.send(opening);
  other.send(opening);
  std::string bytes;
  control::encode(bytes, 1, control::Request(control::OpenSession{60'000, 0}));
  session.send(bytes);
  (void)session.take();
  (void)other.take();

  world.turn.begin();
  session.send_in_turn(watch(2));
  EXPECT_GT(session.take().size(), std::size_t{kKeys});
  other.send_in_turn(watch(2));
  EXPECT_TRUE(other.awaits_turn());
  session.send_in_turn(watch(4));
  EXPECT_FALSE(session.awaits_turn());
  EXPECT_GT(session.take().size(), std::size_t{kKeys});
  other.resume();
  EXPECT_GT(other.take().size(), std::size_t{kKeys});
}

TEST_F(TurnTest, ManyCheapRequestsOfOnePeerAreServedInPieces) {
  TestPeer peer(world);
  peer.send(tcpstore::kHandshake);
  std::string requests;
  for (int i = 0; i < 2 * Turn::kRequestsOfAPeer + 1; ++i)
    requests += encoded(Op::GetNumKeys);
  peer.send(requests);
  for (int turns = 1; turns <= 2; ++turns) {
    EXPECT_TRUE(peer.is_paused());
    EXPECT_FALSE(peer.awaits_turn());
    EXPECT_EQ(peer.take().size(), std::size_t{8} * Turn::kRequestsOfAPeer);
    peer.resume();
  }
  EXPECT_FALSE(peer.is_paused());
  EXPECT_EQ(peer.take().size(), 8U);
}

}  // namespace
}  // namespace drun::store
