#include "launcher/backend/address_book.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

// Look-ups that are answered when a test says so.
class AddressBookTest : public ::testing::Test {
 protected:
  void reply(std::size_t question, Result<store::Addresses> addresses) {
    look_ups_[question]->post(std::make_unique<Result<store::Addresses>>(std::move(addresses)));
    const int before = changed_;
    io_.restart();
    io_.poll();
    has_changed_ = changed_ > before;
  }
  void reply_with(std::size_t question, const std::vector<std::string>& hosts) {
    store::Addresses all;
    for (const auto& host : hosts)
      all.push_back(store::literal_addresses({host, 0}).front());
    reply(question, std::move(all));
  }
  [[nodiscard]] std::vector<std::string> known(const Endpoint& place) const {
    std::vector<std::string> result;
    for (const auto& each : book_.addresses(place))
      result.push_back(to_string(to_endpoint(each)));
    return result;
  }

  asio::io_context io_{1};
  std::vector<std::string> asked_;
  std::vector<store::LookUp> look_ups_;
  int changed_ = 0;
  bool has_changed_ = false;
  AddressBook book_{io_,
                    [this](const Endpoint& endpoint) {
                      asked_.push_back(endpoint.host);
                      look_ups_.push_back(std::make_shared<store::LookUp::element_type>());
                      return look_ups_.back();
                    },
                    [this] { ++changed_; }};
};

using Strings = std::vector<std::string>;

TEST_F(AddressBookTest, LooksNoNumberUp) {
  book_.look_up({{"10.0.0.1", 7}, {"::1", 7}, {"localhost", 7}});
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(known({"10.0.0.1", 7}), Strings{"10.0.0.1:7"});
}

TEST_F(AddressBookTest, ANameIsLookedUpOnceForAllItsPorts) {
  book_.look_up({{"node1", 7}, {"node1", 8}, {"node2", 7}});
  EXPECT_EQ(asked_, (Strings{"node1", "node2"}));
  EXPECT_TRUE(known({"node1", 7}).empty());
  reply_with(0, {"10.0.0.1", "fd77::1"});
  EXPECT_TRUE(has_changed_);
  EXPECT_EQ(known({"node1", 7}), (Strings{"10.0.0.1:7", "[fd77::1]:7"}));
  EXPECT_EQ(known({"node1", 9}), (Strings{"10.0.0.1:9", "[fd77::1]:9"})) << "who had joined later";
  EXPECT_TRUE(known({"node2", 7}).empty());
}

TEST_F(AddressBookTest, WhatIsKnownCountsUntilAnotherAnswerComes) {
  book_.look_up({{"node1", 7}});
  reply_with(0, {"10.0.0.1"});
  book_.look_up({{"node1", 7}});
  book_.look_up({{"node1", 7}});
  EXPECT_EQ(asked_.size(), 2U) << "not while it is being asked";
  EXPECT_EQ(known({"node1", 7}), Strings{"10.0.0.1:7"});
  reply_with(1, {"10.0.0.1"});
  EXPECT_FALSE(has_changed_);
  book_.look_up({{"node1", 7}});
  reply(2, Error(std::make_error_code(std::errc::host_unreachable), "no such name"));
  EXPECT_FALSE(has_changed_);
  EXPECT_EQ(known({"node1", 7}), Strings{"10.0.0.1:7"});
  book_.look_up({{"node1", 7}});
  reply_with(3, {"10.0.0.9"});
  EXPECT_TRUE(has_changed_);
  EXPECT_EQ(known({"node1", 7}), Strings{"10.0.0.9:7"});
}

TEST_F(AddressBookTest, ANameThatWasNotFoundIsLookedUpAgain) {
  book_.look_up({{"node1", 7}});
  reply(0, Error(std::make_error_code(std::errc::host_unreachable), "no such name"));
  io_.restart();
  while (asked_.size() < 2)
    io_.run_one();
  reply_with(1, {"10.0.0.1"});
  EXPECT_EQ(known({"node1", 7}), Strings{"10.0.0.1:7"});
}

// Not every two seconds for ever: each agent of a large job would.
TEST_F(AddressBookTest, ANameThatIsNeverFoundIsLookedUpSeldom) {
  using std::chrono::seconds;
  EXPECT_EQ(AddressBook::pause_after(0), seconds(0));
  EXPECT_EQ(AddressBook::pause_after(1), seconds(2));
  EXPECT_EQ(AddressBook::pause_after(2), seconds(4));
  std::chrono::milliseconds now{};
  std::size_t starts = 1;
  for (; now < std::chrono::hours(24); ++starts)
    now += AddressBook::pause_after(starts);
  EXPECT_LT(starts, 400U);
  EXPECT_EQ(AddressBook::pause_after(1'000'000), AddressBook::pause_after(starts));
  EXPECT_LE(AddressBook::pause_after(starts), std::chrono::minutes(5));
}

TEST_F(AddressBookTest, AfterTheEndNothingIsAwaited) {
  book_.look_up({{"node1", 7}});
  book_.abandon();
  io_.restart();
  io_.run();  // returns
  EXPECT_EQ(changed_, 0);
}

}  // namespace
}  // namespace drun::launcher
