// The address that the store had is tried first after a break, but its name may have another by
// now.
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"
#include "drun/store/control_client.hpp"
#include "support/patience.hpp"
#include "support/running_server.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;

// How many sockets of this machine are in this state on their way to this place, which is on the
// loopback interface.
int connections_to(const Endpoint& place, unsigned state) {
  const bool six = place.host == "::1";
  std::ifstream table(six ? "/proc/net/tcp6" : "/proc/net/tcp");
  char remote[48];
  std::snprintf(remote, sizeof remote, " %s:%04X %02X ",
                six ? "00000000000000000000000001000000" : "0100007F", unsigned{place.port}, state);
  int found = 0;
  for (std::string line; std::getline(table, line);)
    found += line.find(remote) != std::string::npos ? 1 : 0;
  return found;
}

// A client that had a session of the store at "localhost", of which 127.0.0.1 is tried first.
class MovedStoreTest : public testing::Test {
 protected:
  // At this address of that name. False: it is none here.
  bool had_session_at(const std::string& host) {
    store_.emplace();
    const auto place = store_->add_listener({host, 0}, Table::Job);
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

// A socket that listens there and accepts nobody, and those that its full queue keeps waiting.
std::vector<FileDescriptor> silent_at(const Endpoint& endpoint) {
  const SocketAddress place = numeric_address(endpoint);
  const int family = place.storage.ss_family;
  std::vector<FileDescriptor> sockets;
  sockets.emplace_back(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(sockets[0].get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(sockets[0].get(), place.get(), place.length) != 0 ||
      ::listen(sockets[0].get(), 0) != 0)
    return {};
  for (int i = 0; i < 4; ++i) {
    sockets.emplace_back(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::connect(sockets.back().get(), place.get(), place.length);
  }
  return sockets;
}

// Or it would come to stand later, beside the one that was found.
TEST_F(MovedStoreTest, TheAttemptAtItsOldAddressEndsWhenItIsFound) {
  if (!had_session_at("::1")) GTEST_SKIP() << "[::1] cannot be used";
  ASSERT_TRUE(listen_at("127.0.0.1"));
  serve();
  const auto silent = silent_at(old_);
  const int others = connections_to(old_, TCP_SYN_SENT);
  ASSERT_GT(others, 0);
  ASSERT_TRUE(came(ControlState::Down));
  ASSERT_TRUE(came(ControlState::NewSession));
  EXPECT_EQ(connections_to(old_, TCP_SYN_SENT), others);
}

TEST_F(MovedStoreTest, AConnectionThatIsNotNeededIsClosedOnceTheSessionStands) {
  ASSERT_TRUE(had_session_at("127.0.0.1"));
  ASSERT_TRUE(listen_at("127.0.0.1"));
  ASSERT_TRUE(came(ControlState::Down));
  // One to its address and one by its name, while nobody answers.
  ASSERT_TRUE(until([this] { return connections_to(old_, TCP_ESTABLISHED) == 2; }));
  ASSERT_TRUE(until([] { return true; }));
  serve();
  ASSERT_TRUE(came(ControlState::NewSession));
  EXPECT_EQ(connections_to(old_, TCP_ESTABLISHED), 1);
}

}  // namespace
}  // namespace drun::store
