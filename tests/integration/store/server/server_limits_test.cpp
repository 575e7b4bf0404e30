// Hostile and unlucky peers against a server on real sockets: what they do costs the others
// nothing.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/patience.hpp"
#include "support/raw_connection.hpp"
#include "support/running_server.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using test::ControlConnection;
using test::eventually;
using test::get_request;
using test::RawConnection;
using test::RunningServer;
using test::set_request;
using test::TcpStoreConnection;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// While it lives, closing a descriptor that it has as well does not end its events.
TEST(ServerLimitsTest, AConnectionThatAForkedProcessHasTooIsGoneWhenItsPeerIs) {
  RunningServer server;
  ControlConnection observer(server.endpoint());
  TcpStoreConnection peer(server.endpoint());
  EXPECT_EQ(peer.add("key", 1), 1);
  int until_closed[2];
  ASSERT_EQ(::pipe(until_closed), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(until_closed[1]);
    ::_exit(static_cast<int>(::read(until_closed[0], &byte, 1)));
  }
  ::shutdown(peer.fd(), SHUT_RDWR);
  EXPECT_TRUE(eventually([&] { return observer.counter("connections") == 1; }));
  for (int rounds = 0; rounds < 10; ++rounds)
    EXPECT_EQ(observer.counter("connections"), 1U);
  EXPECT_EQ(observer.counter("accepted"), 2U);
  ::close(until_closed[0]);
  ::close(until_closed[1]);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(ServerLimitsTest, HalfAMessageHoldsNobodyUp) {
  RunningServer server;
  const std::string whole = set_request("key", std::string(1000, 'v'));
  std::vector<std::unique_ptr<TcpStoreConnection>> halves;
  for (std::size_t size = 1; size < whole.size(); size += 97) {
    halves.push_back(std::make_unique<TcpStoreConnection>(server.endpoint()));
    halves.back()->send(std::string_view(whole).substr(0, size));
  }
  TcpStoreConnection other(server.endpoint());
  for (int i = 1; i <= 100; ++i)
    ASSERT_EQ(other.add("n", 1), i);
  EXPECT_EQ(other.get("key"), "");
  halves.front()->send(std::string_view(whole).substr(1));
  EXPECT_EQ(halves.front()->get("key"), std::string(1000, 'v'));
}

TEST(ServerLimitsTest, AFloodOfRequestsLeavesTheOthersTheirTurn) {
  RunningServer server;
  TcpStoreConnection flooder(server.endpoint());
  flooder.set("k", "v");
  std::string requests;
  for (int i = 0; i < 10'000; ++i)
    requests += get_request("k");
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop && flooder.send(requests)) {
    }
  });
  std::thread reader([&] {
    while (flooder.receive(1 << 20).size() == 1 << 20) {
    }
  });
  TcpStoreConnection other(server.endpoint());
  for (int i = 1; i <= 50; ++i)
    ASSERT_EQ(other.add("n", 1), i);
  stop = true;
  ::shutdown(flooder.fd(), SHUT_RDWR);
  writer.join();
  reader.join();
}

std::string list_request() {
  std::string bytes;
  tcpstore::Request request;
  request.op = tcpstore::Op::ListKeys;
  tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
  return bytes;
}

// While it lives the server takes up nothing: what comes meanwhile is there all at once when it
// goes on. Precondition: it has a key.
class Busy {
 public:
  explicit Busy(RunningServer& server)
      : thread_([this, &server] {
          EXPECT_FALSE(server.server().stop_unless([this, once = false](std::string_view) mutable {
            if (std::exchange(once, true)) return true;
            begun_.set_value();
            ended_.get_future().wait();
            return true;
          }));
        }) {
    begun_.get_future().wait();
  }
  ~Busy() {
    ended_.set_value();
    thread_.join();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  std::promise<void> begun_;
  std::promise<void> ended_;
  std::thread thread_;
};

// What the server had done when it made these.
std::uint64_t requests_in(const control::Counters& counters) {
  for (const auto& [name, value] : counters.counters)
    if (name == "requests") return value;
  return 0;
}

// What is cheap comes behind what is not. What the server has done until it answers the cheap says
// how much that had to wait for.
TEST(ServerLimitsTest, AFloodOfListsIsServedBehindTheOthers) {
  constexpr std::size_t kFlooders = 150;
  RunningServer server;
  ControlConnection session(server.endpoint());
  session.call<control::Session>(1, control::OpenSession{60'000, 0});
  TcpStoreConnection worker(server.endpoint());
  for (int i = 0; i < 3000; ++i)
    worker.set("key/" + std::to_string(i) + std::string(200, '.'), "");
  EXPECT_EQ(worker.add("n", 1), 1);
  std::vector<std::unique_ptr<TcpStoreConnection>> flooders;
  for (std::size_t i = 0; i < kFlooders; ++i) {
    flooders.push_back(std::make_unique<TcpStoreConnection>(server.endpoint()));
    EXPECT_EQ(flooders.back()->add("n", 0), 1);
  }
  const std::uint64_t before = session.counter("requests");

  {
    const Busy busy(server);
    for (const auto& flooder : flooders)
      flooder->send(list_request());
    worker.send("\7");
    session.request(2, control::Heartbeat{});
    session.request(3, control::Stats{});
  }
  session.receive_as<control::Done>(2);
  const std::uint64_t served = requests_in(session.receive_as<control::Counters>(3)) - before;
  EXPECT_GT(served, 0U);
  EXPECT_LT(served, kFlooders / 10) << "of the lists, before a heartbeat";
  EXPECT_EQ(worker.receive_number(), 3001);
  for (const auto& flooder : flooders)
    EXPECT_EQ(flooder->receive_number(), 3001) << "and everybody is served";
}

// Anybody may open one: a session alone is no reason to be served before the others.
TEST(ServerLimitsTest, AFloodOfListingsOfSessionsIsServedBehindTheirHeartbeats) {
  constexpr std::size_t kFlooders = 150;
  RunningServer server;
  std::vector<std::unique_ptr<ControlConnection>> flooders;
  for (std::size_t i = 0; i < kFlooders; ++i) {
    flooders.push_back(std::make_unique<ControlConnection>(server.endpoint()));
    flooders.back()->call<control::Session>(1, control::OpenSession{60'000, 0});
  }
  ControlConnection session(server.endpoint());
  session.call<control::Session>(1, control::OpenSession{60'000, 0});
  TcpStoreConnection worker(server.endpoint());
  for (int i = 0; i < 3000; ++i)
    worker.set("key/" + std::to_string(i) + std::string(200, '.'), "");
  EXPECT_EQ(worker.add("n", 1), 1);
  session.call<control::Snapshot>(2, control::Watch{"none/", true});
  const std::uint64_t before = session.counter("requests");
  {
    const Busy busy(server);
    for (const auto& flooder : flooders)
      flooder->request(2, control::Watch{"", true});
    session.request(3, control::Heartbeat{});
    session.request(4, control::Stats{});
  }
  session.receive_as<control::Done>(3);
  const std::uint64_t served = requests_in(session.receive_as<control::Counters>(4)) - before;
  EXPECT_GT(served, 0U);
  EXPECT_LT(served, kFlooders / 10) << "of the listings, before a heartbeat";
  for (const auto& flooder : flooders)
    EXPECT_EQ(flooder->receive_as<control::Snapshot>(2).entries.size(), 3001U);
}

// Cheap requests are limited in number, of sessions too: the others' turn comes between them.
TEST(ServerLimitsTest, AFloodOfHeartbeatsOfASessionLeavesTheOthersTheirTurn) {
  constexpr std::uint64_t kFlood = 15'000;
  RunningServer server;
  TcpStoreConnection(server.endpoint()).set("key", "");
  ControlConnection flooder(server.endpoint());
  flooder.call<control::Session>(1, control::OpenSession{60'000, 0});
  ControlConnection other(server.endpoint());
  const std::uint64_t before = other.counter("requests");
  std::string heartbeats;
  for (std::uint64_t id = 2; id < 2 + kFlood; ++id)
    control::encode(heartbeats, id, control::Request(control::Heartbeat{}));
  {
    const Busy busy(server);
    flooder.send(heartbeats);
    other.request(2, control::Stats{});
  }
  EXPECT_LT(requests_in(other.receive_as<control::Counters>(2)) - before, kFlood / 5);
  for (std::uint64_t id = 2; id < 2 + kFlood; ++id)
    flooder.receive_as<control::Done>(id);
}

// Each change is told 3200 times: there is room for few of them between those who ask for little.
TEST(ServerLimitsTest, AFloodOfChangesThatManyAreToldOfIsServedBehindTheOthers) {
  constexpr std::size_t kWatchers = 50;
  constexpr std::uint64_t kEach = 64;
  constexpr std::size_t kWriters = 50;
  RunningServer server;
  std::vector<std::unique_ptr<ControlConnection>> watchers;
  for (std::size_t i = 0; i < kWatchers; ++i) {
    watchers.push_back(std::make_unique<ControlConnection>(server.endpoint()));
    for (std::uint64_t id = 1; id <= kEach; ++id)
      watchers.back()->call<control::Snapshot>(id, control::Watch{"k", false});
  }
  std::vector<std::unique_ptr<TcpStoreConnection>> writers;
  for (std::size_t i = 0; i < kWriters; ++i) {
    writers.push_back(std::make_unique<TcpStoreConnection>(server.endpoint()));
    EXPECT_EQ(writers.back()->add("n", 0), 0);
  }
  ControlConnection other(server.endpoint());
  const std::uint64_t before = other.counter("requests");
  {
    const Busy busy(server);
    for (std::size_t i = 0; i < kWriters; ++i)
      writers[i]->set("k", "v");
    other.request(2, control::Stats{});
  }
  const std::uint64_t served = requests_in(other.receive_as<control::Counters>(2)) - before;
  EXPECT_LT(served, kWriters / 5) << "of the writes, before who asks for little";
  std::string change;
  control::encode(change, 1, control::Reply(control::Changes{1, {{"k", "v"}}}));
  const std::size_t told = kWriters * kEach * change.size();
  for (const auto& watcher : watchers)
    EXPECT_EQ(watcher->receive(told).size(), told) << "and everybody is told of each";
}

TEST(ServerLimitsTest, APeerThatReadsNothingIsHeldBackAndThenDropped) {
  Limits limits;
  limits.unread_time = 300ms;
  RunningServer server(limits);
  ControlConnection control(server.endpoint());
  TcpStoreConnection peer(server.endpoint());
  peer.set("k", std::string(1 << 20, 'v'));
  testing::internal::CaptureStderr();
  std::string requests;
  for (int i = 0; i < 1000; ++i)
    requests += get_request("k");
  peer.send(requests);
  EXPECT_TRUE(eventually([&] { return control.counter("dropped") == 1; }));
  EXPECT_LT(control.counter("bytes"), std::uint64_t{3} << 20) << "of a gigabyte asked for";
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("does not read its replies"));
}

// Large values go from the table at once: the peer pauses for its turn's sake, with nothing unsent.
TEST(ServerLimitsTest, APeerThatPipelinesLargeValuesAndReadsIsNotDropped) {
  RunningServer server;
  ControlConnection control(server.endpoint());
  TcpStoreConnection peer(server.endpoint());
  const std::string value(100'000, 'v');
  peer.set("k", value);
  std::string requests;
  for (int i = 0; i < 12; ++i)
    requests += get_request("k");
  const auto until = Clock::now() + 1200ms;  // the server looks at such peers twice a second
  while (Clock::now() < until) {
    peer.send(requests);
    ASSERT_EQ(peer.receive(12 * (8 + value.size())).size(), 12 * (8 + value.size()));
  }
  EXPECT_EQ(control.counter("dropped"), 0U);
}

TEST(ServerLimitsTest, ASlowReaderGetsEverything) {
  Limits limits;
  limits.unread_bytes = 4 << 20;
  RunningServer server(limits);
  TcpStoreConnection peer(server.endpoint());
  const std::string value(100'000, 'v');
  peer.set("k", value);
  std::string requests;
  for (int i = 0; i < 500; ++i)
    requests += get_request("k");
  std::thread writer([&] { peer.send(requests); });
  for (int i = 0; i < 500; ++i)
    ASSERT_EQ(peer.receive_vector().size(), value.size()) << i;
  writer.join();
}

TEST(ServerLimitsTest, AWatcherThatReadsNothingIsDroppedAtTheLimit) {
  Limits limits;
  limits.unread_bytes = 2 << 20;
  RunningServer server(limits);
  ControlConnection watcher(server.endpoint(), 4096);
  watcher.call<control::Snapshot>(1, control::Watch{"", true});
  ControlConnection writer(server.endpoint());
  testing::internal::CaptureStderr();
  const std::string value(1 << 20, 'v');
  control::Transaction put;
  put.writes = {{"k", value}};
  std::uint64_t id = 1;
  for (; id < 100 && writer.counter("dropped") == 0; ++id)
    writer.call<control::Committed>(id, put);
  EXPECT_LT(id, 50U);
  EXPECT_EQ(writer.counter("watches"), 0U);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("does not read its replies"));
}

// The most memory that this process has had, in bytes.
std::size_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) * 1024;
  ADD_FAILURE() << "no VmHWM";
  return 0;
}

// Each byte appended is a change that carries the whole value: a few bytes in one segment ask for
// gigabytes of output.
TEST(ServerLimitsTest, AWatcherThatReadsNothingIsDroppedWithinOneSegmentOfAnother) {
  Limits limits;
  limits.unread_bytes = 4 << 20;
  RunningServer server(limits);
  ControlConnection watcher(server.endpoint(), 4096);
  watcher.call<control::Snapshot>(1, control::Watch{"", true});
  ControlConnection control(server.endpoint());
  TcpStoreConnection writer(server.endpoint());
  writer.set("k", std::string(1 << 20, 'v'));
  tcpstore::Request append;
  append.op = tcpstore::Op::Append;
  append.key = "k";
  append.value = "x";
  std::string requests;
  for (int i = 0; i < 2000; ++i)
    tcpstore::encode(requests, TcpStoreVersion::Torch2_2, append);
  const std::size_t before = peak_memory();
  writer.send(requests);
  EXPECT_EQ(writer.get("k").size(), (1U << 20) + 2000U);
  EXPECT_TRUE(eventually([&] { return control.counter("dropped") == 1; }));
  EXPECT_EQ(control.counter("watches"), 0U);
  EXPECT_LT(peak_memory() - before, std::size_t{500} << 20) << "of two gigabytes";
}

// Nobody may leave so much unread, so nobody is told of it.
TEST(ServerLimitsTest, AChangeBeyondTheUnreadLimitDropsTheWatcher) {
  Limits limits;
  limits.unread_bytes = 1 << 20;
  RunningServer server(limits);
  ControlConnection watcher(server.endpoint());
  watcher.call<control::Snapshot>(1, control::Watch{"", true});
  ControlConnection writer(server.endpoint());
  const std::string value(700'000, 'v');
  control::Transaction two;
  two.writes = {{"a", value, false}, {"b", value, false}};
  writer.call<control::Committed>(1, two);
  EXPECT_TRUE(watcher.is_closed_by_peer());
  EXPECT_EQ(writer.counter("watches"), 0U);
}

TEST(ServerLimitsTest, AHugeAnnouncedLengthTakesNoMemory) {
  Limits limits;
  limits.value_bytes = std::size_t{1} << 40;
  limits.request_bytes = std::size_t{1} << 41;
  limits.total_bytes = 1 << 20;
  RunningServer server(limits);
  ControlConnection control(server.endpoint());
  TcpStoreConnection announcer(server.endpoint());
  std::string bytes = set_request("k", "").substr(0, 10);
  append(bytes, std::uint64_t{1} << 39);
  announcer.send(bytes);
  TcpStoreConnection other(server.endpoint());
  other.set("there", "1");
  EXPECT_EQ(other.get("there"), "1");
  EXPECT_LT(control.counter("bytes"), 10'000U);
  const std::string part(1 << 20, 'x');
  for (int i = 0; i < 4 && announcer.send(part); ++i) {
  }
  EXPECT_TRUE(announcer.is_closed_by_peer()) << "what it sends counts";
  EXPECT_EQ(other.get("there"), "1");
}

// Their port has a table of its own; the memory is the same.
TEST(ServerLimitsTest, WorkersThatFillTheStoreDoNotStopTheRendezvous) {
  Limits limits;
  limits.total_bytes = 8 << 20;
  limits.reserved_bytes = 2 << 20;
  Server server(limits);
  const Endpoint job = server.add_listener(Endpoint{"127.0.0.1", 0}, Table::Job).value();
  const Endpoint workers = server.add_listener(Endpoint{"127.0.0.1", 0}, Table::Workers).value();
  test::Serving serving(server);
  testing::internal::CaptureStderr();
  {
    ControlConnection agent(job);
    agent.call<control::Session>(1, control::OpenSession{60'000, 0});
    // The last of them opens with a value that has no room: what is left is less than it takes.
    for (std::size_t value = std::size_t{4} << 20; value > 0; value /= 2) {
      for (int i = 0; i < 4; ++i) {
        TcpStoreConnection worker(workers);
        worker.set("w" + std::to_string(value) + "/" + std::to_string(i), std::string(value, 'v'));
        worker.send("\7");
        (void)worker.receive(8);
      }
    }
    EXPECT_GT(agent.counter("bytes"), limits.total_bytes - 1000);
    control::Transaction put;
    // Twice in the reserve, with room to spare: it is sent to a watcher as well.
    const std::string document(limits.reserved_bytes / 4, 'd');
    put.writes = {{"member", document, true}};
    agent.call<control::Committed>(2, put);
    ControlConnection other(job);
    other.call<control::Session>(1, control::OpenSession{60'000, 0});
    EXPECT_EQ(other.call<control::Snapshot>(2, control::Watch{"member", false}).entries.size(), 1U);
  }
  serving.stop();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the store is full"));
}

TEST(ServerLimitsTest, WhatIsTooLongClosesThatConnectionAlone) {
  Limits limits;
  limits.key_bytes = 100;
  limits.value_bytes = 200;
  RunningServer server(limits);
  TcpStoreConnection good(server.endpoint());
  good.set(std::string(100, 'k'), std::string(200, 'v'));
  EXPECT_EQ(good.get(std::string(100, 'k')), std::string(200, 'v'));
  TcpStoreConnection long_key(server.endpoint());
  long_key.set(std::string(101, 'k'), "");
  EXPECT_TRUE(long_key.is_closed_by_peer());
  TcpStoreConnection long_value(server.endpoint());
  long_value.set("k", std::string(201, 'v'));
  EXPECT_TRUE(long_value.is_closed_by_peer());
  EXPECT_EQ(good.add("n", 1), 1);
}

TEST(ServerLimitsTest, FirstBytesOfOtherProtocolsClose) {
  RunningServer server;
  for (const std::string_view bytes :
       {std::string_view("GET / HTTP/1.1\r\n\r\n"), std::string_view("\x16\x03\x01"),
        std::string_view("SSH-2.0-x\r\n"), std::string_view("*1\r\n$4\r\nPING\r\n")}) {
    RawConnection peer(server.endpoint());
    peer.send(bytes);
    EXPECT_TRUE(peer.is_closed_by_peer()) << bytes;
  }
}

TEST(ServerLimitsTest, ASilentConnectionStaysOpen) {
  Limits limits;
  limits.unread_time = 10ms;
  RunningServer server(limits);
  RawConnection silent(server.endpoint());
  EXPECT_FALSE(silent.is_closed_by_peer(1200ms));
  silent.send("\6");
  EXPECT_EQ(silent.receive(8).size(), 8U) << "and may speak at last";
}

TEST(ServerLimitsTest, ConnectionsBeyondTheLimitAreClosed) {
  Limits limits;
  limits.connections = 2;
  RunningServer server(limits);
  TcpStoreConnection first(server.endpoint());
  EXPECT_EQ(first.add("n", 1), 1);
  auto second = std::make_unique<TcpStoreConnection>(server.endpoint());
  EXPECT_EQ(second->add("n", 1), 2);
  RawConnection third(server.endpoint());
  EXPECT_TRUE(third.is_closed_by_peer());
  second.reset();
  EXPECT_TRUE(eventually([&] {
    TcpStoreConnection again(server.endpoint());
    again.send("\7");
    return again.receive(8).size() == 8;
  })) << "room for another";
}

// Some clients keep a silent connection, and opened it before the others came.
TEST(ServerLimitsTest, WhereThereIsNoRoomTheNewestThatSaysNothingGivesWay) {
  Limits limits;
  limits.connections = 4;
  RunningServer server(limits);
  TcpStoreConnection speaks(server.endpoint());
  EXPECT_EQ(speaks.add("n", 1), 1);
  ControlConnection observer(server.endpoint());
  EXPECT_EQ(observer.counter("connections"), 2U);
  RawConnection old(server.endpoint());
  ASSERT_TRUE(eventually([&] { return observer.counter("connections") == 3; }));
  RawConnection newer(server.endpoint());
  ASSERT_TRUE(eventually([&] { return observer.counter("connections") == 4; }));
  EXPECT_TRUE(eventually([&] {
    TcpStoreConnection next(server.endpoint());
    next.send("\7");
    return next.receive(8).size() == 8;
  })) << "once the silent ones had their time";
  EXPECT_TRUE(newer.is_closed_by_peer());
  old.send("\6");
  EXPECT_EQ(old.receive(8).size(), 8U);
  EXPECT_EQ(speaks.add("n", 1), 2);
}

// What else the process does has some.
TEST(ServerLimitsTest, ConnectionsLeaveDescriptors) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 64;
  Limits limits;
  limits.spare_descriptors = 60;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::optional<RunningServer> server;
  server.emplace(limits);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<std::unique_ptr<TcpStoreConnection>> clients;
  for (int i = 1; i <= 16; ++i) {
    clients.push_back(std::make_unique<TcpStoreConnection>(server->endpoint()));
    EXPECT_EQ(clients.back()->add("n", 1), i);
  }
  EXPECT_TRUE(RawConnection(server->endpoint()).is_closed_by_peer())
      << "three quarters are spared at most";
}

// A refusal that the client has not read yet is not lost by the close behind it.
TEST(ServerLimitsTest, AnErrorReachesAPeerThatSendsOn) {
  RunningServer server;
  for (int told = 0; told < 20; ++told) {
    const auto start = Clock::now();
    RawConnection future(server.endpoint());
    std::string opening;
    control::encode_opening(opening, {7, 9});
    future.send(opening + std::string(500'000, 'x'));
    const std::string frame = future.receive(control::kHeaderBytes);
    // The server waits two seconds for the peer's close: of a machine that stood still says
    // nothing.
    if (frame.empty() && Clock::now() - start > 1s) continue;
    ASSERT_EQ(frame.size(), control::kHeaderBytes);
    EXPECT_EQ(frame[12], static_cast<char>(control::FrameType::VersionRefused));
    EXPECT_TRUE(future.is_closed_by_peer());
  }
}

// What this process has used.
std::chrono::microseconds processor_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// Leaves this process no descriptors but those that are spared.
class FewDescriptors {
 public:
  FewDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = 256;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0;
         fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC))
      held_.emplace_back(fd);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  void spare(std::size_t count) { held_.resize(held_.size() - count); }

 private:
  rlimit before_{};
  std::vector<FileDescriptor> held_;
};

TEST(ServerLimitsTest, WithoutDescriptorsItWaitsAndThenGoesOn) {
  RunningServer server;
  testing::internal::CaptureStderr();
  {
    FewDescriptors few;
    few.spare(2);
    TcpStoreConnection first(server.endpoint());
    EXPECT_EQ(first.add("n", 1), 1);
    few.spare(1);
    TcpStoreConnection second(server.endpoint());
    second.send("\7");
    // The best of some: a machine that stood still may be put down to whoever ran at that moment.
    auto least = Clock::duration::max();
    for (int i = 0; i < 5 && least >= 200ms; ++i) {
      const auto before = processor_time();
      EXPECT_FALSE(second.readable(400ms)) << "the server has no descriptor for it";
      least = std::min<Clock::duration>(least, processor_time() - before);
    }
    EXPECT_LT(least, 200ms) << "it does not spin";
    EXPECT_EQ(first.add("n", 1), 2) << "those who are in are served";
    few.spare(1);
    EXPECT_EQ(second.receive(8).size(), 8U);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("Too many open files"));
}

}  // namespace
}  // namespace drun::store
