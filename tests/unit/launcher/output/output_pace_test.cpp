#include "launcher/output/output_pace.hpp"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class ReadPaceTest : public testing::Test {
 protected:
  // How often in `times` reads of so many bytes, each so long after the one before, it waits. A
  // wait makes the bytes `gain` times as many.
  int waits(int times, std::size_t bytes, microseconds gap, std::size_t gain = 10) {
    int count = 0;
    for (int i = 0; i < times; ++i) {
      now_ += gap;
      const bool waited = pace_.waits(now_);
      if (waited) ++count;
      pace_.ended(bytes, waited ? bytes * gain : bytes, now_);
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

// A program that waits for an answer to each line.
TEST_F(ReadPaceTest, AWaitThatBringsNothingIsSeldomTriedAgain) {
  EXPECT_EQ(waits(8, 53, microseconds(1), 1), 0);
  EXPECT_EQ(waits(65, 53, microseconds(1), 1), 1);
  EXPECT_EQ(waits(650, 53, microseconds(1), 1), 10);
  EXPECT_GT(waits(100, 53, microseconds(1)), 30) << "until it brings more";
}

TEST_F(ReadPaceTest, EndsWhenBlocksCome) {
  EXPECT_EQ(waits(100, 53, microseconds(1)), 92);
  EXPECT_LE(waits(100, 4096, microseconds(1)), 2);
}

}  // namespace
}  // namespace drun::launcher
