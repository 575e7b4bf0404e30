// Leases, elections and barriers through a store of drun's, as a new server and as an old one.
#include "drun/store/lease.hpp"

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/store/barrier.hpp"
#include "drun/store/client.hpp"
#include "drun/store/errors.hpp"
#include "store/client/lease_claim.hpp"
#include "store/protocol/tcpstore_codec.hpp"
#include "support/drun_process.hpp"
#include "support/patience.hpp"
#include "support/places.hpp"
#include "support/running_server.hpp"
#include "support/scripted_peer.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using test::kPatience;
using testing::HasSubstr;

class StoreOfAnyAge : public testing::TestWithParam<TcpStoreVersion> {
 protected:
  Client connect() const {
    return Client::connect(server_.endpoint(), kPatience, {.version = GetParam()}).value();
  }
  Result<Lease> acquire(LeaseOptions options = {}, Client::Timeout timeout = kPatience) const {
    return Lease::acquire(connect(), "lease", std::move(options), timeout);
  }

  test::RunningServer server_;
};

using LeaseTest = StoreOfAnyAge;

TEST_P(LeaseTest, OneHoldsItAtATime) {
  std::atomic<int> holders{0};
  std::atomic<std::int64_t> terms{0};
  std::vector<std::future<void>> contenders;
  for (int i = 0; i < 3; ++i) {
    contenders.push_back(std::async(std::launch::async, [&] {
      for (int time = 0; time < 3; ++time) {
        auto lease = acquire({.time_to_live = kPatience});
        ASSERT_TRUE(lease) << lease.error().what();
        EXPECT_EQ(++holders, 1);
        EXPECT_TRUE(lease->held());
        EXPECT_GT(lease->term(), terms.exchange(lease->term())) << "terms grow";
        --holders;
        EXPECT_TRUE(lease->release());
        EXPECT_FALSE(lease->held());
      }
    }));
  }
  for (auto& contender : contenders)
    contender.get();
  EXPECT_EQ(terms, 9);
  EXPECT_LE(connect().num_keys().value(), 3) << "what earlier terms left is deleted";
}

TEST_P(LeaseTest, WhoWaitsInVainIsToldWhoHoldsIt) {
  const auto first = acquire({.holder = "rank 3"});
  ASSERT_TRUE(first) << first.error().what();
  for (const auto timeout : {0ms, 30ms}) {
    const auto second = acquire({}, timeout);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), Errc::Timeout);
    EXPECT_EQ(second.error().what(), "lease 'lease' at " + to_string(server_.endpoint()) +
                                         ": timed out: it is held by 'rank 3', term 1");
  }
  EXPECT_TRUE(first->held());
}

TEST_P(LeaseTest, ALivingHolderKeepsItLongerThanItsTimeToLive) {
  auto holder = acquire({.time_to_live = 3s});
  ASSERT_TRUE(holder) << holder.error().what();
  auto next = std::async(std::launch::async, [&] { return acquire(); });
  Client client = connect();
  EXPECT_TRUE(test::eventually([&] { return client.add("lease/lease/beat/1", 0).value() >= 4; }));
  EXPECT_TRUE(holder->held());
  EXPECT_TRUE(holder->release());
  EXPECT_EQ(next.get().value().term(), 2);
}

TEST_P(LeaseTest, ADeadHoldersIsTaken) {
  // As a process that was killed has left it: nobody counts.
  ASSERT_TRUE(connect().set("lease/lease/holder", "7 300 id dead"));
  const auto start = Client::Clock::now();
  const auto lease = acquire();
  ASSERT_TRUE(lease) << lease.error().what();
  EXPECT_GE(Client::Clock::now() - start, 300ms);
  EXPECT_EQ(lease->term(), 8);
}

// Somebody deletes it, between the look at the holder and the attempt to follow it, too.
TEST_P(LeaseTest, AKeyThatComesAndGoesKeepsNobodyForEver) {
  std::atomic<bool> over{false};
  auto deleting = std::async(std::launch::async, [&] {
    Client client = connect();
    while (!over)
      (void)client.delete_key("lease/lease/holder", kPatience);
  });
  for (int i = 0; i < 50; ++i) {
    const auto lease = acquire({.time_to_live = 1ms}, 20ms);
    if (!lease) {
      EXPECT_EQ(lease.error().code(), Errc::Timeout) << lease.error().what();
    }
  }
  over = true;
  deleting.get();
  EXPECT_TRUE(acquire());
}

// What a store says whose key of the lease is there, is to be followed, and is gone by then.
void say_that_it_comes_and_goes(test::ScriptedConnection& connection) {
  const std::string hello = connection.read(10);
  if (hello.size() == 10) connection.write(hello.substr(6));
  tcpstore::Decoder decoder(TcpStoreVersion::Torch2_2);
  int claims = 0;
  std::string bytes;
  for (std::string next; !(next = connection.read(1)).empty();) {
    bytes += next;
    tcpstore::Request request;
    if (decoder.next(bytes, {}, request).status != tcpstore::Decoder::Status::Complete) continue;
    std::string answer;
    if (request.op == tcpstore::Op::CompareSet)
      tcpstore::append_vector(answer, ++claims == 1 ? "1 1000 id another"
                                      : claims == 2 ? request.expected
                                                    : request.value);
    else if (request.op == tcpstore::Op::Check)
      answer = tcpstore::kReady;
    else
      append(answer, std::int64_t{1});
    connection.write(answer);
    bytes.clear();
  }
}

TEST(LeaseClaimTest, AKeyThatIsGoneMeanwhileIsTakenLikeAnyOther) {
  const test::ScriptedPeer peer(say_that_it_comes_and_goes);
  Client client = Client::connect(peer.endpoint(), kPatience).value();
  const auto taken = take_lease(client, LeaseKeys("l"), 1s, "me", Client::Clock::now() + kPatience);
  ASSERT_TRUE(taken) << taken.error().what();
}

TEST_P(LeaseTest, AnothersKeyIsNotTakenForOne) {
  ASSERT_TRUE(connect().set("lease/lease/holder", "something"));
  const auto lease = acquire();
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code(), Errc::Malformed);
}

TEST_P(LeaseTest, ALostConnectionIsALostLease) {
  std::promise<std::string> lost;
  LeaseOptions options{.time_to_live = 3s};
  options.on_lost = [&](const Error& error) { lost.set_value(error.what()); };
  auto server = std::make_unique<test::RunningServer>();
  auto client = Client::connect(server->endpoint(), kPatience, {.version = GetParam()});
  auto lease = Lease::acquire(std::move(client).value(), "lease", std::move(options), kPatience);
  ASSERT_TRUE(lease) << lease.error().what();
  server.reset();
  auto told = lost.get_future();
  ASSERT_EQ(told.wait_for(kPatience), std::future_status::ready);
  EXPECT_THAT(told.get(), HasSubstr("lease 'lease' is lost: add 'lease/lease/beat/1' at "));
  EXPECT_FALSE(lease->held());
  EXPECT_FALSE(lease->release());
}

using ElectionTest = StoreOfAnyAge;

TEST_P(ElectionTest, OneLeadsUntilItResigns) {
  Election first(connect(), "chief", "a");
  Election second(connect(), "chief", "b");
  EXPECT_EQ(second.leader(0ms).error().code(), Errc::Timeout) << "nobody was elected yet";
  ASSERT_TRUE(first.campaign(kPatience));
  EXPECT_TRUE(first.campaign(kPatience)) << "again";
  EXPECT_TRUE(first.leads());
  EXPECT_EQ(first.leader().value(), "a");
  EXPECT_EQ(second.leader(kPatience).value(), "a");
  EXPECT_FALSE(second.campaign(0ms));
  EXPECT_FALSE(second.leads());

  auto elected = std::async(std::launch::async, [&] { return second.campaign(kPatience); });
  first.resign();
  EXPECT_FALSE(first.leads());
  EXPECT_TRUE(elected.get());
  EXPECT_TRUE(second.leads());
  EXPECT_EQ(second.term(), 2);
  EXPECT_EQ(first.leader(kPatience).value(), "b");
}

using BarrierTest = StoreOfAnyAge;

TEST_P(BarrierTest, NobodyPassesBeforeAllHaveComeAsOftenAsTheyLike) {
  constexpr int kSize = 4;
  constexpr int kTimes = 5;
  std::atomic<int> arrived{0};
  std::vector<std::future<void>> callers;
  for (int i = 0; i < kSize; ++i) {
    callers.push_back(std::async(std::launch::async, [&] {
      Client client = connect();
      Barrier barrier(client, "epoch", kSize);
      for (int time = 1; time <= kTimes; ++time) {
        ++arrived;
        const Status passed = barrier.arrive_and_wait(kPatience);
        ASSERT_TRUE(passed) << passed.error().what();
        EXPECT_GE(arrived, time * kSize);
      }
    }));
  }
  for (auto& caller : callers)
    caller.get();
  EXPECT_LE(connect().num_keys().value(), 2);
}

TEST_P(BarrierTest, OneMoreThanAllIsAnError) {
  Client client = connect();
  Client other_client = connect();
  Barrier barrier(client, "b", 1);
  Barrier other(other_client, "b", 1);
  ASSERT_TRUE(barrier.arrive_and_wait(kPatience));
  const Status passed = other.arrive_and_wait(kPatience);
  ASSERT_FALSE(passed);
  EXPECT_EQ(passed.error().code(), std::errc::protocol_error);
}

const auto name_of = [](const auto& version) {
  return version.param == TcpStoreVersion::Torch2_2 ? "Torch22" : "Torch113";
};
const auto kVersions = testing::Values(TcpStoreVersion::Torch2_2, TcpStoreVersion::Torch1_13);
INSTANTIATE_TEST_SUITE_P(Versions, LeaseTest, kVersions, name_of);
INSTANTIATE_TEST_SUITE_P(Versions, BarrierTest, kVersions, name_of);
INSTANTIATE_TEST_SUITE_P(Versions, ElectionTest, kVersions, name_of);

TEST(BarrierTimeoutTest, SaysHowManyHaveComeAndStaysCounted) {
  const test::RunningServer server;
  Client first = Client::connect(server.endpoint(), kPatience).value();
  Client second = Client::connect(server.endpoint(), kPatience).value();
  Barrier here(first, "b", 2);
  Barrier there(second, "b", 2);
  for (int i = 0; i < 2; ++i) {
    const Status late = here.arrive_and_wait(20ms);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code(), Errc::Timeout);
    EXPECT_THAT(late.error().what(), HasSubstr("timed out: 1 of 2 have come"));
  }
  EXPECT_TRUE(there.arrive_and_wait(kPatience));
  EXPECT_TRUE(here.arrive_and_wait(kPatience));
}

TEST(BarrierTimeoutTest, ALastOneThatDiedBeforeItOpenedIsNotWaitedFor) {
  const test::RunningServer server;
  Client client = Client::connect(server.endpoint(), kPatience).value();
  Barrier barrier(client, "b", 2);
  ASSERT_FALSE(barrier.arrive_and_wait(10ms));
  ASSERT_EQ(client.add("barrier/b/0/here", 1).value(), 2);
  EXPECT_TRUE(barrier.arrive_and_wait(10ms));
}

// A store that can be stopped.
class SilentStoreTest : public testing::Test {
 protected:
  Endpoint start() {
    EXPECT_TRUE(store.wait_for_out("\n")) << store.err();
    return parse_endpoint(store.out().substr(0, store.out().find('\n')), 0).value();
  }
  test::DrunProcess store{
      test::Launch{{places::program("drun-store"), "--bind", "127.0.0.1", "--port", "0"}, {}, {}}};
};

// The time is over, and the connection is, too: nobody can be asked how many have come.
TEST_F(SilentStoreTest, ABarrierSaysThatTheTimeIsOver) {
  Client client = Client::connect(start(), kPatience).value();
  Barrier barrier(client, "b", 2);
  const Status counted = barrier.arrive_and_wait(20ms);
  EXPECT_THAT(counted.error().what(), HasSubstr("1 of 2 have come"));
  store.signal(SIGSTOP);
  const Status silent = barrier.arrive_and_wait(20ms);
  store.signal(SIGCONT);
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code(), Errc::Timeout);
  EXPECT_FALSE(client.connected());
}

TEST_F(SilentStoreTest, ALeaseEndsWithoutAnAnswer) {
  const auto endpoint = start();
  auto lease = Lease::acquire(Client::connect(endpoint, kPatience).value(), "l",
                              {.time_to_live = 3s}, kPatience);
  ASSERT_TRUE(lease) << lease.error().what();
  store.signal(SIGSTOP);
  EXPECT_TRUE(test::eventually([&] { return !lease->held(); }));
  store.signal(SIGCONT);
  EXPECT_FALSE(lease->release());
  EXPECT_FALSE(lease->held()) << "never again";
}

}  // namespace
}  // namespace drun::store
