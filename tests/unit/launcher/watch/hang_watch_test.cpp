#include "launcher/watch/hang_watch.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
