// The connection under both asynchronous clients, over a pair of sockets and with a machine that
// only writes down what it is told.
#include "store/client/stream_connection.hpp"

#include <sys/socket.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Recorder final : public StreamConnection {
 public:
  using StreamConnection::adopt;
  using StreamConnection::is_open;
  using StreamConnection::StreamConnection;

  std::string outgoing;
  std::optional<Time> deadline;
  bool wanted = true;
  bool throws = false;  // in the next round, as a caller's callback may
  std::vector<std::string> log;

 private:
  bool do_round() override {
    if (std::exchange(throws, false)) throw std::runtime_error("a callback");
    flush();
    log.emplace_back("round");
    return false;
  }
  void on_dialed(Result<FileDescriptor>) override { log.emplace_back("dialed"); }
  [[nodiscard]] bool is_wanted() const override { return wanted; }
  [[nodiscard]] std::string_view output() override { return outgoing; }
  void on_sent(std::size_t bytes) override { outgoing.erase(0, bytes); }
  void on_received(std::string_view bytes) override { log.push_back("got " + std::string(bytes)); }
  void on_broken(int error) override { log.push_back("broken " + std::to_string(error)); }
  [[nodiscard]] std::optional<Time> next_deadline() const override { return deadline; }
  void on_time(Time) override {
    deadline.reset();
    log.emplace_back("time");
  }
};

class StreamConnectionTest : public testing::Test {
 protected:
  StreamConnectionTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    peer.reset(ends[0]);
    connection->adopt(FileDescriptor(ends[1]));
  }
  ~StreamConnectionTest() override {
    connection->abandon();
    run();
  }

  // All that is ready by now.
  void run() {
    io.restart();
    io.poll();
  }
  void send(std::string_view bytes) const {
    ASSERT_EQ(::send(peer.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] std::string receive() const {
    std::string bytes(1 << 20, '\0');
    const ssize_t n = ::recv(peer.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return bytes;
  }

  asio::io_context io;
  FileDescriptor peer;
  std::shared_ptr<Recorder> connection = std::make_shared<Recorder>(io);
};

TEST_F(StreamConnectionTest, WhatIsAskedForTwiceIsDoneInOneRound) {
  connection->outgoing = "ab";
  connection->schedule();
  connection->schedule();
  EXPECT_EQ(receive(), "") << "not before the loop's next turn";
  run();
  EXPECT_EQ(receive(), "ab");
  EXPECT_THAT(connection->log, ElementsAre("round"));
}

TEST_F(StreamConnectionTest, GoesOnAfterACallbackThatThrew) {
  connection->throws = true;
  connection->outgoing = "ab";
  connection->schedule();
  EXPECT_THROW(run(), std::runtime_error);
  connection->schedule();
  run();
  EXPECT_EQ(receive(), "ab");
}

TEST_F(StreamConnectionTest, WhatArrivesIsHeardAndTheEndToo) {
  send("xyz");
  run();
  EXPECT_THAT(connection->log, ElementsAre("got xyz", "round"));
  connection->log.clear();
  peer.reset();
  run();
  EXPECT_THAT(connection->log, ElementsAre("broken 0", "round"));
  EXPECT_FALSE(connection->is_open());
}

TEST_F(StreamConnectionTest, MoreThanTheSocketTakesIsSentAsThePeerReads) {
  const std::string all(8 << 20, 'x');
  connection->outgoing = all;
  connection->schedule();
  run();
  EXPECT_FALSE(connection->outgoing.empty());
  std::string got;
  while (got.size() < all.size()) {
    const std::string more = receive();
    ASSERT_FALSE(more.empty()) << "after " << got.size();
    got += more;
    run();
  }
  EXPECT_TRUE(got == all);
}

TEST_F(StreamConnectionTest, WhatHasArrivedIsHeardBeforeTheTimeIsJudged) {
  connection->deadline = StreamConnection::Clock::now();
  connection->schedule();
  io.run_one();  // arms the timer
  connection->log.clear();
  send("in time");
  run();
  ASSERT_GE(connection->log.size(), 2U);
  EXPECT_EQ(connection->log.front(), "got in time");
  EXPECT_THAT(connection->log, testing::Contains("time"));
}

TEST_F(StreamConnectionTest, WhatTheMachineIsDoneWithIsNeitherReadNorWritten) {
  connection->wanted = false;
  connection->outgoing = "ab";
  send("xyz");
  connection->schedule();
  run();
  EXPECT_EQ(receive(), "");
  EXPECT_THAT(connection->log, testing::Each("round"));
}

TEST_F(StreamConnectionTest, NobodyIsCalledAfterTheEnd) {
  connection->deadline = StreamConnection::Clock::now();
  connection->schedule();
  send("xyz");
  connection->abandon();
  run();
  EXPECT_THAT(connection->log, IsEmpty());
  EXPECT_TRUE(io.stopped()) << "no handler is left";
}

}  // namespace
}  // namespace drun::store
