// What a relay's connection may say, and hears.
#include "store/server/peer.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "store/protocol/relay_frames.hpp"
#include "support/test_peer.hpp"

namespace drun::store {
namespace {

using relay_frames::Type;
using tcpstore::Op;
using test::PeerWorld;
using test::TestPeer;

std::string frame(std::uint64_t client, Type type, std::string_view body = {}) {
  std::string bytes;
  relay_frames::append_frame(bytes, client, type, body);
  return bytes;
}
std::string reply(std::uint64_t request, const control::Reply& message) {
  std::string bytes;
  control::encode(bytes, request, message);
  return bytes;
}
std::string request(Op op, std::string_view key, std::string_view value = {}) {
  tcpstore::Request r;
  r.op = op;
  r.key = key;
  r.value = value;
  r.number = 1;
  r.keys = {key};
  std::string bytes;
  tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, r);
  return bytes;
}
std::string said(Type type, Op op, std::string_view key, std::string_view value = {},
                 std::uint64_t client = 7) {
  return frame(client, type, request(op, key, value));
}

class RelayPeerTest : public testing::Test {
 protected:
  RelayPeerTest() {
    std::string opening;
    control::encode_opening(opening);
    relay_.ask(opening);
  }
  void begin() { ASSERT_EQ(relay_.ask(frame(1, Type::Begin)), reply(1, control::Done{})); }

  PeerWorld world_;
  TestPeer relay_{world_};
};

TEST_F(RelayPeerTest, AnswersEachClientByItsNumber) {
  begin();
  EXPECT_EQ(relay_.ask(said(Type::Request, Op::Set, "k", "v")), "") << "nothing to be said";
  std::string value;
  tcpstore::append_vector(value, "v");
  EXPECT_EQ(relay_.ask(said(Type::Request, Op::Get, "k", "", 9)), frame(9, Type::Answer, value));
}

TEST_F(RelayPeerTest, TellsEachClientOfItsOwnWait) {
  begin();
  relay_.send(said(Type::Request, Op::Wait, "k", "", 1));
  relay_.send(said(Type::Request, Op::Wait, "k", "", 2));
  relay_.send(said(Type::Request, Op::Wait, "j", "", 2));
  EXPECT_EQ(world_.job.counts().waits, 3U);
  EXPECT_EQ(relay_.ask(said(Type::Request, Op::CancelWait, "", "", 2)),
            frame(2, Type::Answer, "\1"));
  EXPECT_EQ(world_.job.counts().waits, 1U);
  std::string one;
  append(one, std::int64_t{1});
  EXPECT_EQ(relay_.ask(said(Type::Request, Op::Add, "k")),
            frame(1, Type::Woken) + frame(7, Type::Answer, one));
  EXPECT_EQ(relay_.ask(said(Type::Request, Op::Wait, "k")), frame(7, Type::Woken));
}

TEST_F(RelayPeerTest, AFailureClosesOneClientUntilItLeaves) {
  begin();
  relay_.send(said(Type::Request, Op::Set, "text", "x"));
  EXPECT_EQ(relay_.ask(said(Type::Request, Op::Add, "text")),
            frame(7, Type::Closed, "the key's value is not a number"));
  EXPECT_EQ(relay_.ask(said(Type::Request, Op::Get, "text")), "");
  EXPECT_NE(relay_.ask(said(Type::Request, Op::Get, "text", "", 8)), "");
  EXPECT_EQ(relay_.ask(frame(7, Type::Leave)), reply(7, control::Done{}));
  EXPECT_NE(relay_.ask(said(Type::Request, Op::Get, "text")), "");
  EXPECT_FALSE(relay_.is_closed());
}

// What is kept of those that it does not leave is little.
TEST_F(RelayPeerTest, ARelayThatLeavesNoneOfThoseThatAreClosedIsClosedItself) {
  begin();
  relay_.send(said(Type::Request, Op::Set, "text", "x"));
  constexpr std::uint64_t kMost = 512;
  const auto fail = [&](std::uint64_t client) {
    relay_.ask(said(Type::Request, Op::Add, "text", "", client));
  };
  for (std::uint64_t client = 1; client <= kMost; ++client)
    fail(client);
  ASSERT_FALSE(relay_.is_closed());
  relay_.ask(frame(1, Type::Leave));
  fail(kMost + 1);
  ASSERT_FALSE(relay_.is_closed()) << "one was left";
  fail(kMost + 2);
  EXPECT_TRUE(relay_.is_closed());
}

TEST_F(RelayPeerTest, ALeaveEndsTheWaits) {
  begin();
  relay_.send(said(Type::Request, Op::Wait, "k"));
  relay_.send(frame(7, Type::Leave));
  EXPECT_EQ(world_.job.counts().waits, 0U);
}

TEST_F(RelayPeerTest, ASharedWaitIsToldOfPushesUntilItIsLeft) {
  begin();
  relay_.send(said(Type::SharedWait, Op::Wait, "q", "", 1));
  relay_.send(said(Type::Request, Op::Wait, "q", "", 2));
  EXPECT_EQ(relay_.ask(said(Type::Request, Op::QueuePush, "q", "1")), frame(1, Type::Pushed, "q"));
  EXPECT_EQ(relay_.ask(said(Type::Request, Op::QueuePush, "q", "2")), frame(1, Type::Pushed, "q"));
  relay_.ask(frame(1, Type::Leave));
  EXPECT_EQ(relay_.ask(frame(1, Type::PassOn, "q")), frame(2, Type::Woken));
  EXPECT_EQ(relay_.ask(frame(1, Type::PassOn, "q")), "") << "nobody waits";
  EXPECT_EQ(relay_.ask(frame(1, Type::PassOn, "none")), "");
  EXPECT_EQ(relay_.ask(said(Type::SharedWait, Op::Wait, "q", "", 3)), frame(3, Type::Woken));
}

TEST(RelayedShareTest, ASharedWaitThatAJobHasNoRoomForIsRefusedForTheJob) {
  Limits limits;
  limits.job_bytes = 1'000;
  PeerWorld world(limits);
  ASSERT_TRUE(world.job.put("drun/a/k", std::string(800, 'x')));
  TestPeer relay(world);
  std::string opening;
  control::encode_opening(opening);
  relay.ask(opening + frame(1, Type::Begin));
  EXPECT_EQ(relay.ask(said(Type::SharedWait, Op::Wait, "drun/a/" + std::string(300, 'q'))),
            frame(7, Type::Closed, kJobFull));
}

TEST_F(RelayPeerTest, APushThatIsPassedOnAndWasPoppedWakesNobody) {
  begin();
  relay_.send(said(Type::SharedWait, Op::Wait, "q", "", 1));
  relay_.send(said(Type::Request, Op::Wait, "q", "", 2));
  relay_.ask(said(Type::Request, Op::QueuePush, "q", "1"));
  relay_.ask(said(Type::Request, Op::QueuePop, "q"));
  EXPECT_EQ(relay_.ask(frame(1, Type::PassOn, "q")), "");
}

TEST_F(RelayPeerTest, LongAnswersComeIfTheyAreWanted) {
  begin();
  const std::string large(relay_frames::kLongestAnswer, 'x');
  std::string value;
  tcpstore::append_vector(value, large);
  relay_.send(said(Type::Request, Op::QueuePush, "q", large));
  EXPECT_EQ(relay_.ask(said(Type::Request, Op::QueuePop, "q")), frame(7, Type::TooLong));
  EXPECT_EQ(world_.job.queue_size("q"), 1U) << "nothing was done";
  relay_.send(said(Type::Request, Op::Set, "k", large));
  EXPECT_EQ(relay_.ask(said(Type::Request, Op::Get, "k")), frame(7, Type::TooLong));
  EXPECT_EQ(relay_.ask(said(Type::WholeRequest, Op::Get, "k")), frame(7, Type::Answer, value));
}

TEST_F(RelayPeerTest, TheEndOfTheConnectionEndsAllWaits) {
  begin();
  relay_.send(said(Type::Request, Op::Wait, "k", "", 1));
  relay_.send(said(Type::Request, Op::Barrier, "k", "", 2));
  relay_.leave();
  EXPECT_EQ(world_.job.counts().waits, 0U);
}

TEST_F(RelayPeerTest, WhatIsMalformedClosesTheConnection) {
  const std::string good = request(Op::Get, "k");
  for (const std::string& bytes :
       {frame(1, Type::Request), frame(1, Type::Request, good + "x"),
        frame(1, Type::Request, good.substr(0, 5)), frame(1, Type::Request, "\x7F"),
        said(Type::SharedWait, Op::Get, "k"), frame(1, Type::Leave, "x"), frame(1, Type::Begin),
        frame(1, Type::Answer, good), frame(std::uint64_t{1} << 32U, Type::Request, good),
        std::string(8, '\0')}) {
    TestPeer relay(world_);
    std::string opening;
    control::encode_opening(opening);
    relay.send(opening + frame(1, Type::Begin));
    EXPECT_FALSE(relay.is_closed());
    relay.send(bytes);
    EXPECT_TRUE(relay.is_closed()) << bytes;
  }
}

TEST_F(RelayPeerTest, WhoHasASessionOrAWatchIsNoRelay) {
  const auto is_refused = [&] {
    control::Reply message;
    const std::string answer = relay_.ask(frame(3, Type::Begin));
    const auto found = control::next_frame(answer, 1000);
    return control::decode_reply(found.frame, message) == control::DecodeStatus::Ok &&
           std::holds_alternative<control::Error>(message);
  };
  std::string bytes;
  control::encode(bytes, 2, control::Request(control::Watch{"k", false}));
  relay_.ask(bytes);
  EXPECT_TRUE(is_refused());
  bytes.clear();
  control::encode(bytes, 4, control::Request(control::Unwatch{2}));
  control::encode(bytes, 5, control::Request(control::OpenSession{1000, 0}));
  relay_.ask(bytes);
  EXPECT_TRUE(is_refused());
}

}  // namespace
}  // namespace drun::store
