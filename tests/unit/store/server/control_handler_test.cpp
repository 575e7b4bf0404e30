// What each request of the control protocol does and is answered, as clients see it.
#include "store/server/control_handler.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/protocol/bytes.hpp"
#include "store/protocol/relay_frames.hpp"
#include "support/test_peer.hpp"

namespace drun::store::control {
namespace {

using test::PeerWorld;
using test::TestPeer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

using Answer = std::pair<std::uint64_t, Reply>;

// Received messages point into bytes that the client keeps.
class Client : public TestPeer {
 public:
  explicit Client(PeerWorld& world, Opening opening = {}) : TestPeer(world) {
    std::string bytes;
    encode_opening(bytes, opening);
    send(bytes);
  }

  std::vector<Answer> answers() {
    std::vector<Answer> found;
    received_.push_back(std::make_unique<std::string>(take()));
    for (std::string_view rest = *received_.back(); !rest.empty();) {
      const FrameResult frame = control::next_frame(rest, 0xFFFFFFFF);
      if (frame.status != FrameStatus::Complete) {
        ADD_FAILURE() << "half a frame";
        break;
      }
      rest.remove_prefix(frame.size);
      found.emplace_back(frame.frame.request, Reply());
      EXPECT_EQ(decode_reply(frame.frame, found.back().second), DecodeStatus::Ok);
    }
    return found;
  }
  // The only answer to a request.
  template <typename T>
  T call(std::uint64_t id, const Request& request) {
    (void)take();
    std::string bytes;
    encode(bytes, id, request);
    send(bytes);
    return only<T>(id);
  }
  template <typename T>
  T only(std::uint64_t id) {
    const std::vector<Answer> all = answers();
    EXPECT_EQ(all.size(), 1U);
    if (all.empty() || !std::holds_alternative<T>(all[0].second)) {
      ADD_FAILURE() << "another answer" << (all.empty() ? "" : " of index ")
                    << (all.empty() ? 0 : all[0].second.index());
      return {};
    }
    EXPECT_EQ(all[0].first, id);
    return std::get<T>(all[0].second);
  }
  ErrorCode error(std::uint64_t id, const Request& request) {
    const Error error = call<Error>(id, request);
    EXPECT_FALSE(error.text.empty());
    return error.code;
  }

 private:
  std::vector<std::unique_ptr<std::string>> received_;
};

Transaction put(std::string_view key, std::string_view value, bool ephemeral = false) {
  return {{}, {{key, value, ephemeral}}};
}
Transaction remove(std::string_view key) {
  return {{}, {{key, std::nullopt, false}}};
}

class ControlHandlerTest : public testing::Test {
 protected:
  std::string value(std::string_view key) {
    const std::string* found = world.job.find(key);
    return found ? *found : "(none)";
  }
  void pass(int ms) {
    world.now += Milliseconds(ms);
    world.sessions.expire(world.now);
  }

  PeerWorld world;
  Client client{world};
  Client other{world};
};

// ---- opening ----

TEST_F(ControlHandlerTest, TheServerAnswersAnOpeningWithItsLimits) {
  const Welcome welcome = client.only<Welcome>(0);
  EXPECT_EQ(welcome.version, 3);
  EXPECT_EQ(welcome.key_bytes, 8192U);
  EXPECT_EQ(welcome.value_bytes, world.limits.value_bytes);
  EXPECT_EQ(welcome.keys_per_request, 131072U);
  EXPECT_EQ(welcome.frame_bytes, world.limits.request_bytes);
}

TEST_F(ControlHandlerTest, AnUnknownVersionGetsAClearRefusal) {
  Client future(world, {4, 9});
  const VersionRefused refused = future.only<VersionRefused>(0);
  EXPECT_EQ(refused.lowest, 1);
  EXPECT_EQ(refused.highest, 3);
  EXPECT_THAT(std::string(refused.text), HasSubstr("version"));
  EXPECT_TRUE(future.is_closed());
  EXPECT_FALSE(Client(world, {1, 9}).is_closed());
  EXPECT_EQ(Client(world, {1, 1}).only<Welcome>(0).version, 1) << "an older client";
}

TEST_F(ControlHandlerTest, RequestsMayFollowTheOpeningInAnySplit) {
  std::string bytes;
  encode_opening(bytes);
  encode(bytes, 1, Request(put("k", "v")));
  encode(bytes, 2, Request(Watch{"k", false}));
  for (std::size_t at = 1; at < bytes.size(); ++at) {
    TestPeer peer(world);
    peer.send(std::string_view(bytes).substr(0, at));
    peer.send(std::string_view(bytes).substr(at));
    const std::string answer = peer.take();
    EXPECT_FALSE(peer.is_closed());
    EXPECT_THAT(answer, HasSubstr(std::string("\1\1\0\0\0v", 6))) << at;
  }
}

TEST_F(ControlHandlerTest, AWrongMagicCloses) {
  TestPeer peer(world);
  EXPECT_EQ(peer.ask("\xD5"), "");
  EXPECT_FALSE(peer.is_closed());
  EXPECT_EQ(peer.ask("x"), "");
  EXPECT_TRUE(peer.is_closed());
}

// ---- transactions ----

TEST_F(ControlHandlerTest, ATransactionAppliesAllOrNothing) {
  EXPECT_EQ(client.call<Committed>(1, put("a", "1")).revision, 1U);
  Transaction swap;
  swap.guards = {{"a", "1"}, {"b", std::nullopt}};
  swap.writes = {{"a", std::nullopt}, {"b", "2"}, {"c", ""}};
  EXPECT_EQ(client.call<Committed>(2, swap).revision, 2U);
  EXPECT_EQ(value("a"), "(none)");
  EXPECT_EQ(value("b"), "2");
  EXPECT_EQ(value("c"), "");
  const Refused refused = client.call<Refused>(3, swap);
  EXPECT_EQ(refused.revision, 2U);
  EXPECT_THAT(refused.values, ElementsAre(std::nullopt, "2"));
  EXPECT_EQ(value("a"), "(none)");
}

TEST_F(ControlHandlerTest, GuardsTellEmptyFromMissing) {
  const auto holds = [&](const Guard& guard) {
    (void)client.take();
    std::string bytes;
    encode(bytes, 1, Request(Transaction{{guard}, {}}));
    client.send(bytes);
    return std::holds_alternative<Committed>(client.answers().at(0).second);
  };
  EXPECT_TRUE(holds({"k", std::nullopt}));
  EXPECT_FALSE(holds({"k", ""}));
  client.call<Committed>(2, put("k", ""));
  EXPECT_TRUE(holds({"k", ""}));
  EXPECT_FALSE(holds({"k", std::nullopt}));
  EXPECT_FALSE(holds({"k", "x"}));
}

TEST_F(ControlHandlerTest, TheLastWriteToAKeyCounts) {
  Transaction twice;
  twice.writes = {{"k", "1"}, {"k", "2"}, {"gone", "x"}, {"gone", std::nullopt}};
  client.call<Snapshot>(7, Watch{"", true});
  other.call<Committed>(1, twice);
  EXPECT_EQ(value("k"), "2");
  EXPECT_EQ(value("gone"), "(none)");
  EXPECT_THAT(client.only<Changes>(7).changes, ElementsAre(Entry{"k", "2"}));
}

TEST_F(ControlHandlerTest, NothingChangesWhenNothingIsWritten) {
  EXPECT_EQ(client.call<Committed>(1, Transaction{}).revision, 0U);
  EXPECT_EQ(client.call<Committed>(2, remove("none")).revision, 0U);
}

TEST_F(ControlHandlerTest, LimitsAreExactAndChangeNothing) {
  world.limits.key_bytes = 4;
  world.limits.value_bytes = 5;
  world.limits.keys_per_request = 2;
  client.call<Committed>(1, put("1234", "12345"));
  EXPECT_EQ(client.error(2, put("12345", "")), ErrorCode::Limit);
  EXPECT_EQ(client.error(3, put("1234", "123456")), ErrorCode::Limit);
  EXPECT_EQ(client.error(4, Transaction{{{"12345", std::nullopt}}, {}}), ErrorCode::Limit);
  EXPECT_EQ(client.error(5, Transaction{{}, {{"a", ""}, {"b", ""}, {"c", ""}}}), ErrorCode::Limit);
  EXPECT_EQ(client.error(6, Watch{"12345", true}), ErrorCode::Limit);
  EXPECT_EQ(value("a"), "(none)");
  EXPECT_EQ(value("1234"), "12345");
  EXPECT_FALSE(client.is_closed());
}

TEST_F(ControlHandlerTest, AFullStoreRefusesWholeTransactions) {
  Limits limits;
  limits.total_bytes = 3 * (KeyTable::kOverheadBytes + 2);
  limits.reserved_bytes = 0;
  PeerWorld small(limits);
  Client writer(small);
  EXPECT_EQ(writer.error(1, Transaction{{}, {{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", ""}}}),
            ErrorCode::Limit);
  EXPECT_EQ(small.job.size(), 0U);
  writer.call<Committed>(2, Transaction{{}, {{"a", "1"}, {"b", "1"}, {"c", "1"}}});
  EXPECT_EQ(writer.error(3, Watch{"", true}), ErrorCode::Limit);
  EXPECT_EQ(writer.error(4, OpenSession{500, 0}), ErrorCode::Limit);
  writer.call<Committed>(5, remove("a"));
  writer.call<Snapshot>(6, Watch{"", true});
}

TEST_F(ControlHandlerTest, WhenOthersHaveFilledTheStoreTheRendezvousGoesOn) {
  Limits limits;
  limits.total_bytes = 1000;
  limits.reserved_bytes = 2000;
  PeerWorld full(limits);
  const auto set = [](std::string_view key, std::string_view value) {
    std::string bytes;
    tcpstore::Request request;
    request.op = tcpstore::Op::Set;
    request.key = key;
    request.value = value;
    tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
    return bytes;
  };
  TestPeer worker(full, full.worker_context);
  TestPeer torch(full);
  worker.send(tcpstore::kHandshake);
  torch.send(tcpstore::kHandshake);
  EXPECT_TRUE(worker.send(set("k", std::string(1000 - KeyTable::kOverheadBytes - 1, 'v'))));
  EXPECT_FALSE(torch.send(set("k", "")));

  Client agent(full);
  (void)agent.take();
  agent.call<Session>(1, OpenSession{1000, 0});
  agent.call<Snapshot>(2, Watch{"round", false});
  agent.call<Committed>(3, put("member", std::string(500, 'm'), true));
  EXPECT_EQ(agent.error(4, put("more", std::string(2000, 'm'))), ErrorCode::Limit)
      << "it is bounded too";
  EXPECT_FALSE(worker.send(set("k2", ""))) << "what it has taken is no room for others";
}

TEST_F(ControlHandlerTest, ARepliesLengthIsBounded) {
  world.limits.unread_bytes = 100;
  client.call<Committed>(1, put("k", std::string(90, 'v')));
  EXPECT_EQ(client.call<Snapshot>(2, Watch{"", true}).entries.size(), 1U);
  client.call<Done>(3, Unwatch{2});
  client.call<Committed>(4, put("k2", std::string(90, 'v')));
  EXPECT_EQ(client.error(5, Watch{"", true}), ErrorCode::Limit);
  EXPECT_EQ(world.job.counts().watches, 0U) << "a watch without its snapshot is none";
  EXPECT_EQ(client.error(6, Transaction{{{"k", "x"}, {"k", "x"}}, {}}), ErrorCode::Limit);
}

// ---- watches ----

TEST_F(ControlHandlerTest, ASnapshotIsInTheOrderOfTheKeys) {
  client.call<Committed>(1, Transaction{{}, {{"b/2", "x"}, {"a", ""}, {"b/1", "y"}, {"b", "z"}}});
  EXPECT_THAT(client.call<Snapshot>(2, Watch{"b/", true}).entries,
              ElementsAre(Entry{"b/1", "y"}, Entry{"b/2", "x"}));
  EXPECT_THAT(client.call<Snapshot>(3, Watch{"b", true}).entries,
              ElementsAre(Entry{"b", "z"}, Entry{"b/1", "y"}, Entry{"b/2", "x"}));
  EXPECT_THAT(client.call<Snapshot>(4, Watch{"c", true}).entries, IsEmpty());
  other.call<Committed>(1, Transaction{{}, {{"b/1", std::nullopt}, {"b/0", "new"}}});
  EXPECT_THAT(client.call<Snapshot>(5, Watch{"b/", true}).entries,
              ElementsAre(Entry{"b/0", "new"}, Entry{"b/2", "x"}))
      << "the order is kept up";
}

TEST_F(ControlHandlerTest, KeysAreBytes) {
  const std::string low(1, '\0');
  client.call<Committed>(1, Transaction{{}, {{"\xFF", "high"}, {low, "low"}, {"", "empty"}}});
  EXPECT_THAT(client.call<Snapshot>(2, Watch{"", true}).entries,
              ElementsAre(Entry{"", "empty"}, Entry{low, "low"}, Entry{"\xFF", "high"}));
}

// ---- watches ----

TEST_F(ControlHandlerTest, AWatchGetsWhatIsThereAndThenEachChangeOnce) {
  other.call<Committed>(1, put("p/a", "1"));
  EXPECT_THAT(client.call<Snapshot>(7, Watch{"p/", true}).entries, ElementsAre(Entry{"p/a", "1"}));
  other.call<Committed>(2, Transaction{{}, {{"p/b", "2"}, {"q", "3"}, {"p/a", std::nullopt}}});
  const Changes changes = client.only<Changes>(7);
  EXPECT_EQ(changes.revision, 2U);
  EXPECT_THAT(changes.changes, ElementsAre(Entry{"p/b", "2"}, Entry{"p/a", std::nullopt}));
  other.call<Committed>(3, put("q", "4"));
  other.call<Committed>(4, remove("p/none"));
  EXPECT_THAT(client.answers(), IsEmpty());
  other.call<Committed>(5, put("p/b", "2"));
  EXPECT_EQ(client.only<Changes>(7).revision, 4U) << "the same value is a change";
}

TEST_F(ControlHandlerTest, OneKeyIsNoPrefix) {
  EXPECT_THAT(client.call<Snapshot>(7, Watch{"k", false}).entries, IsEmpty());
  other.call<Committed>(1, Transaction{{}, {{"kk", ""}, {"", ""}}});
  EXPECT_THAT(client.answers(), IsEmpty());
  other.call<Committed>(2, put("k", ""));
  EXPECT_THAT(client.only<Changes>(7).changes, ElementsAre(Entry{"k", ""}));
}

TEST_F(ControlHandlerTest, EachWatchOfAConnectionIsTold) {
  client.call<Snapshot>(1, Watch{"", true});
  client.call<Snapshot>(2, Watch{"k", true});
  client.call<Snapshot>(3, Watch{"k", false});
  client.call<Snapshot>(4, Watch{"kk", true});
  EXPECT_EQ(client.error(4, Watch{"k", true}), ErrorCode::RequestIdInUse);
  EXPECT_EQ(client.error(4, Stats{}), ErrorCode::RequestIdInUse);
  EXPECT_EQ(client.error(0, Stats{}), ErrorCode::RequestIdInUse);
  other.call<Committed>(1, put("k", ""));
  std::vector<std::uint64_t> told;
  for (const Answer& answer : client.answers())
    told.push_back(answer.first);
  EXPECT_THAT(told, testing::UnorderedElementsAre(1, 2, 3));
  client.call<Done>(9, Unwatch{2});
  other.call<Committed>(2, put("kk", ""));
  told.clear();
  for (const Answer& answer : client.answers())
    told.push_back(answer.first);
  EXPECT_THAT(told, testing::UnorderedElementsAre(1, 4));
  client.call<Done>(10, Unwatch{77});
}

TEST_F(ControlHandlerTest, TcpStoreRequestsAndSessionEndsAreSeenToo) {
  client.call<Snapshot>(7, Watch{"", true});
  TestPeer torch(world);
  std::string bytes(tcpstore::kHandshake);
  tcpstore::Request request;
  request.op = tcpstore::Op::MultiSet;
  request.keys = {"a", "b", "a"};
  request.values = {"1", "2", "3"};
  tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
  torch.send(bytes);
  EXPECT_THAT(client.only<Changes>(7).changes, ElementsAre(Entry{"a", "3"}, Entry{"b", "2"}));
  other.call<Session>(1, OpenSession{1000, 0});
  other.call<Committed>(2, Transaction{{}, {{"x", "", true}, {"y", "", true}}});
  (void)client.answers();
  other.call<Done>(3, Goodbye{});
  EXPECT_THAT(client.only<Changes>(7).changes,
              testing::UnorderedElementsAre(Entry{"x", std::nullopt}, Entry{"y", std::nullopt}));
}

TEST_F(ControlHandlerTest, AKeyFindsThePrefixesOfEveryLengthThatItHas) {
  world.limits.watches_per_connection = 3000;
  (void)client.answers();
  const std::string key(1000, 'k');
  for (std::size_t length = 0; length <= key.size(); ++length) {
    std::string prefix = key.substr(0, length);
    client.call<Snapshot>(2 * length + 1, Watch{prefix, true});
    if (length == 0) continue;
    prefix.back() = 'x';
    client.call<Snapshot>(2 * length, Watch{prefix, true});
  }
  (void)client.answers();
  other.call<Committed>(1, put(key, "v"));
  std::vector<std::uint64_t> told;
  for (const auto& [watch, answer] : client.answers())
    told.push_back(watch);
  ASSERT_EQ(told.size(), key.size() + 1);
  for (std::size_t length = 0; length <= key.size(); ++length)
    ASSERT_EQ(told[length], 2 * length + 1);
  other.call<Committed>(2, put("kkx", "v"));
  const auto short_ones = client.answers();
  ASSERT_EQ(short_ones.size(), 4U);
  EXPECT_EQ(short_ones.back().first, 6U) << "\"kkx\" itself";
}

TEST_F(ControlHandlerTest, TenThousandWatchesAreToldOfTheirKeysAlone) {
  constexpr int kClients = 100;
  constexpr int kEach = 100;
  world.limits.watches_per_connection = kEach;
  const std::size_t before = world.budget.used();
  std::vector<std::unique_ptr<Client>> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.push_back(std::make_unique<Client>(world));
    clients.back()->take();
    for (int w = 1; w <= kEach; ++w) {
      const std::string key = "key/" + std::to_string(c) + '/' + std::to_string(w);
      // Half of them by a prefix of their own.
      const bool prefix = w % 2 == 0;
      clients.back()->call<Snapshot>(static_cast<std::uint64_t>(w),
                                     Watch{prefix ? key + '!' : key, prefix});
    }
  }
  EXPECT_EQ(world.job.counts().watches, 10'000U);
  client.call<Committed>(1, put("key/7/9", "1"));
  client.call<Committed>(2, put("key/8/10!x", "2"));
  client.call<Committed>(3, put("key", "nobody's"));
  for (int c = 0; c < kClients; ++c) {
    std::vector<std::uint64_t> told;
    for (const auto& [watch, answer] : clients[static_cast<std::size_t>(c)]->answers())
      told.push_back(watch);
    if (c == 7) {
      EXPECT_THAT(told, ElementsAre(9));
    } else if (c == 8) {
      EXPECT_THAT(told, ElementsAre(10));
    } else {
      EXPECT_THAT(told, IsEmpty()) << c;
    }
  }
  clients.clear();
  EXPECT_EQ(world.job.counts().watches, 0U);
  Transaction clean;
  for (const std::string_view key : {"key/7/9", "key/8/10!x", "key"})
    clean.writes.push_back({key, std::nullopt, false});
  client.call<Committed>(4, clean);
  EXPECT_EQ(world.budget.used(), before);
}

std::string text_of(Client& client, std::uint64_t id, const Request& request) {
  const Error error = client.call<Error>(id, request);
  EXPECT_EQ(error.code, ErrorCode::Limit);
  return std::string(error.text);
}

// ---- tokens of jobs ----

// Has shown the token of that job.
class JobClient : public Client {
 public:
  JobClient(PeerWorld& world, std::string_view job) : Client(world) {
    (void)answers();
    note_proof(job);
  }
};

TEST_F(ControlHandlerTest, AJobsTokenReachesTheKeysOfTheJobAlone) {
  JobClient a(world, "a");
  client.call<Committed>(1, put("drun/b/k", "secret"));
  client.call<Committed>(2, put("plain", "v"));
  a.call<Committed>(3, put("drun/a/k", "v"));
  a.call<Committed>(4, put("drun-stacks/a/7/n", "v"));
  const Transaction guarded{{{"drun/b/k", std::nullopt}}, {{"drun/a/k", "w", false}}};
  const Transaction also_writes{{}, {{"drun/a/k", "w", false}, {"drun/b/k", "w", false}}};
  for (const Request& request :
       {Request(put("drun/b/k", "w")), Request(put("drun/aa/k", "w")), Request(put("plain", "w")),
        Request(put("drun/a", "w")), Request(remove("drun/b/k")), Request(guarded),
        Request(also_writes), Request(Watch{"drun/b/k", false}), Request(Watch{"drun/b/", true}),
        Request(Watch{"drun/ab", true}), Request(LastWords{"drun/b/"}), Request(Stats{}),
        Request(OpenSuccessor{1'000, 0, 0, "drun/b/", {}}), Request(Find{0, {}, 0, "drun/b/", 0}),
        Request(Gone{1, "drun/b/", {}})})
    EXPECT_EQ(a.error(5, request), ErrorCode::OtherJob) << request.index();
  EXPECT_EQ(value("drun/b/k"), "secret");
  EXPECT_EQ(value("drun/a/k"), "v");
  EXPECT_FALSE(a.is_closed());
}

// A relay's requests are for the clients' keys, which may be any.
TEST_F(ControlHandlerTest, AJobsTokenMakesNoRelay) {
  JobClient a(world, "a");
  client.call<Committed>(1, put("drun/b/k", "secret"));
  std::string begin;
  relay_frames::append_frame(begin, 2, relay_frames::Type::Begin);
  a.send(begin);
  EXPECT_EQ(a.only<Error>(2).code, ErrorCode::OtherJob);
  std::string get;
  tcpstore::encode(get, TcpStoreVersion::Torch2_2, {.op = tcpstore::Op::Get, .key = "drun/b/k"});
  std::string relayed;
  relay_frames::append_frame(relayed, 3, relay_frames::Type::Request, get);
  a.send(relayed);
  EXPECT_EQ(a.only<Error>(3).code, ErrorCode::UnknownRequest);
  a.call<Committed>(4, put("drun/a/k", "v"));
}

TEST_F(ControlHandlerTest, WhoAsksForAllKeysWithAJobsTokenIsToldOfTheJobs) {
  JobClient a(world, "a");
  client.call<Committed>(1, put("drun/a/k", "v"));
  client.call<Committed>(2, put("drun/b/k", "v"));
  client.call<Committed>(3, put("drun-stacks/a/7/n", "v"));
  std::uint64_t watch = 3;
  for (const std::string_view prefix : {"drun/", "", "dr", "drun/a", "drun/a/"}) {
    const auto snapshot = a.call<Snapshot>(watch++, Watch{prefix, true});
    ASSERT_EQ(snapshot.entries.size(), 1U) << prefix;
    EXPECT_EQ(snapshot.entries[0].key, "drun/a/k");
  }
  (void)a.answers();
  client.call<Committed>(1, put("drun/b/l", "v"));
  EXPECT_THAT(a.answers(), IsEmpty()) << "nor of changes";
  client.call<Committed>(2, put("drun/a/l", "v"));
  EXPECT_EQ(a.answers().size(), watch - 3);
  const auto stacks = a.call<Snapshot>(watch, Watch{"drun-", true});
  ASSERT_EQ(stacks.entries.size(), 1U);
  EXPECT_EQ(stacks.entries[0].key, "drun-stacks/a/7/n");
}

// drunctl ping and keys, and whoever else speaks TCPStore.
TEST_F(ControlHandlerTest, AJobsTokenReachesNoMoreByTcpStore) {
  using tcpstore::Op;
  struct JobPeer : TestPeer {
    explicit JobPeer(PeerWorld& world) : TestPeer(world) { note_proof("a"); }
    std::string ask_for(const tcpstore::Request& request) {
      std::string bytes;
      tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
      return ask(bytes);
    }
  };
  client.call<Committed>(1, put("drun/a/k", "v"));
  client.call<Committed>(2, put("drun/b/k", "v"));
  std::string hello("\0\xCE\xF7\x85\x3C", 5);
  JobPeer good(world);
  (void)good.ask(hello);
  std::string one;
  append(one, std::int64_t{1});
  EXPECT_EQ(good.ask_for({.op = Op::GetNumKeys}), one);
  std::string list = one;
  tcpstore::append_vector(list, "drun/a/k");
  EXPECT_EQ(good.ask_for({.op = Op::ListKeys}), list);
  EXPECT_THAT(good.ask_for({.op = Op::Get, .key = "drun/a/k"}), HasSubstr("v"));
  EXPECT_FALSE(good.is_closed());
  for (const tcpstore::Request& request :
       {tcpstore::Request{.op = Op::Get, .key = "drun/b/k"},
        tcpstore::Request{.op = Op::Set, .key = "/x", .value = "v"},
        tcpstore::Request{.op = Op::DeleteKey, .key = "drun/b/k"},
        tcpstore::Request{.op = Op::MultiGet, .keys = {"drun/a/k", "drun/b/k"}},
        tcpstore::Request{.op = Op::Wait, .keys = {"drun/b/k"}},
        tcpstore::Request{.op = Op::QueueLen, .key = "q"}}) {
    JobPeer peer(world);
    (void)peer.ask(hello);
    EXPECT_EQ(peer.ask_for(request), "");
    EXPECT_TRUE(peer.is_closed());
    EXPECT_STREQ(peer.close_reason(), kOtherJobsKeys);
  }
  EXPECT_EQ(value("drun/b/k"), "v");
}

// The workers of one job, or its agents, do not take from the others what is theirs.
TEST(JobShareTest, AJobThatHasFilledItsShareLeavesTheOthersTheirs) {
  Limits limits;
  limits.job_bytes = 10'000;
  PeerWorld small(limits);
  Client greedy(small);
  Client modest(small);
  (void)greedy.answers();
  (void)modest.answers();
  const std::string much(9'000, 'x');
  const std::string more(3'000, 'y');
  greedy.call<Committed>(1, put("drun/greedy/much", much));
  greedy.call<Committed>(2, put("drun/greedy/reserve", more));
  EXPECT_EQ(text_of(greedy, 3, put("drun/greedy/more", more)), kJobFull);
  EXPECT_EQ(text_of(greedy, 4, put("drun-stacks/greedy/1/a", more)), kJobFull);
  EXPECT_EQ(text_of(greedy, 5, Watch{"drun/greedy/" + more, true}), kJobFull);
  const Transaction with_another{{},
                                 {{"drun/modest/x", "x", false}, {"drun/greedy/x", more, false}}};
  EXPECT_EQ(text_of(greedy, 6, with_another), kJobFull);
  EXPECT_EQ(small.job.find("drun/modest/x"), nullptr);

  modest.call<Committed>(7, put("drun/modest/much", much));
  greedy.call<Committed>(8, remove("drun/greedy/much"));
  greedy.call<Committed>(9, put("drun/greedy/more", more));
}

TEST(JobShareTest, TheRendezvousOfAJobThatIsFullGoesOn) {
  Limits limits;
  limits.job_bytes = 10'000;
  PeerWorld small(limits);
  const std::string fills(9'000, 'x');
  const std::string more(1'000, 'y');
  Client agent(small);
  (void)agent.answers();
  ASSERT_TRUE(small.job.put("drun/id/x", fills));
  EXPECT_FALSE(small.job.put("drun/id/y", more)) << "not the rendezvous's";
  EXPECT_STREQ(small.job.refusal(), kJobFull);
  agent.call<Committed>(1, put("drun/id/y", more));
}

TEST(JobShareTest, SessionsCountForTheirJobUntilTheyEnd) {
  Limits limits;
  limits.job_bytes = 2 * Sessions::kOverheadBytes;  // and half of a third
  PeerWorld small(limits);
  const OpenSuccessor first{1'000, 0, 0, "drun/id/", {}};
  Client one(small);
  Client two(small);
  Client three(small);
  Client other(small);
  for (Client* client : {&one, &two, &three, &other})
    (void)client->answers();
  const auto open = [](Client& client, const OpenSuccessor& request) {
    std::string bytes;
    encode(bytes, 1, Request(request));
    client.send(bytes);
    return client.answers().back().second;
  };
  EXPECT_TRUE(std::holds_alternative<Session>(open(one, first)));
  EXPECT_TRUE(std::holds_alternative<Session>(open(two, first)));
  ASSERT_TRUE(std::holds_alternative<Error>(open(three, first)));
  EXPECT_TRUE(std::holds_alternative<Session>(open(other, {1'000, 0, 0, "drun/other/", {}})));
  one.call<Done>(2, Goodbye{});
  EXPECT_TRUE(std::holds_alternative<Session>(open(three, first)));
}

TEST_F(ControlHandlerTest, AChangeBeyondTheUnreadLimitDropsItsWatcher) {
  Limits limits;
  limits.unread_bytes = 1000;
  PeerWorld small(limits);
  Client watcher(small);
  watcher.call<Snapshot>(1, Watch{"", true});
  Client writer(small);
  const std::string text(600, 'x');
  writer.call<Committed>(1, put("a", text));
  EXPECT_EQ(watcher.only<Changes>(1).changes.size(), 1U);
  writer.call<Committed>(2, Transaction{{}, {{"a", text, false}, {"b", text, false}}});
  EXPECT_TRUE(watcher.is_closed());
  EXPECT_EQ(watcher.take(), "");
}

// It is told while it is fed, when nothing can be sent.
TEST_F(ControlHandlerTest, OneWriteToManyWatchesOfItsOwnStaysWithinTheUnreadLimit) {
  Limits limits;
  limits.unread_bytes = 5000;
  PeerWorld small(limits);
  Client both(small);
  (void)both.take();
  for (std::uint64_t id = 1; id <= 10; ++id)
    both.call<Snapshot>(id, Watch{"k", false});
  std::string bytes;
  const std::string value(1000, 'v');
  encode(bytes, 11, Request(put("k", value)));
  encode(bytes, 12, Request(put("after", "")));
  both.send(bytes);
  EXPECT_TRUE(both.is_closed());
  EXPECT_EQ(small.job.find("after"), nullptr) << "nothing more is done for it";
  EXPECT_LE(both.output().size(), limits.unread_bytes + 100);
}

TEST_F(ControlHandlerTest, AConnectionsWatchesAreLimited) {
  world.limits.watches_per_connection = 2;
  client.call<Snapshot>(1, Watch{"a", false});
  client.call<Snapshot>(2, Watch{"a", false});
  EXPECT_EQ(client.error(3, Watch{"a", false}), ErrorCode::Limit);
  EXPECT_EQ(world.job.counts().watches, 2U);
  other.call<Snapshot>(1, Watch{"a", false});
  client.call<Done>(4, Unwatch{1});
  client.call<Snapshot>(5, Watch{"", true});
}

TEST_F(ControlHandlerTest, OneRequestsChangesComeInItsOrderWhicheverPrefixCoversThem) {
  client.call<Snapshot>(1, Watch{"", true});
  client.call<Snapshot>(2, Watch{"a/", true});
  other.call<Snapshot>(3, Watch{"a/", true});
  TestPeer torch(world);
  std::string bytes(tcpstore::kHandshake);
  tcpstore::Request request;
  request.op = tcpstore::Op::MultiSet;
  request.keys = {"a/2", "b", "a/1", "a", "a/2"};
  request.values = {"old", "2", "3", "4", "5"};
  tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
  torch.send(bytes);
  const std::vector<Answer> told = client.answers();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].first, 1U);
  EXPECT_THAT(std::get<Changes>(told[0].second).changes,
              ElementsAre(Entry{"a/2", "5"}, Entry{"b", "2"}, Entry{"a/1", "3"}, Entry{"a", "4"}));
  EXPECT_EQ(told[1].first, 2U);
  EXPECT_THAT(std::get<Changes>(told[1].second).changes,
              ElementsAre(Entry{"a/2", "5"}, Entry{"a/1", "3"}));
  EXPECT_THAT(other.only<Changes>(3).changes, ElementsAre(Entry{"a/2", "5"}, Entry{"a/1", "3"}));
}

TEST_F(ControlHandlerTest, AWatcherThatLeftIsForgotten) {
  client.call<Snapshot>(7, Watch{"", true});
  client.leave();
  other.call<Committed>(1, put("k", ""));
  EXPECT_EQ(client.take(), "");
  EXPECT_EQ(world.job.counts().watches, 0U);
}

TEST_F(ControlHandlerTest, AConnectionSeesItsOwnChanges) {
  client.call<Snapshot>(7, Watch{"k", false});
  std::string bytes;
  encode(bytes, 8, Request(put("k", "v")));
  client.send(bytes);
  EXPECT_EQ(client.answers().size(), 2U);
  EXPECT_EQ(client.pushes(), 0) << "it is sent with the answer";
}

// ---- sessions ----

TEST_F(ControlHandlerTest, EphemeralKeysGoWithTheirSession) {
  EXPECT_EQ(client.error(1, put("k", "", true)), ErrorCode::NoSession);
  const Session session = client.call<Session>(2, OpenSession{5000, 1000});
  EXPECT_EQ(session.ttl_ms, 5000U);
  EXPECT_EQ(client.error(3, OpenSession{5000, 1000}), ErrorCode::HasSession);
  client.call<Committed>(4, Transaction{{}, {{"k", "1", true}, {"kept", "1", true}}});
  other.call<Committed>(1, put("kept", "2"));
  client.call<Done>(5, Goodbye{});
  EXPECT_EQ(value("k"), "(none)");
  EXPECT_EQ(value("kept"), "2") << "written by somebody else, without the flag";
  EXPECT_EQ(client.error(6, Goodbye{}), ErrorCode::NoSession);
  EXPECT_EQ(client.error(7, Heartbeat{}), ErrorCode::NoSession);
  client.call<Session>(8, OpenSession{5000, 1000});
}

TEST_F(ControlHandlerTest, AnyRequestRenewsASession) {
  client.call<Session>(1, OpenSession{1000, 0});
  for (std::uint64_t i = 2; i < 12; ++i) {
    pass(900);
    if (i % 2 == 0)
      client.call<Done>(i, Heartbeat{});
    else
      client.call<Counters>(i, Stats{});
  }
  pass(999);
  EXPECT_THAT(client.answers(), IsEmpty());
  pass(1);
  EXPECT_EQ(client.only<SessionEnded>(0).reason, EndReason::Silent);
  EXPECT_EQ(client.pushes(), 1);
  EXPECT_EQ(client.error(20, Heartbeat{}), ErrorCode::NoSession);
}

TEST_F(ControlHandlerTest, ASessionIsResumedAfterABrokenConnection) {
  const Session session = client.call<Session>(1, OpenSession{5000, 1000});
  client.call<Committed>(2, put("k", "", true));
  client.leave();
  pass(900);
  Client again(world);
  EXPECT_EQ(again.call<SessionEnded>(1, ResumeSession{session.session, {}}).reason,
            EndReason::Unknown);
  again.call<Done>(2, ResumeSession{session.session, session.token});
  pass(4900);
  EXPECT_EQ(value("k"), "");
  again.leave();
  pass(1000);
  EXPECT_EQ(value("k"), "(none)");
  Client late(world);
  EXPECT_EQ(late.call<SessionEnded>(1, ResumeSession{session.session, session.token}).reason,
            EndReason::Unknown);
}

TEST_F(ControlHandlerTest, AResumedSessionLeavesTheOldConnectionWithoutOne) {
  const Session session = client.call<Session>(1, OpenSession{5000, 1000});
  other.call<Done>(1, ResumeSession{session.session, session.token});
  EXPECT_EQ(client.only<SessionEnded>(0).reason, EndReason::Resumed);
  EXPECT_EQ(client.error(2, put("k", "", true)), ErrorCode::NoSession);
  client.leave();
  pass(4000);
  other.call<Done>(2, Heartbeat{});
  EXPECT_EQ(other.error(3, ResumeSession{session.session + 1, {}}), ErrorCode::HasSession);
}

// ---- mistakes ----

TEST_F(ControlHandlerTest, UnknownRequestsAreSkippedMalformedOnesClose) {
  (void)client.take();
  std::string bytes;
  encode(bytes, 5, Request(Heartbeat{}));
  bytes[kHeaderBytes - 1] = '\x7F';
  client.send(bytes);
  EXPECT_EQ(client.only<Error>(5).code, ErrorCode::UnknownRequest);
  EXPECT_FALSE(client.is_closed());
  bytes[kHeaderBytes - 1] = '\x08';  // WATCH without its body
  client.send(bytes);
  EXPECT_EQ(client.only<Error>(5).code, ErrorCode::Malformed);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(ControlHandlerTest, AnIdInUseIsRefusedBeforeAnythingButAMalformedBody) {
  client.call<Snapshot>(5, Watch{"k", true});
  std::string bytes;
  encode(bytes, 5, Request(Heartbeat{}));
  bytes[kHeaderBytes - 1] = '\x7F';
  client.send(bytes);
  EXPECT_EQ(client.only<Error>(5).code, ErrorCode::RequestIdInUse);
  world.limits.keys_per_request = 2;
  const Transaction three{{{"a", {}}, {"b", {}}, {"c", {}}}, {}};
  EXPECT_EQ(client.error(5, three), ErrorCode::RequestIdInUse);
  EXPECT_EQ(client.error(6, three), ErrorCode::Limit);
  bytes[kHeaderBytes - 1] = '\x08';  // WATCH without its body
  client.send(bytes);
  EXPECT_EQ(client.only<Error>(5).code, ErrorCode::Malformed);
}

TEST_F(ControlHandlerTest, FrameHeadersAreChecked) {
  (void)client.take();
  client.send(std::string("\x08\0\0\0", 4));
  EXPECT_EQ(client.only<Error>(0).code, ErrorCode::Malformed);
  EXPECT_TRUE(client.is_closed());
  (void)other.take();
  std::string bytes;
  append(bytes, static_cast<std::uint32_t>(world.limits.request_bytes + 1));
  other.send(bytes);
  EXPECT_EQ(other.only<Error>(0).code, ErrorCode::FrameTooLong);
  EXPECT_TRUE(other.is_closed());
}

TEST_F(ControlHandlerTest, TheLastWordOfASessionIsThatOfItsKeys) {
  client.call<Session>(1, OpenSession{5000, 5000});
  client.call<Committed>(2, Transaction{{}, {{"m/a", "1", true}, {"m/z", "1", false}}});
  other.call<Session>(1, OpenSession{4000, 0});
  other.call<Committed>(2, Transaction{{}, {{"m/b", "1", true}, {"n", "1", true}}});
  world.now += Milliseconds(1500);
  client.call<Done>(3, Heartbeat{});
  world.now += Milliseconds(700);
  const auto heard = other.call<Heard>(3, LastWords{"m/"});
  EXPECT_EQ(heard.entries, (std::vector<Heard::Entry>{{"m/a", 700, 5000}, {"m/b", 0, 4000}}))
      << "who asks is heard, and a key without a session has none";
  world.now += Milliseconds(300);
  EXPECT_EQ(other.call<Heard>(4, LastWords{"m/a"}).entries,
            (std::vector<Heard::Entry>{{"m/a", 1000, 5000}}))
      << "nothing more was heard";
  EXPECT_TRUE(other.call<Heard>(5, LastWords{"x"}).entries.empty());
  world.limits.unread_bytes = 10;
  EXPECT_EQ(other.error(6, LastWords{"m/"}), ErrorCode::Limit);
}

TEST_F(ControlHandlerTest, StatsCount) {
  client.call<Committed>(1, put("k", ""));
  client.call<Session>(2, OpenSession{1000, 0});
  const Counters counters = client.call<Counters>(3, Stats{});
  EXPECT_THAT(counters.counters, testing::IsSupersetOf({Pair("keys", 1U), Pair("sessions", 1U),
                                                        Pair("revision", 1U), Pair("waits", 0U)}));
}

}  // namespace
}  // namespace drun::store::control
