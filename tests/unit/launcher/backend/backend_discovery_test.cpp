#include "launcher/backend/backend_discovery.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

// Look-ups that are answered when a test says so.
class BackendDiscoveryTest : public ::testing::Test {
 protected:
  void ask(const std::string& host) {
    discovery_.ask({host, 29400}, [this](Result<bool> own) { answer_ = std::move(own); });
  }
  void reply(Result<store::Addresses> addresses) {
    look_up_->post(std::make_unique<Result<store::Addresses>>(std::move(addresses)));
  }
  void reply_with(const std::string& address) { reply(store::literal_addresses({address, 29400})); }

  asio::io_context io_{1};
  store::LookUp look_up_ = std::make_shared<store::LookUp::element_type>();
  std::string asked_;
  std::optional<Result<bool>> answer_;
  BackendDiscovery discovery_{io_, [this](const Endpoint& endpoint) {
                                asked_ = endpoint.host;
                                return look_up_;
                              }};
};

TEST_F(BackendDiscoveryTest, LooksNoNumberUp) {
  ask("127.0.0.1");
  ASSERT_TRUE(answer_);
  EXPECT_TRUE(answer_->value());
  ask("192.0.2.1");  // reserved for documentation
  EXPECT_FALSE(answer_->value());
  ask("localhost");
  EXPECT_TRUE(answer_->value());
  EXPECT_EQ(asked_, "");
}

TEST_F(BackendDiscoveryTest, ANameIsThisMachineIfOneOfItsAddressesIs) {
  ask("head");
  EXPECT_EQ(asked_, "head");
  EXPECT_EQ(io_.poll(), 0U);
  auto addresses = store::literal_addresses({"192.0.2.1", 29400});
  addresses.push_back(store::literal_addresses({"127.0.0.1", 29400}).front());
  reply(std::move(addresses));
  io_.run();
  ASSERT_TRUE(answer_);
  EXPECT_TRUE(answer_->value());
}

TEST_F(BackendDiscoveryTest, ANameIsAnotherMachineIfNoneIs) {
  ask("head");
  reply_with("192.0.2.1");
  io_.run();
  ASSERT_TRUE(answer_);
  EXPECT_FALSE(answer_->value());
}

TEST_F(BackendDiscoveryTest, TellsWhyANameHasNoAddress) {
  ask("head");
  reply(Error(std::make_error_code(std::errc::host_unreachable), "no such name"));
  io_.run();
  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->error().what(), "no such name");
}

TEST_F(BackendDiscoveryTest, MayBeAskedAgainFromInsideTheAnswer) {
  int answers = 0;
  discovery_.ask({"head", 29400}, [&](const Result<bool>&) {
    ++answers;
    ask("head");
  });
  reply(Error(std::make_error_code(std::errc::host_unreachable), "no such name"));
  io_.run_one();
  EXPECT_EQ(answers, 1);
  EXPECT_FALSE(answer_);
  reply_with("127.0.0.1");
  io_.run();
  ASSERT_TRUE(answer_);
  EXPECT_TRUE(answer_->value());
}

TEST_F(BackendDiscoveryTest, AnAbandonedLookUpKeepsNothingWaiting) {
  ask("head");
  discovery_.abandon();
  io_.run();  // returns although no answer came
  EXPECT_FALSE(answer_);
  reply_with("127.0.0.1");
  io_.restart();
  io_.run();
  EXPECT_FALSE(answer_);
  EXPECT_EQ(look_up_.use_count(), 1);
}

TEST(BackendDiscoveryRealTest, TheSystemsAnswerHasABareCause) {
  asio::io_context io{1};
  BackendDiscovery discovery(io);
  std::optional<Result<bool>> answer;
  discovery.ask({"no-such-host.invalid", 29400},
                [&](Result<bool> own) { answer = std::move(own); });
  EXPECT_FALSE(answer);
  io.run();
  ASSERT_TRUE(answer);
  ASSERT_FALSE(answer->ok());
  EXPECT_EQ(answer->error().what().find("no-such-host"), std::string::npos)
      << answer->error().what();
}

}  // namespace
}  // namespace drun::launcher
