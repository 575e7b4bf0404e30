// The agent's connection to the store: StoreBackend and the control client below it, against the
// real server.
#include "launcher/backend/store_backend.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/scripted_peer.hpp"
#include "support/store_thread.hpp"

namespace drun::launcher {
namespace {

using namespace std::chrono_literals;
using rendezvous::CommitOutcome;
using rendezvous::Link;
using test::StoreThread;
using test::Wire;

store::ControlOptions to(const Endpoint& endpoint) {
  store::ControlOptions options;
  options.endpoint = endpoint;
  options.connect_timeout = 60s;
  options.time_to_live = 600s;
  options.heartbeat_timeout = 600s;
  options.grace = 300ms;
  options.keep_alive = 60s;
  return options;
}

// One agent's view of the store, kept from its events.
class Agent {
 public:
  Agent(asio::io_context& io, const store::ControlOptions& options)
      : io_(io),
        key_value_(
            std::make_unique<StoreBackend>(io, options, [this](auto event) { take(event); })) {
    key_value_->open();
  }

  StoreBackend& key_value() { return *key_value_; }
  void drop() { key_value_.reset(); }

  // Runs the loop until the condition holds.
  template <typename Condition>
  bool until(const Condition& condition) {
    // Many megabytes take their time under a sanitizer.
    const auto deadline = std::chrono::steady_clock::now() + 4min;
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      io_.restart();
      io_.run_one_for(50ms);
    }
    return condition();
  }

  CommitOutcome commit(rendezvous::Transaction transaction) {
    const auto request = ++last_request_;
    key_value_->commit(request, std::move(transaction));
    EXPECT_TRUE(until([&] { return results.contains(request); }));
    return results[request];
  }

  bool until_linked(Link link) {
    return until([&] { return !links.empty() && links.back().link == link; });
  }

  std::vector<rendezvous::LinkEvent> links;
  std::map<rendezvous::RequestId, CommitOutcome> results;
  std::vector<std::string> details;  // of the results
  std::map<rendezvous::WatchId, std::map<std::string, std::string>> seen;
  std::map<rendezvous::WatchId, int> snapshots;
  int changes = 0;

 private:
  void take(const rendezvous::KeyValueEvent& event) {
    if (const auto* link = std::get_if<rendezvous::LinkEvent>(&event)) {
      links.push_back(*link);
    } else if (const auto* result = std::get_if<rendezvous::CommitResult>(&event)) {
      results[result->request] = result->outcome;
      details.push_back(result->detail);
    } else if (const auto* snapshot = std::get_if<rendezvous::WatchSnapshot>(&event)) {
      ++snapshots[snapshot->watch];
      seen[snapshot->watch].clear();
      apply(snapshot->watch, snapshot->entries);
    } else if (const auto* change = std::get_if<rendezvous::WatchChanges>(&event)) {
      ++changes;
      apply(change->watch, change->changes);
    }
  }
  void apply(rendezvous::WatchId watch, const std::vector<rendezvous::Change>& entries) {
    for (const auto& entry : entries) {
      if (entry.value) {
        seen[watch][entry.key] = *entry.value;
      } else {
        seen[watch].erase(entry.key);
      }
    }
  }

  asio::io_context& io_;
  rendezvous::RequestId last_request_ = 0;
  std::unique_ptr<StoreBackend> key_value_;
};

rendezvous::Transaction put(std::string key, std::string value, bool ephemeral = false) {
  return {{}, {{std::move(key), std::move(value), ephemeral}}};
}

TEST(StoreBackendTest, WatchesAndGuardedCommitsOfTwoAgents) {
  StoreThread store;
  asio::io_context io;
  Agent a(io, to(store.endpoint()));
  Agent b(io, to({"localhost", store.endpoint().port}));
  ASSERT_TRUE(a.until_linked(Link::Up));
  ASSERT_TRUE(b.until_linked(Link::Up));
  EXPECT_EQ(a.key_value().local_address(), "127.0.0.1");
  EXPECT_EQ(a.key_value().last_error(), "");

  EXPECT_EQ(a.commit(put("job/x", std::string("\0\xff", 2))), CommitOutcome::Committed);
  b.key_value().watch(4, "job/", true);
  ASSERT_TRUE(b.until([&] { return b.snapshots[4] == 1; }));
  EXPECT_EQ(b.seen[4]["job/x"], std::string("\0\xff", 2));

  const rendezvous::Transaction claim{{{"job/leader", std::nullopt}},
                                      {{"job/leader", "me", true}, {"job/epoch", "1", false}}};
  EXPECT_EQ(a.commit(claim), CommitOutcome::Committed);
  EXPECT_EQ(b.commit(claim), CommitOutcome::Refused);
  ASSERT_TRUE(b.until([&] { return b.seen[4].size() == 3; }));
  EXPECT_EQ(b.changes, 1) << "one transaction is one event";

  a.drop();  // without a goodbye: the key goes after the grace
  EXPECT_TRUE(b.until([&] { return !b.seen[4].contains("job/leader"); }));
  EXPECT_TRUE(b.seen[4].contains("job/epoch"));
}

TEST(StoreBackendTest, WhatIsNotWatchedAnyMoreIsNotHeardOf) {
  StoreThread store;
  asio::io_context io;
  Agent a(io, to(store.endpoint()));
  a.key_value().watch(1, "job/", true);
  a.key_value().watch(2, "job/", true);
  ASSERT_TRUE(a.until([&] { return a.snapshots[1] == 1 && a.snapshots[2] == 1; }));
  a.key_value().unwatch(1);
  for (const std::string key : {"job/first", "job/second"})
    ASSERT_EQ(a.commit(put(key, "x")), CommitOutcome::Committed);
  ASSERT_TRUE(a.until([&] { return a.seen[2].contains("job/second"); }));
  EXPECT_THAT(a.seen[1], testing::IsEmpty());
}

TEST(StoreBackendTest, CloseTakesTheEphemeralKeysAlongAtOnce) {
  StoreThread store;
  asio::io_context io;
  Agent a(io, to(store.endpoint()));
  Agent b(io, to(store.endpoint()));
  a.key_value().commit(7, put("member/1", "x", true));  // before the connection is there
  b.key_value().watch(1, "member/", true);
  ASSERT_TRUE(a.until([&] { return a.results.contains(7); }));
  ASSERT_TRUE(b.until([&] { return b.seen[1].contains("member/1"); }));
  a.key_value().commit(8, put("last/words", "x"));
  a.key_value().close();
  ASSERT_TRUE(a.until_linked(Link::Closed));
  EXPECT_EQ(a.results[8], CommitOutcome::Committed);
  EXPECT_TRUE(b.until([&] { return !b.seen[1].contains("member/1"); }));
}

TEST(StoreBackendTest, ACutConnectionIsResumedAndTheKeysStand) {
  StoreThread store;
  Wire wire(store.endpoint());
  asio::io_context io;
  auto options = to(wire.endpoint());
  options.grace = 60s;
  Agent a(io, options);
  Agent b(io, to(store.endpoint()));
  b.key_value().watch(1, "member/", true);
  a.key_value().watch(2, "member/", true);
  ASSERT_TRUE(b.until([&] { return b.snapshots[1] == 1; }));
  ASSERT_EQ(a.commit(put("member/a", "x", true)), CommitOutcome::Committed);
  ASSERT_TRUE(b.until([&] { return b.seen[1].contains("member/a"); }));
  for (int round = 1; round <= 3; ++round) {
    const auto before = a.links.size();
    wire.cut();
    ASSERT_TRUE(a.until([&] { return a.links.size() >= before + 2; }));
    EXPECT_EQ(a.links[before].link, Link::Down);
    EXPECT_THAT(a.links[before].detail, testing::HasSubstr(to_string(wire.endpoint())));
    EXPECT_EQ(a.links[before + 1].link, Link::Up) << a.links[before + 1].detail;
    ASSERT_TRUE(a.until([&] { return a.snapshots[2] == round + 1; }));
  }
  EXPECT_EQ(a.commit(put("member/b", "y", true)), CommitOutcome::Committed);
  ASSERT_TRUE(b.until([&] { return b.seen[1].contains("member/b"); }));
  EXPECT_TRUE(b.seen[1].contains("member/a"));
  EXPECT_EQ(b.changes, 2) << "the member never left";
}

TEST(StoreBackendTest, AStoreThatCameBackEmptyGivesANewSession) {
  const test::ReservedPort reserved;
  const auto port = static_cast<std::uint16_t>(reserved.number());
  auto store = std::make_unique<StoreThread>(port);
  asio::io_context io;
  Agent a(io, to(store->endpoint()));
  a.key_value().watch(1, "k", false);
  ASSERT_EQ(a.commit(put("k", "v", true)), CommitOutcome::Committed);
  store.reset();
  ASSERT_TRUE(a.until_linked(Link::Down));
  a.key_value().commit(100, put("k", "later"));  // waits for the store
  store = std::make_unique<StoreThread>(port);
  ASSERT_TRUE(a.until_linked(Link::NewSession));
  ASSERT_TRUE(a.until([&] { return a.results.contains(100); }));
  EXPECT_EQ(a.results[100], CommitOutcome::Committed);
  ASSERT_TRUE(a.until([&] { return a.seen[1]["k"] == "later"; }));
}

TEST(StoreBackendTest, AFrozenStoreIsNoticedWithinTheTimeToLive) {
  StoreThread store;
  Wire wire(store.endpoint());
  asio::io_context io;
  auto options = to(wire.endpoint());
  options.time_to_live = 600ms;
  options.keep_alive = 500ms;
  // The time to live counts from the last answer, which comes before the wire is frozen.
  const auto start = std::chrono::steady_clock::now();
  Agent a(io, options);
  ASSERT_TRUE(a.until_linked(Link::Up));
  wire.freeze(true);
  ASSERT_TRUE(a.until_linked(Link::Failed));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 1s);
  ASSERT_EQ(a.links.size(), 3U);
  EXPECT_THAT(a.links[1].detail, testing::HasSubstr("no answer for "));
  EXPECT_GE(a.links[1].silent, 600ms);
  EXPECT_THAT(a.links[2].detail, testing::HasSubstr("could not reach it again within 500 ms"));
}

TEST(StoreBackendTest, WaitsForTheStoreAndSaysWhyMeanwhile) {
  const test::ReservedPort port;
  const auto number = static_cast<std::uint16_t>(port.number());
  asio::io_context io;
  Agent a(io, to({"127.0.0.1", number}));
  ASSERT_TRUE(a.until([&] { return !a.key_value().last_error().empty(); }));
  EXPECT_EQ(a.key_value().last_error(), "Connection refused");
  StoreThread store(number);
  EXPECT_TRUE(a.until_linked(Link::Up));
}

TEST(StoreBackendTest, NamesAHostThatCannotBeFound) {
  asio::io_context io;
  auto options = to({"no-such-host.invalid", 1});
  options.connect_timeout = 0s;
  Agent a(io, options);
  ASSERT_TRUE(a.until_linked(Link::Failed));
  EXPECT_THAT(a.links.back().detail, testing::HasSubstr("cannot look up 'no-such-host.invalid'"));
}

TEST(StoreBackendTest, RefusesAPeerThatIsNoStore) {
  test::ScriptedPeer peer([](test::ScriptedConnection& c) {
    c.read(12);
    c.write("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  asio::io_context io;
  Agent a(io, to(peer.endpoint()));
  ASSERT_TRUE(a.until_linked(Link::Failed));
  EXPECT_THAT(a.links.back().detail,
              testing::StartsWith(to_string(peer.endpoint()) +
                                  " is not a drun store: it answered 'HTTP/1.1 400"));
}

TEST(StoreBackendTest, TheSinkMayDestroyTheConnection) {
  StoreThread store;
  asio::io_context io;
  std::unique_ptr<StoreBackend> key_value;
  int events = 0;
  key_value = std::make_unique<StoreBackend>(io, to(store.endpoint()), [&](auto) {
    ++events;
    key_value.reset();
  });
  key_value->open();
  key_value->watch(1, "a", false);
  io.run();  // ends because nothing is left to wait for
  EXPECT_EQ(events, 1);
}

TEST(StoreBackendTest, ALimitOfTheStoreIsTold) {
  store::ServerOptions options;
  options.limits.keys_per_request = 2;
  options.limits.value_bytes = 100;
  StoreThread store(0, options);
  asio::io_context io;
  Agent a(io, to(store.endpoint()));
  ASSERT_TRUE(a.until_linked(Link::Up));
  EXPECT_EQ(a.links.back().most_writes, 2U);
  rendezvous::Transaction three;
  for (const std::string key : {"1", "2", "3"})
    three.writes.push_back({key, "v", false});
  EXPECT_EQ(a.commit(three), CommitOutcome::Rejected);
  EXPECT_EQ(a.details.back(), "too many keys (the store takes 2)");
  EXPECT_EQ(a.commit(put("k", std::string(101, 'x'))), CommitOutcome::Rejected);
  EXPECT_EQ(a.details.back(), "value too long (the store takes 100)");
}

TEST(StoreBackendTest, LargeValuesAndManyWatchedKeysComeThrough) {
  StoreThread store;
  asio::io_context io;
  Agent a(io, to(store.endpoint()));
  Agent b(io, to(store.endpoint()));
  const std::string large(20 << 20, 'x');
  ASSERT_EQ(a.commit(put("big/value", large)), CommitOutcome::Committed);
  for (int i = 0; i < 2000; ++i) {
    a.key_value().commit(static_cast<rendezvous::RequestId>(1000 + i),
                         put("many/" + std::to_string(i), std::to_string(i)));
  }
  ASSERT_TRUE(a.until([&] { return a.results.size() == 2001; }));
  b.key_value().watch(1, "many/", true);
  b.key_value().watch(2, "big/", true);
  ASSERT_TRUE(b.until([&] { return b.snapshots[1] == 1 && b.snapshots[2] == 1; }));
  EXPECT_EQ(b.seen[1].size(), 2000U);
  EXPECT_EQ(b.seen[2]["big/value"], large);
}

}  // namespace
}  // namespace drun::launcher
