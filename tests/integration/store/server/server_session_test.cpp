// Sessions, watches and snapshots of the control protocol on real sockets and in real time.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/store/errors.hpp"
#include "support/raw_connection.hpp"
#include "support/running_server.hpp"
#include "support/temporary_directory.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using control::Entry;
using test::ControlConnection;
using test::RunningServer;
using test::TcpStoreConnection;
using testing::ElementsAre;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

control::Transaction put(std::string_view key, std::string_view value, bool ephemeral) {
  return {{}, {{key, value, ephemeral}}};
}

class ServerSessionTest : public testing::Test {
 protected:
  // A client whose session has the ephemeral key "mine"; `watcher` has seen that. Both requests go
  // out at once, so that the time to live is not over between them.
  std::unique_ptr<ControlConnection> member(std::uint32_t ttl, std::uint32_t grace) {
    watcher.call<control::Snapshot>(1, control::Watch{"mine", false});
    auto client = std::make_unique<ControlConnection>(server.endpoint());
    std::string requests;
    control::encode(requests, 1, control::OpenSession{ttl, grace});
    control::encode(requests, 2, put("mine", "", true));
    client->send(requests);
    session = client->receive_as<control::Session>(1);
    client->receive_as<control::Committed>(2);
    EXPECT_THAT(watcher.receive_as<control::Changes>(1).changes, ElementsAre(Entry{"mine", ""}));
    return client;
  }
  void expect_gone() {
    EXPECT_THAT(watcher.receive_as<control::Changes>(1).changes,
                ElementsAre(Entry{"mine", std::nullopt}));
  }

  RunningServer server;
  ControlConnection watcher{server.endpoint()};
  control::Session session;
};

TEST_F(ServerSessionTest, ASilentMemberIsGoneAfterItsTimeToLive) {
  const auto start = Clock::now();
  const auto client = member(200, 0);
  expect_gone();
  EXPECT_GE(Clock::now() - start, 200ms);
  EXPECT_EQ(client->receive_as<control::SessionEnded>(0).reason, control::EndReason::Silent);
}

TEST_F(ServerSessionTest, ABrokenConnectionIsGoneAfterTheGrace) {
  auto client = member(60'000, 150);
  const auto start = Clock::now();
  client->close();
  expect_gone();
  EXPECT_GE(Clock::now() - start, 150ms);
}

TEST_F(ServerSessionTest, GoodbyeIsSeenAtOnce) {
  auto client = member(60'000, 60'000);
  client->request(3, control::Goodbye{});
  expect_gone();
}

// Or a store that many jobs use would have no room for the votes of the next one some day.
TEST_F(ServerSessionTest, WithItsLastVoterAJobIsForgotten) {
  const auto nodes_settled = [](ControlConnection& client, const Vote& vote) {
    const auto pulsed = client.call<control::Pulsed>(2, control::Pulse{"drun/a/", vote});
    client.request(3, control::Confirm{pulsed.stamp});
    return pulsed.settled.nodes;
  };
  ControlConnection voter(server.endpoint());
  (void)voter.call<control::Session>(1, control::OpenSession{60'000, 0});
  for (int i = 0; i < 2; ++i)  // once the second is answered, the first is confirmed
    (void)nodes_settled(voter, {{}, {{{1, 1}, 0, 1, 0}}});
  ControlConnection other(server.endpoint());
  (void)other.call<control::Session>(1, control::OpenSession{60'000, 0});
  EXPECT_EQ(nodes_settled(other, {}), 1U);
  (void)voter.call<control::Done>(4, control::Goodbye{});
  EXPECT_EQ(nodes_settled(other, {}), 0U);
}

TEST_F(ServerSessionTest, NobodyKnowsTheTokenOfAnother) {
  std::set<control::Token> tokens{control::Token{}};
  for (int i = 0; i < 3; ++i) {
    ControlConnection other(server.endpoint());
    tokens.insert(other.call<control::Session>(1, control::OpenSession{60'000, 0}).token);
  }
  EXPECT_EQ(tokens.size(), 4U);
}

// As whoever is left of a killed agent says it: over a connection of its own, and twice.
TEST_F(ServerSessionTest, AnybodyWhoHasTheTokenMayEndTheSession) {
  const auto client = member(60'000, 60'000);
  control::Token forged = session.token;
  forged.back() ^= 1;
  ControlConnection stranger(server.endpoint());
  stranger.request(1, control::ResumeSession{session.session, forged});
  stranger.request(2, control::Goodbye{});
  EXPECT_EQ(stranger.receive_as<control::SessionEnded>(1).reason, control::EndReason::Unknown);
  EXPECT_EQ(stranger.receive_as<control::Error>(2).code, control::ErrorCode::NoSession);
  EXPECT_FALSE(watcher.readable(0ms));
  for (const bool first : {true, false}) {
    ControlConnection heir(server.endpoint());
    heir.request(1, control::ResumeSession{session.session, session.token});
    heir.request(2, control::Goodbye{});
    if (!first) {
      heir.receive_as<control::SessionEnded>(1);
      heir.receive_as<control::Error>(2);
      continue;
    }
    heir.receive_as<control::Done>(1);
    heir.receive_as<control::Done>(2);
    expect_gone();
  }
}

TEST_F(ServerSessionTest, AResumedSessionKeepsItsKeys) {
  // Where the machine stood still for the whole grace, another one of twice the length.
  for (auto grace = 300ms;; grace *= 2) {
    auto client = member(600'000, static_cast<std::uint32_t>(grace.count()));
    const auto start = Clock::now();
    client->close();
    ControlConnection again(server.endpoint());
    again.request(1, control::ResumeSession{session.session, session.token});
    const bool resumed = std::holds_alternative<control::Done>(again.receive_reply().reply);
    const auto spent = Clock::now() - start;
    if (resumed) {
      EXPECT_FALSE(watcher.readable(grace + 200ms)) << "longer than the grace";
    }
    again.close();
    expect_gone();
    watcher.call<control::Done>(2, control::Unwatch{1});
    if (resumed) return;
    ASSERT_GE(spent, grace) << "the session has ended before its time";
  }
}

TEST_F(ServerSessionTest, AWatchMissesNothingUnderConcurrentWriters) {
  constexpr int kWriters = 6;
  constexpr int kWrites = 300;
  watcher.call<control::Snapshot>(1, control::Watch{"w/", true});
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([this, w] {
      const std::string key = "w/" + std::to_string(w);
      ControlConnection agent(server.endpoint());
      TcpStoreConnection worker(server.endpoint());
      for (int i = 1; i <= kWrites; ++i) {
        if (w % 2 == 0)
          worker.add(key, 1);
        else
          agent.call<control::Committed>(static_cast<std::uint64_t>(i),
                                         put(key, std::to_string(i), false));
      }
    });
  }
  std::map<std::string, int> seen;
  std::uint64_t revision = 0;
  for (int i = 0; i < kWriters * kWrites; ++i) {
    const auto changes = watcher.receive_as<control::Changes>(1);
    ASSERT_GT(changes.revision, revision);
    revision = changes.revision;
    ASSERT_EQ(changes.changes.size(), 1U);
    ASSERT_EQ(changes.changes[0].value,
              std::to_string(++seen[std::string(changes.changes[0].key)]));
  }
  for (std::thread& writer : writers)
    writer.join();
  EXPECT_EQ(watcher.counter("watches"), 1U) << "and no more changes";
}

TEST_F(ServerSessionTest, ASnapshotAndItsEventsFitTogether) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    TcpStoreConnection worker(server.endpoint());
    while (!stop)
      worker.add("n", 1);
  });
  for (std::uint64_t id = 1; id <= 200; ++id) {
    const auto snapshot = watcher.call<control::Snapshot>(id, control::Watch{"n", false});
    const int known =
        snapshot.entries.empty() ? 0 : std::stoi(std::string(*snapshot.entries[0].value));
    const auto changes = watcher.receive_as<control::Changes>(id);
    EXPECT_EQ(std::stoi(std::string(*changes.changes[0].value)), known + 1);
    watcher.request(1000 + id, control::Unwatch{id});
    while (watcher.receive_reply().request != 1000 + id) {
    }
  }
  stop = true;
  writer.join();
}

TEST_F(ServerSessionTest, ManyWaitersOfOneKeyAreAllAnswered) {
  std::vector<std::unique_ptr<TcpStoreConnection>> waiters;
  for (int i = 0; i < 200; ++i) {
    waiters.push_back(std::make_unique<TcpStoreConnection>(server.endpoint()));
    waiters.back()->start_wait({"go"});
    EXPECT_EQ(waiters.back()->add("ready", 1), i + 1);
  }
  TcpStoreConnection(server.endpoint()).set("go", "");
  for (const auto& waiter : waiters)
    EXPECT_EQ(waiter->receive(1).size(), 1U);
}

// ---- snapshots ----

TEST(ServerSnapshotTest, ASessionAndItsKeysOutliveARestart) {
  const test::TemporaryDirectory directory;
  const std::string file = directory.file("store");
  control::Session session;
  {
    RunningServer server({}, file);
    ControlConnection client(server.endpoint());
    session = client.call<control::Session>(1, control::OpenSession{60'000, 50});
    client.call<control::Committed>(2, put("mine", "1", true));
    TcpStoreConnection(server.endpoint()).add("n", 7);
    TcpStoreConnection waits_for_add(server.endpoint());
    while (waits_for_add.get("n") != "7") {
    }
    server.stop();
    EXPECT_TRUE(server.server().last_snapshot().ok());
  }
  RunningServer server({}, file);
  EXPECT_EQ(TcpStoreConnection(server.endpoint()).get("n"), "7");
  ControlConnection client(server.endpoint());
  client.call<control::Done>(1, control::ResumeSession{session.session, session.token});
  EXPECT_EQ(client.value_of("mine"), "1");
  client.call<control::Done>(3, control::Goodbye{});
  EXPECT_EQ(client.value_of("mine"), std::nullopt);
}

TEST(ServerSnapshotTest, TheFileFollowsTheChanges) {
  const test::TemporaryDirectory directory;
  const std::string file = directory.file("store");
  RunningServer server({}, file);
  TcpStoreConnection client(server.endpoint());
  client.set("first", "some value");
  const auto holds = [&](std::string_view text) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    return bytes.find(text) != std::string::npos;
  };
  const auto deadline = Clock::now() + 60s;
  while (!holds("some value") && Clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_TRUE(holds("some value"));
  client.set("first", "another value");
  while (!holds("another value") && Clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_TRUE(holds("another value"));
}

TEST(ServerSnapshotTest, ADamagedFileIsRefusedByNameAndKept) {
  const test::TemporaryDirectory directory;
  const std::string file = directory.file("store");
  std::ofstream(file) << "drunsnap but not really a snapshot";
  Server server;
  const Status status = server.use_snapshot(file);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what(), HasSubstr(file));
  EXPECT_THAT(status.error().what(), HasSubstr("version"));
  std::string kept;
  std::getline(std::ifstream(file), kept);
  EXPECT_EQ(kept, "drunsnap but not really a snapshot");
}

TEST(ServerSnapshotTest, AFileThatCannotBeWrittenIsRefusedAtTheStart) {
  const test::TemporaryDirectory directory;
  for (const std::string& file : {directory.file("no/such/directory"), std::string("/proc/1/x")}) {
    Server server;
    const Status status = server.use_snapshot(file);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().what(), HasSubstr("create " + file + ".tmp"));
  }
}

TEST(ServerSnapshotTest, AFileThatCannotBeWrittenAnyMoreIsAnErrorInTheEnd) {
  const test::TemporaryDirectory directory;
  const std::string folder = directory.file("folder");
  std::filesystem::create_directory(folder);
  testing::internal::CaptureStderr();
  RunningServer server({}, folder + "/store");
  std::filesystem::remove_all(folder);
  TcpStoreConnection(server.endpoint()).add("n", 1);
  server.stop();
  const Status status = server.server().last_snapshot();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what(), HasSubstr("No such file or directory"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("not up to date"));
}

}  // namespace
}  // namespace drun::store
