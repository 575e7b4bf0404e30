#include "store/client/async_look_up.hpp"

#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <gtest/gtest.h>

#include "base/addresses.hpp"
#include "base/file_descriptor.hpp"
#include "base/mailbox.hpp"
#include "base/socket_address.hpp"
#include "support/patience.hpp"

namespace drun::store {
namespace {

class AsyncLookUpTest : public testing::Test {
 protected:
  // Answered when the test says so.
  LookUp start() {
    asked_.push_back(std::make_shared<LookUp::element_type>());
    return asked_.back();
  }
  void answer(std::size_t question) {
    asked_[question]->post(std::make_unique<Result<Addresses>>(Addresses(question + 1)));
  }
  AsyncLookUp::Answer note() {
    return [this](const Result<Addresses>& found) { answers_.push_back(found->size()); };
  }

  asio::io_context io_;
  std::vector<LookUp> asked_;
  std::vector<std::size_t> answers_;
  AsyncLookUp look_up_{io_, [this](const Endpoint&) { return start(); }};
};

TEST_F(AsyncLookUpTest, CallsBackOnce) {
  look_up_.ask({"head", 1}, note());
  answer(0);
  io_.run();
  EXPECT_EQ(answers_, (std::vector<std::size_t>{1}));
}

// Asks the system.
TEST(LookUpTest, ANameOfThisMachineHasAddressesOfItsOwn) {
  asio::io_context io(1);
  AsyncLookUp look_up(io);
  std::optional<Result<Addresses>> found;
  look_up.ask({"localhost", 29400},
              [&](Result<Addresses> addresses) { found = std::move(addresses); });
  io.run_for(test::kPatience);
  ASSERT_TRUE(found);
  ASSERT_TRUE(*found) << (*found).error().what();
  ASSERT_FALSE((**found).empty());
  for (const SocketAddress& address : **found) {
    EXPECT_TRUE(is_loopback_address(to_endpoint(address).host)) << to_endpoint(address).host;
    EXPECT_EQ(to_endpoint(address).port, 29400);
  }
}

// The answer and what makes the caller ask again come in one turn of the loop.
TEST_F(AsyncLookUpTest, AnAbandonedQuestionDoesNotAnswerTheNext) {
  Mailbox<int> news;
  asio::posix::stream_descriptor heard(io_, duplicate(news.fd(), "listen").release());
  heard.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code) {
    look_up_.ask({"head", 1}, note());
  });
  look_up_.ask({"head", 1}, note());
  news.post(std::make_unique<int>(0));
  answer(0);
  io_.poll();
  EXPECT_TRUE(answers_.empty());
  answer(1);
  io_.run();
  EXPECT_EQ(answers_, (std::vector<std::size_t>{2}));
}

TEST_F(AsyncLookUpTest, NoCallAfterItWasAbandoned) {
  look_up_.ask({"head", 1}, note());
  answer(0);
  look_up_.abandon();
  io_.run();
  EXPECT_TRUE(answers_.empty());
}

}  // namespace
}  // namespace drun::store
