// A connection over a pair of sockets: what is sent arrives in exactly the pieces that are chosen.
#include "store/server/connection.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "support/patience.hpp"
#include "support/test_peer.hpp"

namespace drun::store {
namespace {

using tcpstore::Op;
using tcpstore::Request;

class ConnectionTest : public testing::Test, public ConnectionOwner {
 protected:
  explicit ConnectionTest(Limits limits = {}) : world_(limits) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    peer_.reset(ends[0]);
    connection_ = std::make_unique<Connection>(FileDescriptor(ends[1]), world_.context, shared_,
                                               static_cast<ConnectionOwner&>(*this));
    send(tcpstore::kHandshake);
  }
  ~ConnectionTest() override { connection_->disconnect({}); }

  void request_flush(Connection& connection) override { connection.flush({}); }
  void request_turn(Connection&) override { awaits_turn_ = true; }
  [[nodiscard]] Time now() const override { return world_.now; }

  static std::string encoded(Op op, std::string_view key, std::string_view value = {}) {
    Request request;
    request.op = op;
    request.key = key;
    request.value = value;
    std::string bytes;
    tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
    return bytes;
  }
  static std::string answer(std::string_view value) {
    std::string bytes;
    tcpstore::append_vector(bytes, value);
    return bytes;
  }

  // One piece, which is read until nothing of it is left.
  void send(std::string_view piece) {
    while (!piece.empty()) {
      const ssize_t sent = ::send(peer_.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
      if (sent > 0) piece.remove_prefix(static_cast<std::size_t>(sent));
      read_all();
    }
  }
  // All that was answered since.
  std::string take() { return std::exchange(answers_, {}); }
  [[nodiscard]] bool is_good() const { return !connection_->is_dead(); }

  test::PeerWorld world_;
  SharedBuffers shared_;
  FileDescriptor peer_;
  std::unique_ptr<Connection> connection_;

 private:
  void read_all() {
    char byte = 0;
    while (is_good() && ::recv(connection_->fd(), &byte, 1, MSG_PEEK) == 1) {
      connection_->receive({}, false);
      read_answers();
    }
  }
  void read_answers() {
    char bytes[64 * 1024];
    for (;;) {
      const ssize_t got = ::recv(peer_.get(), bytes, sizeof bytes, 0);
      if (got > 0) {
        answers_.append(bytes, static_cast<std::size_t>(got));
      } else if (is_good() && std::exchange(awaits_turn_, false)) {
        world_.turn.begin();
        connection_->resume({});
      } else if (is_good() && connection_->wants_to_write()) {
        connection_->flush({});
      } else {
        return;
      }
    }
  }

  std::string answers_;
  bool awaits_turn_ = false;
};

std::string pattern(std::size_t size, unsigned seed) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>((i * 31 + i / 251 + seed) & 0xFF);
  return text;
}

// Each value is set, read, set anew, and read again; then it grows, and gives way to a small one.
TEST_F(ConnectionTest, ValuesOfAllSizesArriveInAnyPieces) {
  for (const std::size_t size : {100U, 4'000U, 16'383U, 16'384U, 20'000U, 65'536U, 300'000U}) {
    std::string bytes;
    std::string expected;
    for (const unsigned round : {1U, 2U, 3U}) {
      bytes += encoded(Op::Set, "key", pattern(size, round)) + encoded(Op::Get, "key");
      expected += answer(pattern(size, round));
    }
    bytes += encoded(Op::Append, "key", "more") + encoded(Op::Get, "key");
    expected += answer(pattern(size, 3) + "more");
    bytes += encoded(Op::Set, "key", "small") + encoded(Op::Get, "key");
    expected += answer("small");
    for (const std::size_t piece :
         {1'000U, 4'095U, 4'096U, 4'097U, 17'000U, 65'536U, 70'000U, 2'000'000U}) {
      SCOPED_TRACE(std::to_string(size) + " in pieces of " + std::to_string(piece));
      for (std::string_view rest = bytes; !rest.empty();
           rest.remove_prefix(std::min(piece, rest.size())))
        send(rest.substr(0, piece));
      ASSERT_TRUE(is_good()) << connection_->reason();
      ASSERT_TRUE(take() == expected);
      ASSERT_EQ(world_.budget.used(), world_.job.count_held_bytes());
    }
  }
}

// The pieces end at every byte around the ends of header, first part, value and request.
TEST_F(ConnectionTest, ALargeValueMayBeCutAnywhere) {
  const std::string value = pattern(40'000, 7);
  const std::string first = encoded(Op::Set, "key", value);
  const std::string all = first + encoded(Op::Get, "key") + encoded(Op::Set, "other", value);
  send(first);
  std::vector<std::size_t> cuts;
  for (const std::size_t around :
       {std::size_t{20}, std::size_t{4'096}, std::size_t{16'384}, first.size()})
    for (std::size_t at = around - 20; at < around + 20; ++at)
      if (at > 0) cuts.push_back(at);
  for (const std::size_t one : cuts) {
    for (const std::size_t two : {one, one + 1, one + 4'096, first.size() - 1, first.size() + 9}) {
      const std::size_t second = std::max(one, two);
      send(std::string_view(all).substr(0, one));
      send(std::string_view(all).substr(one, second - one));
      send(std::string_view(all).substr(second));
      ASSERT_TRUE(is_good()) << connection_->reason();
      ASSERT_TRUE(take() == answer(value)) << one << ' ' << second;
    }
  }
  EXPECT_EQ(*world_.job.find("other"), value);
}

// There is not even room for what is to be sent before it.
TEST_F(ConnectionTest, ALargeValueFollowsSmallOnesThatWait) {
  const std::string small = pattern(3'000, 1);
  const std::string large = pattern(300'000, 2);
  send(encoded(Op::Set, "small", small) + encoded(Op::Set, "large", large));
  constexpr int kFew = 1;  // the kernel takes the least that it allows
  ASSERT_EQ(::setsockopt(connection_->fd(), SOL_SOCKET, SO_SNDBUF, &kFew, sizeof kFew), 0);
  std::string gets;
  std::string answers;
  for (int i = 0; i < 8; ++i) {
    gets += encoded(Op::Get, "small");
    answers += answer(small);
  }
  send(gets + encoded(Op::Get, "large"));
  EXPECT_EQ(take(), answers + answer(large));
}

TEST_F(ConnectionTest, SmallRequestsFollowLargeOnes) {
  send(encoded(Op::Set, "key", pattern(100'000, 1)));
  std::string many;
  for (int i = 0; i < 1'000; ++i)
    many += encoded(Op::Get, "none");
  send(many);
  EXPECT_EQ(take().size(), 1'000 * answer("").size());
}

// Who promises much and sends little gets little memory.
TEST_F(ConnectionTest, ALongPromiseIsNotBelieved) {
  const std::string bytes = encoded(Op::Set, "key", pattern(8 << 20, 1));
  send(std::string_view(bytes).substr(0, 4'096));
  EXPECT_LT(world_.budget.used(), std::size_t{100'000});
}

class FullConnectionTest : public ConnectionTest {
 protected:
  FullConnectionTest() : ConnectionTest(limits()) {}
  static Limits limits() {
    Limits few;
    few.total_bytes = 250'000;
    return few;
  }
};

TEST_F(FullConnectionTest, ALargeValueBeyondTheBudgetEndsTheConnectionAndLeavesWhatWasThere) {
  const std::string value = pattern(60'000, 1);
  send(encoded(Op::Set, "key", value));
  send(encoded(Op::Set, "key", pattern(60'000, 2)));
  const std::string too_large = encoded(Op::Set, "other", pattern(120'000, 3));
  for (std::string_view rest = too_large; !rest.empty() && is_good();
       rest.remove_prefix(std::min<std::size_t>(10'000, rest.size())))
    send(rest.substr(0, 10'000));
  EXPECT_FALSE(is_good());
  EXPECT_EQ(connection_->reason(), "the store is full");
  EXPECT_EQ(*world_.job.find("key"), pattern(60'000, 2));
  EXPECT_EQ(world_.job.find("other"), nullptr);
}

// A control connection whose peer reads only when it is told to.
class SlowPeerTest : public testing::Test, public ConnectionOwner {
 protected:
  SlowPeerTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    peer_.reset(ends[0]);
    world_.now = Time(Milliseconds(1'000'000));
    connection_ = std::make_unique<Connection>(FileDescriptor(ends[1]), world_.context, shared_,
                                               static_cast<ConnectionOwner&>(*this));
    std::string bytes;
    control::encode_opening(bytes);
    control::encode(bytes, 1, control::Request(control::OpenSession{1000, 0}));
    control::encode(bytes, 2, control::Request(control::Watch{"k", false}));
    send(bytes);
    EXPECT_EQ(world_.sessions.size(), 1U);
  }
  ~SlowPeerTest() override {
    if (connection_) connection_->disconnect(world_.now);
  }
  void request_flush(Connection&) override {}
  void request_turn(Connection&) override {}
  [[nodiscard]] Time now() const override { return world_.now; }

  void send(std::string_view bytes) {
    EXPECT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    connection_->receive(world_.now, false);
  }
  std::size_t read(std::size_t most) {
    std::string bytes(most, '\0');
    const ssize_t got = ::recv(peer_.get(), bytes.data(), most, 0);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  std::string read_all() {
    std::string all;
    char bytes[64 * 1024];
    for (ssize_t got = 0; (got = ::recv(peer_.get(), bytes, sizeof bytes, 0)) > 0;)
      all.append(bytes, static_cast<std::size_t>(got));
    return all;
  }
  void pass(int ms) {
    world_.now += Milliseconds(ms);
    world_.sessions.expire(world_.now);
  }
  void change(std::size_t bytes) {
    EXPECT_TRUE(world_.job.put("k", std::string(bytes, 'v')));
    world_.job.publish();
    connection_->send_waiting(world_.now);
  }
  // Reading is paused by the answer to this.
  void ask_for_much() {
    EXPECT_TRUE(world_.job.put("much", std::string(4 << 20, 'v')));
    std::string bytes;
    control::encode(bytes, 3, control::Request(control::Watch{"much", false}));
    control::encode(bytes, 4, control::Request(control::Heartbeat{}));
    send(bytes);
  }

  test::PeerWorld world_;
  SharedBuffers shared_;
  FileDescriptor peer_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(SlowPeerTest, TheTimeItMayLeaveRepliesUnreadBeginsWhenItDoes) {
  world_.now += std::chrono::seconds(90);
  change(4 << 20);
  EXPECT_TRUE(connection_->is_blocked());
  EXPECT_EQ(connection_->blocked_since(), world_.now) << "and not when it was last written to";
}

TEST_F(SlowPeerTest, WhoHasTakenAllMayTakeItsTimeAnew) {
  change(4 << 20);
  for (std::string some = read_all(); !some.empty(); some = read_all())
    connection_->flush(world_.now);
  EXPECT_FALSE(connection_->is_blocked());
  EXPECT_FALSE(connection_->wants_to_write());
  change(1);
  EXPECT_FALSE(read_all().empty()) << "and is told at once";
  world_.now += std::chrono::seconds(90);
  change(4 << 20);
  EXPECT_TRUE(connection_->is_blocked());
  EXPECT_EQ(connection_->blocked_since(), world_.now);
}

TEST_F(SlowPeerTest, WhoIsDroppedKeepsNothing) {
  for (int i = 0; i < 70 && !connection_->is_dead(); ++i)
    change(4 << 20);
  ASSERT_TRUE(connection_->is_dead());
  change(1);
  change(4 << 20);
  EXPECT_EQ(connection_->reason(), "does not read its replies");
  connection_->disconnect(world_.now);
  connection_.reset();
  EXPECT_EQ(world_.budget.used(), world_.job.count_held_bytes() + Sessions::kOverheadBytes);
}

// Those that are long are held once for all who are told, and sent from there.
TEST_F(SlowPeerTest, LongAndShortChangesAndRepliesArriveInTheirOrder) {
  (void)read_all();
  std::string expected;
  const auto tell = [&](std::size_t size, unsigned seed) {
    const std::string value = pattern(size, seed);
    EXPECT_TRUE(world_.job.put("k", value));
    world_.job.publish();
    const control::Changes changes{world_.job.revision(), {{"k", value}}};
    control::encode(expected, 2, control::Reply(changes));
  };
  for (unsigned round = 0; round < 3; ++round) {
    tell(10, round);
    tell(20'000, round);
    std::string heartbeat;
    control::encode(heartbeat, 5, control::Request(control::Heartbeat{}));
    send(heartbeat);
    control::encode(expected, 5, control::Reply(control::Done{}));
    for (const std::size_t size : {16'384U, 5U, 300'000U, 1U, 2U, 4'000'000U, 70'000U, 70'000U, 3U})
      tell(size, round);
    EXPECT_TRUE(connection_->is_blocked());
    std::string got;
    for (std::string some = read_all(); !some.empty(); some = read_all()) {
      got += some;
      connection_->flush(world_.now);
    }
    EXPECT_TRUE(got == expected);
    EXPECT_FALSE(connection_->wants_to_write());
    expected.clear();
  }
  EXPECT_EQ(world_.budget.used(), world_.job.count_held_bytes() + Sessions::kOverheadBytes);
}

TEST_F(SlowPeerTest, ALongChangeThatThereIsNoRoomForDropsThePeer) {
  for (int i = 0; i < 70 && !connection_->is_dead(); ++i)
    change(4 << 20);
  EXPECT_TRUE(connection_->is_dead());
  EXPECT_EQ(connection_->reason(), "does not read its replies");
}

TEST_F(SlowPeerTest, ASessionLivesWhileItsPeerTakesOutput) {
  ask_for_much();
  EXPECT_TRUE(connection_->is_blocked());
  for (int i = 0; i < 5; ++i) {
    pass(900);
    EXPECT_GT(read(std::size_t{1} << 20), 0U);
    connection_->flush(world_.now);
  }
  EXPECT_EQ(world_.sessions.size(), 1U);
  pass(1000);
  EXPECT_EQ(world_.sessions.size(), 0U);
}

TEST_F(SlowPeerTest, HeartbeatsAreHeardWhileRequestsAreHeldBack) {
  ask_for_much();
  EXPECT_TRUE(connection_->wants_to_read());
  std::string heartbeat;
  control::encode(heartbeat, 5, control::Request(control::Heartbeat{}));
  for (int i = 0; i < 5; ++i) {
    pass(900);
    send(heartbeat);
  }
  EXPECT_EQ(world_.sessions.size(), 1U);
  send(std::string(4096, '\0'));
  EXPECT_FALSE(connection_->wants_to_read()) << "so much is kept, and no more";
  pass(1000);
  EXPECT_EQ(world_.sessions.size(), 0U);
}

// ---- for how long something has waited ----

// Two ends on loopback.
std::pair<FileDescriptor, FileDescriptor> tcp_pair() {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&place), size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
  FileDescriptor one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(one.get(), reinterpret_cast<const sockaddr*>(&place), size), 0);
  return {std::move(one), FileDescriptor(::accept(listener.get(), nullptr, nullptr))};
}

TEST_F(ConnectionTest, WhatCameIsBelievedToBeNoOlderThanItIs) {
  using Clock = std::chrono::steady_clock;
  auto [sender, receiver] = tcp_pair();
  Connection waiting(std::move(receiver), world_.context, shared_,
                     static_cast<ConnectionOwner&>(*this));
  const Peer& peer = waiting;
  const auto before = Clock::now();
  ASSERT_EQ(::send(sender.get(), "x", 1, MSG_NOSIGNAL), 1);
  sender.reset();  // its end is no news of it
  Milliseconds idle{0};
  ASSERT_TRUE(test::eventually([&] {
    idle = peer.idle();
    EXPECT_LE(idle, Clock::now() - before);
    return idle >= Milliseconds(50);
  }));
  waiting.disconnect({});
  EXPECT_EQ(static_cast<const Peer&>(*connection_).idle(), Milliseconds(0)) << "nobody can say";
}

}  // namespace
}  // namespace drun::store
