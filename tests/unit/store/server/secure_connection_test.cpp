// A connection to a store with a token, over a pair of sockets.
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "secure/tls_engine.hpp"
#include "store/server/connection.hpp"
#include "support/ending_tls_client.hpp"
#include "support/scarce_memory.hpp"
#include "support/test_peer.hpp"
#include "support/tls_peer.hpp"

namespace drun::store {
namespace {

using tcpstore::Op;
using tcpstore::Request;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Failure = secure::TlsEngine::Failure;

class SecureConnectionTest : public testing::Test, public ConnectionOwner {
 protected:
  ~SecureConnectionTest() override { hang_up(); }

  void request_flush(Connection& connection) override { connection.flush({}); }
  void request_turn(Connection&) override { awaits_turn_ = true; }
  [[nodiscard]] Time now() const override { return world_.now; }
  bool end_a_stranger(const Connection&) override { return strangers_ > 0 && strangers_-- > 0; }

  // A connection to a listener for the job's table, or for the workers'.
  void dial(bool to_workers = false, const std::string& token = test::kToken) {
    hang_up();
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    peer_.reset(ends[0]);
    PeerContext& context = to_workers ? world_.worker_context : world_.context;
    context.tls = token.empty() ? nullptr : test::tls_of(token);
    connection_ = std::make_unique<Connection>(FileDescriptor(ends[1]), context, shared_,
                                               static_cast<ConnectionOwner&>(*this));
  }
  void hang_up() {
    if (connection_) connection_->disconnect({});
    connection_.reset();
  }
  // What is answered, as it is on the wire.
  std::string send(std::string_view bytes, std::size_t piece = 1'000'000) {
    std::string answer;
    while (!bytes.empty()) {
      const ssize_t sent =
          ::send(peer_.get(), bytes.data(), std::min(bytes.size(), piece), MSG_NOSIGNAL);
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
      answer += serve();
      if (!is_good()) break;
    }
    return answer;
  }
  // Over TLS, and likewise in the clear.
  std::string ask(test::TlsPeer& peer, std::string_view plain, std::size_t piece = 1'000'000) {
    const std::string answer = send(peer.say(plain), piece);
    wire_ += answer;
    return peer.hear(answer);
  }
  void shake_hands(test::TlsPeer& peer) {
    while (!peer.engine().is_open() && is_good())
      ASSERT_THAT(peer.hear(send(peer.say())), IsEmpty());
    ASSERT_THAT(peer.hear(send(peer.say())), IsEmpty());
  }
  bool give_turn() {
    if (!std::exchange(awaits_turn_, false)) return false;
    world_.turn.begin();
    connection_->resume({});
    return true;
  }
  [[nodiscard]] bool is_good() const { return !connection_->is_dead(); }

  static std::string encoded(Op op, std::string_view key, std::string_view value = {}) {
    Request request;
    request.op = op;
    request.key = key;
    request.value = value;
    std::string bytes;
    tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
    return bytes;
  }
  static std::string opening() {
    std::string bytes;
    control::encode_opening(bytes);
    return bytes;
  }
  // The only frame in there, of which it keeps views.
  static control::Reply reply_of(std::string_view bytes) {
    control::Reply reply;
    const auto found = control::next_frame(bytes, 1'000'000);
    EXPECT_EQ(found.size, bytes.size());
    EXPECT_EQ(control::decode_reply(found.frame, reply), control::DecodeStatus::Ok);
    return reply;
  }

  test::PeerWorld world_;
  SharedBuffers shared_;
  FileDescriptor peer_;
  std::unique_ptr<Connection> connection_;
  std::string wire_;   // what was answered to ask()
  int strangers_ = 0;  // that may be ended

 private:
  std::string serve() {
    std::string answer;
    char bytes[64 * 1024];
    for (;;) {
      const ssize_t got = ::recv(peer_.get(), bytes, sizeof bytes, 0);
      char byte = 0;
      if (got > 0) {
        answer.append(bytes, static_cast<std::size_t>(got));
      } else if (is_good() && connection_->wants_to_read() &&
                 ::recv(connection_->fd(), &byte, 1, MSG_PEEK) == 1) {
        connection_->receive({}, false);
      } else if (is_good() && give_turn()) {
        continue;
      } else if (is_good() && connection_->wants_to_write()) {
        connection_->flush({});
      } else {
        return answer;
      }
    }
  }

  bool awaits_turn_ = false;
};

// Workers have filled it. Who has the token gets in all the same, and makes room.
TEST_F(SecureConnectionTest, AFullStoreLetsInWhoHasTheTokenToEmptyIt) {
  test::PeerWorld full(Limits{.total_bytes = 100'000, .reserved_bytes = 2'000'000});
  full.context.tls = test::tls_of(test::kToken);
  ASSERT_TRUE(full.job.put("k", std::string(90'000, 'x')));
  ASSERT_FALSE(full.budget.fits(48 * 1024));
  struct Caller {
    Caller(PeerContext& context, SharedBuffers& shared, ConnectionOwner& owner) {
      int ends[2];
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
      socket.reset(ends[0]);
      connection = std::make_unique<Connection>(FileDescriptor(ends[1]), context, shared, owner);
      const std::string hello = test::TlsPeer().say();
      EXPECT_EQ(::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(hello.size()));
      connection->receive({}, false);
    }
    FileDescriptor socket;
    std::unique_ptr<Connection> connection;
  };
  std::vector<Caller> strangers;
  constexpr std::size_t kMost = 32;
  for (std::size_t i = 0; i < kMost + 2; ++i)
    strangers.emplace_back(full.context, shared_, static_cast<ConnectionOwner&>(*this));
  for (std::size_t i = 0; i < strangers.size(); ++i)
    EXPECT_EQ(strangers[i].connection->is_dead(), i >= kMost) << i;
  EXPECT_EQ(strangers.back().connection->reason(), kFull) << "what is the rendezvous's is left";
  for (Caller& each : strangers)
    each.connection->disconnect({});
  strangers.clear();

  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  peer_.reset(ends[0]);
  connection_ = std::make_unique<Connection>(FileDescriptor(ends[1]), full.context, shared_,
                                             static_cast<ConnectionOwner&>(*this));
  test::TlsPeer peer;
  shake_hands(peer);
  ASSERT_TRUE(is_good()) << connection_->reason();
  std::string one;
  append(one, std::int64_t{1});
  const std::string hello("\0\xCE\xF7\x85\x3C", 5);
  EXPECT_EQ(ask(peer, hello + encoded(Op::DeleteKey, "k")), one);
  EXPECT_EQ(full.job.size(), 0U);
  hang_up();
  EXPECT_EQ(full.budget.used(), 0U);
  EXPECT_EQ(shared_.strangers_in_reserve, 0U);
}

// What is kept of its connections counts, too: requests that never end, for example.
TEST_F(SecureConnectionTest, WhatAJobsConnectionMakesTheStoreKeepCountsForTheJob) {
  test::PeerWorld shared(Limits{.job_bytes = 100'000});
  auto job = test::tls_of(test::kToken)->job_token("a");
  ASSERT_TRUE(job);
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  peer_.reset(ends[0]);
  shared.context.tls = test::tls_of(test::kToken);
  connection_ = std::make_unique<Connection>(FileDescriptor(ends[1]), shared.context, shared_,
                                             static_cast<ConnectionOwner&>(*this));
  test::TlsPeer peer(job->handed_over("").substr(1));
  shake_hands(peer);
  const std::string all = encoded(Op::Set, "drun/a/k", std::string(400'000, 'x'));
  const std::string hello("\0\xCE\xF7\x85\x3C", 5);
  (void)ask(peer, hello + all.substr(0, 20'000));
  ASSERT_TRUE(is_good());
  EXPECT_GT(shared.budget.shares().used_by("a"), 19'000U);
  strangers_ = 3;
  (void)ask(peer, all.substr(20'000, 300'000), 10'000);
  EXPECT_FALSE(is_good());
  EXPECT_EQ(connection_->reason(), kJobFull);
  EXPECT_EQ(strangers_, 3) << "they have nothing of the job's share";
  hang_up();
  EXPECT_EQ(shared.budget.shares().used_by("a"), 0U);
  EXPECT_EQ(shared.budget.used(), 0U);
}

TEST_F(SecureConnectionTest, StrangersGoWhenTheStoreIsFullAndNoMoreOfThem) {
  test::PeerWorld full(Limits{.total_bytes = 150'000});
  full.context.tls = test::tls_of(test::kToken);
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  peer_.reset(ends[0]);
  connection_ = std::make_unique<Connection>(FileDescriptor(ends[1]), full.context, shared_,
                                             static_cast<ConnectionOwner&>(*this));
  test::TlsPeer peer;
  shake_hands(peer);
  strangers_ = 3;
  const std::string all = encoded(Op::Set, "k", std::string(400'000, 'x'));
  const std::string hello("\0\xCE\xF7\x85\x3C", 5);
  (void)ask(peer, hello + all.substr(0, 20'000));
  ASSERT_TRUE(is_good());
  EXPECT_EQ(strangers_, 3);
  (void)ask(peer, all.substr(20'000, 300'000), 10'000);
  EXPECT_FALSE(is_good());
  EXPECT_EQ(connection_->reason(), kFull);
  EXPECT_EQ(strangers_, 0) << "these did not make room enough";
  hang_up();
}

TEST_F(SecureConnectionTest, WhoHasTheTokenIsServedAndNothingIsInTheClear) {
  dial();
  test::TlsPeer peer;
  shake_hands(peer);
  EXPECT_TRUE(connection_->is_welcome());
  const auto welcome = reply_of(ask(peer, opening()));
  EXPECT_TRUE(std::holds_alternative<control::Welcome>(welcome));

  dial();
  test::TlsPeer client;
  shake_hands(client);
  ask(client, std::string(tcpstore::kHandshake) + encoded(Op::Set, "the key", "the value"));
  EXPECT_THAT(ask(client, encoded(Op::Get, "the key")), HasSubstr("the value"));
  EXPECT_THAT(wire_, Not(HasSubstr("the value")));
  EXPECT_EQ(world_.job.size(), 1U);
}

TEST_F(SecureConnectionTest, MuchGoesBothWaysInPiecesOfAnySize) {
  dial();
  test::TlsPeer peer;
  shake_hands(peer);
  std::string much(3'000'000, 'x');
  for (std::size_t i = 0; i < much.size(); ++i)
    much[i] = static_cast<char>((i * 31 + i / 251) & 0xFF);
  const std::string request =
      std::string(tcpstore::kHandshake) + encoded(Op::Set, "key", much) + encoded(Op::Get, "key");
  const std::string answer = ask(peer, request, 30'011);
  EXPECT_TRUE(answer.ends_with(much)) << answer.size() << " bytes";
  EXPECT_TRUE(is_good());
}

// Whoever is on the way can break a connection, and nothing more.
TEST_F(SecureConnectionTest, ABrokenRecordEndsItThoughMuchIsStillToBeSent) {
  dial();
  test::TlsPeer peer;
  shake_hands(peer);
  const std::string much(8'000'000, 'x');
  ask(peer, std::string(tcpstore::kHandshake) + encoded(Op::Set, "key", much));
  ASSERT_TRUE(is_good());
  const std::string question = peer.say(encoded(Op::Get, "key"));
  ASSERT_EQ(::send(peer_.get(), question.data(), question.size(), 0),
            static_cast<ssize_t>(question.size()));
  connection_->receive({}, false);  // nobody reads what is answered
  ASSERT_TRUE(is_good());
  give_turn();
  ASSERT_TRUE(is_good());
  ASSERT_TRUE(connection_->is_blocked());
  // There is room again for what is encrypted already.
  char bytes[64 * 1024];
  while (::recv(peer_.get(), bytes, sizeof bytes, 0) > 0) {
  }
  const std::string broken = std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'A');
  ASSERT_EQ(::send(peer_.get(), broken.data(), broken.size(), 0),
            static_cast<ssize_t>(broken.size()));
  connection_->receive({}, false);
  EXPECT_FALSE(is_good());
  EXPECT_EQ(connection_->reason(), "what it sends was changed on the way");
}

TEST_F(SecureConnectionTest, AnotherTokenGetsNothing) {
  dial();
  test::TlsPeer peer(test::kOtherToken);
  EXPECT_THAT(peer.hear(send(peer.say())), IsEmpty());
  EXPECT_EQ(peer.engine().failure(), Failure::OtherToken);
  EXPECT_FALSE(is_good());
  EXPECT_EQ(connection_->reason(), "it has another token");
  EXPECT_FALSE(connection_->has_said_something()) << "it may go when there is no room";
}

TEST_F(SecureConnectionTest, WithoutATokenThereIsNoWayToTheJob) {
  dial();
  const std::string answer = send(opening());
  const auto refusal = reply_of(answer);
  const auto* error = std::get_if<control::Error>(&refusal);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->code, control::ErrorCode::NeedsToken);
  EXPECT_THAT(std::string(error->text), HasSubstr("DRUN_TOKEN"));
  EXPECT_FALSE(is_good());

  dial();
  EXPECT_EQ(send(std::string(tcpstore::kHandshake) + encoded(Op::Set, "key", "value")), "");
  EXPECT_FALSE(is_good());
  EXPECT_EQ(connection_->reason(), "it shows no token, which this store asks for");
  EXPECT_EQ(world_.job.size(), 0U);
}

TEST_F(SecureConnectionTest, WorkersReachTheirStoreAloneWithoutOne) {
  dial(true);
  EXPECT_TRUE(connection_->is_welcome());
  EXPECT_THAT(send(std::string(tcpstore::kHandshake) + encoded(Op::Set, "key", "value") +
                   encoded(Op::Get, "key")),
              HasSubstr("value"));
  EXPECT_EQ(world_.job.size(), 0U);
  EXPECT_EQ(world_.workers.size(), 1U);

  dial(true);
  EXPECT_TRUE(std::holds_alternative<control::Error>(reply_of(send(opening()))))
      << "the control protocol leads to the job there, too";
}

TEST_F(SecureConnectionTest, AStoreWithoutATokenSaysSo) {
  dial(false, "");
  test::TlsPeer peer;
  EXPECT_EQ(peer.hear(send(peer.say())), "");
  EXPECT_EQ(peer.engine().failure(), Failure::NoToken);
  EXPECT_FALSE(is_good());
}

TEST_F(SecureConnectionTest, AHalfHandshakeIsNobody) {
  dial();
  test::TlsPeer peer;
  const std::string hello = peer.say();
  EXPECT_NE(send(hello), "");
  EXPECT_TRUE(is_good());
  EXPECT_FALSE(connection_->is_welcome());
  EXPECT_FALSE(connection_->has_said_something());
  // What would be a request follows, in the clear.
  EXPECT_THAT(send(opening()), Not(HasSubstr("token")));
  EXPECT_FALSE(is_good());
}

TEST_F(SecureConnectionTest, NeitherIsAByteOfAHandshake) {
  for (const bool has_token : {false, true}) {
    dial(true, has_token ? test::kToken : "");
    const std::string all = std::string(tcpstore::kHandshake) + encoded(Op::Set, "key", "value");
    send(all.substr(0, 1));
    EXPECT_TRUE(is_good());
    EXPECT_FALSE(connection_->has_said_something()) << "it may go when there is no room";
    send(all.substr(1));
    EXPECT_TRUE(connection_->has_said_something());
    EXPECT_EQ(world_.workers.size(), 1U);
    send(std::string("\x16\x03\x01", 3));
    EXPECT_FALSE(is_good()) << "TLS is for the beginning";
  }
}

TEST_F(SecureConnectionTest, WhoEndsTlsIsGoneWhenItsLastRequestIsDone) {
  dial();
  test::EndingTlsClient client(test::tls_of(test::kToken)->secret());
  client.hear(send(client.say()));
  send(client.say());
  ASSERT_TRUE(connection_->is_welcome());
  send(client.say_last(std::string(tcpstore::kHandshake) + encoded(Op::Set, "key", "value")));
  EXPECT_FALSE(is_good());
  EXPECT_EQ(connection_->reason(), "") << "it is no mistake";
  EXPECT_EQ(world_.job.size(), 1U);
}

TEST_F(SecureConnectionTest, ALackOfMemoryCostsTheConnectionAlone) {
  if (!test::kHasScarceMemory) GTEST_SKIP() << "memory cannot be withheld here";
  dial();
  test::TlsPeer peer;
  test::too_large = sizeof(secure::TlsEngine);
  send(peer.say());
  test::too_large = 0;
  EXPECT_FALSE(is_good());
  EXPECT_EQ(connection_->reason(), "there is no memory for it");
  dial();
  test::TlsPeer other;
  shake_hands(other);
  EXPECT_TRUE(is_good());
}

// A read ends at urgent data, with more behind it.
TEST_F(SecureConnectionTest, UrgentDataHidesNothingBehindIt) {
  dial();
  test::TlsPeer peer;
  const std::string hello = peer.say();
  for (const std::size_t from : {std::size_t{0}, std::size_t{100}}) {
    const std::string_view part = std::string_view(hello).substr(from, 100);
    ASSERT_EQ(::send(peer_.get(), part.data(), part.size(), 0), static_cast<ssize_t>(part.size()));
    EXPECT_TRUE(connection_->receive({}, true)) << "it reads on";
  }
  EXPECT_TRUE(is_good());
}

}  // namespace
}  // namespace drun::store
