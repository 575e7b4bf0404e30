// The asynchronous client against drun's store and against peers that misbehave.
#include "drun/store/async_client.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/store/errors.hpp"
#include "support/awaited_client.hpp"
#include "support/drun_process.hpp"
#include "support/every_call.hpp"
#include "support/scripted_peer.hpp"
#include "support/store_thread.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using test::AwaitedClient;
using test::kPatience;
using test::ScriptedConnection;
using test::ScriptedPeer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

AsyncClient::Deadline in(std::chrono::milliseconds time) {
  return AsyncClient::Clock::now() + time;
}

// Answers the greeting of torch 2.2.
void greet(ScriptedConnection& connection) {
  const std::string hello = connection.read(10);
  if (hello.size() == 10) connection.write(hello.substr(6));
}

TEST(AsyncClientTest, MakesEveryCallOfDrunsStore) {
  const test::StoreThread store;
  test::make_every_call([&] { return AwaitedClient::connect(store.endpoint(), in(kPatience)); },
                        test::StoreAge::Drun);
}

TEST(AsyncClientTest, SpeaksTheVersionThatItIsTold) {
  const test::StoreThread store;
  for (const TcpStoreVersion version :
       {TcpStoreVersion::Torch1_13, TcpStoreVersion::Torch2_1, TcpStoreVersion::Torch2_2}) {
    auto client = AwaitedClient::connect(store.endpoint(), in(kPatience), {.version = version});
    ASSERT_TRUE(client) << client.error().what();
    EXPECT_EQ(client->version(), version);
    ASSERT_TRUE(client->set("k", "v"));
    EXPECT_EQ(client->get("k").value(), "v");
    EXPECT_EQ(client->multi_get({"k"}).ok(), version != TcpStoreVersion::Torch1_13);
  }
}

TEST(AsyncClientTest, AnswersInOrderAndNeverFromInsideACall) {
  const test::StoreThread store;
  asio::io_context io(1);
  AsyncClient client(io, store.endpoint());
  std::vector<std::int64_t> sums;
  bool inside = false;
  bool over = false;
  client.connect(in(kPatience), [&](Status connected) {
    ASSERT_TRUE(connected) << connected.error().what();
    inside = true;
    for (int i = 0; i < 1000; ++i) {
      client.set("last", std::to_string(i), [&](const Status& set) { EXPECT_TRUE(set); });
      client.add("n", 1, [&](Result<std::int64_t> sum) {
        EXPECT_FALSE(inside);
        sums.push_back(sum.value());
      });
    }
    client.get("last", [&](Result<std::string> last) {
      EXPECT_EQ(last.value(), "999");
      over = true;
    });
    inside = false;
  });
  while (!over && io.run_one() > 0) {
  }
  ASSERT_EQ(sums.size(), 1000U);
  for (std::size_t i = 0; i < sums.size(); ++i)
    EXPECT_EQ(sums[i], static_cast<std::int64_t>(i + 1));
}

TEST(AsyncClientTest, LargeValuesGoBothWaysAtOnce) {
  const test::StoreThread store;
  asio::io_context io(1);
  AsyncClient client(io, store.endpoint());
  const std::string large(8 << 20, 'x');
  int got = 0;
  client.connect(in(kPatience), [&](Status connected) {
    ASSERT_TRUE(connected);
    for (int i = 0; i < 4; ++i) {
      client.compare_set("large/" + std::to_string(i), "", large, [&](Result<std::string> held) {
        EXPECT_EQ(held.value(), large);
        ++got;
      });
    }
  });
  while (got < 4 && io.run_one() > 0) {
  }
  EXPECT_EQ(got, 4);
}

TEST(AsyncClientTest, ASecondClientEndsAWait) {
  const test::StoreThread store;
  asio::io_context io(1);
  AsyncClient waiting(io, store.endpoint());
  AsyncClient setting(io, store.endpoint());
  std::vector<std::string> events;
  waiting.connect(in(kPatience), [&](const Status&) {
    waiting.get("k", [&](Result<std::string> value) { events.push_back("got " + value.value()); });
    waiting.add("n", 1, [&](Result<std::int64_t>) { events.emplace_back("added"); });
    setting.connect(in(kPatience), [&](const Status&) {
      events.emplace_back("set");
      setting.set("k", "v", nullptr);
    });
  });
  while (events.size() < 3 && io.run_one() > 0) {
  }
  EXPECT_THAT(events, ElementsAre("set", "got v", "added"));
}

TEST(AsyncClientTest, TriesAgainUntilTheServerIsThereAndFallsBackToTheOldest) {
  const test::ReservedPort port;
  const auto number = static_cast<std::uint16_t>(port.number());
  asio::io_context io(1);
  AsyncClient client(io, {"localhost", number});
  std::optional<Status> connected;
  client.connect(in(kPatience), [&](Status status) { connected = std::move(status); });
  io.run_for(30ms);
  EXPECT_FALSE(connected);
  ScriptedPeer peer(
      [](ScriptedConnection& c) {
        if (c.number() < 2) return;  // C and A: a store that is just going away
        if (c.number() == 2) {
          c.read(1);  // an old one, which closes on C's first bytes
          return;
        }
        if (c.read(1) == "\x06") c.write(std::string(8, '\0'));
        c.wait_for_close();
      },
      number);
  while (!connected && io.run_one() > 0) {
  }
  ASSERT_TRUE(connected && *connected) << connected->error().what();
  EXPECT_EQ(client.version(), TcpStoreVersion::Torch1_13);
  EXPECT_EQ(peer.connections(), 4);
}

TEST(AsyncClientTest, GivesUpAtTheDeadlineWithTheCause) {
  const test::ReservedPort port;
  const Endpoint endpoint{"127.0.0.1", static_cast<std::uint16_t>(port.number())};
  const auto start = AsyncClient::Clock::now();
  const auto client = AwaitedClient::connect(endpoint, start + 5s);
  ASSERT_FALSE(client);
  EXPECT_GE(AsyncClient::Clock::now() - start, 5s);
  EXPECT_EQ(client.error().code(), std::errc::connection_refused);
  EXPECT_THAT(client.error().what(), StartsWith("connect to " + to_string(endpoint) +
                                                ": Connection refused (gave up after "));
  const auto once = AwaitedClient::connect(endpoint, in(kPatience), {.retry = false});
  ASSERT_FALSE(once);
  EXPECT_EQ(once.error().what(), "connect to " + to_string(endpoint) + ": Connection refused");
}

TEST(AsyncClientTest, NamesWhatIsNoStoreAndWhatStaysSilent) {
  ScriptedPeer web([](ScriptedConnection& c) {
    c.read(5);
    c.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    c.wait_for_close();
  });
  const auto client = AwaitedClient::connect(web.endpoint(), in(kPatience));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), Errc::NotAStore);
  EXPECT_EQ(client.error().what(), "connect to " + to_string(web.endpoint()) +
                                       ": this is not a TCPStore server: it answered 'HTTP'");
  ScriptedPeer silent([](ScriptedConnection& c) { c.wait_for_close(); });
  const auto unanswered = AwaitedClient::connect(silent.endpoint(), in(5s));
  ASSERT_FALSE(unanswered);
  EXPECT_EQ(unanswered.error().code(), Errc::Timeout);
  EXPECT_THAT(unanswered.error().what(), HasSubstr("does not answer"));
  const auto unknown = AwaitedClient::connect({"no-such-host.invalid", 1}, in(5s));
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().what(), HasSubstr("no-such-host.invalid"));
}

// A peer that ends, garbles or withholds a reply: which error, and whether it names the call.
TEST(AsyncClientTest, HalfRepliesGarbageAndSilenceAreErrors) {
  const struct {
    const char* name;
    std::string reply;  // to compare_set
    bool close;
    Errc code;
    const char* says;
  } cases[] = {
      {"half a length", std::string("\5\0\0", 3), true, Errc::Closed, "the peer closed"},
      {"half a value", std::string("\5\0\0\0\0\0\0\0va", 10), true, Errc::Closed,
       "the peer closed"},
      {"nothing", "", true, Errc::Closed, "the peer closed"},
      {"silence", std::string("\5\0\0\0", 4), false, Errc::Timeout, "timed out after 100 ms"},
      {"a length beyond reason", std::string(8, '\x7f'), false, Errc::LimitExceeded,
       "the reply is longer than max_value_bytes"},
  };
  for (const auto& c : cases) {
    ScriptedPeer peer([&](ScriptedConnection& connection) {
      greet(connection);
      connection.read(1 + 8 + 2 + 8 + 8 + 1);
      connection.write(c.reply);
      if (!c.close) connection.wait_for_close();
    });
    auto client = AwaitedClient::connect(peer.endpoint(), in(kPatience));
    ASSERT_TRUE(client) << c.name;
    const auto held = client->compare_set("k", "", "v", c.code == Errc::Timeout ? 100ms : 60'000ms);
    ASSERT_FALSE(held) << c.name;
    EXPECT_EQ(held.error().code(), c.code) << c.name << ": " << held.error().what();
    EXPECT_THAT(held.error().what(),
                StartsWith("compare_set 'k' at " + to_string(peer.endpoint()) + ": " + c.says));
    EXPECT_FALSE(client->connected()) << c.name;
    EXPECT_EQ(client->get("k").error().code(), Errc::Closed);
  }
}

TEST(AsyncClientTest, APeerThatDoesNotReadMeetsTheDeadline) {
  std::promise<void> over;
  ScriptedPeer deaf([&](ScriptedConnection& c) {
    greet(c);
    over.get_future().wait();
  });
  auto client = AwaitedClient::connect(deaf.endpoint(), in(kPatience));
  ASSERT_TRUE(client);
  EXPECT_EQ(client->set("k", std::string(64 << 20, 'x'), 50ms).error().code(), Errc::Timeout);
  EXPECT_FALSE(client->connected());
  over.set_value();
}

TEST(AsyncClientTest, NoticesABreakWhileIdleAndConnectsAgain) {
  ScriptedPeer peer([](ScriptedConnection& c) {
    greet(c);
    if (c.number() > 0) c.wait_for_close();
  });
  asio::io_context io(1);
  AsyncClient client(io, peer.endpoint());
  std::optional<Status> refused;
  client.set("k", "v", [&](Status status) { refused = std::move(status); });
  io.run();
  ASSERT_TRUE(refused.has_value() && !refused->ok());
  EXPECT_EQ(refused->error().code(), Errc::Closed);
  EXPECT_THAT(refused->error().what(), HasSubstr("there is no connection"));

  int connections = 0;
  const auto count = [&](const Status& status) { connections += status.ok() ? 1 : 0; };
  io.restart();
  client.connect(in(kPatience), count);
  io.run();  // ends with the connection, as nothing else is left to do
  EXPECT_EQ(connections, 1);
  EXPECT_FALSE(client.connected());
  EXPECT_EQ(client.local_endpoint().host, "");
  io.restart();
  client.connect(in(kPatience), count);
  while (connections < 2 && io.run_one() > 0) {
  }
  EXPECT_TRUE(client.connected());
}

// Whatever the client is doing: once it is gone nobody is called, and the loop runs dry.
TEST(AsyncClientTest, DestructionCancelsWhateverIsUnderWay) {
  const test::StoreThread store;
  std::promise<void> over;
  std::shared_future<void> until = over.get_future().share();
  ScriptedPeer silent([until](ScriptedConnection&) { until.wait(); });
  const Endpoint nobody{"127.0.0.1", 1};
  const auto never = [](const auto&) { FAIL() << "called after destruction"; };
  for (const Endpoint& endpoint :
       {silent.endpoint(), nobody, Endpoint{"no-such-host.invalid", 1}, store.endpoint()}) {
    for (int turns = 0; turns < 6; ++turns) {
      asio::io_context io(1);
      auto client = std::make_unique<AsyncClient>(io, endpoint);
      bool connected = false;
      client->connect(in(kPatience), [&](const Status& status) {
        if (endpoint.port != store.endpoint().port) never(status);
        connected = status.ok();
        client->wait({"never"}, never);
        client->add("n", 1, never);
      });
      for (int i = 0; i < turns; ++i)
        io.run_one_for(20ms);
      client.reset();
      io.run();
    }
  }
  over.set_value();
}

// At once, and not when the loop next runs: they may hold what waits for them.
TEST(AsyncClientTest, ItsEndDropsTheCallbacksOfCallsUnderWay) {
  const test::StoreThread store;
  asio::io_context io(1);
  auto client = std::make_unique<AsyncClient>(io, store.endpoint());
  const auto held = std::make_shared<int>();
  bool connected = false;
  client->connect(in(kPatience), [&](const Status& status) { connected = status.ok(); });
  while (!connected && io.run_one_for(kPatience) > 0) {
  }
  ASSERT_TRUE(connected);
  client->wait(
      {"never"}, [held](const Status&) {}, kPatience);
  EXPECT_EQ(held.use_count(), 2);
  client.reset();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(AsyncClientTest, MayBeDestroyedInItsOwnCallback) {
  const test::StoreThread store;
  for (const bool while_connecting : {true, false}) {
    asio::io_context io(1);
    auto client = std::make_unique<AsyncClient>(io, store.endpoint());
    int calls = 0;
    client->connect(in(kPatience), [&](const Status& status) {
      ASSERT_TRUE(status);
      ++calls;
      if (while_connecting) {
        client.reset();
        return;
      }
      client->add("n", 1, [&](const Result<std::int64_t>&) {
        ++calls;
        client.reset();
      });
      client->add("n", 1, [&](const Result<std::int64_t>&) { ++calls; });
    });
    io.run();
    EXPECT_EQ(calls, while_connecting ? 1 : 2);
  }
  asio::io_context io(1);
  auto refused =
      std::make_unique<AsyncClient>(io, Endpoint{"127.0.0.1", 1}, ClientOptions{.retry = false});
  bool called = false;
  refused->connect(in(kPatience), [&](const Status& status) {
    called = !status.ok();
    refused.reset();
  });
  io.run();
  EXPECT_TRUE(called);
}

}  // namespace
}  // namespace drun::store
