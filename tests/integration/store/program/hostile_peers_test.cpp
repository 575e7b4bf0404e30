// drun-store among hostile peers: what they ask for takes no more memory than docs/store.md says.
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/places.hpp"
#include "support/raw_connection.hpp"

namespace drun::store {
namespace {

using test::ControlConnection;
using test::operator+;
using test::DrunProcess;
using test::RawConnection;

constexpr std::size_t kMiB = std::size_t{1} << 20;
// What the program takes besides what peers make it hold, also under a sanitizer.
constexpr std::size_t kProgram = 300 * kMiB;

class ProgramStore {
 public:
  explicit ProgramStore(const test::Arguments& more = {})
      : process_(test::Launch{
            test::Arguments{places::program("drun-store"), "--bind", "127.0.0.1", "--port", "0"} +
                more,
            {},
            {}}) {
    EXPECT_TRUE(process_.wait_for_out("\n")) << process_.err();
    endpoint_ = parse_endpoint(process_.out().substr(0, process_.out().find('\n')), 0).value();
  }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  // Until resume(), whatever is sent to it waits.
  void suspend() {
    ::kill(process_.pid(), SIGSTOP);
    siginfo_t stopped{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(process_.pid()), &stopped, WSTOPPED), 0);
  }
  void resume() { ::kill(process_.pid(), SIGCONT); }
  // The most that it has had.
  [[nodiscard]] std::size_t peak_memory() {
    std::ifstream status("/proc/" + std::to_string(process_.pid()) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) * 1024;
    ADD_FAILURE() << "it is gone";
    return 0;
  }
  // Answers somebody who does nothing bad.
  void expect_service() {
    ControlConnection other(endpoint_);
    EXPECT_GT(other.counter("connections"), 0U);
  }

 private:
  DrunProcess process_;
  Endpoint endpoint_;
};

// It takes 64 MiB of keys, 16 MiB more of drun's own, and lets a peer leave 32 MiB unread.
class SmallStore : public ProgramStore {
 public:
  SmallStore() : ProgramStore({"--max-total", "64M", "--max-value", "4M", "--max-unread", "32M"}) {}
};

std::string opening() {
  std::string bytes;
  control::encode_opening(bytes);
  return bytes;
}

TEST(HostilePeersTest, ManyWatchesOfOneKeyAndOneWrite) {
  SmallStore store;
  std::string bytes = opening();
  std::uint64_t id = 1;
  for (; id <= 1000; ++id)
    control::encode(bytes, id, control::Request(control::Watch{"k", false}));
  const std::string value(2 * kMiB, 'v');
  control::encode(bytes, id, control::Request(control::Transaction{{}, {{"k", value, false}}}));
  RawConnection peer(store.endpoint());
  peer.send(bytes);
  EXPECT_TRUE(peer.is_closed_by_peer()) << "2 MiB for each of 64 watches are more than 32 MiB";
  store.expect_service();
  EXPECT_LT(store.peak_memory(), (64 + 16 + 32) * kMiB + kProgram) << "of two gigabytes";
}

// Whoever keeps a session alive is late sooner than they.
TEST(HostilePeersTest, SessionsAreServedBeforeOthersThatAskedEarlier) {
  ProgramStore store;
  const auto write = [](const char* value) {
    return control::Transaction{{}, {{"k", value, false}}};
  };
  ControlConnection other(store.endpoint());
  ControlConnection session(store.endpoint());
  session.call<control::Session>(1, control::OpenSession{60'000, 0});
  store.suspend();
  other.request(2, write("other"));
  session.request(2, write("session"));
  store.resume();
  EXPECT_LT(session.receive_as<control::Committed>(2).revision,
            other.receive_as<control::Committed>(2).revision);
}

TEST(HostilePeersTest, ALongChangeThatManyDoNotReadIsHeldOnce) {
  constexpr std::size_t kValue = 32 * kMiB;
  ProgramStore store;
  std::vector<ControlConnection> watchers;
  for (int i = 0; i < 40; ++i)
    watchers.emplace_back(store.endpoint()).call<control::Snapshot>(1, control::Watch{"k", false});
  ControlConnection writer(store.endpoint());
  const std::string value(kValue, 'v');
  (void)writer.call<control::Committed>(1, control::Transaction{{}, {{"k", value, false}}});
  (void)writer.call<control::Committed>(2, control::Transaction{{}, {{"k", "short", false}}});
  store.expect_service();
  for (ControlConnection& watcher : {std::ref(watchers.front()), std::ref(watchers.back())}) {
    const auto first = watcher.receive_as<control::Changes>(1);
    ASSERT_EQ(first.changes.size(), 1U);
    EXPECT_TRUE(first.changes.front().value == value);
    const auto second = watcher.receive_as<control::Changes>(1);
    ASSERT_EQ(second.changes.size(), 1U);
    EXPECT_EQ(second.changes.front().value, "short");
  }
  EXPECT_LT(store.peak_memory(), 6 * kValue + kProgram) << "of more than a gigabyte";
}

TEST(HostilePeersTest, ManyWatchesOfAllKeysAndManyWrites) {
  SmallStore store;
  const std::string greeting = opening();
  std::vector<RawConnection> watchers;
  for (int i = 0; i < 20; ++i) {
    std::string bytes = greeting;
    for (std::uint64_t id = 1; id <= 1000; ++id)
      control::encode(bytes, id, control::Request(control::Watch{"", true}));
    watchers.emplace_back(store.endpoint()).send(bytes);
  }
  store.expect_service();
  std::vector<std::string> keys;
  for (int i = 0; i < 30'000; ++i)
    keys.push_back(std::to_string(i));
  control::Transaction all;
  for (const std::string& key : keys)
    all.writes.push_back({key, "", false});
  ControlConnection writer(store.endpoint());
  (void)writer.call<control::Committed>(1, all);
  store.expect_service();
  EXPECT_LT(store.peak_memory(), (64 + 16 + 32) * kMiB + kProgram) << "of ten gigabytes";
}

}  // namespace
}  // namespace drun::store
