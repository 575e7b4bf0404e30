#include "drun/store/server.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "store/server/listen_socket.hpp"
#include "support/in_child.hpp"
#include "support/patience.hpp"
#include "support/raw_connection.hpp"
#include "support/running_server.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using test::ControlConnection;
using test::get_request;
using test::RawConnection;
using test::RunningServer;
using test::set_request;
using test::TcpStoreConnection;
using testing::ElementsAre;

TEST(ServerTest, EveryVersionActsOnTheSameKeys) {
  RunningServer server;
  TcpStoreConnection old(server.endpoint(), TcpStoreVersion::Torch1_13);
  TcpStoreConnection modern(server.endpoint());
  ControlConnection agent(server.endpoint());
  old.set("/k", "from A");
  EXPECT_EQ(old.add("n", 1), 1);
  EXPECT_EQ(modern.get("/k"), "from A");
  EXPECT_EQ(agent.value_of("/k"), "from A");
  EXPECT_EQ(agent.value_of("n"), "1");
  EXPECT_EQ(agent.value_of("none"), std::nullopt);
}

TEST(ServerTest, AWaitEndsWhenAnotherConnectionSetsTheKey) {
  RunningServer server;
  TcpStoreConnection waiter(server.endpoint());
  waiter.start_wait({"a", "b"});
  TcpStoreConnection setter(server.endpoint());
  setter.set("a", "1");
  EXPECT_EQ(setter.add("x", 1), 1);
  EXPECT_FALSE(waiter.readable(std::chrono::milliseconds(20)));
  setter.set("b", "");
  EXPECT_EQ(waiter.receive(1), std::string(1, '\0'));
}

TEST(ServerTest, ATransactionIsSeenByAWatchAsOneEvent) {
  RunningServer server;
  ControlConnection watcher(server.endpoint());
  ControlConnection writer(server.endpoint());
  EXPECT_TRUE(watcher.call<control::Snapshot>(7, control::Watch{"drun/", true}).entries.empty());
  control::Transaction transaction;
  transaction.guards = {{"drun/leader", std::nullopt}};
  transaction.writes = {{"drun/leader", "me"}, {"drun/round", "1"}, {"other", "x"}};
  writer.call<control::Committed>(1, transaction);
  EXPECT_THAT(watcher.receive_as<control::Changes>(7).changes,
              ElementsAre(control::Entry{"drun/leader", "me"}, control::Entry{"drun/round", "1"}));
  EXPECT_THAT(writer.call<control::Refused>(2, transaction).values, ElementsAre("me"));
}

int unacknowledged(int fd) {
  int bytes = 0;
  ::ioctl(fd, SIOCOUTQ, &bytes);
  return bytes;
}

// Bytes and end in one segment are one event.
TEST(ServerTest, WhatComesWithTheEndOfAConnectionIsAnsweredAndTheEndIsSeen) {
  RunningServer server;
  TcpStoreConnection peer(server.endpoint());
  EXPECT_EQ(peer.add("n", 1), 1);
  const int on = 1;
  ASSERT_EQ(::setsockopt(peer.fd(), IPPROTO_TCP, TCP_CORK, &on, sizeof on), 0);
  peer.send(get_request("n"));
  ASSERT_EQ(::shutdown(peer.fd(), SHUT_WR), 0);
  EXPECT_EQ(peer.receive_vector(), "1");
  EXPECT_TRUE(peer.is_closed_by_peer());
}

// A read ends at urgent data, with more behind it.
TEST(ServerTest, UrgentDataHidesNoRequestBehindIt) {
  RunningServer server;
  TcpStoreConnection peer(server.endpoint());
  EXPECT_EQ(peer.add("n", 1), 1);
  const bool stopped = server.server().stop_unless([&](std::string_view) {
    peer.send(get_request("n"));
    EXPECT_EQ(::send(peer.fd(), "!", 1, MSG_OOB | MSG_NOSIGNAL), 1);
    peer.send(get_request("n"));
    EXPECT_TRUE(test::eventually([&] { return unacknowledged(peer.fd()) == 0; }));
    return true;
  });
  EXPECT_FALSE(stopped);
  EXPECT_EQ(peer.receive_vector(), "1");
  EXPECT_EQ(peer.receive_vector(), "1");
}

// More waits in the socket than there is room for in one read, and no event will tell of it.
TEST(ServerTest, ARequestIsReadToItsEndAlthoughItsRestCameAtOnce) {
  constexpr int kSocketBytes = 200 * 1024;
  FileDescriptor socket = std::move(bind_endpoint({"127.0.0.1", 0}).value().at(0));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kSocketBytes, sizeof kSocketBytes);
  Server server;
  const Endpoint endpoint = server.adopt_listener(socket.release(), Table::Job).value();
  const test::Serving serving(server);

  ControlConnection observer(endpoint);
  TcpStoreConnection peer(endpoint);
  EXPECT_EQ(peer.add("n", 1), 1);
  const std::string value(120 * 1024, 'v');
  const std::string request = set_request("k", value);
  constexpr std::size_t kBegin = 20 * 1024;
  for (int i = 0; i < 20; ++i) {  // the kernel lets more and more be on its way
    peer.set("n", value);
    EXPECT_EQ(peer.get("n"), value);
  }
  const std::uint64_t before = observer.counter("bytes");
  peer.send(std::string_view(request).substr(0, kBegin));
  EXPECT_TRUE(test::eventually([&] { return observer.counter("bytes") >= before + kBegin; }));
  // While the server's thread is held up, the rest arrives; where a kernel holds it back, this
  // shows less.
  const bool stopped = server.stop_unless([&](std::string_view) {
    peer.send(std::string_view(request).substr(kBegin));
    (void)test::eventually([&] { return unacknowledged(peer.fd()) == 0; }, 2s);
    return true;
  });
  EXPECT_FALSE(stopped);
  // Anything more from that peer would be an event.
  TcpStoreConnection reader(endpoint);
  EXPECT_TRUE(test::eventually([&] { return reader.get("k") == value; }));
}

TEST(ServerTest, TheWorkerTableIsEmptyAfterAReset) {
  Server server;
  const Endpoint held =
      server.add_listener(Endpoint{"127.0.0.1", 0}, Table::Workers, Listen::AtReset).value();
  const test::Serving serving(server);
  EXPECT_FALSE(RawConnection(held).connected()) << "refused before the first round";
  ASSERT_TRUE(server.reset_worker_table());
  TcpStoreConnection first(held);
  EXPECT_EQ(first.add("n", 5), 5);
  ControlConnection agent(held);
  ASSERT_TRUE(server.reset_worker_table());
  EXPECT_TRUE(first.is_closed_by_peer());
  TcpStoreConnection second(held);
  EXPECT_EQ(second.add("n", 1), 1);
  EXPECT_EQ(agent.value_of("n"), std::nullopt)
      << "control connections survive, and see the job's table";
}

// More of them than are taken at once, perhaps more than there is room for. They have not been
// greeted: what they sent was for the table of before.
class WaitingWorkersTest : public ::testing::TestWithParam<bool> {};

TEST_P(WaitingWorkersTest, DoNotReachTheTableOfTheNextRound) {
  constexpr std::size_t kWaiting = 200;
  const bool little_room = GetParam();
  Server server;
  const Endpoint job = server.add_listener(Endpoint{"127.0.0.1", 0}, Table::Job).value();
  const Endpoint workers =
      server.add_listener(Endpoint{"127.0.0.1", 0}, Table::Workers, Listen::AtReset).value();
  const test::Serving serving(server);
  ASSERT_TRUE(server.reset_worker_table());
  TcpStoreConnection torch(job);
  torch.set("k", "v");
  EXPECT_EQ(torch.get("k"), "v");
  std::promise<void> asked;
  std::promise<void> sent;
  std::thread busy([&] {
    EXPECT_FALSE(server.stop_unless([&](std::string_view) {
      asked.set_value();
      sent.get_future().wait();
      rlimit all{};
      ::getrlimit(RLIMIT_NOFILE, &all);
      const FileDescriptor next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      const rlimit few{static_cast<rlim_t>(next.get()) + 10, all.rlim_max};
      if (little_room) ::setrlimit(RLIMIT_NOFILE, &few);
      EXPECT_TRUE(server.open_worker_table());  // in the loop's thread, before it accepts anybody
      ::setrlimit(RLIMIT_NOFILE, &all);
      return true;
    }));
  });
  asked.get_future().wait();
  std::vector<std::unique_ptr<TcpStoreConnection>> late;
  for (std::size_t i = 0; i < kWaiting; ++i) {
    late.push_back(std::make_unique<TcpStoreConnection>(workers, TcpStoreVersion::Torch1_13));
    late.back()->set("late", "x");
  }
  sent.set_value();
  busy.join();
  for (const auto& connection : late)
    EXPECT_TRUE(connection->is_closed_by_peer());
  TcpStoreConnection worker(workers);
  EXPECT_EQ(worker.get("late"), "");
}

INSTANTIATE_TEST_SUITE_P(WithRoomForAllOrForFew, WaitingWorkersTest, ::testing::Bool());

TEST(ServerTest, StopsInOneStepWithTheLastLookAtItsKeys) {
  auto server = std::make_unique<RunningServer>();
  const auto put = [](std::string_view key) {
    control::Transaction transaction;
    transaction.writes = {{key, "x"}};
    return transaction;
  };
  ControlConnection agent(server->endpoint());
  agent.call<control::Committed>(1, put("job/a"));
  agent.call<control::Committed>(2, put("job/b"));
  EXPECT_FALSE(server->server().stop_unless([](std::string_view key) { return key == "job/b"; }));
  agent.call<control::Committed>(3, put("job/c"));  // it serves on
  ControlConnection late(server->endpoint());
  EXPECT_TRUE(server->server().stop_unless([&](std::string_view) {
    late.request(1, put("job/d"));
    return false;
  }));
  EXPECT_TRUE(server->server().stop_unless([](std::string_view) { return true; })) << "it has";
  server->stop();
  EXPECT_TRUE(server->server().stop_unless([](std::string_view) { return true; }))
      << "nobody is left to ask";
  server.reset();
  EXPECT_EQ(late.receive(1), "") << "who came too late is told nothing else";
}

bool install(std::span<const sock_filter> filter) {
  sock_fprog program{};
  program.len = static_cast<unsigned short>(filter.size());
  program.filter = const_cast<sock_filter*>(filter.data());
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// No descriptor from this one on can be watched in this process, as where a user's watches are
// used up.
bool watch_only_below(int descriptor) {
  const auto limit = static_cast<std::uint32_t>(descriptor);
  const sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_ctl, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, EPOLL_CTL_ADD, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, limit, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install(filter);
}

TEST(ServerTest, AConnectionThatCannotBeWatchedIsRefusedAndTheOthersGoOn) {
  constexpr int kNoFilter = 77;
  constexpr int kFirstUnwatched = 100;
  const int code = process::test::in_child([] {
    if (!watch_only_below(kFirstUnwatched)) return kNoFilter;
    Server server;
    const Endpoint endpoint = server.add_listener(Endpoint{"127.0.0.1", 0}, Table::Job).value();
    const test::Serving serving(server);
    ControlConnection first(endpoint);
    std::vector<FileDescriptor> taken;
    do {
      taken.emplace_back(::dup(first.fd()));
    } while (taken.back().get() < kFirstUnwatched);
    RawConnection second(endpoint);
    const bool refused = second.is_closed_by_peer();
    const std::uint64_t dropped = first.counter("dropped");
    taken.clear();
    const std::int64_t sum = TcpStoreConnection(endpoint).add("n", 5);
    return refused && dropped == 1 && sum == 5 ? 0 : 1;
  });
  if (code == kNoFilter) GTEST_SKIP() << "this kernel has no system call filters";
  EXPECT_EQ(code, 0);
}

// Makes socket(AF_INET6, ...) fail in this process, as in a kernel without IPv6.
bool take_ipv6_away() {
  const sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install(filter);
}

TEST(ServerTest, ServesOnIpv4WhereThereIsNoIpv6) {
  constexpr int kNoFilter = 77;
  const int code = process::test::in_child([] {
    if (!take_ipv6_away()) return kNoFilter;
    Server server;
    const Result<Endpoint> bound = server.add_listener(Endpoint{"", 0}, Table::Job);
    if (!bound || bound->host != "0.0.0.0") return 1;
    test::Serving serving(server);
    const std::int64_t sum = TcpStoreConnection(Endpoint{"127.0.0.1", bound->port}).add("n", 5);
    serving.stop();
    if (sum != 5) return 2;
    const Result<Endpoint> refused = server.add_listener(Endpoint{"::1", 0}, Table::Job);
    return !refused && refused.error().what().find("::1") != std::string::npos ? 0 : 3;
  });
  if (code == kNoFilter) GTEST_SKIP() << "this kernel has no system call filters";
  EXPECT_EQ(code, 0);
}

TEST(ServerTest, AHeldPortIsNotSharedAndAnErrorNamesItAndTheCause) {
  Server server;
  const Endpoint held =
      server.add_listener(Endpoint{"127.0.0.1", 0}, Table::Workers, Listen::AtReset).value();
  const auto again = server.add_listener(held, Table::Job);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().what(), "bind " + to_string(held) + ": Address already in use");
  EXPECT_EQ(again.error().code(), std::errc::address_in_use);
}

TEST(ServerTest, APortIsFreeAgainAtOnceAlthoughClientsHoldTheirEnds) {
  auto server = std::make_unique<RunningServer>();
  const Endpoint endpoint = server->endpoint();
  TcpStoreConnection client(endpoint);
  client.set("/k", "v");
  EXPECT_EQ(client.get("/k"), "v");
  server.reset();
  Server again;
  const auto bound = again.add_listener(endpoint, Table::Job);
  EXPECT_TRUE(bound) << bound.error().what();
}

}  // namespace
}  // namespace drun::store
