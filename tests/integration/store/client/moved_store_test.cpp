// The address that the store had is tried first after a break, but its name may have another by
// now.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

#include "drun/store/control_client.hpp"
#include "support/drun_process.hpp"
#include "support/patience.hpp"
#include "support/running_server.hpp"
#include "support/silent_place.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using test::connections_to;

// A client that had a session of the store at "localhost", of which 127.0.0.1 is tried first.
class MovedStoreTest : public testing::Test {
 protected:
  // At this address of that name. False: it is none here.
  bool had_session_at(const std::string& host) {
    store_.emplace();
    const auto place = store_->add_listener({host, port_}, Table::Job);
    if (!place) return false;
    serving_.emplace(*store_);
    old_ = *place;
    ControlOptions options;
    options.endpoint = {"localhost", old_.port};
    options.keep_alive = 60s;
    client_.emplace(io_, options, [this](const ControlEvent& event) {
      if (const auto* link = std::get_if<ControlLink>(&event)) states_.push_back(link->state);
    });
    client_->open();
    EXPECT_TRUE(came(ControlState::Up));
    serving_.reset();
    store_.emplace();  // its connections end
    return true;
  }
  bool listen_at(const std::string& host) {
    return store_->add_listener({host, old_.port}, Table::Job).ok();
  }
  void serve() { serving_.emplace(*store_); }
  // Whether this is what comes next.
  bool came(ControlState state) {
    const std::size_t before = states_.size();
    while (states_.size() == before && io_.run_one_for(60s) > 0) {
    }
    return states_.size() > before && states_.back() == state;
  }
  bool until(const std::function<bool()>& condition) {
    return test::eventually([&] {
      io_.restart();
      io_.poll();
      return condition();
    });
  }
  // Once to the address that the store had, and once by its name, while nobody answers.
  bool connects_twice() {
    return had_session_at("127.0.0.1") && listen_at("127.0.0.1") && came(ControlState::Down) &&
           until([this] { return connections_to(old_) == 2; }) && until([] { return true; });
  }

  const test::ReservedPort reserved_;  // of all addresses: nobody else may be there
  const std::uint16_t port_ = static_cast<std::uint16_t>(reserved_.number());
  std::optional<Server> store_;
  std::optional<test::Serving> serving_;
  Endpoint old_;
  asio::io_context io_{1};
  std::vector<ControlState> states_;
  std::optional<ControlClient> client_;
};

TEST_F(MovedStoreTest, IsFoundByItsName) {
  ASSERT_TRUE(had_session_at("127.0.0.1"));
  ASSERT_TRUE(came(ControlState::Down));
  if (!listen_at("::1")) GTEST_SKIP() << "[::1] cannot be used";
  serve();
  EXPECT_TRUE(came(ControlState::NewSession));
}

// Or it would come to stand later, beside the one that was found.
TEST_F(MovedStoreTest, TheAttemptAtItsOldAddressEndsWhenItIsFound) {
  if (!had_session_at("::1")) GTEST_SKIP() << "[::1] cannot be used";
  ASSERT_TRUE(listen_at("127.0.0.1"));
  serve();
  const test::SilentPlace silent(old_);
  ASSERT_TRUE(silent.is_silent());
  ASSERT_TRUE(came(ControlState::Down));
  ASSERT_TRUE(came(ControlState::NewSession));
  EXPECT_EQ(silent.callers(), 0);
}

TEST_F(MovedStoreTest, AConnectionThatIsNotNeededIsClosedOnceTheSessionStands) {
  ASSERT_TRUE(connects_twice());
  serve();
  ASSERT_TRUE(came(ControlState::NewSession));
  EXPECT_EQ(connections_to(old_), 1);
}

TEST_F(MovedStoreTest, ItsEndClosesAllConnectionsAtOnce) {
  ASSERT_TRUE(connects_twice());
  client_.reset();
  EXPECT_EQ(connections_to(old_), 0);
}

}  // namespace
}  // namespace drun::store
