// The synchronous client against drun's store and against peers that misbehave.
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/store/client.hpp"
#include "drun/store/errors.hpp"
#include "support/drun_process.hpp"
#include "support/every_call.hpp"
#include "support/scripted_peer.hpp"
#include "support/store_thread.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using test::kPatience;
using test::ScriptedConnection;
using test::ScriptedPeer;

Client::Deadline in(std::chrono::milliseconds time) {
  return Client::Clock::now() + time;
}

// Reads the handshake of torch 2.2; the answer to it.
std::string hello_echo(ScriptedConnection& connection) {
  const std::string hello = connection.read(10);
  return hello.size() == 10 ? hello.substr(6) : "";
}

TEST(StoreClientTest, MakesEveryCallOfDrunsStore) {
  const test::StoreThread store;
  test::make_every_call([&] { return Client::connect(store.endpoint(), in(kPatience)); },
                        test::StoreAge::Drun);
}

TEST(StoreClientTest, CancelsAWaitThatTimesOutAndStaysUsable) {
  ScriptedPeer peer([](ScriptedConnection& c) {
    c.write(hello_echo(c));
    c.read(1 + 8 + 8 + 2);  // WAIT /k
    ASSERT_EQ(c.read(1), "\x0c");
    c.write("\x01");
    c.read(1 + 8 + 8 + 2);
    ASSERT_EQ(c.read(1), "\x0c");
    c.write(std::string("\0\x01", 2));  // released while the cancellation was on its way
    c.wait_for_close();
  });
  auto client = Client::connect(peer.endpoint(), in(kPatience));
  ASSERT_TRUE(client) << client.error().what();
  EXPECT_EQ(client->version(), TcpStoreVersion::Torch2_2);
  EXPECT_EQ(client->wait({"k"}, 10ms).error().code(), Errc::Timeout);
  EXPECT_TRUE(client->connected());
  EXPECT_TRUE(client->wait({"k"}, 10ms));
  EXPECT_TRUE(client->connected());
}

TEST(StoreClientTest, ASilentAnswerToCancelClosesTheConnection) {
  ScriptedPeer peer([](ScriptedConnection& c) {
    c.write(hello_echo(c));
    c.read(1 + 8 + 8 + 2);
    c.read(1);
    c.write("\x07");
    c.wait_for_close();
  });
  auto client = Client::connect(peer.endpoint(), in(kPatience));
  ASSERT_TRUE(client);
  EXPECT_EQ(client->wait({"k"}, 10ms).error().code(), Errc::Malformed);
  EXPECT_FALSE(client->connected());
}

TEST(StoreClientTest, KeysCarryTheSlashAndThePrefix) {
  const struct {
    ClientOptions options;
    std::string key;
  } cases[] = {
      {{.version = TcpStoreVersion::Torch2_2}, "/k"},
      {{.version = TcpStoreVersion::Torch2_2, .prefix = "pre"}, "/pre/k"},
      {{.version = TcpStoreVersion::Torch2_2, .raw_keys = true}, "k"},
      {{.version = TcpStoreVersion::Torch2_2, .prefix = "pre", .raw_keys = true}, "pre/k"},
  };
  for (const auto& c : cases) {
    std::promise<std::string> sent;
    ScriptedPeer peer([&](ScriptedConnection& connection) {
      connection.write(hello_echo(connection));
      sent.set_value(connection.read(1 + 8 + c.key.size() + 8 + 1));
    });
    auto client = Client::connect(peer.endpoint(), in(kPatience), c.options);
    ASSERT_TRUE(client);
    ASSERT_TRUE(client->set("k", "v"));
    const std::string bytes = sent.get_future().get();
    EXPECT_EQ(bytes.substr(9, c.key.size()), c.key);
  }
}

TEST(StoreClientTest, TriesAgainUntilTheServerIsThere) {
  const test::ReservedPort port;
  const auto number = static_cast<std::uint16_t>(port.number());
  auto connecting = std::async(std::launch::async, [&] {
    return Client::connect({"localhost", number}, in(kPatience)).ok();
  });
  EXPECT_EQ(connecting.wait_for(30ms), std::future_status::timeout);
  ScriptedPeer peer(
      [](ScriptedConnection& c) {
        // Closes in the handshakes of C and A, as a store that is just going away.
        if (c.number() < 2) return;
        c.write(hello_echo(c));
      },
      number);
  EXPECT_TRUE(connecting.get());
}

TEST(StoreClientTest, GivesUpAtTheDeadlineWithTheCause) {
  const test::ReservedPort port;
  const Endpoint endpoint{"127.0.0.1", static_cast<std::uint16_t>(port.number())};
  const auto start = Client::Clock::now();
  const auto client = Client::connect(endpoint, start + 5s);
  ASSERT_FALSE(client);
  EXPECT_GE(Client::Clock::now() - start, 5s);
  EXPECT_EQ(client.error().code(), std::errc::connection_refused);
  EXPECT_THAT(client.error().what(), testing::StartsWith("connect to " + to_string(endpoint) +
                                                         ": Connection refused (gave up after "));
}

TEST(StoreClientTest, NamesAPeerThatIsNoStoreAtOnce) {
  ScriptedPeer peer([](ScriptedConnection& c) {
    c.read(5);
    c.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    c.wait_for_close();
  });
  const auto client = Client::connect(peer.endpoint(), in(kPatience));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), Errc::NotAStore);
  EXPECT_EQ(client.error().what(), "connect to " + to_string(peer.endpoint()) +
                                       ": this is not a TCPStore server: it answered 'HTTP'");
}

TEST(StoreClientTest, SaysThatAPeerStaysSilent) {
  ScriptedPeer peer([](ScriptedConnection& c) { c.wait_for_close(); });
  const auto client = Client::connect(peer.endpoint(), in(5s));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), Errc::Timeout);
  EXPECT_THAT(client.error().what(), testing::HasSubstr("does not answer"));
}

TEST(StoreClientTest, NamesAHostThatNobodyKnows) {
  const auto client = Client::connect({"no-such-host.invalid", 1}, in(5s));
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().what(), testing::HasSubstr("no-such-host.invalid"));
}

TEST(StoreClientTest, EveryCallEndsAtItsDeadlineAndNamesTheRequest) {
  ScriptedPeer peer([](ScriptedConnection& c) {
    c.write(hello_echo(c));
    c.wait_for_close();
  });
  const auto connect = [&] {
    auto client = Client::connect(peer.endpoint(), in(kPatience));
    EXPECT_TRUE(client);
    return client;
  };
  const auto expect_late = [&](const char* what, const auto& result) {
    ASSERT_FALSE(result) << what;
    EXPECT_EQ(result.error().code(), Errc::Timeout) << what;
    EXPECT_EQ(result.error().what(),
              std::string(what) + " at " + to_string(peer.endpoint()) + ": timed out after 10 ms");
  };
  expect_late("add 'n'", connect()->add("n", 1, 10ms));
  expect_late("check 'a', 'b'", connect()->check({"a", "b"}, 10ms));
  expect_late("compare_set 'c'", connect()->compare_set("c", "", "x", 10ms));
  expect_late("num_keys", connect()->num_keys(10ms));
  expect_late("delete_key 'k'", connect()->delete_key("k", 10ms));
  expect_late("queue_len 'q'", connect()->queue_len("q", 10ms));
  expect_late("list_keys", connect()->list_keys(10ms));
  expect_late("ping", connect()->ping(10ms));
  // A server that reads nothing: the value does not fit into the socket's buffers.
  std::promise<void> over;
  ScriptedPeer deaf([&](ScriptedConnection& c) {
    c.write(hello_echo(c));
    over.get_future().wait();
  });
  auto client = Client::connect(deaf.endpoint(), in(kPatience));
  ASSERT_TRUE(client);
  EXPECT_EQ(client->set("k", std::string(64 << 20, 'x'), 20ms).error().code(), Errc::Timeout);
  EXPECT_FALSE(client->connected());
  over.set_value();
}

TEST(StoreClientTest, AClosedConnectionIsNamedWithTheLikelyCause) {
  ScriptedPeer peer([](ScriptedConnection& c) {
    c.write(hello_echo(c));
    c.read(1 + 8 + 2 + 8);
  });
  auto client = Client::connect(peer.endpoint(), in(kPatience));
  ASSERT_TRUE(client);
  const auto sum = client->add("n", 1);
  ASSERT_FALSE(sum);
  EXPECT_EQ(sum.error().code(), Errc::Closed);
  EXPECT_EQ(sum.error().what(),
            "add 'n' at " + to_string(peer.endpoint()) +
                ": the peer closed the connection (a store does so when the key holds something "
                "other than a number)");
  const auto after = client->get("k");
  EXPECT_EQ(after.error().code(), Errc::Closed);
}

TEST(StoreClientTest, AReplyAboveTheLimitIsAnError) {
  ScriptedPeer peer([](ScriptedConnection& c) {
    c.write(hello_echo(c));
    c.read(1 + 8 + 2 + 8 + 8);
    c.write(std::string("\x0b\0\0\0\0\0\0\0", 8));
    c.wait_for_close();
  });
  auto client = Client::connect(peer.endpoint(), in(kPatience), {.max_value_bytes = 10});
  ASSERT_TRUE(client);
  EXPECT_EQ(client->compare_set("k", "", "").error().code(), Errc::LimitExceeded);
}

}  // namespace
}  // namespace drun::store
