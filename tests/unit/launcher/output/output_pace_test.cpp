#include "launcher/output/output_pace.hpp"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class ReadPaceTest : public testing::Test {
 protected:
  // How often in `times` reads of so many bytes, each so long after the one before, it waits.
  int waits(int times, std::size_t bytes, microseconds gap) {
    int count = 0;
    for (int i = 0; i < times; ++i) {
      now_ += gap;
      if (pace_.waits(now_)) ++count;
      pace_.ended(bytes, now_);
    }
    return count;
  }

  ReadPace pace_;
  ReadPace::Time now_ = ReadPace::Time{} + std::chrono::hours(1);
};

TEST_F(ReadPaceTest, AFewLinesArePassedOnAtOnce) {
  EXPECT_EQ(waits(8, 53, microseconds(1)), 0);
}

TEST_F(ReadPaceTest, LinesThatComeNowAndThenArePassedOnAtOnce) {
  EXPECT_EQ(waits(1000, 53, ReadPace::kPause), 0);
}

TEST_F(ReadPaceTest, WhoWritesInBlocksIsReadAtOnce) {
  EXPECT_EQ(waits(1000, 4096, microseconds(1)), 0);
}

TEST_F(ReadPaceTest, ManyLinesOneByOneAreReadTogether) {
  EXPECT_EQ(waits(108, 53, microseconds(1)), 100);
  EXPECT_EQ(waits(1, 53, milliseconds(1)), 0) << "after a pause of their own";
}

TEST_F(ReadPaceTest, EndsWhenBlocksCome) {
  EXPECT_EQ(waits(100, 53, microseconds(1)), 92);
  EXPECT_LE(waits(100, 4096, microseconds(1)), 2);
}

}  // namespace
}  // namespace drun::launcher
