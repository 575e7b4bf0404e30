// How requests that take much share a turn of the server's loop with the others.
#include "store/server/turn.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
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

// Cheap ones add up: after so many a peer waits for the next turn.
constexpr std::size_t kRequestsOfAPeer = Turn::kMuch / Turn::kBytesOfAKey;

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

// Has shown the token of a job.
class JobPeer : public TestPeer {
 public:
  JobPeer(PeerWorld& world, std::string_view job) : TestPeer(world) {
    note_proof(job);
    send(tcpstore::kHandshake);
  }
};

TEST_F(TurnTest, WhoseKeysAreCountedOneByOneWaitsForATurnWithThem) {
  TestPeer list(world);
  list.send(tcpstore::kHandshake);
  JobPeer job(world, "a");
  world.turn.begin();
  list.send_in_turn(encoded(Op::ListKeys));
  job.send_in_turn(encoded(Op::GetNumKeys));
  EXPECT_TRUE(job.awaits_turn());
  EXPECT_EQ(job.take(), "");
  job.resume();
  EXPECT_EQ(job.take().size(), 8U);
  EXPECT_FALSE(world.turn.has_room()) << "that was one";
}

TEST_F(TurnTest, AFewKeysThatAreCountedOftenAreMany) {
  PeerWorld small;
  constexpr std::size_t kFew = 100;
  for (std::size_t i = 0; i < kFew; ++i)
    EXPECT_TRUE(small.job.put("drun/a/" + std::to_string(i), ""));
  JobPeer job(small, "a");
  std::string requests;
  for (std::size_t i = 0; i < kRequestsOfAPeer; ++i)
    requests += encoded(Op::GetNumKeys);
  job.send(requests);
  EXPECT_TRUE(job.is_paused());
  EXPECT_LE(job.take().size(), 8 * (kRequestsOfAPeer / kFew + 1));
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

std::string framed(std::uint64_t id, const control::Request& request) {
  std::string bytes;
  control::encode(bytes, id, request);
  return bytes;
}

// The first frame of what a peer was answered.
control::Reply reply_in(const std::string& bytes) {
  control::Reply reply;
  const control::FrameResult found = control::next_frame(bytes, 0xFFFFFFFF);
  EXPECT_EQ(found.status, control::FrameStatus::Complete);
  EXPECT_EQ(control::decode_reply(found.frame, reply), control::DecodeStatus::Ok);
  return reply;
}

void greet(TestPeer& peer, bool with_session) {
  std::string bytes;
  control::encode_opening(bytes);
  if (with_session) bytes += framed(1, control::OpenSession{60'000, 0});
  peer.send(bytes);
  (void)peer.take();
}

TEST_F(TurnTest, AListingWaitsForItsTurnAndWhatIsCheapDoesNot) {
  EXPECT_TRUE(world.job.put("some/a", "1"));
  EXPECT_TRUE(world.job.put("some/b", "2"));
  for (const bool with_session : {false, true}) {
    TestPeer first(world);
    TestPeer second(world);
    TestPeer cheap(world);
    greet(first, with_session);
    greet(second, with_session);
    greet(cheap, with_session);
    const std::string all = framed(2, control::Watch{"", true});
    world.turn.begin();
    first.send_in_turn(all);
    EXPECT_FALSE(first.awaits_turn());
    EXPECT_GT(first.take().size(), std::size_t{kKeys});
    second.send_in_turn(all);
    EXPECT_TRUE(second.awaits_turn()) << with_session;
    EXPECT_TRUE(second.take().empty());
    cheap.send_in_turn(framed(2, control::Watch{"some/", true}));
    EXPECT_FALSE(cheap.awaits_turn());
    EXPECT_EQ(std::get<control::Snapshot>(reply_in(cheap.take())).entries.size(), 2U);
    cheap.send_in_turn(framed(3, control::Watch{"some/a", false}));
    EXPECT_EQ(std::get<control::Snapshot>(reply_in(cheap.take())).entries.size(), 1U);
    cheap.send_in_turn(framed(4, control::Watch{"long", false}));
    EXPECT_TRUE(cheap.awaits_turn());
    second.resume();
    EXPECT_GT(second.take().size(), std::size_t{kKeys});
  }
}

TEST_F(TurnTest, ARefusalThatShowsALongValueWaitsForItsTurn) {
  TestPeer first(world);
  TestPeer second(world);
  greet(first, false);
  greet(second, false);
  const auto guarded = [](std::string_view key) {
    return framed(2, control::Transaction{{{key, "not this"}}, {{"k", "v"}}});
  };
  world.turn.begin();
  first.send_in_turn(guarded("long"));
  EXPECT_GT(first.take().size(), std::size_t{2} << 20);
  second.send_in_turn(guarded("key/1"));
  EXPECT_FALSE(second.awaits_turn());
  EXPECT_TRUE(std::holds_alternative<control::Refused>(reply_in(second.take())));
  second.send_in_turn(guarded("long"));
  EXPECT_TRUE(second.awaits_turn());
  EXPECT_TRUE(second.take().empty());
  second.resume();
  EXPECT_GT(second.take().size(), std::size_t{2} << 20);
}

TEST_F(TurnTest, AListingThatIsRefusedTakesItsTurnAllTheSame) {
  Limits limits;
  limits.unread_bytes = 3 << 20;
  PeerWorld small(limits);
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(small.job.put("long/" + std::to_string(i), std::string(1 << 20, 'v')));
  TestPeer first(small);
  TestPeer second(small);
  greet(first, false);
  greet(second, false);
  const std::string all = framed(2, control::Watch{"long/", true});
  small.turn.begin();
  first.send_in_turn(all);
  const std::string refusal = first.take();
  EXPECT_EQ(std::get<control::Error>(reply_in(refusal)).code, control::ErrorCode::Limit);
  EXPECT_EQ(small.job.counts().watches, 0U);
  EXPECT_FALSE(small.turn.has_room());
  second.send_in_turn(all);
  EXPECT_TRUE(second.awaits_turn());
}

TEST_F(TurnTest, ManyCheapRequestsOfOnePeerAreServedInPieces) {
  TestPeer peer(world);
  peer.send(tcpstore::kHandshake);
  std::string requests;
  for (std::size_t i = 0; i < 2 * kRequestsOfAPeer + 1; ++i)
    requests += encoded(Op::GetNumKeys);
  peer.send(requests);
  for (int turns = 1; turns <= 2; ++turns) {
    EXPECT_TRUE(peer.is_paused());
    EXPECT_FALSE(peer.awaits_turn());
    EXPECT_EQ(peer.take().size(), std::size_t{8} * kRequestsOfAPeer);
    peer.resume();
  }
  EXPECT_FALSE(peer.is_paused());
  EXPECT_EQ(peer.take().size(), 8U);
}

TEST_F(TurnTest, ManyCheapRequestsOfAControlPeerAreServedInPieces) {
  for (const bool with_session : {false, true}) {
    TestPeer peer(world);
    greet(peer, with_session);
    std::string requests;
    for (std::size_t i = 0; i < 2 * kRequestsOfAPeer + 1; ++i)
      requests += framed(2, control::Unwatch{1});
    peer.send(requests);
    for (int turns = 1; turns <= 2; ++turns) {
      EXPECT_TRUE(peer.is_paused()) << with_session;
      EXPECT_FALSE(peer.awaits_turn());
      EXPECT_EQ(peer.take().size(), control::kHeaderBytes * kRequestsOfAPeer);
      peer.resume();
    }
    EXPECT_FALSE(peer.is_paused());
    EXPECT_EQ(peer.take().size(), control::kHeaderBytes);
  }
}

// Many peers, each of which watches a key as often as it may.
class Watchers {
 public:
  Watchers(PeerWorld& world, int peers, std::string_view key, bool prefix) {
    std::string watches;
    for (std::uint64_t id = 1; id <= kEach; ++id)
      watches += framed(id, control::Watch{key, prefix});
    for (int i = 0; i < peers; ++i) {
      TestPeer& peer = *peers_.emplace_back(std::make_unique<TestPeer>(world));
      greet(peer, false);
      peer.send(watches);
      (void)peer.take();
    }
  }
  static constexpr std::uint64_t kEach = 64;
  // How many changes all of them were told of, if those are all alike.
  [[nodiscard]] std::size_t told() {
    std::size_t frames = 0;
    for (const auto& peer : peers_) {
      const std::string bytes = peer->take();
      const control::FrameResult first = control::next_frame(bytes, 0xFFFFFFFF);
      if (!bytes.empty()) frames += bytes.size() / first.size;
    }
    return frames;
  }

 private:
  std::vector<std::unique_ptr<TestPeer>> peers_;
};

TEST_F(TurnTest, AChangeThatManyAreToldOfWaitsForItsTurn) {
  Watchers watchers(world, 300, "k", false);
  for (const bool with_session : {false, true}) {
    TestPeer first(world);
    TestPeer second(world);
    greet(first, with_session);
    greet(second, with_session);
    const auto write = [](std::string_view key) {
      return framed(2, control::Transaction{{}, {{key, "v"}}});
    };
    world.turn.begin();
    first.send_in_turn(write("k"));
    EXPECT_TRUE(std::holds_alternative<control::Committed>(reply_in(first.take())));
    EXPECT_EQ(watchers.told(), 300 * Watchers::kEach);
    EXPECT_FALSE(world.turn.has_room());
    second.send_in_turn(write("other"));
    EXPECT_FALSE(second.awaits_turn()) << "nobody is told of that one";
    EXPECT_TRUE(std::holds_alternative<control::Committed>(reply_in(second.take())));
    second.send_in_turn(write("k"));
    EXPECT_TRUE(second.awaits_turn());
    EXPECT_TRUE(second.take().empty());
    EXPECT_EQ(watchers.told(), 0U);
    second.resume();
    EXPECT_EQ(watchers.told(), 300 * Watchers::kEach);
    (void)second.take();
  }
}

TEST_F(TurnTest, TheEndOfASessionThatManyAreToldOfWaitsForItsTurn) {
  const Watchers watchers(world, 300, "own/", true);
  TestPeer first(world);
  TestPeer second(world);
  for (TestPeer* peer : {&first, &second}) {
    greet(*peer, true);
    const std::string_view key = peer == &first ? "own/1" : "own/2";
    peer->send(framed(2, control::Transaction{{}, {{key, "v", true}}}));
    (void)peer->take();
  }
  world.turn.begin();
  first.send_in_turn(framed(3, control::Goodbye{}));
  EXPECT_FALSE(first.awaits_turn());
  second.send_in_turn(framed(3, control::Goodbye{}));
  EXPECT_TRUE(second.awaits_turn());
  EXPECT_NE(world.job.find("own/2"), nullptr);
  second.resume();
  EXPECT_EQ(world.job.find("own/2"), nullptr);
}

TEST_F(TurnTest, AnyWriteThatManyAreToldOfTakesMuch) {
  const Watchers watchers(world, 20, "many/", true);
  const auto much = [&](Op op, std::string_view key) {
    const std::vector<std::string_view> keys{key};
    Request request;
    request.op = op;
    request.key = key;
    request.keys = keys;
    request.values = {""};
    return tcpstore::takes_much(world.job, request);
  };
  for (const Op op :
       {Op::Set, Op::CompareSet, Op::Add, Op::Append, Op::MultiSet, Op::DeleteKey, Op::Barrier}) {
    EXPECT_TRUE(much(op, "many/1"));
    EXPECT_FALSE(much(op, "none"));
  }
  for (const Op op : {Op::Get, Op::Check, Op::Wait, Op::MultiGet, Op::QueuePush})
    EXPECT_FALSE(much(op, "many/1"));
  const Watchers of_the_long(world, 1, "long", false);
  EXPECT_TRUE(much(Op::Append, "long")) << "each is told the whole value";
  EXPECT_FALSE(much(Op::Set, "long"));
}

TEST_F(TurnTest, WhatOthersAreToldOfCheapRequestsAddsUp) {
  Watchers watchers(world, 1, "k", false);
  TestPeer peer(world);
  peer.send(tcpstore::kHandshake);
  std::string requests;
  for (int i = 0; i < 100; ++i)
    requests += encoded(Op::Set, "k");
  peer.send(requests);
  EXPECT_TRUE(peer.is_paused());
  EXPECT_FALSE(peer.awaits_turn());
  const std::size_t told = watchers.told();
  EXPECT_GE(told, Watchers::kEach);
  EXPECT_LE(told, kRequestsOfAPeer + Watchers::kEach);
  while (peer.is_paused())
    peer.resume();
  EXPECT_EQ(told + watchers.told(), 100 * Watchers::kEach) << "and nothing is lost";
}

}  // namespace
}  // namespace drun::store
