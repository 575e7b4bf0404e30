#include "store/relay/relay_mux.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/server/peer.hpp"
#include "support/relayed_world.hpp"

namespace drun::store {
namespace {

using tcpstore::Op;
using tcpstore::Request;
using test::PeerWorld;
using test::RelayedNode;
using test::RelayedPeer;
using test::TestPeer;
using Fate = RelayMux::Fate;

std::string encoded(const Request& request, TcpStoreVersion version = TcpStoreVersion::Torch2_2) {
  std::string bytes;
  tcpstore::encode(bytes, version, request);
  return bytes;
}
std::string plain(Op op, std::string_view key = "", std::string_view value = "",
                  TcpStoreVersion version = TcpStoreVersion::Torch2_2) {
  Request request;
  request.op = op;
  request.key = key;
  request.value = value;
  return encoded(request, version);
}
std::string add(std::string_view key, std::int64_t delta) {
  Request request;
  request.op = Op::Add;
  request.key = key;
  request.number = delta;
  return encoded(request);
}
std::string wait(std::initializer_list<std::string_view> keys,
                 TcpStoreVersion version = TcpStoreVersion::Torch2_2) {
  Request request;
  request.op = Op::Wait;
  request.keys = keys;
  return encoded(request, version);
}
std::string number(std::int64_t value) {
  std::string bytes;
  append(bytes, value);
  return bytes;
}
std::string value(std::string_view text) {
  std::string bytes;
  tcpstore::append_vector(bytes, text);
  return bytes;
}
const std::string kDone(1, '\0');
const std::string kHello(tcpstore::kHandshake);

// The node of a relay with clients that have said hello, and the store that it speaks to.
class RelayMuxTest : public testing::Test {
 protected:
  RelayedPeer& client() {
    clients_.push_back(std::make_unique<RelayedPeer>(node_));
    clients_.back()->send(kHello);
    return *clients_.back();
  }
  std::string ask(RelayedPeer& client, std::string_view bytes) {
    client.send(bytes);
    return client.take();
  }
  [[nodiscard]] std::uint64_t requests() const { return world_.counters.requests; }

  PeerWorld world_;
  RelayedNode node_{world_};
  std::vector<std::unique_ptr<RelayedPeer>> clients_;
};

TEST_F(RelayMuxTest, ClientsShareOneConnection) {
  RelayedPeer& one = client();
  RelayedPeer& two = client();
  one.send(plain(Op::Set, "k", "v"));
  EXPECT_EQ(ask(two, plain(Op::Get, "k")), value("v"));
  EXPECT_EQ(one.take(), "");
  EXPECT_FALSE(one.is_alone() || two.is_alone());
}

TEST_F(RelayMuxTest, AddsOfOneTurnTravelAsTheirSum) {
  std::vector<RelayedPeer*> adders;
  for (int i = 0; i < 8; ++i)
    adders.push_back(&client());
  const std::uint64_t before = requests();
  for (int i = 0; i < 8; ++i)
    adders[static_cast<std::size_t>(i)]->say(add("n", i));
  std::int64_t sum = 0;
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(adders[static_cast<std::size_t>(i)]->take(), number(sum += i));
  EXPECT_EQ(requests() - before, 1U);
}

// While one is on its way, those that come travel together.
TEST_F(RelayMuxTest, AddsWaitForTheAnswerToThoseBefore) {
  RelayMux mux;
  mux.on_store_took(mux.to_store().size());
  std::string opened;
  control::encode(opened, 1, control::Reply(control::Done{}));
  mux.take_from_store(opened);
  ASSERT_TRUE(mux.is_open());
  std::vector<RelayMux::Stream> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(mux.add());
    mux.take(streams.back(), kHello + add("n", 1));
    mux.end_turn();
  }
  const std::size_t one = relay_frames::kLongestAnswer;  // more than a frame
  EXPECT_LT(mux.to_store().size(), one);
  const auto first = control::next_frame(mux.to_store(), one);
  ASSERT_EQ(first.status, control::FrameStatus::Complete);
  EXPECT_EQ(mux.to_store().size(), first.size) << "the others wait";
  mux.on_store_took(first.size);
  std::string answer;
  relay_frames::append_frame(answer, first.frame.request, relay_frames::Type::Answer, number(11));
  mux.take_from_store(answer);
  mux.end_turn();
  EXPECT_EQ(mux.output(streams[0]), number(11));
  const auto second = control::next_frame(mux.to_store(), one);
  ASSERT_EQ(second.status, control::FrameStatus::Complete);
  EXPECT_EQ(mux.to_store().size(), second.size);
  answer.clear();
  relay_frames::append_frame(answer, second.frame.request, relay_frames::Type::Answer, number(14));
  mux.take_from_store(answer);
  for (std::size_t i = 1; i < 4; ++i)
    EXPECT_EQ(mux.output(streams[i]), number(11 + static_cast<std::int64_t>(i)));
}

TEST_F(RelayMuxTest, WhatIsNoNumberClosesThoseWhoAddedToIt) {
  RelayedPeer& one = client();
  RelayedPeer& two = client();
  RelayedPeer& other = client();
  one.send(plain(Op::Set, "text", "x"));
  one.say(add("text", 1));
  two.say(add("text", 1));
  other.say(add("n", 1));
  EXPECT_EQ(other.take(), number(1));
  EXPECT_TRUE(one.is_closed() && two.is_closed());
  EXPECT_STREQ(one.close_reason(), "the key's value is not a number");
  EXPECT_EQ(ask(other, add("n", 1)), number(2));
}

// A sum may be longer than the store has room for, where the numbers are not.
TEST_F(RelayMuxTest, AddsThatAreRefusedTogetherAreTriedAlone) {
  Limits tight;
  tight.total_bytes = KeyTable::kOverheadBytes + 3;
  PeerWorld world(tight);
  RelayedNode node(world);
  std::vector<std::unique_ptr<RelayedPeer>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RelayedPeer>(node));
    clients.back()->send(kHello);
    clients.back()->say(add("n", 49));
  }
  EXPECT_EQ(clients[0]->take(), number(49));
  EXPECT_EQ(clients[1]->take(), number(98));
  EXPECT_EQ(clients[2]->take(), "");
  EXPECT_FALSE(clients[0]->is_closed() || clients[1]->is_closed());
  EXPECT_TRUE(clients[2]->is_closed());
  EXPECT_STREQ(clients[2]->close_reason(), kFull);
}

// The store closes a connection at what it refuses, and does not get to what was said behind it.
TEST_F(RelayMuxTest, NothingIsDoneForAClientBehindWhatIsRefused) {
  Limits tight;
  tight.total_bytes = 3 * KeyTable::kOverheadBytes;
  const std::string large(3 * KeyTable::kOverheadBytes, 'x');
  for (const std::string& behind : {add("count", 1), add("new", 1), wait({"count"})}) {
    PeerWorld world(tight);
    RelayedNode node(world);
    RelayedPeer waiting(node);
    RelayedPeer refused(node);
    TestPeer elsewhere(world);
    elsewhere.send(kHello + plain(Op::Set, "count", "1"));
    waiting.send(kHello);
    refused.send(kHello);
    waiting.say(wait({"count"}));
    refused.say(plain(Op::Set, "data", large) + behind);
    EXPECT_EQ(refused.take(), "");
    EXPECT_TRUE(refused.is_closed());
    EXPECT_STREQ(refused.close_reason(), kFull);
    EXPECT_EQ(*world.job.find("count"), "1");
    EXPECT_EQ(world.job.size(), 1U);
    EXPECT_EQ(waiting.take(), kDone);
  }
}

// The numbers of those whose words are not answered are their own; the next ones are others', too.
TEST_F(RelayMuxTest, AnAddBehindASetIsAnsweredAlone) {
  RelayedPeer& one = client();
  RelayedPeer& two = client();
  one.say(plain(Op::Set, "n", "5") + add("n", 1) + add("n", 1));
  EXPECT_EQ(one.take(), number(6) + number(7));
  const std::uint64_t before = requests();
  one.say(add("n", 1));
  two.say(add("n", 1));
  EXPECT_EQ(one.take(), number(8));
  EXPECT_EQ(two.take(), number(9));
  EXPECT_EQ(requests() - before, 1U);
}

TEST_F(RelayMuxTest, AWaitHoldsUpNobody) {
  RelayedPeer& waiting = client();
  RelayedPeer& other = client();
  EXPECT_EQ(ask(waiting, wait({"k"})), "");
  EXPECT_EQ(ask(waiting, add("n", 1)), number(1)) << "not even itself";
  EXPECT_EQ(ask(other, add("n", 1)), number(2));
  other.send(plain(Op::Set, "k", ""));
  EXPECT_EQ(waiting.take(), kDone);
  EXPECT_EQ(world_.job.counts().waits, 0U);
}

TEST_F(RelayMuxTest, WaitsForOneKeyTravelOnce) {
  std::vector<RelayedPeer*> waiting;
  for (int i = 0; i < 8; ++i)
    waiting.push_back(&client());
  const std::uint64_t before = requests();
  for (RelayedPeer* one : waiting)
    one->say(wait({"k"}));
  node_.pump();
  EXPECT_EQ(requests() - before, 1U);
  RelayedPeer& late = client();
  late.send(wait({"k"}));
  EXPECT_EQ(world_.job.counts().waits, 1U);
  late.send(plain(Op::Set, "k", ""));
  for (RelayedPeer* one : waiting)
    EXPECT_EQ(one->take(), kDone);
  EXPECT_EQ(late.take(), kDone);
  EXPECT_EQ(world_.job.counts().waits, 0U);
}

TEST_F(RelayMuxTest, TheLastOfThoseWhoWaitFreesTheirWait) {
  RelayedPeer& one = client();
  RelayedPeer& two = client();
  RelayedPeer& other = client();
  one.send(wait({"k"}));
  two.send(wait({"k"}));
  EXPECT_EQ(ask(one, plain(Op::CancelWait)), "\1");
  EXPECT_EQ(world_.job.counts().waits, 1U);
  other.send(plain(Op::Set, "k", ""));
  EXPECT_EQ(one.take(), "");
  EXPECT_EQ(two.take(), kDone);
  other.send(plain(Op::DeleteKey, "k"));
  two.send(wait({"k"}));
  EXPECT_EQ(ask(two, plain(Op::CancelWait)), "\1");
  EXPECT_EQ(world_.job.counts().waits, 0U);
}

// The one that joins may have seen that the key has gone again.
TEST_F(RelayMuxTest, WhoJoinsTooLateWaitsForTheNextTime) {
  TestPeer elsewhere(world_);
  RelayedPeer& first = client();
  RelayedPeer& late = client();
  first.send(wait({"k"}));
  elsewhere.send(kHello + plain(Op::Set, "k", "") + plain(Op::DeleteKey, "k"));
  late.say(wait({"k"}));  // before the relay hears of it
  EXPECT_EQ(first.take(), kDone);
  EXPECT_EQ(late.take(), "");
  EXPECT_EQ(world_.job.counts().waits, 1U);
  elsewhere.send(plain(Op::Set, "k", ""));
  EXPECT_EQ(late.take(), kDone);
}

// The end of one of its waits says nothing of another.
TEST_F(RelayMuxTest, WhoWaitsForTwoKeysIsForgottenForNeither) {
  TestPeer elsewhere(world_);
  RelayedPeer& first = client();
  RelayedPeer& both = client();
  first.send(wait({"b"}));
  both.send(wait({"a"}));
  elsewhere.send(kHello + plain(Op::Set, "a", ""));
  both.say(wait({"b"}));  // too late, as far as the relay knows
  EXPECT_EQ(both.take(), kDone);
  elsewhere.send(plain(Op::Set, "b", "") + plain(Op::DeleteKey, "b"));
  EXPECT_EQ(first.take(), kDone);
  EXPECT_EQ(both.take(), kDone);
}

TEST_F(RelayMuxTest, WhoWaitsTwiceAndIsRefusedIsClosedOnce) {
  Limits tight;
  tight.total_bytes = 1;
  PeerWorld world(tight);
  RelayedNode node(world);
  RelayedPeer one(node);
  one.send(kHello);
  one.say(wait({"k"}) + wait({"k"}));
  EXPECT_EQ(one.take(), "");
  EXPECT_TRUE(one.is_closed());
  EXPECT_STREQ(one.close_reason(), kFull);
}

// As on a connection of its own: a later request of its own comes behind its wait.
TEST_F(RelayMuxTest, WhoJoinsIsServedOnWhenItsWaitIsThere) {
  RelayedPeer& first = client();
  RelayedPeer& late = client();
  first.send(wait({"k"}));
  late.say(wait({"k"}) + plain(Op::Set, "k", "") + plain(Op::DeleteKey, "k"));
  EXPECT_EQ(late.take(), kDone + number(1));
  EXPECT_EQ(first.take(), kDone);
}

// A relay learns from the first push that the key is a queue's.
TEST_F(RelayMuxTest, APushWakesOneOfThoseWhoWaitTogether) {
  TestPeer producer(world_);
  RelayedNode node(world_);
  RelayedPeer there(node);
  std::vector<RelayedPeer*> waiting;
  for (int i = 0; i < 3; ++i)
    (waiting.emplace_back(&client()))->send(wait({"q"}));
  there.send(kHello + wait({"q"}));
  EXPECT_EQ(world_.job.counts().waits, 2U);
  producer.send(kHello);
  for (RelayedPeer* next : waiting) {
    producer.send(plain(Op::QueuePush, "q", "item"));
    EXPECT_EQ(next->take(), kDone);
    for (RelayedPeer* other : waiting)
      EXPECT_EQ(other->take(), "") << "only one was woken";
    EXPECT_EQ(there.take(), "");
    EXPECT_EQ(ask(*next, plain(Op::QueuePop, "q")), number(1) + value("item"));
  }
  producer.send(plain(Op::QueuePush, "q", "item"));
  EXPECT_EQ(there.take(), kDone);
}

// Pushes that come while the relay takes its wait back are for others.
TEST_F(RelayMuxTest, APushThatNobodyHereWaitsForIsPassedOn) {
  TestPeer producer(world_);
  RelayedNode node(world_);
  RelayedPeer there(node);
  RelayedPeer& here = client();
  here.send(wait({"q"}));
  there.send(kHello + wait({"q"}));
  producer.send(kHello + plain(Op::QueuePush, "q", "1") + plain(Op::QueuePush, "q", "2"));
  EXPECT_EQ(here.take(), kDone);
  EXPECT_EQ(there.take(), kDone);
  EXPECT_EQ(world_.job.counts().waits, 0U);
}

TEST_F(RelayMuxTest, WhoGoesOrGivesUpFreesItsWait) {
  RelayedPeer& one = client();
  RelayedPeer& two = client();
  one.send(wait({"k", "j"}));
  two.send(wait({"k", "j"}));
  EXPECT_EQ(world_.job.counts().waits, 2U);
  EXPECT_EQ(ask(one, plain(Op::CancelWait)), "\1");
  EXPECT_EQ(world_.job.counts().waits, 1U);
  clients_.pop_back();
  EXPECT_EQ(world_.job.counts().waits, 0U);
}

TEST_F(RelayMuxTest, AnOldClientThatGoesOnHasGivenUpItsWait) {
  RelayedPeer old(node_);
  old.send(plain(Op::GetNumKeys, "", "", TcpStoreVersion::Torch1_13));
  EXPECT_EQ(old.take(), number(0));
  old.send(wait({"k", "j"}, TcpStoreVersion::Torch1_13));
  EXPECT_EQ(world_.job.counts().waits, 1U);
  old.send(plain(Op::Set, "j", "", TcpStoreVersion::Torch1_13));
  EXPECT_EQ(world_.job.counts().waits, 0U);
  old.send(plain(Op::Set, "k", "", TcpStoreVersion::Torch1_13));
  EXPECT_EQ(old.take(), "");
}

// The end of what it has given up is no end of the wait that it has begun since.
TEST_F(RelayMuxTest, WhatAnOldClientHasGivenUpEndsNoOtherWait) {
  const auto v = TcpStoreVersion::Torch1_13;
  for (const std::string& next : {wait({"x"}, v), wait({"x", "k"}, v)}) {
    PeerWorld world;
    RelayedNode node(world);
    TestPeer elsewhere(world);
    RelayedPeer old(node);
    old.send(plain(Op::GetNumKeys, "", "", v));
    EXPECT_EQ(old.take(), number(0));
    old.send(wait({"k", "j"}, v));
    elsewhere.send(kHello + plain(Op::Set, "k", "") + plain(Op::Set, "j", ""));
    old.say(next);  // before the relay hears of it
    EXPECT_EQ(old.take(), "");
    elsewhere.send(plain(Op::Set, "x", ""));
    EXPECT_EQ(old.take(), kDone);
    old.send(plain(Op::Set, "k", std::string(RelayMux::kLongest + 1, 'x'), v));
    EXPECT_TRUE(old.is_alone()) << "it waits for nothing";
  }
}

TEST_F(RelayMuxTest, BarriersMeetAcrossNodes) {
  RelayedNode elsewhere(world_);
  RelayedPeer there(elsewhere);
  RelayedPeer& here = client();
  Request barrier;
  barrier.op = Op::Barrier;
  barrier.key = "b";
  barrier.number = 3;
  EXPECT_EQ(ask(here, encoded(barrier)), "");
  there.send(kHello);
  EXPECT_EQ(ask(there, encoded(barrier)), "");
  EXPECT_EQ(ask(client(), encoded(barrier)), kDone);
  EXPECT_EQ(here.take(), kDone);
  EXPECT_EQ(there.take(), kDone);
}

TEST_F(RelayMuxTest, WhoSaysNonsenseIsClosedAlone) {
  RelayedPeer& good = client();
  RelayedPeer& bad = client();
  bad.send(plain(Op::Set, "k", "last words") + "\x7F");
  EXPECT_TRUE(bad.is_closed());
  EXPECT_EQ(ask(good, plain(Op::Get, "k")), value("last words"));
}

TEST_F(RelayMuxTest, TheEndOfAClientComesBehindItsAnswers) {
  RelayMux& mux = node_.mux();
  const RelayMux::Stream stream = mux.add();
  mux.take(stream, kHello + add("n", 5) + wait({"k"}) + plain(Op::Get, "n"));
  mux.end(stream);
  EXPECT_EQ(mux.fate(stream), Fate::Served);
  node_.pump();
  EXPECT_EQ(mux.output(stream), number(5) + value("5"));
  EXPECT_EQ(mux.fate(stream), Fate::Closing);
  EXPECT_EQ(world_.job.counts().waits, 0U);
  mux.forget(stream);
}

TEST_F(RelayMuxTest, WhatALostClientHasSaidArrives) {
  RelayMux& mux = node_.mux();
  const RelayMux::Stream stream = mux.add();
  mux.take(stream, kHello + add("n", 5) + plain(Op::Set, "k", "last words"));
  mux.lose(stream);
  mux.end(stream);
  node_.pump();
  EXPECT_EQ(mux.output(stream), "");
  EXPECT_EQ(mux.fate(stream), Fate::Closing);
  EXPECT_EQ(*world_.job.find("k"), "last words");
  mux.forget(stream);
}

// Its own words come first there.
TEST_F(RelayMuxTest, LongRequestsHaveAConnectionOfTheirOwn) {
  RelayedPeer& one = client();
  const std::string large(RelayMux::kLongest + 1, 'x');
  one.send(plain(Op::Set, "k", "small") + plain(Op::Append, "k", large));
  EXPECT_TRUE(one.is_alone());
  EXPECT_EQ(world_.job.find("k")->size(), large.size() + 5);
  EXPECT_EQ(ask(one, plain(Op::Get, "k")).size(), large.size() + 5 + 8);
}

TEST_F(RelayMuxTest, LongRepliesHaveAConnectionOfTheirOwn) {
  TestPeer other(world_);
  const std::string large(RelayMux::kLongest, 'x');
  other.send(kHello + plain(Op::Set, "k", large));
  Request many;
  many.op = Op::MultiGet;
  many.keys = {"j", "k"};
  Request swap;
  swap.op = Op::CompareSet;
  swap.key = "k";
  for (const std::string& bytes : {plain(Op::Get, "k"), encoded(many), encoded(swap)}) {
    RelayedPeer& one = client();
    EXPECT_GT(ask(one, bytes).size(), large.size());
    EXPECT_TRUE(one.is_alone());
  }
  RelayedPeer& queue = client();
  other.send(plain(Op::QueuePush, "q", large));
  EXPECT_EQ(ask(queue, plain(Op::QueuePop, "q")), number(1) + value(large));
  EXPECT_TRUE(queue.is_alone());
  RelayedPeer& lists = client();
  for (int i = 0; i < 9; ++i)
    other.send(plain(Op::Set, std::string(8 * 1024, static_cast<char>('a' + i)), ""));
  EXPECT_GT(ask(lists, plain(Op::ListKeys)).size(), std::size_t{8} * 8 * 1024);
  EXPECT_TRUE(lists.is_alone());
}

// Nothing else would wake it.
TEST_F(RelayMuxTest, WithAWaitPendingLongOnesTravelWithTheOthers) {
  RelayedPeer& one = client();
  const std::string large(RelayMux::kLongest + 1, 'x');
  one.send(wait({"k", "j"}));
  one.send(plain(Op::Set, "k", large));
  EXPECT_EQ(ask(one, plain(Op::Get, "k")), value(large));
  EXPECT_FALSE(one.is_alone());
  EXPECT_EQ(ask(one, plain(Op::Set, "j", "")), kDone);
}

TEST_F(RelayMuxTest, WhoReadsNothingIsServedNoMoreThanItTakes) {
  RelayMux& mux = node_.mux();
  const RelayMux::Stream slow = mux.add();
  RelayedPeer& other = client();
  other.send(plain(Op::Set, "k", std::string(40'000, 'x')));
  std::string gets = kHello;
  for (int i = 0; i < 20; ++i)
    gets += plain(Op::Get, "k");
  mux.take(slow, gets);
  node_.pump();
  EXPECT_LT(mux.output(slow).size(), 2 * RelayMux::kLongest);
  EXPECT_EQ(ask(other, add("n", 1)), number(1));
  std::size_t heard = 0;
  while (!mux.output(slow).empty()) {
    heard += mux.output(slow).size();
    mux.on_sent(slow, mux.output(slow).size());
    node_.pump();
  }
  EXPECT_EQ(heard, std::size_t{20} * 40'008);
  mux.take(slow, std::string(RelayMux::kLongest, '\1'));
  EXPECT_FALSE(mux.wants(slow));
  mux.forget(slow);
}

TEST_F(RelayMuxTest, ClientsWaitWhileTheStoreTakesNothing) {
  RelayMux& mux = node_.mux();
  const RelayMux::Stream busy = mux.add();
  mux.take(busy, kHello);
  const std::string set = plain(Op::Set, "k", std::string(50'000, 'x'));
  for (int i = 0; i < 20; ++i)
    mux.take(busy, set);
  EXPECT_LT(mux.to_store().size(), RelayMux::kMostToSend + set.size() + 100);
  EXPECT_FALSE(mux.wants(busy));
  mux.end(busy);
  EXPECT_EQ(mux.fate(busy), Fate::Served);
  node_.pump();
  EXPECT_EQ(mux.fate(busy), Fate::Closing);
  EXPECT_EQ(requests(), 1U + 20U) << "the beginning and all that it has said";
  mux.forget(busy);
}

TEST(RelayMuxOfAnOldStoreTest, ClientsHaveConnectionsOfTheirOwn) {
  RelayMux mux;
  const RelayMux::Stream before = mux.add();
  mux.take(before, kHello + "rest");
  std::string answers;
  control::encode(answers, 0, control::Reply(control::Welcome{}));
  control::encode(answers, 1, control::Error{control::ErrorCode::UnknownRequest, ""});
  mux.take_from_store(answers);
  EXPECT_TRUE(mux.is_refused());
  const RelayMux::Stream after = mux.add();
  EXPECT_EQ(mux.fate(before), Fate::Own);
  EXPECT_EQ(mux.fate(after), Fate::Own);
  EXPECT_EQ(mux.take_over(before), kHello + "rest");
  EXPECT_EQ(mux.take_over(after), "");
}

TEST(RelayMuxOfNoStoreTest, NoticesWhatIsNotTheProtocol) {
  std::string done;
  control::encode(done, 1, control::Reply(control::Done{}));
  for (const std::string& bytes : {std::string(20, '\0'), done + std::string(20, '\0'),
                                   done + std::string("\x09\0\0\0\1\0\0\0\0\0\0\0\x55", 13)}) {
    RelayMux mux;
    mux.take_from_store(bytes);
    EXPECT_TRUE(mux.is_broken());
  }
}

TEST(RelayMuxOfNoStoreTest, NoticesTheAnswerToALeaveThatItHasNotSaid) {
  RelayMux mux;
  std::string done;
  control::encode(done, 1, control::Reply(control::Done{}));
  mux.take_from_store(done);
  ASSERT_EQ(mux.add(), 1U);
  EXPECT_FALSE(mux.is_broken());
  mux.take_from_store(done);
  EXPECT_TRUE(mux.is_broken());
}

TEST_F(RelayMuxTest, OneOf2_1SaysSoOnAConnectionOfItsOwn) {
  RelayMux& mux = node_.mux();
  const RelayMux::Stream stream = mux.add();
  const auto v = TcpStoreVersion::Torch2_1;
  mux.take(stream, plain(Op::GetNumKeys, "", "", v) + plain(Op::CancelWait, "", "", v));
  node_.pump();
  mux.take(stream, plain(Op::Append, "k", std::string(RelayMux::kLongest + 1, 'x'), v));
  node_.pump();
  ASSERT_EQ(mux.fate(stream), Fate::Own);
  TestPeer own(world_);
  const std::string said = mux.take_over(stream);
  own.send(said.substr(0, said.size() / 2));  // half a value, which alone proves nothing
  own.send(said.substr(said.size() / 2));
  EXPECT_EQ(own.take(), "");
  EXPECT_EQ(world_.job.find("k")->size(), RelayMux::kLongest + 1);
}

}  // namespace
}  // namespace drun::store
