// What each TCPStore request does and is answered, as clients see it.
#include "store/server/tcpstore_handler.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "support/test_peer.hpp"

namespace drun::store::tcpstore {
namespace {

using test::PeerWorld;
using test::TestPeer;

const std::string kStop(1, '\0');

std::string vec(std::string_view bytes) {
  std::string out;
  append_vector(out, bytes);
  return out;
}
std::string num(std::int64_t number) {
  std::string out;
  append(out, number);
  return out;
}

// A client of one version: requests in, answers out.
class Client : public TestPeer {
 public:
  explicit Client(PeerWorld& world, TcpStoreVersion version = TcpStoreVersion::Torch2_2)
      : Client(world, world.context, version) {}
  Client(PeerWorld& world, PeerContext& context, TcpStoreVersion version)
      : TestPeer(world, context), version_(version) {
    if (version == TcpStoreVersion::Torch2_2) send(kHandshake);
  }

  std::string ask(Op op, std::string_view key = {}, std::string_view value = {}) {
    Request request = make(op, key);
    request.value = value;
    return ask(request);
  }
  std::string add(std::string_view key, std::int64_t delta) { return number(Op::Add, key, delta); }
  std::string barrier(std::string_view key, std::int64_t world_size) {
    return number(Op::Barrier, key, world_size);
  }
  std::string compare_set(std::string_view key, std::string_view expected,
                          std::string_view desired) {
    Request request = make(Op::CompareSet, key);
    request.expected = expected;
    request.value = desired;
    return ask(request);
  }
  std::string list(Op op, const std::vector<std::string_view>& keys,
                   const std::vector<std::string_view>& values = {}) {
    Request request = make(op, {});
    request.keys = keys;
    request.values = values;
    return ask(request);
  }
  std::string ask(const Request& request) {
    std::string bytes;
    encode(bytes, version_, request);
    return TestPeer::ask(bytes);
  }

 private:
  static Request make(Op op, std::string_view key) {
    Request request;
    request.op = op;
    request.key = key;
    return request;
  }
  std::string number(Op op, std::string_view key, std::int64_t value) {
    Request request = make(op, key);
    request.number = value;
    return ask(request);
  }

  TcpStoreVersion version_;
};

class TcpStoreHandlerTest : public testing::Test {
 protected:
  std::string value(std::string_view key) {
    const std::string* found = world.job.find(key);
    return found ? *found : "(none)";
  }

  PeerWorld world;
  Client client{world};
  Client other{world};
};

TEST_F(TcpStoreHandlerTest, SetHasNoReplyAndGetOfAMissingKeyIsEmpty) {
  EXPECT_EQ(client.ask(Op::Set, "/k", "v"), "");
  EXPECT_EQ(client.ask(Op::Get, "/k"), vec("v"));
  EXPECT_EQ(client.ask(Op::Get, "/none"), vec(""));
  EXPECT_EQ(client.ask(Op::Set, "", ""), "") << "the empty key is a key";
  EXPECT_EQ(client.ask(Op::GetNumKeys), num(2));
}

TEST_F(TcpStoreHandlerTest, AddParsesLikeStrtoll) {
  struct Case {
    const char* text;
    std::int64_t delta;
    std::int64_t sum;
  };
  const std::int64_t max = std::numeric_limits<std::int64_t>::max();
  const std::int64_t min = std::numeric_limits<std::int64_t>::min();
  const Case cases[] = {{"5", 0, 5},
                        {" 41x", 1, 42},
                        {"\t\n\v\f\r-3", 1, -2},
                        {"+7", 1, 8},
                        {"007", 1, 8},
                        {"-0", 0, 0},
                        {"1 2", 1, 2},
                        {"99999999999999999x", 1, 100000000000000000},
                        {"999999999999999999", 1, 1000000000000000000},
                        {"1000000000000000000", 1, 1000000000000000001},
                        {"9223372036854775807", 1, min},
                        {"-9223372036854775808", -1, max}};
  for (const Case& c : cases) {
    client.ask(Op::Set, "n", c.text);
    EXPECT_EQ(client.add("n", c.delta), num(c.sum)) << c.text;
    EXPECT_EQ(value("n"), std::to_string(c.sum)) << "stored as plain decimal text";
  }
  EXPECT_EQ(client.add("new", 0), num(0));
  EXPECT_EQ(value("new"), "0");
}

TEST_F(TcpStoreHandlerTest, AddCountsOn) {
  std::vector<std::int64_t> numbers{0, 1, 5, 123, 9'007'199'254'740'993};
  for (std::int64_t power = 10; power <= 1'000'000'000'000'000'000 / 10; power *= 10)
    for (const std::int64_t near : {-2, -1, 0, 1, 2})
      numbers.push_back(power + near);
  for (const std::int64_t start : numbers) {
    for (const std::int64_t delta : numbers) {
      for (const std::int64_t sign : {1, -1}) {
        client.ask(Op::Set, "n", std::to_string(start));
        for (int step = 1; step <= 3; ++step) {
          const std::int64_t sum = start + step * sign * delta;
          ASSERT_EQ(client.add("n", sign * delta), num(sum)) << start << ' ' << sign * delta;
          ASSERT_EQ(value("n"), std::to_string(sum));
        }
      }
    }
  }
}

TEST_F(TcpStoreHandlerTest, AddSeesWhatOthersMadeOfItsNumber) {
  client.ask(Op::Set, "n", "41");
  EXPECT_EQ(client.add("n", 1), num(42));
  client.ask(Op::Append, "n", "3");
  EXPECT_EQ(client.add("n", 1), num(424));
  EXPECT_EQ(client.add("n", 1), num(425));
  client.compare_set("n", "425", "77");
  EXPECT_EQ(client.add("n", 1), num(78));
  client.list(Op::MultiSet, {"n"}, {"15"});
  EXPECT_EQ(client.add("n", 1), num(16));
  client.ask(Op::DeleteKey, "n");
  EXPECT_EQ(client.add("n", 1), num(1));
  EXPECT_EQ(client.add("n", 1), num(2));
  client.ask(Op::Set, "n", "no number");
  EXPECT_EQ(client.add("n", 1), "");
  EXPECT_TRUE(client.is_closed());
}

TEST_F(TcpStoreHandlerTest, AddToTextThatIsNoNumberClosesAndChangesNothing) {
  for (const char* text : {"", " ", "abc", "x1", "-", "+", "+-1", "--1", "9223372036854775808",
                           "-9223372036854775809"}) {
    world.job.clear();
    Client adder(world);
    adder.ask(Op::Set, "n", text);
    EXPECT_EQ(adder.add("n", 1), "");
    EXPECT_TRUE(adder.is_closed()) << '"' << text << '"';
    EXPECT_EQ(value("n"), text);
  }
}

TEST_F(TcpStoreHandlerTest, CompareSet) {
  EXPECT_EQ(client.compare_set("k", "x", "new"), vec("x")) << "missing, something expected";
  EXPECT_EQ(value("k"), "(none)");
  EXPECT_EQ(client.compare_set("k", "", "one"), vec("one")) << "missing, nothing expected";
  EXPECT_EQ(client.compare_set("k", "one", "two"), vec("two"));
  EXPECT_EQ(client.compare_set("k", "one", "three"), vec("two")) << "present, different";
  EXPECT_EQ(client.compare_set("k", "", "three"), vec("two")) << "present, nothing expected";
  EXPECT_EQ(client.compare_set("k", "two", ""), vec(""));
  EXPECT_EQ(client.compare_set("k", "", "four"), vec("four")) << "present and empty";
}

TEST_F(TcpStoreHandlerTest, CheckCountsKeysAndQueuesThatAreNotEmpty) {
  EXPECT_EQ(client.list(Op::Check, {}), kStop);
  EXPECT_EQ(client.list(Op::Check, {"a"}), "\1");
  client.ask(Op::Set, "a", "");
  client.ask(Op::QueuePush, "q", "");
  EXPECT_EQ(client.list(Op::Check, {"a", "q"}), kStop);
  client.ask(Op::QueuePop, "q");
  EXPECT_EQ(client.list(Op::Check, {"a", "q"}), "\1");
}

TEST_F(TcpStoreHandlerTest, WaitIsAnsweredOnceWhenTheLastMissingKeyAppears) {
  EXPECT_EQ(client.list(Op::Wait, {}), kStop);
  other.ask(Op::Set, "there", "");
  EXPECT_EQ(client.list(Op::Wait, {"there", "a", "b"}), "");
  other.add("b", 1);
  EXPECT_EQ(client.take(), "");
  EXPECT_EQ(client.pushes(), 0);
  other.ask(Op::Append, "a", "");
  EXPECT_EQ(client.take(), kStop);
  EXPECT_EQ(client.pushes(), 1);
  other.ask(Op::Set, "a", "again");
  EXPECT_EQ(client.take(), "");
}

TEST_F(TcpStoreHandlerTest, EveryWayToMakeAKeyEndsAWait) {
  const auto wakes = [&](auto make) {
    world.job.clear();
    EXPECT_EQ(client.list(Op::Wait, {"k"}), "");
    make();
    return client.take() == kStop;
  };
  EXPECT_TRUE(wakes([&] { other.ask(Op::Set, "k", ""); }));
  EXPECT_TRUE(wakes([&] { other.add("k", 0); }));
  EXPECT_TRUE(wakes([&] { other.ask(Op::Append, "k", ""); }));
  EXPECT_TRUE(wakes([&] { other.list(Op::MultiSet, {"j", "k"}, {"", ""}); }));
  EXPECT_TRUE(wakes([&] { other.compare_set("k", "", "x"); }));
  EXPECT_TRUE(wakes([&] { other.barrier("k", 1); }));
  EXPECT_TRUE(wakes([&] { other.ask(Op::QueuePush, "k", ""); }));
  other.ask(Op::QueuePop, "k");
  EXPECT_FALSE(wakes([&] { other.compare_set("k", "x", "y"); })) << "stored nothing";
  client.ask(Op::CancelWait);
  EXPECT_FALSE(wakes([&] { other.barrier("k", 2); })) << "an arrival that does not complete it";
}

TEST_F(TcpStoreHandlerTest, WaitCountsKeysAndDoesNotLookAgain) {
  client.list(Op::Wait, {"a", "b"});
  other.ask(Op::Set, "a", "");
  other.ask(Op::DeleteKey, "a");
  other.ask(Op::Set, "b", "");
  EXPECT_EQ(client.take(), kStop);
  client.list(Op::Wait, {"c", "c"});
  other.ask(Op::Set, "c", "");
  EXPECT_EQ(client.take(), kStop) << "a key named twice";
}

TEST_F(TcpStoreHandlerTest, AConnectionMayEndItsOwnWait) {
  EXPECT_EQ(client.list(Op::Wait, {"k"}), "");
  EXPECT_EQ(client.ask(Op::Set, "k", ""), kStop);
}

TEST_F(TcpStoreHandlerTest, AllWaitersOfAKeyAreWokenAndThoseWhoLeftAreForgotten) {
  Client third(world);
  client.list(Op::Wait, {"k"});
  third.list(Op::Wait, {"k"});
  {
    Client leaver(world);
    leaver.list(Op::Wait, {"k", "j"});
  }
  other.ask(Op::Set, "k", "");
  EXPECT_EQ(client.take(), kStop);
  EXPECT_EQ(third.take(), kStop);
  EXPECT_EQ(world.job.counts().waits, 0U);
}

TEST_F(TcpStoreHandlerTest, CancelWaitIsAlwaysAnsweredAndDropsTheWait) {
  EXPECT_EQ(client.ask(Op::CancelWait), "\1");
  client.list(Op::Wait, {"k"});
  EXPECT_EQ(client.ask(Op::CancelWait), "\1");
  other.ask(Op::Set, "k", "");
  EXPECT_EQ(client.take(), "");
}

TEST_F(TcpStoreHandlerTest, TwoPendingWaitsAreAnsweredEach) {
  client.list(Op::Wait, {"a"});
  client.list(Op::Wait, {"b"});
  other.ask(Op::Set, "b", "");
  EXPECT_EQ(client.take(), kStop);
  other.ask(Op::Set, "a", "");
  EXPECT_EQ(client.take(), kStop);
}

TEST_F(TcpStoreHandlerTest, AnOldClientsNextRequestGivesItsWaitUp) {
  Client old(world, TcpStoreVersion::Torch1_13);
  old.list(Op::Wait, {"k"});
  EXPECT_EQ(old.ask(Op::GetNumKeys), num(0));
  other.ask(Op::Set, "k", "");
  EXPECT_EQ(old.take(), "") << "it would read the late answer as part of the next one";
  old.list(Op::Wait, {"later"});
  other.ask(Op::Set, "later", "");
  EXPECT_EQ(old.take(), kStop);
}

TEST_F(TcpStoreHandlerTest, DeleteAppendAndLists) {
  EXPECT_EQ(client.ask(Op::DeleteKey, "k"), num(0));
  EXPECT_EQ(client.ask(Op::Append, "k", "ab"), "");
  EXPECT_EQ(client.ask(Op::Append, "k", "cd"), "");
  EXPECT_EQ(client.ask(Op::Get, "k"), vec("abcd"));
  EXPECT_EQ(client.ask(Op::DeleteKey, "k"), num(1));
  EXPECT_EQ(client.list(Op::MultiSet, {"a", "b", "a"}, {"1", "2", "3"}), "");
  EXPECT_EQ(client.list(Op::MultiGet, {"b", "none", "a"}), vec("2") + vec("") + vec("3"));
  EXPECT_EQ(client.list(Op::MultiGet, {}), "");
  EXPECT_EQ(client.ask(Op::GetNumKeys), num(2));
  client.ask(Op::DeleteKey, "a");
  EXPECT_EQ(client.ask(Op::ListKeys), num(1) + vec("b"));
}

TEST_F(TcpStoreHandlerTest, QueuesAreApartFromKeysAndFirstInFirstOut) {
  EXPECT_EQ(client.ask(Op::QueueLen, "q"), num(0));
  EXPECT_EQ(client.ask(Op::QueuePop, "q"), num(0));
  client.ask(Op::QueuePush, "q", "one");
  client.ask(Op::QueuePush, "q", "");
  EXPECT_EQ(client.ask(Op::QueueLen, "q"), num(2));
  EXPECT_EQ(client.ask(Op::GetNumKeys), num(0));
  EXPECT_EQ(client.ask(Op::ListKeys), num(0));
  EXPECT_EQ(client.ask(Op::DeleteKey, "q"), num(0));
  EXPECT_EQ(client.ask(Op::Get, "q"), vec(""));
  EXPECT_EQ(client.ask(Op::QueuePop, "q"), num(2) + vec("one"));
  EXPECT_EQ(client.ask(Op::QueuePop, "q"), num(1) + vec(""));
  EXPECT_EQ(client.ask(Op::QueuePop, "q"), num(0));
}

TEST_F(TcpStoreHandlerTest, APushWakesTheFirstWaiterOnly) {
  Client second(world);
  client.list(Op::Wait, {"q", "q"});
  second.list(Op::Wait, {"q"});
  other.ask(Op::QueuePush, "q", "x");
  EXPECT_EQ(client.take(), kStop);
  EXPECT_EQ(second.take(), "");
  other.ask(Op::QueuePush, "q", "y");
  EXPECT_EQ(second.take(), kStop);
}

TEST_F(TcpStoreHandlerTest, ABarrierLetsAllGoWithItsLastArrival) {
  Client third(world);
  Client waiter(world);
  waiter.list(Op::Wait, {"bar"});
  EXPECT_EQ(client.barrier("bar", 3), "");
  EXPECT_EQ(other.barrier("bar", 3), "");
  EXPECT_EQ(value("bar"), "2") << "an ordinary key";
  EXPECT_EQ(waiter.take(), "") << "plain waits sleep until it is complete";
  EXPECT_EQ(third.barrier("bar", 3), kStop);
  EXPECT_EQ(client.take(), kStop);
  EXPECT_EQ(other.take(), kStop);
  EXPECT_EQ(waiter.take(), kStop);
  EXPECT_EQ(client.barrier("bar", 3), kStop) << "late arrivals pass";
  EXPECT_EQ(value("bar"), "4");
  EXPECT_EQ(client.barrier("one", 1), kStop);
  EXPECT_EQ(client.barrier("none", 0), kStop);
  EXPECT_EQ(client.barrier("negative", -1), kStop);
}

TEST_F(TcpStoreHandlerTest, ABarrierGivenUpKeepsItsCountAndASetReleasesIt) {
  client.barrier("bar", 2);
  EXPECT_EQ(client.ask(Op::CancelWait), "\1");
  EXPECT_EQ(value("bar"), "1");
  other.barrier("set", 9);
  client.ask(Op::Set, "set", "x");
  EXPECT_EQ(other.take(), kStop);
  other.barrier("set", 9);
  EXPECT_TRUE(other.is_closed()) << "not a number";
}

TEST_F(TcpStoreHandlerTest, PingComesBack) {
  Request ping;
  ping.op = Op::Ping;
  ping.nonce = 0x51D0;
  EXPECT_EQ(client.ask(ping), (std::string("\xD0\x51\0\0", 4)));
}

TEST_F(TcpStoreHandlerTest, WhatIsUnknownOrOutOfPlaceCloses) {
  for (const std::string& bytes : {kStop, std::string("\x13"), std::string("\xFF")}) {
    Client modern(world);
    EXPECT_EQ(modern.TestPeer::ask(bytes), "");
    EXPECT_TRUE(modern.is_closed());
  }
  Client twice(world);
  twice.send(kHandshake);
  EXPECT_TRUE(twice.is_closed()) << "a second VALIDATE";
  Client old(world, TcpStoreVersion::Torch1_13);
  old.ask(Op::GetNumKeys);
  old.send("\x0C");
  EXPECT_TRUE(old.is_closed());
}

TEST_F(TcpStoreHandlerTest, RepliesBeforeTheMistakeAreGiven) {
  std::string bytes = "\x07";
  bytes += "\xFF";
  EXPECT_EQ(client.TestPeer::ask(bytes), num(0));
  EXPECT_TRUE(client.is_closed());
}

TEST_F(TcpStoreHandlerTest, A21ClientIsServedByItsOwnOpcodes) {
  Client b(world, TcpStoreVersion::Torch2_1);
  b.ask(Op::Set, "k", "x");
  EXPECT_EQ(b.ask(Op::DeleteKey, "k"), num(1));
  EXPECT_EQ(b.ask(Op::Append, "k", "ab"), "");
  EXPECT_EQ(b.list(Op::MultiGet, {"k"}), vec("ab"));
  EXPECT_EQ(b.list(Op::MultiSet, {"j"}, {"1"}), "");
  b.list(Op::Wait, {"none"});
  EXPECT_EQ(b.ask(Op::CancelWait), "\1");
}

TEST_F(TcpStoreHandlerTest, AppendOfA21ClientIsKnownByItsValueOrByTheSwitch) {
  Client guessed(world, TcpStoreVersion::Torch2_1);
  EXPECT_EQ(guessed.ask(Op::Append, "k", "ab"), "");
  EXPECT_EQ(value("k"), "ab");
  world.context.old_clients_are_2_1 = true;
  Client told(world, TcpStoreVersion::Torch2_1);
  std::string bytes = "\x08" + vec("k");
  EXPECT_EQ(told.TestPeer::ask(bytes), "") << "its value comes in another segment";
  EXPECT_EQ(told.TestPeer::ask(vec("cd")), "");
  EXPECT_EQ(value("k"), "abcd");
}

TEST_F(TcpStoreHandlerTest, AFullStoreClosesWhoWantsMore) {
  Limits limits;
  limits.total_bytes = 2 * (KeyTable::kOverheadBytes + 10);
  PeerWorld small(limits);
  Client writer(small);
  writer.ask(Op::Set, "12345", "12345");
  writer.ask(Op::Set, "1234x", "12345");
  EXPECT_FALSE(writer.is_closed()) << "exactly full";
  writer.ask(Op::Set, "12345", "1");
  writer.ask(Op::Append, "12345", "2345");
  EXPECT_FALSE(writer.is_closed());
  Client appender(small);
  appender.ask(Op::Append, "12345", "6");
  EXPECT_TRUE(appender.is_closed());
  Client waiter(small);
  waiter.list(Op::Wait, {"none"});
  EXPECT_TRUE(waiter.is_closed());
  Client pusher(small);
  pusher.ask(Op::QueuePush, "q", "");
  EXPECT_TRUE(pusher.is_closed());
  EXPECT_EQ(*small.job.find("12345"), "12345");
  EXPECT_EQ(writer.ask(Op::DeleteKey, "12345"), num(1));
  Client again(small);
  EXPECT_EQ(again.ask(Op::QueuePush, "q", ""), "");
  EXPECT_FALSE(again.is_closed());
}

TEST_F(TcpStoreHandlerTest, AValueDoesNotGrowBeyondItsLimit) {
  Limits limits;
  limits.value_bytes = 100;
  PeerWorld small(limits);
  Client appender(small);
  appender.ask(Op::Append, "k", std::string(60, 'a'));
  appender.ask(Op::Append, "k", std::string(40, 'b'));
  EXPECT_FALSE(appender.is_closed());
  appender.ask(Op::Append, "k", "c");
  EXPECT_TRUE(appender.is_closed());
  EXPECT_STREQ(appender.close_reason(), "value too long");
  EXPECT_EQ(small.job.find("k")->size(), 100U);
}

TEST_F(TcpStoreHandlerTest, AReplyBeyondTheLimitCloses) {
  Limits limits;
  limits.unread_bytes = 100;
  PeerWorld small(limits);
  Client reader(small);
  reader.ask(Op::Set, "k", std::string(50, 'v'));
  EXPECT_EQ(reader.list(Op::MultiGet, {"k"}).size(), 58U);
  reader.list(Op::MultiGet, {"k", "k", "k"});
  EXPECT_TRUE(reader.is_closed());
  EXPECT_STREQ(reader.close_reason(), "reply too long");
}

TEST_F(TcpStoreHandlerTest, AListOfKeysBeyondTheLimitCloses) {
  Limits limits;
  limits.unread_bytes = 100;
  PeerWorld small(limits);
  Client lister(small);
  lister.ask(Op::Set, std::string(50, 'a'), "");
  EXPECT_EQ(lister.ask(Op::ListKeys).size(), 66U);
  lister.ask(Op::Set, std::string(50, 'b'), "");
  lister.ask(Op::ListKeys);
  EXPECT_TRUE(lister.is_closed());
  EXPECT_STREQ(lister.close_reason(), "reply too long");
}

TEST_F(TcpStoreHandlerTest, APeerThatDoesNotReadIsPausedAndLosesNothing) {
  client.ask(Op::Set, "k", std::string(100'000, 'v'));
  std::string requests;
  for (int i = 0; i < 10; ++i)
    requests += "\x03" + vec("k");
  client.send(requests);
  EXPECT_TRUE(client.is_paused());
  std::size_t replies = client.take().size() / 100'008;
  EXPECT_LT(replies, 10U);
  while (client.is_paused()) {
    client.resume();
    replies += client.take().size() / 100'008;
  }
  EXPECT_EQ(replies, 10U);
}

}  // namespace
}  // namespace drun::store::tcpstore
