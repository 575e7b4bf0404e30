// All-gathers and typed values through a store of drun's.
#include <cstdlib>
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/store/client.hpp"
#include "drun/store/errors.hpp"
#include "support/patience.hpp"
#include "support/running_server.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using test::kPatience;
using testing::ElementsAre;
using testing::HasSubstr;

class ExchangeTest : public testing::TestWithParam<TcpStoreVersion> {
 protected:
  Client connect() const {
    return Client::connect(server_.endpoint(), kPatience, {.version = GetParam()}).value();
  }

  test::RunningServer server_;
};

TEST_P(ExchangeTest, GivesEveryRankTheValuesOfAllAsOftenAsTheyLike) {
  constexpr int kSize = 5;
  constexpr int kTimes = 4;
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < kSize; ++rank) {
    ranks.push_back(std::async(std::launch::async, [this, rank] {
      Client client = connect();
      for (int time = 0; time < kTimes; ++time) {
        const auto all = client.exchange(rank, kSize, rank * 10 + time, kPatience);
        ASSERT_TRUE(all) << all.error().what();
        EXPECT_THAT(*all, ElementsAre(time, 10 + time, 20 + time, 30 + time, 40 + time));
      }
    }));
  }
  for (auto& rank : ranks)
    rank.get();
  EXPECT_LE(connect().num_keys().value(), 2 * kSize) << "what everybody has read is deleted";
}

TEST_P(ExchangeTest, KeepsBytesAsTheyAre) {
  const std::string binary("\0\xff\n", 3);
  Client client = connect();
  EXPECT_THAT(client.exchange(0, 1, binary).value(), ElementsAre(binary));
  EXPECT_THAT(client.exchange(0, 1, "").value(), ElementsAre(""));
}

TEST_P(ExchangeTest, RefusesARankThatCannotBe) {
  Client client = connect();
  for (const auto& [rank, size] : {std::pair{-1, 2}, {2, 2}, {0, 0}}) {
    const auto all = client.exchange(rank, size, "x");
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code(), std::errc::invalid_argument);
  }
  EXPECT_TRUE(client.connected());
}

INSTANTIATE_TEST_SUITE_P(Versions, ExchangeTest,
                         testing::Values(TcpStoreVersion::Torch2_2, TcpStoreVersion::Torch1_13),
                         [](const auto& version) {
                           return version.param == TcpStoreVersion::Torch2_2 ? "Torch22"
                                                                             : "Torch113";
                         });

TEST(ExchangeTimeoutTest, NamesWhoDidNotComeAndGoesOnWhereItWas) {
  const test::RunningServer server;
  Client first = Client::connect(server.endpoint(), kPatience).value();
  Client third = Client::connect(server.endpoint(), kPatience).value();
  const auto late = first.exchange(0, 5, "a", 20ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::Timeout);
  EXPECT_THAT(late.error().what(), HasSubstr("ranks 1-4 did not come"));
  std::vector<std::future<void>> others;
  for (const int rank : {1, 3, 4}) {
    others.push_back(std::async(std::launch::async, [&, rank] {
      Client client = Client::connect(server.endpoint(), kPatience).value();
      EXPECT_TRUE(client.exchange(rank, 5, "x", kPatience));
    }));
  }
  ASSERT_TRUE(first.wait({"exchange/0/1", "exchange/0/3", "exchange/0/4"}, kPatience));
  EXPECT_THAT(first.exchange(0, 5, "a", 20ms).error().what(), HasSubstr("rank 2 did not come"));
  EXPECT_TRUE(third.exchange(2, 5, "c", kPatience));
  EXPECT_THAT(first.exchange(0, 5, "a", kPatience).value(), ElementsAre("a", "x", "c", "x", "x"));
  for (auto& other : others)
    other.get();
}

TEST(TypedValuesTest, AreSetAndGotAsWhatTheyAre) {
  const test::RunningServer server;
  Client client = Client::connect(server.endpoint(), kPatience).value();
  ASSERT_TRUE(client.set("n", 41));
  EXPECT_EQ(client.add("n", 1).value(), 42) << "a number is what add() takes it for";
  EXPECT_EQ(client.get<int>("n").value(), 42);
  ASSERT_TRUE(client.set("loss", 0.25));
  EXPECT_EQ(client.get<double>("loss").value(), 0.25);
  const std::vector<float> row{1, 2, 3};
  ASSERT_TRUE(client.set("row", std::span(row)));
  EXPECT_EQ(client.get<std::vector<float>>("row").value(), row);

  const auto misfit = client.get<int>("row");
  ASSERT_FALSE(misfit);
  EXPECT_EQ(misfit.error().code(), Errc::Malformed);
  EXPECT_EQ(misfit.error().what(), "'row' at " + to_string(server.endpoint()) +
                                       ": the value, of 12 bytes, is not a whole number that its "
                                       "type can hold");
  EXPECT_TRUE(client.connected());
  EXPECT_EQ(client.get<int>("missing", 0ms).error().code(), Errc::Timeout);
}

// Sets a variable of this process while it lives; others are not running then.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(ConnectTest, WithoutAnEndpointGoesToTheWorkersStore) {
  const test::RunningServer server;
  const Variable address("MASTER_ADDR", server.endpoint().host);
  {
    const auto nowhere = Client::connect();
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().what(), "MASTER_PORT is not set: start this program with drun");
  }
  const Variable port("MASTER_PORT", std::to_string(server.endpoint().port));
  auto client = Client::connect();
  ASSERT_TRUE(client) << client.error().what();
  EXPECT_EQ(client->endpoint(), server.endpoint());
  EXPECT_EQ(Client::connect(kPatience, {.prefix = "p"})->add("n", 2).value(), 2);
  EXPECT_EQ(client->get("p/n").value(), "2");
}

}  // namespace
}  // namespace drun::store
