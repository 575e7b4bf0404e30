// The decisions of a connection to etcd, with the answers and the time made up.
#include "etcd/etcd_fsm.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/base64.hpp"

namespace drun::etcd {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using rendezvous::CommitOutcome;
using rendezvous::CommitResult;
using rendezvous::Link;
using rendezvous::LinkEvent;
using rendezvous::Renewed;
using rendezvous::Transaction;
using rendezvous::WatchChanges;
using rendezvous::WatchRejected;
using rendezvous::WatchSnapshot;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kTxn = "/v3/kv/txn";
constexpr const char* kRange = "/v3/kv/range";
constexpr const char* kGrant = "/v3/lease/grant";
constexpr const char* kKeepAlive = "/v3/lease/keepalive";
constexpr const char* kRevoke = "/v3/lease/revoke";
constexpr const char* kBegun = "{\"result\":{\"header\":{},\"created\":true}}\n";

EtcdOptions options(std::size_t members = 1) {
  EtcdOptions result;
  for (std::size_t i = 1; i <= members; ++i)
    result.cluster.endpoints.push_back({"e" + std::to_string(i), 2379});
  result.job = "drun/j/";
  return result;
}

EtcdReply ok(const json& body) {
  EtcdReply reply;
  reply.status = 200;
  reply.body = body.dump();
  return reply;
}

EtcdReply refusal(int code, const std::string& text, int status = 400) {
  EtcdReply reply;
  reply.status = status;
  reply.body = json({{"message", text}, {"code", code}}).dump();
  return reply;
}

EtcdReply broken(const std::string& why) {
  EtcdReply reply;
  reply.error = why;
  return reply;
}

json header(int revision = 1, int term = 2) {
  return {{"revision", std::to_string(revision)}, {"raft_term", std::to_string(term)}};
}

EtcdReply lease(const char* id = "5", int term = 2) {
  return ok({{"header", header(1, term)}, {"ID", id}, {"TTL", "10"}});
}
EtcdReply alive(const char* seconds = "10", int term = 2) {
  return ok({{"result", {{"header", header(1, term)}, {"ID", "5"}, {"TTL", seconds}}}});
}
EtcdReply applied(int term = 2) {
  return ok({{"header", header(3, term)}, {"succeeded", true}});
}
EtcdReply not_applied(const std::optional<std::string>& fence) {
  json range = json::object();
  if (fence) range["kvs"] = json::array({{{"key", ""}, {"value", base64(*fence)}}});
  return ok({{"header", header()}, {"responses", json::array({{{"response_range", range}}})}});
}
EtcdReply keys(int revision, const std::vector<std::pair<std::string, std::string>>& entries = {}) {
  json list = json::array();
  for (const auto& [key, value] : entries)
    list.push_back({{"key", base64(key)}, {"value", base64(value)}});
  return ok(
      {{"header", header(revision)}, {"kvs", list}, {"count", std::to_string(entries.size())}});
}
EtcdReply done() {
  return ok({{"header", header()}});
}
EtcdReply present(int term = 2, const char* count = "1") {
  return ok({{"header", header(9, term)}, {"count", count}});
}

Transaction put(const std::string& key, const std::string& value) {
  Transaction transaction;
  transaction.writes.push_back({key, value, true});
  return transaction;
}

class EtcdFsmTest : public testing::Test {
 protected:
  explicit EtcdFsmTest(EtcdOptions given = options()) : fsm(std::move(given), 0) {}

  // The call under way; there is one alone.
  EtcdCall only() {
    auto calls = fsm.take_calls();
    EXPECT_EQ(calls.size(), 1U);
    if (calls.empty()) return {};
    return calls.back();
  }
  // Answers the call under way, which must be of this kind.
  void give(const std::string& path, const EtcdReply& reply) {
    const EtcdCall call = only();
    EXPECT_EQ(call.path, path);
    fsm.on_reply(call.id, reply, now);
  }
  void connect() {
    fsm.open(now);
    give(kGrant, lease());
    give(kGrant, lease("99"));
    give(kTxn, applied());
    (void)fsm.take_events();
  }
  void reconnect(const EtcdReply& fence) {
    give(kKeepAlive, alive());
    give(kGrant, refusal(9, "etcdserver: lease already exists"));
    give(kTxn, fence);
  }
  template <typename Event>
  std::vector<Event> all() {
    std::vector<Event> found;
    for (auto& event : fsm.take_events()) {
      if (auto* each = std::get_if<Event>(&event)) found.push_back(*each);
    }
    return found;
  }
  template <typename Event>
  std::optional<Event> last() {
    auto found = all<Event>();
    return found.empty() ? std::nullopt : std::optional(found.back());
  }
  void pass(std::chrono::milliseconds time) {
    now += time;
    fsm.on_time(now);
  }

  void beat(std::chrono::milliseconds time) {
    pass(time);
    give(kKeepAlive, alive());
    give(kRange, present());
  }

  EtcdFsm::Time now{1h};
  EtcdFsm fsm;
};

class ThreeMembersTest : public EtcdFsmTest {
 protected:
  ThreeMembersTest() : EtcdFsmTest(options(3)) {}
};

class UserTest : public EtcdFsmTest {
 protected:
  UserTest() : EtcdFsmTest(with_user()) {}
  static EtcdOptions with_user() {
    EtcdOptions result = options();
    result.cluster.user = "ada";
    result.cluster.password = "secret";
    return result;
  }
};

TEST_F(EtcdFsmTest, OpensASessionWithALeaseAndAFence) {
  fsm.open(now);
  const EtcdCall grant = only();
  EXPECT_EQ(grant.path, kGrant);
  EXPECT_EQ(json::parse(grant.body)["TTL"], "10");
  const auto asked = now;
  now += 20ms;
  fsm.on_reply(grant.id, lease(), now);
  const EtcdCall job = only();
  EXPECT_EQ(json::parse(job.body)["TTL"], "7200");
  fsm.on_reply(job.id, lease("99"), now);
  give(kTxn, applied());
  const auto events = fsm.take_events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<LinkEvent>(events[0]).link, Link::Up);
  EXPECT_EQ(std::get<LinkEvent>(events[0]).most_writes, kMostOperations);
  EXPECT_EQ(std::get<Renewed>(events[1]).sent, asked);
}

TEST_F(EtcdFsmTest, DoesOneThingAfterTheOther) {
  connect();
  fsm.commit(1, put("a", "1"), now);
  fsm.watch(7, "a", false, now);
  fsm.commit(2, put("a", "2"), now);
  give(kTxn, applied());
  EXPECT_EQ(last<CommitResult>()->outcome, CommitOutcome::Committed);
  give(kRange, keys(8, {{"a", "1"}}));
  const auto calls = fsm.take_calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_TRUE(calls[0].streams);
  EXPECT_EQ(json::parse(calls[0].body)["create_request"]["start_revision"], "9");
  EXPECT_EQ(calls[1].path, kTxn);
  EXPECT_EQ(last<WatchSnapshot>()->entries.front().value, "1");
}

TEST_F(EtcdFsmTest, AStreamComesInPieces) {
  connect();
  fsm.watch(7, "a", true, now);
  give(kRange, keys(8));
  const EtcdCall stream = only();
  (void)fsm.take_events();
  const std::string lines =
      R"({"result":{"header":{},"created":true}})"
      "\n"
      R"({"result":{"header":{},"events":[{"kv":{"key":"YQ==","value":"MQ==","mod_revision":"9"}}]}})"
      "\n";
  for (const char c : lines)
    fsm.on_stream(stream.id, std::string(1, c), now);
  const auto changes = all<WatchChanges>();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].watch, 7U);
  EXPECT_EQ(changes[0].changes[0].key, "a");
}

TEST_F(EtcdFsmTest, WhatIsNotWatchedAnyMoreIsNotHeard) {
  connect();
  fsm.watch(7, "a", true, now);
  fsm.unwatch(7);
  give(kRange, keys(8));
  EXPECT_THAT(fsm.take_calls(), IsEmpty());
  fsm.watch(8, "a", true, now);
  give(kRange, keys(8));
  const EtcdCall stream = only();
  fsm.unwatch(8);
  EXPECT_THAT(fsm.take_canceled(), ElementsAre(stream.id));
  (void)fsm.take_events();
  fsm.on_stream(stream.id, "nonsense\n", now);
  EXPECT_THAT(fsm.take_events(), IsEmpty());
}

TEST_F(EtcdFsmTest, AWatchOfAnotherKeyIsNotAnsweredByTheLookOfBefore) {
  connect();
  fsm.watch(7, "a", false, now);
  const EtcdCall first = only();
  fsm.watch(7, "b", false, now);
  fsm.on_reply(first.id, keys(8, {{"a", "1"}}), now);
  EXPECT_FALSE(last<WatchSnapshot>());
  const EtcdCall second = only();
  EXPECT_EQ(json::parse(second.body)["key"], base64("b"));
  fsm.on_reply(second.id, keys(9, {{"b", "2"}}), now);
  EXPECT_EQ(last<WatchSnapshot>()->entries.front().key, "b");
}

// The heartbeats go by another connection and tell nothing of it.
TEST_F(EtcdFsmTest, AWatchThatDoesNotBeginIsABrokenConnection) {
  connect();
  fsm.watch(7, "a", false, now);
  give(kRange, keys(8));
  (void)fsm.take_calls();
  for (int i = 0; i < 2; ++i)
    beat(1s);
  EXPECT_THAT(all<LinkEvent>(), IsEmpty());
  pass(1s);
  const auto down = last<LinkEvent>();
  ASSERT_TRUE(down);
  EXPECT_EQ(down->detail, "lost etcd at e1:2379: no answer to a watch");
}

TEST_F(EtcdFsmTest, AWatchThatHasBegunMaySayNothing) {
  connect();
  fsm.watch(7, "a", false, now);
  give(kRange, keys(8));
  fsm.on_stream(only().id, kBegun, now);
  for (int i = 0; i < 10; ++i)
    beat(1s);
  EXPECT_THAT(all<LinkEvent>(), IsEmpty());
}

TEST_F(EtcdFsmTest, AGuardThatDoesNotHoldIsARefusal) {
  connect();
  fsm.commit(1, put("a", "1"), now);
  give(kTxn, not_applied("00000000000000000001"));
  EXPECT_EQ(last<CommitResult>()->outcome, CommitOutcome::Refused);
}

// Else the others could go on without this node while it goes on to write.
TEST_F(EtcdFsmTest, ATransactionOfASessionThatHasEndedIsUnknown) {
  connect();
  fsm.commit(1, put("a", "1"), now);
  give(kTxn, not_applied(std::nullopt));
  const auto events = fsm.take_events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<LinkEvent>(events[0]).link, Link::Down);
  EXPECT_EQ(std::get<CommitResult>(events[1]).outcome, CommitOutcome::Unknown);
  give(kKeepAlive, alive("0"));
  give(kRevoke, refusal(5, "etcdserver: requested lease not found", 404));
  give(kGrant, lease("6"));
  give(kGrant, refusal(9, "etcdserver: lease already exists"));
  give(kTxn, applied());
  EXPECT_EQ(last<LinkEvent>()->link, Link::NewSession);
}

// A member that has just begun to lead may not know it yet, and one that does so no longer may not
// know it at all: the keys of the lease would stand beside those of the next one.
TEST_F(EtcdFsmTest, ALeaseThatAMemberDoesNotKnowIsEndedBeforeTheNextBegins) {
  connect();
  fsm.commit(1, put("a", "1"), now);
  fsm.on_reply(only().id, broken("Connection reset by peer"), now);
  give(kKeepAlive, alive("0"));
  const EtcdCall end = only();
  EXPECT_EQ(end.path, kRevoke);
  EXPECT_EQ(json::parse(end.body)["ID"], "5");
  fsm.on_reply(end.id, done(), now);
  give(kGrant, lease("6"));
  give(kGrant, lease("99"));
  const EtcdCall fence = only();
  EXPECT_EQ(json::parse(fence.body)["compare"][0]["version"], "0");
  fsm.on_reply(fence.id, applied(), now);
  EXPECT_EQ(last<LinkEvent>()->link, Link::NewSession);
}

TEST_F(EtcdFsmTest, ALeaseThatCannotBeEndedIsKept) {
  connect();
  fsm.commit(1, put("a", "1"), now);
  fsm.on_reply(only().id, broken("Connection reset by peer"), now);
  give(kKeepAlive, alive("0"));
  give(kRevoke, refusal(14, "etcdserver: request timed out", 503));
  now = *fsm.next_deadline();
  fsm.on_time(now);
  reconnect(applied());
  EXPECT_EQ(last<LinkEvent>()->link, Link::Up);
}

// Whoever did so may have deleted the session's other keys.
TEST_F(EtcdFsmTest, ASessionWhoseFenceWasDeletedIsNotResumed) {
  connect();
  pass(1s);
  give(kKeepAlive, alive());
  give(kRange, present(2, "0"));
  reconnect(not_applied(std::nullopt));
  give(kRevoke, done());
  give(kGrant, lease("6"));
  give(kGrant, lease("99"));
  give(kTxn, applied());
  EXPECT_EQ(last<LinkEvent>()->link, Link::NewSession);
}

// Whatever carries it must not send it again by itself.
TEST_F(EtcdFsmTest, ATransactionIsForOneDelivery) {
  connect();
  fsm.watch(7, "a", false, now);
  const EtcdCall look = only();
  EXPECT_FALSE(look.once);
  fsm.on_reply(look.id, keys(8), now);
  (void)fsm.take_calls();
  fsm.commit(1, put("a", "1"), now);
  EXPECT_TRUE(only().once);
}

TEST_F(EtcdFsmTest, ALeaseThatIsGoneEndsTheSession) {
  connect();
  fsm.commit(1, put("a", "1"), now);
  give(kTxn, refusal(5, "etcdserver: requested lease not found", 404));
  EXPECT_EQ(last<CommitResult>()->outcome, CommitOutcome::Unknown);
  EXPECT_EQ(only().path, kKeepAlive);
}

TEST_F(EtcdFsmTest, LimitsOfEtcdAreRejections) {
  connect();
  const std::vector<std::pair<int, std::string>> limits = {
      {3, "etcdserver: too many operations in txn request"},
      {3, "etcdserver: request is too large"},
      {8, "etcdserver: mvcc: database space exceeded"},
      {7, "etcdserver: permission denied"}};
  for (const auto& [code, text] : limits) {
    fsm.commit(1, put("a", "1"), now);
    give(kTxn, refusal(code, text));
    const auto result = last<CommitResult>();
    EXPECT_EQ(result->outcome, CommitOutcome::Rejected) << text;
    EXPECT_THAT(result->detail, HasSubstr(text));
  }
  fsm.watch(7, "a", false, now);
  give(kRange, refusal(7, "etcdserver: permission denied"));
  EXPECT_THAT(last<WatchRejected>()->detail, HasSubstr("permission denied"));
}

TEST_F(EtcdFsmTest, AHeartbeatCountsWhenAMajorityHasSeenTheSession) {
  connect();
  pass(1s);
  const auto sent = now;
  give(kKeepAlive, alive());
  EXPECT_THAT(all<Renewed>(), IsEmpty());
  now += 10ms;
  give(kRange, present());
  EXPECT_EQ(last<Renewed>()->sent, sent);
}

// It may have been a leader of before that kept the lease alive.
TEST_F(EtcdFsmTest, AHeartbeatAcrossAnElectionIsRepeated) {
  connect();
  pass(1s);
  give(kKeepAlive, alive("10", 2));
  now += 10ms;
  give(kRange, present(3));
  EXPECT_THAT(all<Renewed>(), IsEmpty());
  EXPECT_THAT(fsm.take_calls(), IsEmpty());
  now = *fsm.next_deadline();
  fsm.on_time(now);
  give(kKeepAlive, alive("10", 3));
  give(kRange, present(3));
  EXPECT_EQ(last<Renewed>()->sent, now);
}

// Two members that answer by turns, each in a term of its own.
TEST_F(EtcdFsmTest, AHeartbeatIsNotRepeatedForEver) {
  connect();
  pass(1s);
  const auto begin = now;
  int beats = 0;
  while (fsm.member() && fsm.member()->number == 1) {
    ASSERT_LT(now, begin + 1min);
    for (const EtcdCall& call : fsm.take_calls()) {
      beats += call.path == kKeepAlive ? 1 : 0;
      fsm.on_reply(call.id, call.path == kKeepAlive ? alive("10", 2) : present(3), now);
    }
    for (const EtcdCall& call : fsm.take_calls())
      fsm.on_reply(call.id, present(3), now);
    now = std::max(now, *fsm.next_deadline());
    fsm.on_time(now);
  }
  EXPECT_EQ(now, begin + 3s);
  EXPECT_GT(beats, 10);
  EXPECT_LT(beats, 100);
  EXPECT_EQ(last<LinkEvent>()->link, Link::Down);
}

TEST_F(EtcdFsmTest, ASessionWithoutItsFenceIsOver) {
  connect();
  pass(1s);
  give(kKeepAlive, alive());
  give(kRange, present(2, "0"));
  EXPECT_EQ(last<LinkEvent>()->link, Link::Down);
}

TEST_F(ThreeMembersTest, AHeartbeatWithoutAnAnswerLeadsToTheNextMember) {
  connect();
  EXPECT_EQ(fsm.member()->endpoint, 0U);
  pass(1s);
  (void)fsm.take_calls();
  pass(3s);
  const auto down = last<LinkEvent>();
  EXPECT_EQ(down->link, Link::Down);
  EXPECT_EQ(down->silent, 4s);
  EXPECT_THAT(down->detail, HasSubstr("lost etcd at e1:2379: no answer"));
  EXPECT_EQ(fsm.member()->endpoint, 1U);
  reconnect(applied());
  EXPECT_EQ(last<LinkEvent>()->link, Link::Up);
}

TEST_F(ThreeMembersTest, AMemberOfAMinorityIsLeft) {
  connect();
  pass(1s);
  give(kKeepAlive, alive());
  give(kRange, refusal(14, "etcdserver: request timed out", 503));
  EXPECT_THAT(last<LinkEvent>()->detail, HasSubstr("etcdserver: request timed out"));
  EXPECT_EQ(fsm.member()->endpoint, 1U);
}

// What was on its way when the connection broke must fail, or have taken effect, before the watches
// show anything.
TEST_F(ThreeMembersTest, TheFenceIsRaisedBeforeAnythingIsRead) {
  connect();
  fsm.watch(7, "a", false, now);
  give(kRange, keys(8));
  (void)fsm.take_calls();
  fsm.commit(1, put("a", "1"), now);
  fsm.commit(2, put("a", "2"), now);
  const EtcdCall sent = only();
  fsm.on_reply(sent.id, broken("Connection reset by peer"), now);
  const auto results = all<CommitResult>();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].outcome, CommitOutcome::Unknown);
  EXPECT_EQ(results[1].outcome, CommitOutcome::Unknown);
  fsm.commit(3, put("a", "3"), now);
  give(kKeepAlive, alive());
  give(kGrant, refusal(9, "etcdserver: lease already exists"));
  const EtcdCall fence = only();
  EXPECT_EQ(json::parse(fence.body)["compare"][0]["result"], "LESS");
  const json raised = json::parse(fence.body)["compare"][0]["value"];
  EXPECT_NE(raised, json::parse(sent.body)["compare"][0]["value"]);
  fsm.on_reply(fence.id, applied(), now);
  give(kRange, keys(9));
  const auto calls = fsm.take_calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_TRUE(calls[0].streams);
  EXPECT_EQ(json::parse(calls[1].body)["compare"][0]["value"], raised);
}

TEST_F(ThreeMembersTest, AnAttemptThatComesLateDoesNotLowerTheFence) {
  connect();
  fsm.commit(1, put("a", "1"), now);
  fsm.on_reply(only().id, broken("Connection reset by peer"), now);
  reconnect(not_applied("00000000000000000007"));
  const EtcdCall again = only();
  EXPECT_EQ(json::parse(again.body)["compare"][0]["value"], base64("00000000000000000008"));
  fsm.on_reply(again.id, applied(), now);
  EXPECT_EQ(last<LinkEvent>()->link, Link::Up);
}

TEST_F(ThreeMembersTest, ALeaseKeptAliveInAnEarlierTermIsNoProof) {
  connect();
  fsm.commit(1, put("a", "1"), now);
  fsm.on_reply(only().id, broken("Connection reset by peer"), now);
  reconnect(applied(3));
  EXPECT_THAT(all<Renewed>(), IsEmpty());
  give(kKeepAlive, alive("10", 3));
  give(kGrant, refusal(9, "etcdserver: lease already exists"));
  give(kTxn, applied(3));
  EXPECT_EQ(last<Renewed>()->sent, now);
}

TEST_F(ThreeMembersTest, TriesAllMembersBeforeItPauses) {
  fsm.open(now);
  for (const char* name : {"e1", "e2", "e3"}) {
    ASSERT_TRUE(fsm.member()) << name;
    give(kGrant, broken("Connection refused"));
    EXPECT_THAT(fsm.last_error(), HasSubstr(name));
    if (std::string(name) != "e3") fsm.on_time(*fsm.next_deadline());
  }
  EXPECT_GT(*fsm.next_deadline(), now);
  now += 60s;
  fsm.on_time(now);
  give(kGrant, broken("Connection refused"));
  const auto failed = last<LinkEvent>();
  EXPECT_EQ(failed->link, Link::Failed);
  EXPECT_EQ(failed->detail,
            "could not reach etcd at e1:2379,e2:2379,e3:2379 within 60.0 s: e1:2379: Connection "
            "refused");
}

// The first one comes at once, because most connections break for no bad reason.
TEST_F(ThreeMembersTest, ConnectionsThatBreakAtOnceFollowOneAnotherSlowly) {
  connect();
  const auto begin = now;
  int breaks = 0;
  fsm.commit(1, put("a", "1"), now);
  fsm.on_reply(only().id, broken("Connection reset by peer"), now);
  while (fsm.member() || fsm.next_deadline()) {
    ASSERT_LT(now, begin + 1min);
    if (fsm.member()) {
      reconnect(applied());
      ++breaks;
      fsm.commit(1, put("a", "1"), now);
      fsm.on_reply(only().id, broken("Connection reset by peer"), now);
      EXPECT_FALSE(fsm.member());
    } else {
      now = std::max(now, *fsm.next_deadline());
      fsm.on_time(now);
    }
  }
  EXPECT_GE(now, begin + 6s);
  EXPECT_LT(now, begin + 8s);
  EXPECT_LT(breaks, 40);
  const auto failed = last<LinkEvent>();
  EXPECT_EQ(failed->link, Link::Failed);
  EXPECT_THAT(failed->detail, HasSubstr("within 6.0 s: e"));
  EXPECT_THAT(failed->detail, HasSubstr("Connection reset by peer"));
}

// A heartbeat that is answered and watches that have begun: such a connection counts.
TEST_F(ThreeMembersTest, AfterABreakAConnectionShowsSoonThatItWorks) {
  connect();
  fsm.watch(7, "a", false, now);
  give(kRange, keys(8));
  (void)fsm.take_calls();
  for (int i = 0; i < 10; ++i) {
    fsm.commit(1, put("a", "1"), now);
    fsm.on_reply(only().id, broken("Connection reset by peer"), now);
    ASSERT_TRUE(fsm.member()) << i;
    reconnect(applied());
    give(kRange, keys(9));
    const EtcdCall stream = only();
    fsm.on_stream(stream.id, kBegun, now);
    ASSERT_LE(*fsm.next_deadline(), now + 500ms) << i;
    fsm.on_time(now);
    (void)fsm.take_calls();  // for the job's lease
    beat(500ms);
    ASSERT_EQ(last<LinkEvent>()->link, Link::Up) << i;
  }
  EXPECT_EQ(*fsm.next_deadline(), now + 1s);
}

TEST_F(ThreeMembersTest, GivesUpAfterTheKeepAliveLimit) {
  connect();
  fsm.commit(1, put("a", "1"), now);
  fsm.on_reply(only().id, broken("Connection reset by peer"), now);
  const auto begin = now;
  while (fsm.member() || fsm.next_deadline()) {
    now = std::max(now, *fsm.next_deadline());
    fsm.on_time(now);
    for (const EtcdCall& call : fsm.take_calls())
      fsm.on_reply(call.id, broken("Connection refused"), now);
    ASSERT_LT(now, begin + 1min);
  }
  EXPECT_GE(now, begin + 6s);
  EXPECT_LT(now, begin + 8s);
  EXPECT_EQ(last<LinkEvent>()->link, Link::Failed);
}

// The snapshot that follows is one of a reconnection: the caller forgets what it has in hand.
TEST_F(EtcdFsmTest, AWatchOfWhatIsCompactedBeginsAnew) {
  connect();
  fsm.watch(7, "a", false, now);
  give(kRange, keys(8, {{"a", "1"}}));
  const EtcdCall stream = only();
  fsm.on_stream(stream.id,
                R"({"result":{"header":{},"created":true,"canceled":true,"compact_revision":"12"}})"
                "\n",
                now);
  EXPECT_EQ(last<LinkEvent>()->link, Link::Down);
  reconnect(applied());
  give(kRange, keys(12, {{"a", "2"}}));
  EXPECT_EQ(last<WatchSnapshot>()->entries.front().value, "2");
  EXPECT_EQ(json::parse(only().body)["create_request"]["start_revision"], "13");
}

TEST_F(EtcdFsmTest, AWatchThatIsNotAllowedIsRejected) {
  connect();
  fsm.watch(7, "a", false, now);
  give(kRange, keys(8));
  const EtcdCall stream = only();
  (void)fsm.take_events();
  fsm.on_stream(stream.id,
                R"({"result":{"header":{},"canceled":true,"cancel_reason":"permission denied"}})"
                "\n",
                now);
  EXPECT_THAT(last<WatchRejected>()->detail, HasSubstr("permission denied"));
}

TEST_F(EtcdFsmTest, AStreamThatEndsIsABrokenConnection) {
  connect();
  fsm.watch(7, "a", false, now);
  give(kRange, keys(8));
  fsm.on_reply(only().id, broken("it ended a watch"), now);
  EXPECT_EQ(last<LinkEvent>()->link, Link::Down);
}

TEST_F(EtcdFsmTest, SaysGoodbyeAfterWhatWasCommitted) {
  connect();
  fsm.commit(1, put("a", "1"), now);
  fsm.close(now);
  give(kTxn, applied());
  const EtcdCall goodbye = only();
  EXPECT_EQ(goodbye.path, "/v3/lease/revoke");
  fsm.on_reply(goodbye.id, ok({{"header", header()}}), now);
  EXPECT_EQ(last<LinkEvent>()->link, Link::Closed);
  EXPECT_EQ(fsm.farewell(), "");
  EXPECT_FALSE(fsm.member());
}

TEST_F(EtcdFsmTest, DoesNotWaitLongForTheAnswerToAGoodbye) {
  connect();
  fsm.close(now);
  pass(1s);
  EXPECT_EQ(last<LinkEvent>()->link, Link::Closed);
}

TEST_F(EtcdFsmTest, AfterClosedNothingComes) {
  connect();
  fsm.close(now);
  give(kRevoke, done());
  EXPECT_EQ(last<LinkEvent>()->link, Link::Closed);
  fsm.on_unusable("there is no library");
  EXPECT_THAT(fsm.take_events(), IsEmpty());
}

TEST_F(EtcdFsmTest, WhatIsNoEtcdIsSaidAtOnce) {
  fsm.open(now);
  EtcdReply reply;
  reply.status = 404;
  reply.body = "\x1b[31mno such page";
  give(kGrant, reply);
  const auto failed = last<LinkEvent>();
  EXPECT_EQ(failed->link, Link::Failed);
  EXPECT_EQ(failed->detail,
            "etcd at e1:2379: this is no etcd 3.4 or later with its JSON gateway: it answers with "
            "HTTP status 404: \\x1b[31mno such page");
}

TEST_F(EtcdFsmTest, ACertificateThatIsNotAcceptedIsSaidAtOnce) {
  fsm.open(now);
  EtcdReply reply = broken("SSL certificate problem: self-signed certificate");
  reply.final = true;
  give(kGrant, reply);
  EXPECT_EQ(last<LinkEvent>()->detail,
            "etcd at e1:2379: SSL certificate problem: self-signed certificate");
}

TEST_F(ThreeMembersTest, OneBadMemberDoesNotEndTheStart) {
  fsm.open(now);
  EtcdReply reply = broken("SSL certificate problem: certificate has expired");
  reply.final = true;
  give(kGrant, reply);
  fsm.on_time(now);
  EtcdReply none;
  none.status = 404;
  give(kGrant, none);
  fsm.on_time(now);
  EXPECT_THAT(all<LinkEvent>(), IsEmpty());
  give(kGrant, lease());
  give(kGrant, lease("99"));
  give(kTxn, applied());
  EXPECT_EQ(last<LinkEvent>()->link, Link::Up);
}

TEST_F(ThreeMembersTest, WhatIsWrongWithAllMembersIsSaidAtOnce) {
  fsm.open(now);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(all<LinkEvent>(), IsEmpty());
    ASSERT_TRUE(fsm.member());
    EtcdReply reply = broken("SSL certificate problem: certificate has expired");
    reply.final = true;
    give(kGrant, reply);
    fsm.on_time(now);
  }
  EXPECT_EQ(last<LinkEvent>()->detail,
            "etcd at e3:2379: SSL certificate problem: certificate has expired");
}

// A proxy, while the member behind it starts.
TEST_F(EtcdFsmTest, AnAnswerOfAProxyThatHasNoMemberIsNotFinal) {
  fsm.open(now);
  EtcdReply reply;
  reply.status = 502;
  reply.body = "<html>Bad Gateway</html>";
  give(kGrant, reply);
  EXPECT_THAT(all<LinkEvent>(), IsEmpty());
  EXPECT_EQ(fsm.last_error(), "it answers with HTTP status 502: <html>Bad Gateway</html>");
  now = *fsm.next_deadline();
  fsm.on_time(now);
  EXPECT_EQ(only().path, kGrant);
}

TEST_F(EtcdFsmTest, WhatClosesEveryConnectionIsSaidSoon) {
  fsm.open(now);
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(fsm.member()) << i;
    EtcdReply reply = broken("it closes the connection");
    reply.closed = true;
    give(kGrant, reply);
    if (i < 5) {
      now = *fsm.next_deadline();
      fsm.on_time(now);
    }
  }
  EXPECT_EQ(last<LinkEvent>()->detail, "etcd at e1:2379: it closes the connection");
}

TEST_F(EtcdFsmTest, AtTheEndItSaysWhatWentWrongBefore) {
  fsm.open(now);
  give(kGrant, broken("Connection refused"));
  now += 59s + 900ms;
  fsm.on_time(now);
  ASSERT_TRUE(fsm.member());
  now += 100ms;
  fsm.on_time(now);
  EXPECT_THAT(last<LinkEvent>()->detail, HasSubstr("within 60.0 s: Connection refused"));
}

TEST_F(EtcdFsmTest, AClusterThatAsksForAUserSaysSoAtOnce) {
  fsm.open(now);
  give(kGrant, lease());
  give(kGrant, lease("99"));
  give(kTxn, refusal(3, "etcdserver: user name is empty"));
  EXPECT_EQ(last<LinkEvent>()->detail,
            "etcd at e1:2379: etcdserver: user name is empty; check username and password in "
            "--rdzv-conf");
}

TEST_F(EtcdFsmTest, AFarewellEndsTheLeaseAndIsLongEnough) {
  connect();
  const std::string farewell = fsm.farewell();
  EXPECT_THAT(farewell, HasSubstr("POST /v3/lease/revoke HTTP/1.1\r\nHost: e1:2379\r\n"));
  EXPECT_THAT(farewell, HasSubstr("\r\n\r\n{\"ID\":\"5\"}"));
  EXPECT_THAT(farewell, Not(HasSubstr("Authorization")));
  EXPECT_GT(farewell.size(), 8'000U);
}

TEST_F(UserTest, AnAuthenticatedSessionHasAToken) {
  fsm.open(now);
  const EtcdCall call = only();
  EXPECT_EQ(call.path, "/v3/auth/authenticate");
  EXPECT_EQ(json::parse(call.body), json({{"name", "ada"}, {"password", "secret"}}));
  EXPECT_EQ(fsm.token(), "");
  fsm.on_reply(call.id, ok({{"header", header()}, {"token", "abc.7"}}), now);
  EXPECT_EQ(fsm.token(), "abc.7");
  give(kGrant, lease());
  give(kGrant, lease("99"));
  give(kTxn, applied());
  EXPECT_EQ(last<LinkEvent>()->link, Link::Up);
  EXPECT_THAT(fsm.farewell(), HasSubstr("\r\nAuthorization: abc.7\r\n"));
  // A token that has grown old is replaced.
  fsm.commit(1, put("a", "1"), now);
  give(kTxn, refusal(16, "etcdserver: invalid auth token", 401));
  EXPECT_EQ(last<LinkEvent>()->link, Link::Down);
  EXPECT_EQ(only().path, "/v3/auth/authenticate");
}

TEST_F(UserTest, AWrongPasswordIsSaidAtOnceWithoutIt) {
  fsm.open(now);
  give("/v3/auth/authenticate",
       refusal(3, "etcdserver: authentication failed, invalid user ID or password"));
  const auto failed = last<LinkEvent>();
  EXPECT_EQ(failed->link, Link::Failed);
  EXPECT_THAT(failed->detail, HasSubstr("invalid user ID or password; check username"));
  EXPECT_THAT(failed->detail, Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace drun::etcd
