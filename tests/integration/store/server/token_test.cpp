// Clients of all kinds and a server with a token, on real sockets.
#include <fcntl.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bound_port.hpp"
#include "base/file_descriptor.hpp"
#include "drun/store/async_client.hpp"
#include "drun/store/client.hpp"
#include "drun/store/control_client.hpp"
#include "drun/store/errors.hpp"
#include "store/client/control_query.hpp"
#include "store/client/lookout.hpp"
#include "store/server/listen_socket.hpp"
#include "support/patience.hpp"
#include "support/raw_connection.hpp"
#include "support/running_server.hpp"
#include "support/tls_peer.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using test::RawConnection;
using test::RunningServer;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

using Tls = std::shared_ptr<const secure::TlsContext>;

ServerOptions server_with(const Tls& tls) {
  ServerOptions options;
  options.tls = tls;
  return options;
}

Result<Client> client_of(const RunningServer& server, const Tls& tls) {
  ClientOptions options;
  options.tls = tls;
  return Client::connect(server.endpoint(), test::kPatience, options);
}

// The first thing that a control client is told.
ControlLink first_link(const Endpoint& endpoint, const Tls& tls) {
  asio::io_context io;
  ControlOptions options;
  options.endpoint = endpoint;
  options.connect_timeout = test::kPatience;
  options.tls = tls;
  std::optional<ControlLink> told;
  ControlClient client(io, options, [&](ControlEvent event) {
    if (const auto* link = std::get_if<ControlLink>(&event)) told = *link;
    if (told) io.stop();
  });
  client.open();
  io.run_for(test::kPatience);
  EXPECT_TRUE(told);
  return told.value_or(ControlLink{});
}

TEST(TokenServerTest, ClientsWithTheTokenAreServed) {
  const Tls tls = test::tls_of(test::kToken);
  RunningServer server(server_with(tls));
  auto client = client_of(server, tls);
  ASSERT_TRUE(client) << client.error().what();
  const std::string much(500'000, 'm');
  ASSERT_TRUE(client->set("key", much));
  EXPECT_EQ(client->get("key").value(), much);
  EXPECT_EQ(client->add("number", 2).value(), 2);

  auto query = ControlQuery::open(server.endpoint(), Clock::now() + test::kPatience, false, tls);
  ASSERT_TRUE(query) << query.error().what();
  const auto number = query->send(control::Stats{}, Clock::now() + test::kPatience);
  EXPECT_TRUE(std::holds_alternative<control::Counters>(
      query->receive(*number, Clock::now() + test::kPatience).value()));

  EXPECT_EQ(first_link(server.endpoint(), tls).state, ControlState::Up);

  asio::io_context io;
  ClientOptions options;
  options.tls = tls;
  AsyncClient async(io, server.endpoint(), options);
  std::optional<std::string> value;
  async.connect(Clock::now() + test::kPatience, [&](const Status& connected) {
    ASSERT_TRUE(connected) << connected.error().what();
    async.get("key", [&](const Result<std::string>& got) {
      value = got.value();
      io.stop();
    });
  });
  io.run_for(test::kPatience);
  EXPECT_EQ(value, much);
}

TEST(TokenServerTest, AnotherTokenIsOneClearErrorAtOnce) {
  const RunningServer server(server_with(test::tls_of(test::kToken)));
  const Tls other = test::tls_of(test::kOtherToken);
  const auto start = Clock::now();
  const std::string reason = " does not know this token: give the same DRUN_TOKEN or --token-file";
  const auto link = first_link(server.endpoint(), other);
  EXPECT_EQ(link.state, ControlState::Failed);
  EXPECT_THAT(link.detail, HasSubstr("the store at " + to_string(server.endpoint()) + reason));
  const auto client = client_of(server, other);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), Errc::WrongToken);
  EXPECT_THAT(client.error().what(), HasSubstr("it" + reason));
  const auto query = ControlQuery::open(server.endpoint(), start + test::kPatience, true, other);
  ASSERT_FALSE(query);
  EXPECT_EQ(query.error().code(), Errc::WrongToken);
  EXPECT_THAT(query.error().what(), HasSubstr("it" + reason));
  EXPECT_LT(Clock::now() - start, test::kPatience / 2);
}

TEST(TokenServerTest, ClientsWithoutATokenAreToldThatOneIsNeeded) {
  const RunningServer server(server_with(test::tls_of(test::kToken)));
  const std::string reason = " asks for a token: give the same DRUN_TOKEN or --token-file";
  const auto link = first_link(server.endpoint(), nullptr);
  EXPECT_EQ(link.state, ControlState::Failed);
  EXPECT_THAT(link.detail, HasSubstr("the store at " + to_string(server.endpoint()) + reason));
  const auto query =
      ControlQuery::open(server.endpoint(), Clock::now() + test::kPatience, true, nullptr);
  ASSERT_FALSE(query);
  EXPECT_EQ(query.error().code(), Errc::WrongToken);
  EXPECT_THAT(query.error().what(), HasSubstr("it" + reason));
}

TEST(TokenServerTest, AStoreWithoutATokenIsNotTakenForOne) {
  const RunningServer server;
  const Tls tls = test::tls_of(test::kToken);
  const std::string reason = " speaks without a token: give the same DRUN_TOKEN or --token-file";
  const auto link = first_link(server.endpoint(), tls);
  EXPECT_EQ(link.state, ControlState::Failed);
  EXPECT_THAT(link.detail, HasSubstr("the store at " + to_string(server.endpoint()) + reason));
  const auto client = client_of(server, tls);
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().what(), HasSubstr("it" + reason));
}

// It is not in a hurry to find a store, and a stranger may answer in its stead.
TEST(TokenServerTest, WhoLooksForTheStoreHearsWhatIsWrongAndGoesOn) {
  const RunningServer server(server_with(test::tls_of(test::kToken)));
  asio::io_context io;
  InquiryFsm::Options options;
  options.job = "drun/none/";
  options.tls = test::tls_of(test::kOtherToken);
  std::string cause;
  const Lookout lookout(io, {server.endpoint()}, options,
                        [&](std::size_t, const Whereabouts& answer) {
                          cause = answer.cause;
                          io.stop();
                        });
  io.run_for(test::kPatience);
  EXPECT_THAT(cause, HasSubstr("it does not know this token"));
}

TEST(TokenServerTest, WhoShowsNoTokenInTimeIsDropped) {
  ServerOptions options = server_with(test::tls_of(test::kToken));
  options.limits.proof_time = 50ms;
  RunningServer server(options);
  RawConnection silent(server.endpoint());
  RawConnection half(server.endpoint());
  test::TlsPeer peer;
  half.send(peer.say());
  EXPECT_TRUE(silent.is_closed_by_peer());
  EXPECT_TRUE(half.is_closed_by_peer());
  auto client = client_of(server, options.tls);
  ASSERT_TRUE(client) << client.error().what();
  const auto late = Clock::now() + 2 * options.limits.proof_time;
  EXPECT_TRUE(test::eventually([&] { return Clock::now() > late; }));
  EXPECT_EQ(client->add("number", 1).value(), 1) << "who has proved it may stay";
}

TEST(TokenServerTest, SilentWorkersMayStayAtTheirStore) {
  ServerOptions options = server_with(test::tls_of(test::kToken));
  options.limits.proof_time = 50ms;
  Server server(options);
  const Endpoint workers = server.add_listener({"127.0.0.1", 0}, Table::Workers).value();
  const test::Serving serving(server);
  RawConnection silent(workers);
  RawConnection half(workers);
  test::TlsPeer peer;
  half.send(peer.say());
  EXPECT_TRUE(half.is_closed_by_peer()) << "that is no worker";
  EXPECT_FALSE(silent.is_closed_by_peer(20ms));
}

// Strangers, each of whom has begun to show something, and one who has the token behind them.
class Crowd {
 public:
  Crowd(const Endpoint& endpoint, std::size_t strangers) : endpoint_(endpoint) {
    for (std::size_t i = 0; i < strangers; ++i) {
      strangers_.push_back(std::make_unique<RawConnection>(endpoint_));
      test::TlsPeer peer;
      strangers_.back()->send(peer.say());
      // The server has heard it.
      EXPECT_NE(strangers_.back()->receive(1), "");
    }
  }
  // At the first try, as a client would have it.
  [[nodiscard]] bool admits_one() const {
    RawConnection connection(endpoint_);
    test::TlsPeer peer;
    connection.send(peer.say());
    while (!peer.engine().is_open()) {
      const std::string byte = connection.receive(1);
      if (byte.empty()) return false;
      peer.hear(byte);
    }
    std::string opening;
    control::encode_opening(opening);
    connection.send(peer.say(opening));
    for (std::string heard; heard.empty();) {
      const std::string byte = connection.receive(1);
      if (byte.empty()) return false;
      heard = peer.hear(byte);
    }
    return true;
  }
  RawConnection& first() { return *strangers_.front(); }
  RawConnection& last() { return *strangers_.back(); }

 private:
  Endpoint endpoint_;
  std::vector<std::unique_ptr<RawConnection>> strangers_;
};

TEST(TokenServerTest, StrangersMakeRoomForConnections) {
  ServerOptions options = server_with(test::tls_of(test::kToken));
  options.limits.connections = 4;
  options.limits.proof_time = 1h;
  const RunningServer server(options);
  Crowd crowd(server.endpoint(), 4);
  EXPECT_TRUE(crowd.admits_one());
  EXPECT_TRUE(crowd.first().is_closed_by_peer()) << "it came before the others";
  EXPECT_FALSE(crowd.last().is_closed_by_peer(20ms));
}

TEST(TokenServerTest, StrangersMakeRoomInTheStore) {
  ServerOptions options = server_with(test::tls_of(test::kToken));
  options.limits.total_bytes = 200 * 1024;  // that of four
  options.limits.reserved_bytes = 0;
  options.limits.proof_time = 1h;
  const RunningServer server(options);
  Crowd crowd(server.endpoint(), 4);
  EXPECT_TRUE(crowd.admits_one());
  EXPECT_TRUE(crowd.first().is_closed_by_peer());
  EXPECT_FALSE(crowd.last().is_closed_by_peer(20ms));
}

// Whoever floods a store keeps newcomers out for a moment. It need not be told to try again.
TEST(TokenServerTest, WhoIsSentAwayBeforeTheTokenWasShownTriesAgain) {
  const auto sockets = bind_endpoint({"127.0.0.1", 0});
  ASSERT_TRUE(sockets);
  const int listener = sockets->front().get();
  ASSERT_EQ(::listen(listener, 16), 0);
  ASSERT_EQ(::fcntl(listener, F_SETFL, 0), 0);  // the thread waits for calls
  const Endpoint endpoint{"127.0.0.1", bound_port(listener)};
  std::atomic<int> calls = 0;
  std::thread crowded([&] {
    for (;;) {
      const FileDescriptor call(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
      if (!call) return;
      ++calls;
    }
  });
  const auto tries = [&](const Tls& tls) {
    const int before = calls;
    EXPECT_FALSE(ControlQuery::open(endpoint, Clock::now() + 300ms, false, tls));
    return calls - before;
  };
  EXPECT_EQ(tries(nullptr), 1);
  EXPECT_GT(tries(test::tls_of(test::kToken)), 1);
  ClientOptions options;
  options.retry = false;
  options.tls = test::tls_of(test::kToken);
  const int before = calls;
  EXPECT_FALSE(Client::connect(endpoint, Clock::now() + 300ms, options));
  EXPECT_GT(calls - before, 2) << "each time for both versions";
  ::shutdown(listener, SHUT_RDWR);
  crowded.join();
}

}  // namespace
}  // namespace drun::store
