#include "launcher/watch/hang_watch.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "support/group_rig.hpp"
#include "support/patience.hpp"
#include "support/waiting_process.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using drun::test::WaitingProcess;
using std::chrono::milliseconds;
using test::place_of;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Clock = std::chrono::steady_clock;

class HangWatchTest : public testing::Test {
 protected:
  ~HangWatchTest() override {
    watch_.cancel();
    io_.restart();
    io_.run();
  }
  bool until(const std::function<bool()>& condition) {
    const auto deadline = Clock::now() + kPatience;
    io_.restart();
    while (!condition())
      if (io_.run_one_until(deadline) == 0) return false;
    return true;
  }
  std::optional<std::vector<WaitingRank>> places() {
    std::optional<std::vector<WaitingRank>> found;
    watch_.find_places([&found](const auto& places) { found = places; });
    EXPECT_FALSE(found) << "not from inside the call";
    (void)until([&found] { return found.has_value(); });
    return found;
  }

  static constexpr milliseconds kTimeout{1'000};
  const WaitingProcess first_;
  const WaitingProcess second_;
  asio::io_context io_{1};
  test::GroupRig rig_;
  std::vector<bool> stalled_;
  std::vector<std::string> doubts_;
  HangWatch watch_{io_,
                   kTimeout,
                   Endpoint{"127.0.0.1", 1},
                   rig_.group,
                   [this](bool stalled) { stalled_.push_back(stalled); },
                   [this](const std::string& doubt) { doubts_.push_back(doubt); }};
};

TEST_F(HangWatchTest, WorkersThatWaitHangAndThoseThatAreStoppedDoNot) {
  rig_.start(place_of(0, 1), {first_.pid(), second_.pid()});
  const auto begun = Clock::now();
  watch_.start();
  ASSERT_TRUE(until([this] { return !stalled_.empty(); }));
  EXPECT_GE(Clock::now() - begun, kTimeout);
  EXPECT_THAT(stalled_, ElementsAre(true));
  (void)rig_.group.stop(false, rig_.now);
  ASSERT_TRUE(until([this] { return stalled_.size() >= 2; }));
  EXPECT_THAT(stalled_, ElementsAre(true, false));
  EXPECT_THAT(doubts_, IsEmpty());
}

TEST_F(HangWatchTest, WhileTheyAreHeldNothingIsFound) {
  rig_.start(place_of(0, 1), {first_.pid(), second_.pid()});
  watch_.on_held(true);
  watch_.start();
  io_.run_for(kTimeout * 5 / 2);
  EXPECT_THAT(stalled_, IsEmpty());
  watch_.on_held(false);
  ASSERT_TRUE(until([this] { return !stalled_.empty(); }));
  // Later looks do not take what the helper did for progress.
  for (int i = 0; i < 5; ++i) {
    watch_.on_held(true);
    io_.restart();
    io_.run_for(kTimeout / 20);
    watch_.on_held(false);
    io_.restart();
    io_.run_for(kTimeout / 5);
  }
  EXPECT_THAT(stalled_, ElementsAre(true));
}

TEST_F(HangWatchTest, WorkersOfWhichNotAllHaveBeenStartedDoNotHang) {
  rig_.start(place_of(0, 1), {first_.pid()});
  watch_.start();
  io_.run_for(kTimeout * 5 / 2);
  EXPECT_THAT(stalled_, IsEmpty());
}

TEST_F(HangWatchTest, WhereTheyWaitIsFoundOfThoseThatRun) {
  rig_.start(place_of(1, 2), {first_.pid(), second_.pid()});
  watch_.start();
  ASSERT_TRUE(until([this] { return !stalled_.empty(); }));
  const auto both = places();
  ASSERT_TRUE(both);
  ASSERT_THAT(*both, SizeIs(2));
  EXPECT_EQ(both->at(0).worker, rig_.id(0));
  EXPECT_EQ(both->at(0).pid, first_.pid());
  EXPECT_EQ(both->at(1).local_rank, 1);
  EXPECT_FALSE(both->at(1).behind);
  (void)rig_.end(0);
  const auto one = places();
  ASSERT_TRUE(one);
  ASSERT_THAT(*one, SizeIs(1));
  EXPECT_EQ(one->at(0).pid, second_.pid());
}

// A service of NCCL's that takes the question, and keeps its answer.
class SilentService {
 public:
  SilentService() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_.get(), 1);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  [[nodiscard]] Endpoint endpoint() const { return {"127.0.0.1", port_}; }
  [[nodiscard]] bool asked() {
    if (!client_) client_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return static_cast<bool>(client_);
  }
  // Its answer is still awaited.
  [[nodiscard]] bool awaited() const {
    char bytes[256];
    ssize_t got = 0;
    do
      got = ::recv(client_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    while (got > 0);
    return got < 0 && errno == EAGAIN;
  }

 private:
  const FileDescriptor listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  FileDescriptor client_;
  std::uint16_t port_ = 0;
};

// The leader waits for the places, a few seconds.
TEST_F(HangWatchTest, WhereTheyWaitIsFoundWhileNcclIsAsked) {
  SilentService nccl;
  const drun::test::BusyProcess busy;
  HangWatch watch(
      io_, milliseconds(5'000), nccl.endpoint(), rig_.group, [](bool) {},
      [](const std::string&) {});
  rig_.start(place_of(0, 1), {busy.pid(), second_.pid()});
  watch.start();
  ASSERT_TRUE(until([&nccl] { return nccl.asked(); }));
  std::vector<WaitingRank> found;
  watch.find_places([&found](const auto& places) { found = places; });
  ASSERT_TRUE(until([&found] { return !found.empty(); }));
  EXPECT_TRUE(nccl.awaited());
  watch.cancel();
}

TEST_F(HangWatchTest, WithoutATimeNobodyLooks) {
  HangWatch none(
      io_, std::nullopt, Endpoint{"127.0.0.1", 1}, rig_.group, [](bool) { FAIL(); },
      [](const std::string&) { FAIL(); });
  none.start();
  EXPECT_EQ(io_.run(), 0U);
  EXPECT_EQ(none.collectives().text(), "");
  none.cancel();
}

}  // namespace
}  // namespace drun::launcher
