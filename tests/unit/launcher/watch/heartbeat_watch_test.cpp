#include "launcher/watch/heartbeat_watch.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/exit_codes.hpp"
#include "hang/heartbeat_file.hpp"
#include "launcher/output/log_layout.hpp"
#include "support/group_rig.hpp"
#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using std::chrono::milliseconds;
using test::place_of;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class HeartbeatWatchTest : public testing::Test {
 protected:
  HeartbeatWatchTest() {
    for (const int local_rank : {0, 1})
      rig_.output.error_files[local_rank] =
          folder_.file("error_" + std::to_string(local_rank) + ".json");
  }
  ~HeartbeatWatchTest() override {
    watch_.cancel();
    io_.restart();
    io_.run();
  }
  void beat(int local_rank, const std::string& step) {
    ASSERT_TRUE(
        hang::write_heartbeat(heartbeat_file(rig_.output.error_files.at(local_rank)), step));
  }
  bool until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition())
      if (io_.run_one_until(deadline) == 0) return false;
    return true;
  }
  bool until_looked(int looks = 1) {
    return until([this, end = looks_ + looks] { return looks_ >= end; });
  }

  static constexpr milliseconds kLimit{300};
  const drun::test::TemporaryDirectory folder_;
  asio::io_context io_{1};
  test::GroupRig rig_;
  int looks_ = 0;
  std::vector<HungRank> late_;
  HeartbeatWatch watch_{io_,
                        {.first = {}, .next = kLimit, .last = {}},
                        rig_.group,
                        {[this](const std::vector<HungRank>& late) {
                           late_.insert(late_.end(), late.begin(), late.end());
                         },
                         [this] { ++looks_; }}};
};

TEST_F(HeartbeatWatchTest, ARankWhoseHeartbeatsEndHasFailedByATimeLimit) {
  rig_.start(place_of(1, 2));
  beat(1, "41");
  watch_.start();
  ASSERT_TRUE(until([this] { return !late_.empty(); }));
  ASSERT_THAT(late_, SizeIs(1)) << "the other has never given one";
  EXPECT_EQ(late_[0].local_rank, 1);
  EXPECT_EQ(late_[0].pid, 102);
  EXPECT_EQ(late_[0].fault.exit_code, kTimeLimit);
  EXPECT_TRUE(late_[0].fault.hangs);
  EXPECT_THAT(late_[0].fault.cause, HasSubstr("after step 41"));
}

TEST_F(HeartbeatWatchTest, WhoIsFurthestBehindIsKnownByItsRank) {
  rig_.start(place_of(1, 2));
  watch_.start();
  ASSERT_TRUE(until_looked());
  EXPECT_FALSE(watch_.behind()) << "none has given a heartbeat";
  beat(0, "42");
  beat(1, "41");
  ASSERT_TRUE(until_looked(2));
  ASSERT_TRUE(watch_.behind());
  EXPECT_EQ(watch_.behind()->rank, 3);
  EXPECT_EQ(watch_.behind()->step, 41);
  EXPECT_GE(watch_.behind()->age_ms, 0);
  beat(1, "42");
  ASSERT_TRUE(until_looked(4));
  EXPECT_FALSE(watch_.behind()) << "who came first waits for the others";
  (void)rig_.group.stop(false, rig_.now);
  EXPECT_FALSE(watch_.behind()) << "they are being stopped";
}

TEST_F(HeartbeatWatchTest, AHeartbeatNeedNotSayAStep) {
  rig_.start(place_of(0, 1));
  beat(0, "");
  watch_.start();
  ASSERT_TRUE(until_looked());
  ASSERT_TRUE(watch_.behind());
  EXPECT_EQ(watch_.behind()->rank, 0);
  EXPECT_EQ(watch_.behind()->step, -1);
}

// Of others -1 is that there is none, and less no step at all.
TEST_F(HeartbeatWatchTest, ANegativeStepIsNoneForOthers) {
  rig_.start(place_of(0, 1));
  beat(0, "-9223372036854775808");
  watch_.start();
  ASSERT_TRUE(until_looked());
  ASSERT_TRUE(watch_.behind());
  EXPECT_EQ(watch_.behind()->step, -1);
  const auto note = watch_.note(1'000'000);
  ASSERT_TRUE(note);
  EXPECT_EQ(note->step, -1);
  EXPECT_EQ(note->most_step, -1);
}

TEST_F(HeartbeatWatchTest, WhoIsNotThereIsNotLate) {
  rig_.start(place_of(0, 1));
  beat(0, "1");
  (void)rig_.end(0);
  watch_.start();
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(until([&] { return std::chrono::steady_clock::now() > begun + 2 * kLimit; }));
  EXPECT_GT(looks_, 0);
  EXPECT_THAT(late_, IsEmpty());
  EXPECT_FALSE(watch_.behind());
}

TEST_F(HeartbeatWatchTest, WithoutLimitsNobodyLooks) {
  HeartbeatWatch none(io_, {}, rig_.group, {[](const auto&) {}, [] { FAIL(); }});
  none.start();
  EXPECT_EQ(io_.run(), 0U);
  EXPECT_FALSE(none.behind());
  none.cancel();
}

TEST_F(HeartbeatWatchTest, OnceItIsCancelledTheLoopEnds) {
  rig_.start(place_of(0, 1));
  watch_.start();
  ASSERT_TRUE(until_looked());
  watch_.cancel();
  looks_ = 0;
  io_.restart();
  io_.run();
  EXPECT_EQ(looks_, 0);
}

}  // namespace
}  // namespace drun::launcher
