// Clients that reach a store through a relay, on real sockets.
#include "store/relay/relay.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "drun/base/log.hpp"
#include "drun/store/client.hpp"
#include "drun/store/errors.hpp"
#include "drun/store/server.hpp"
#include "secure/tls_engine.hpp"
#include "store/server/listen_socket.hpp"
#include "support/eavesdropper.hpp"
#include "support/every_call.hpp"
#include "support/patience.hpp"
#include "support/raw_connection.hpp"
#include "support/running_server.hpp"
#include "support/scarce_memory.hpp"
#include "support/tls_peer.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using test::kPatience;
using test::RawConnection;
using test::TcpStoreConnection;
using testing::HasSubstr;

std::string add_request(std::string_view key, std::int64_t delta) {
  tcpstore::Request request;
  request.op = tcpstore::Op::Add;
  request.key = key;
  request.number = delta;
  std::string bytes;
  tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
  return bytes;
}

// Whether drun's own agents would have a token.
class RelayTest : public testing::TestWithParam<bool> {
 protected:
  RelayTest() { begin(); }

  // The workers' store of a job.
  struct Store {
    explicit Store(const std::shared_ptr<const secure::TlsContext>& tls) : server(options(tls)) {
      endpoint = server.add_listener({"127.0.0.1", 0}, Table::Workers).value();
      serving.emplace(server);
    }
    static ServerOptions options(const std::shared_ptr<const secure::TlsContext>& tls) {
      ServerOptions options;
      options.tls = tls;
      options.workers_need_token = true;
      return options;
    }
    Server server;
    Endpoint endpoint;
    std::optional<test::Serving> serving;
  };

  RelayOptions options() const {
    RelayOptions options;
    options.tls = tls_;
    return options;
  }
  void begin() { begin(options(), store_.endpoint); }
  void begin(RelayOptions options, const Endpoint& store) {
    relay_.emplace(std::move(options));
    place_ = relay_->begin(store).value();
  }
  Result<Client> client() { return Client::connect(place_, kPatience); }

  const std::shared_ptr<const secure::TlsContext> tls_ =
      GetParam() ? test::tls_of(test::kToken) : nullptr;
  Store store_{tls_};
  std::optional<Relay> relay_;
  Endpoint place_;
};

TEST_P(RelayTest, EveryCallGivesTheSame) {
  EXPECT_EQ(place_.host, "127.0.0.1");
  test::make_every_call([&] { return client(); }, test::StoreAge::Drun);
}

TEST_P(RelayTest, OldClientsAreServed) {
  TcpStoreConnection old(place_, TcpStoreVersion::Torch1_13);
  EXPECT_EQ(old.add("n", 2), 2);
  EXPECT_EQ(old.add("n", 2), 4);
}

TEST_P(RelayTest, ClientsMeetInOneStore) {
  auto waiting = std::async(std::launch::async, [&] { return client()->get("k", kPatience); });
  ASSERT_TRUE(client()->set("k", "v"));
  EXPECT_EQ(waiting.get().value(), "v");
}

TEST_P(RelayTest, TakesManyClients) {
  constexpr int kClients = 300;
  std::vector<Client> clients;
  for (int i = 0; i < kClients; ++i)
    clients.push_back(client().value());
  for (int i = 0; i < kClients; ++i)
    EXPECT_EQ(clients[static_cast<std::size_t>(i)].add("n", 1).value(), i + 1);
}

TEST_P(RelayTest, LargeValuesPassBothWays) {
  auto one = client().value();
  std::string large(30 << 20, '\0');
  for (std::size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<char>(i * 7 + (i >> 8U));
  ASSERT_TRUE(one.set("large", large));
  EXPECT_TRUE(one.get("large").value() == large);
}

// Neither holds up the others.
TEST_P(RelayTest, WhoReadsNothingIsWaitedForAlone) {
  auto one = client().value();
  ASSERT_TRUE(one.set("large", std::string(8 << 20, 'x')));
  ASSERT_TRUE(one.check({"large"}).value());
  TcpStoreConnection slow(place_);
  for (int i = 0; i < 3; ++i)
    slow.send(test::get_request("/large"));
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(one.add("n", 1).value(), i + 1);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(slow.receive_vector().size(), std::size_t{8} << 20U);
}

TEST_P(RelayTest, WhatAClientSaysLastArrives) {
  TcpStoreConnection leaves(place_);
  leaves.set("/k", "last words");
  ASSERT_EQ(::shutdown(leaves.fd(), SHUT_WR), 0);
  EXPECT_TRUE(leaves.is_closed_by_peer());
  EXPECT_EQ(client()->get("k", kPatience).value(), "last words");
}

// Closing with unread replies resets the connection.
TEST_P(RelayTest, WhatAClientSaysBeforeItBreaksOffArrives) {
  auto other = client().value();
  for (int i = 0; i < 20; ++i) {
    const std::string key = "k" + std::to_string(i);
    {
      TcpStoreConnection breaks_off(place_);
      ASSERT_TRUE(other.set("value", std::string(100, 'x')));
      breaks_off.send(test::get_request("/value"));
      ASSERT_TRUE(breaks_off.readable(kPatience));
      breaks_off.send(test::get_request("/value") + test::set_request("/" + key, "last words"));
    }
    ASSERT_EQ(other.get(key, kPatience).value(), "last words");
  }
}

TEST_P(RelayTest, TheEndOfTheStoreEndsTheClients) {
  auto ending = std::make_unique<Store>(tls_);
  begin(options(), ending->endpoint);
  TcpStoreConnection open(place_);
  EXPECT_EQ(open.add("n", 1), 1);
  ending.reset();
  EXPECT_TRUE(open.is_closed_by_peer());
}

// A scanner of ports, say, whom the store shuts out.
TEST_P(RelayTest, WhoseConnectionTheStoreClosesLeavesNothingBehind) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto probe = [this] {
    RawConnection curious(place_);
    EXPECT_TRUE(curious.send("GET / HTTP/1.1\r\nHost: node0\r\n\r\n"));
    EXPECT_TRUE(curious.is_closed_by_peer());
  };
  const auto before = descriptors();
  for (int i = 0; i < 20; ++i)
    probe();
  // One may be on its way.
  EXPECT_TRUE(test::eventually([&] { return descriptors() < before + 10; })) << descriptors();
}

TEST_P(RelayTest, AResetOfTheStoreEndsTheClients) {
  TcpStoreConnection open(place_);
  EXPECT_EQ(open.add("n", 1), 1);
  ASSERT_TRUE(store_.server.reset_worker_table());
  EXPECT_TRUE(open.is_closed_by_peer());
  EXPECT_EQ(client()->add("n", 1).value(), 1);
}

TEST_P(RelayTest, ANewPlaceEndsTheClientsOfTheOneBefore) {
  TcpStoreConnection open(place_);
  EXPECT_EQ(open.add("n", 1), 1);
  Store next(tls_);
  const Endpoint before = std::exchange(place_, relay_->begin(next.endpoint).value());
  EXPECT_NE(place_.port, before.port);
  EXPECT_TRUE(open.is_closed_by_peer());
  EXPECT_TRUE(test::eventually([&] { return !RawConnection(before).connected(); }));
  EXPECT_EQ(client()->add("n", 1).value(), 1) << "the other store's";
}

TEST_P(RelayTest, TheControlProtocolIsNotForClients) {
  std::string opening;
  control::encode_opening(opening);
  RawConnection curious(place_);
  for (const char byte : opening)
    if (!curious.send({&byte, 1})) break;
  EXPECT_EQ(curious.receive(1), "");
  EXPECT_TRUE(curious.is_closed_by_peer());
}

TEST_P(RelayTest, ProcessesOfOtherUsersAreNotServed) {
  RelayOptions others = options();
  others.user = ::geteuid() + 1;
  testing::internal::CaptureStderr();
  begin(std::move(others), store_.endpoint);
  for (int i = 0; i < 3; ++i) {
    TcpStoreConnection stranger(place_);
    EXPECT_TRUE(stranger.is_closed_by_peer());
  }
  relay_.reset();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("a process of user " + std::to_string(::geteuid()) +
                              " wanted to connect to the workers' store"));
  EXPECT_EQ(said.find("wanted"), said.rfind("wanted")) << said;
}

// The kernel may say that what nobody has any more is root's.
TEST_P(RelayTest, AnotherUserIsNotTakenForRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  constexpr uid_t kNobody = 65'534;
  testing::internal::CaptureStderr();
  const pid_t child = ::fork();
  if (child == 0) {
    bool served = ::setresuid(kNobody, kNobody, kNobody) != 0;
    for (int i = 0; i < 50; ++i)
      TcpStoreConnection(place_).set("/k", "leaves at once");
    TcpStoreConnection stranger(place_);
    stranger.set("/k", "stays");
    served |= !stranger.is_closed_by_peer();
    ::_exit(served ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(client()->check({"k"}).value());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("a process of user 65534 wanted to connect to the workers' store"));
}

// As with a client that connects by itself.
TEST_P(RelayTest, WaitsForAStoreThatCannotBeReachedYet) {
  auto bound = bind_endpoint({"127.0.0.1", 0}).value();
  const Endpoint late = local_endpoint(bound.front().get()).value();
  begin(options(), late);
  auto waiting = std::async(std::launch::async, [&] { return client()->add("n", 1); });
  Server server(Store::options(tls_));
  ASSERT_TRUE(server.adopt_listener(bound.front().release(), Table::Workers));
  const test::Serving serving(server);
  EXPECT_EQ(waiting.get().value(), 1);
}

TEST_P(RelayTest, SaysWhatItTriesAgainFor) {
  std::promise<std::string> said;
  log::redirect([&, first = true](std::string line) mutable {
    if (std::exchange(first, false)) said.set_value(std::move(line));
  });
  auto bound = bind_endpoint({"127.0.0.1", 0}).value();  // and nobody listens there
  const Endpoint store = local_endpoint(bound.front().get()).value();
  begin(options(), store);
  const TcpStoreConnection waiting(place_);
  auto line = said.get_future();
  const auto came = line.wait_for(kPatience);
  relay_.reset();
  log::redirect({});
  ASSERT_EQ(came, std::future_status::ready);
  EXPECT_THAT(line.get(), HasSubstr("the workers' store at " + to_string(store) +
                                    ": Connection refused; trying again"));
}

TEST_P(RelayTest, GivesUpAStoreThatCannotBeReached) {
  auto bound = bind_endpoint({"127.0.0.1", 0}).value();
  RelayOptions impatient = options();
  impatient.patience = 1ms;
  testing::internal::CaptureStderr();
  begin(std::move(impatient), local_endpoint(bound.front().get()).value());
  TcpStoreConnection waiting(place_);
  EXPECT_TRUE(waiting.is_closed_by_peer());
  relay_.reset();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("Connection refused"));
}

// It has been served for long when it needs a connection of its own.
TEST_P(RelayTest, AConnectionOfItsOwnHasThePatienceOfANewOne) {
  RelayOptions impatient = options();
  impatient.patience = 2s;
  begin(impatient, store_.endpoint);
  TcpStoreConnection one(place_);
  EXPECT_EQ(one.add("/n", 1), 1);
  const auto over = std::chrono::steady_clock::now() + impatient.patience;
  for (std::int64_t sum = 2; std::chrono::steady_clock::now() <= over; ++sum)
    ASSERT_EQ(one.add("/n", 1), sum);
  one.set("/large", std::string(100'000, 'x'));
  EXPECT_EQ(one.get("/large").size(), 100'000U);
}

TEST_P(RelayTest, MoreThanThereIsRoomForWait) {
  RelayOptions small = options();
  small.clients = 2;
  begin(std::move(small), store_.endpoint);
  std::vector<std::unique_ptr<TcpStoreConnection>> open;
  for (int i = 0; i < 3; ++i)
    open.push_back(std::make_unique<TcpStoreConnection>(place_));
  open[2]->send(add_request("/late", 1));
  for (int i = 1; i <= 100; ++i)
    EXPECT_EQ(open[0]->add("n", 1), i);
  EXPECT_EQ(open[1]->get("/late"), "") << "a third one was served";
  open[0].reset();
  EXPECT_EQ(open[2]->receive_number(), 1);
}

TEST_P(RelayTest, LongAndShortValuesAreTheSameToClients) {
  auto one = client().value();
  auto other = client().value();
  for (const std::size_t size : {1U << 10U, 1U << 16U, 1U << 17U, 1U << 10U}) {
    const std::string value(size, 'x');
    ASSERT_TRUE(one.set("k", value));
    EXPECT_EQ(one.get("k").value(), value);
    EXPECT_EQ(other.append("k", value).ok(), true);
    EXPECT_EQ(other.get("k").value().size(), 2 * size);
  }
}

// Whoever adds has the number that nobody else has.
TEST_P(RelayTest, EachAddOfManyHasItsOwnNumber) {
  constexpr int kThreads = 8;
  constexpr int kAdds = 200;
  Relay another(options());
  const Endpoint there = another.begin(store_.endpoint).value();
  std::vector<std::future<std::vector<std::int64_t>>> adders;
  for (int i = 0; i < kThreads; ++i)
    adders.push_back(std::async(std::launch::async, [&, i] {
      TcpStoreConnection one(i % 2 == 0 ? place_ : there);
      std::vector<std::int64_t> sums;
      for (int k = 0; k < kAdds; ++k)
        sums.push_back(one.add("/n", 1));
      return sums;
    }));
  std::vector<std::int64_t> all;
  for (auto& adder : adders) {
    const auto sums = adder.get();
    EXPECT_TRUE(std::is_sorted(sums.begin(), sums.end()));
    all.insert(all.end(), sums.begin(), sums.end());
  }
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i)
    ASSERT_EQ(all[i], static_cast<std::int64_t>(i) + 1);
}

// A client's fault is its own.
TEST_P(RelayTest, WhomTheStoreClosesIsClosedAlone) {
  TcpStoreConnection good(place_);
  TcpStoreConnection bad(place_);
  EXPECT_EQ(good.add("/n", 1), 1);
  good.set("/text", "x");
  EXPECT_EQ(good.get("/text"), "x");
  bad.send(add_request("/text", 1));
  EXPECT_TRUE(bad.is_closed_by_peer());
  EXPECT_EQ(good.add("/n", 1), 2);
}

TEST_P(RelayTest, WhatHasBegunWhenTheStoreGoesIsClosed) {
  auto ending = std::make_unique<Store>(tls_);
  begin(options(), ending->endpoint);
  TcpStoreConnection waiting(place_);
  waiting.start_wait({"/k"});
  TcpStoreConnection half(place_);
  half.send(test::set_request("/k", "value").substr(0, 12));
  TcpStoreConnection other(place_);
  EXPECT_EQ(other.add("/n", 1), 1);
  ending.reset();
  EXPECT_TRUE(waiting.is_closed_by_peer());
  EXPECT_TRUE(other.is_closed_by_peer());
}

INSTANTIATE_TEST_SUITE_P(Tokens, RelayTest, testing::Bool(),
                         [](const auto& chosen) { return chosen.param ? "With" : "Without"; });

// What a store says of itself.
class Count {
 public:
  explicit Count(const Endpoint& store) : store_(store) {}
  std::uint64_t operator()(std::string_view name) {
    store_.request(++last_, control::Stats{});
    const auto received = store_.receive_reply();
    for (const auto& [counter, value] : std::get<control::Counters>(received.reply).counters)
      if (counter == name) return value;
    ADD_FAILURE() << name;
    return 0;
  }

 private:
  test::ControlConnection store_;
  std::uint64_t last_ = 0;
};

TEST(RelayOfAJobTest, TheStoreSeesNodesAndNotRanks) {
  constexpr std::size_t kClients = 64;
  const test::RunningServer server;
  Relay relay;
  const Endpoint place = relay.begin(server.endpoint()).value();
  Count count(server.endpoint());
  std::vector<std::unique_ptr<TcpStoreConnection>> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<TcpStoreConnection>(place));
    EXPECT_EQ(clients.back()->add("/n", 1), static_cast<std::int64_t>(i) + 1);
  }
  EXPECT_EQ(count("connections"), 2U) << "the relay's, and that which asks";
  // One that moves long values has its own, until it goes.
  clients.back()->set("/long", std::string(100'000, 'x'));
  EXPECT_EQ(clients.back()->get("/long").size(), 100'000U);
  EXPECT_EQ(count("connections"), 3U);
  clients.pop_back();
  EXPECT_TRUE(test::eventually([&] { return count("connections") == 2; }));
}

TEST(RelayOfAJobTest, WaitsForOneKeyAreOneAtTheStore) {
  const test::RunningServer server;
  Relay relay;
  const Endpoint place = relay.begin(server.endpoint()).value();
  Count count(server.endpoint());
  std::vector<std::unique_ptr<TcpStoreConnection>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<TcpStoreConnection>(place));
    clients.back()->start_wait({"/k"});
    // Its wait is there when its next request is answered.
    EXPECT_EQ(clients.back()->add("/n", 1), i + 1);
  }
  EXPECT_EQ(count("waits"), 1U);
  clients.pop_back();
  TcpStoreConnection other(place);
  other.set("/k", "");
  for (const auto& client : clients)
    EXPECT_EQ(client->receive(1), std::string(1, '\0'));
  EXPECT_EQ(count("waits"), 0U);
}

TEST(RelayOfAJobTest, WhoDiesFreesItsWait) {
  const test::RunningServer server;
  Relay relay;
  const Endpoint place = relay.begin(server.endpoint()).value();
  Count count(server.endpoint());
  {
    TcpStoreConnection one(place);
    TcpStoreConnection two(place);
    one.start_wait({"/j", "/k"});
    two.start_wait({"/k", "/j"});
    EXPECT_TRUE(test::eventually([&] { return count("waits") == 2; }));
    two.close();
    EXPECT_TRUE(test::eventually([&] { return count("waits") == 1; }));
  }
  EXPECT_TRUE(test::eventually([&] { return count("waits") == 0; }));
}

// What the token is for.
TEST(RelayOfAJobTest, TheStoreItselfIsClosedToStrangers) {
  const auto tls = test::tls_of(test::kToken);
  for (const bool closed : {true, false}) {
    ServerOptions options;
    options.tls = tls;
    options.workers_need_token = closed;
    Server server(options);
    const Endpoint endpoint = server.add_listener({"127.0.0.1", 0}, Table::Workers).value();
    const test::Serving serving(server);
    TcpStoreConnection stranger(endpoint);
    if (closed)
      EXPECT_TRUE(stranger.is_closed_by_peer());
    else
      EXPECT_EQ(stranger.add("/n", 1), 1);
    ClientOptions with_token;
    with_token.tls = tls;
    auto relay = Client::connect(endpoint, kPatience, with_token);
    ASSERT_TRUE(relay) << relay.error().what();
    EXPECT_EQ(relay->add("n", 1).value(), closed ? 1 : 2);
  }
}

TEST(RelayOfAJobTest, OnTheWayNobodyReadsKeysAndValues) {
  for (const bool secret : {false, true}) {
    ServerOptions options;
    options.tls = secret ? test::tls_of(test::kToken) : nullptr;
    options.workers_need_token = true;
    Server server(options);
    const Endpoint endpoint = server.add_listener({"127.0.0.1", 0}, Table::Workers).value();
    const test::Serving serving(server);
    test::Eavesdropper ear(endpoint.port);
    RelayOptions relayed;
    relayed.tls = options.tls;
    Relay relay(relayed);
    auto client =
        Client::connect(relay.begin(parse_endpoint(ear.endpoint(), 0).value()).value(), kPatience);
    ASSERT_TRUE(client && client->set("the-key", "the-value"));
    EXPECT_EQ(client->get("the-key").value(), "the-value");
    const std::string& heard = ear.heard();
    EXPECT_GT(heard.size(), 50U);
    for (const std::string text : {"the-key", "the-value", test::kToken.c_str()}) {
      if (secret || text == test::kToken)
        EXPECT_THAT(heard, testing::Not(HasSubstr(text)));
      else
        EXPECT_THAT(heard, HasSubstr(text)) << "it is there to be heard";
    }
  }
}

// They learn of it, and the store hears nothing that is not secret.
TEST(RelayOfAJobTest, WithoutMemoryForTlsThoseWhoWaitAreClosed) {
  if (!test::kHasScarceMemory) GTEST_SKIP() << "memory cannot be made scarce";
  auto bound = bind_endpoint({"127.0.0.1", 0}).value();
  ASSERT_TRUE(start_listening(bound.front().get()));
  RelayOptions relayed;
  relayed.tls = test::tls_of(test::kToken);
  Relay relay(relayed);
  const Endpoint place = relay.begin(local_endpoint(bound.front().get()).value()).value();
  test::too_large = sizeof(secure::TlsEngine);
  TcpStoreConnection waiting(place);
  waiting.set("/k", "secret");
  EXPECT_TRUE(waiting.is_closed_by_peer());
  test::too_large = 0;
  FileDescriptor heard(::accept4(bound.front().get(), nullptr, nullptr, SOCK_CLOEXEC));
  char byte = 0;
  EXPECT_EQ(::recv(heard.get(), &byte, 1, 0), 0);
}

TEST(RelayOfAJobTest, WithoutMemoryForTlsNobodyGoesOnAlone) {
  if (!test::kHasScarceMemory) GTEST_SKIP() << "memory cannot be made scarce";
  ServerOptions options;
  options.tls = test::tls_of(test::kToken);
  options.workers_need_token = true;
  Server server(options);
  const Endpoint endpoint = server.add_listener({"127.0.0.1", 0}, Table::Workers).value();
  const test::Serving serving(server);
  RelayOptions relayed;
  relayed.tls = options.tls;
  Relay relay(relayed);
  const Endpoint place = relay.begin(endpoint).value();
  TcpStoreConnection one(place);
  TcpStoreConnection other(place);
  EXPECT_EQ(one.add("/n", 1), 1);
  test::too_large = sizeof(secure::TlsEngine);
  one.set("/large", std::string(100'000, 'x'));
  EXPECT_TRUE(one.is_closed_by_peer());
  test::too_large = 0;
  EXPECT_EQ(other.add("/n", 1), 2);
}

// As a store does that is full of strangers.
TEST(RelayOfAJobTest, AConnectionThatEndsBeforeTheTokenIsShownIsTriedAgain) {
  ServerOptions options;
  options.tls = test::tls_of(test::kToken);
  options.workers_need_token = true;
  auto bound = bind_endpoint({"127.0.0.1", 0}).value();
  ASSERT_TRUE(start_listening(bound.front().get()));
  RelayOptions relayed;
  relayed.tls = options.tls;
  Relay relay(relayed);
  const Endpoint place = relay.begin(local_endpoint(bound.front().get()).value()).value();
  auto sum = std::async(std::launch::async,
                        [&] { return Client::connect(place, kPatience)->add("n", 1); });
  for (int i = 0; i < 2; ++i) {
    pollfd listens{bound.front().get(), POLLIN, 0};
    ASSERT_EQ(::poll(&listens, 1, static_cast<int>(kPatience.count())), 1);
    FileDescriptor ended(::accept4(bound.front().get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (i == 0) (void)::shutdown(ended.get(), SHUT_WR);  // the other one with a reset
  }
  Server server(options);
  ASSERT_TRUE(server.adopt_listener(bound.front().release(), Table::Workers));
  const test::Serving serving(server);
  EXPECT_EQ(sum.get().value(), 1);
}

TEST(RelayOfAJobTest, AStoreWithAnotherTokenIsNamedOnce) {
  ServerOptions options;
  options.tls = test::tls_of(test::kOtherToken);
  options.workers_need_token = true;
  Server server(options);
  const Endpoint endpoint = server.add_listener({"127.0.0.1", 0}, Table::Workers).value();
  const test::Serving serving(server);
  RelayOptions relayed;
  relayed.tls = test::tls_of(test::kToken);
  testing::internal::CaptureStderr();
  {
    Relay relay(relayed);
    TcpStoreConnection client(relay.begin(endpoint).value());
    EXPECT_TRUE(client.is_closed_by_peer());
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("does not know this token"));
}

}  // namespace
}  // namespace drun::store
