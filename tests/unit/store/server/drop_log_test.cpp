#include "store/server/drop_log.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/base/log.hpp"

namespace drun::store {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class DropLogTest : public testing::Test {
 protected:
  DropLogTest() {
    log::redirect([this](const std::string& line) { lines_.push_back(line); });
  }
  ~DropLogTest() override { log::redirect(nullptr); }

  DropLog log_;
  std::vector<std::string> lines_;
  Time now_{std::chrono::hours(1)};
};

TEST_F(DropLogTest, OfOneKindThereIsOneLineInAPeriod) {
  for (int i = 0; i < 5; ++i)
    log_.report("host:1: another token", now_, "host: another token");
  log_.report("host:2: no token", now_, "host: no token");
  log_.report("other:3: another token", now_, "other: another token");
  log_.report("host:4: for another reason", now_);
  log_.report("host:4: for another reason", now_);
  EXPECT_THAT(lines_, SizeIs(5));
  log_.report("host:5: another token", now_ + DropLog::kPeriod, "host: another token");
  ASSERT_THAT(lines_, SizeIs(7));
  EXPECT_THAT(lines_[5], HasSubstr("dropped 4 more peers for like reasons"));
  EXPECT_THAT(lines_[6], HasSubstr("host:5"));
}

TEST_F(DropLogTest, InAPeriodThereAreSoManyLinesAndNoMore) {
  for (int i = 0; i < 100; ++i)
    log_.report("peer " + std::to_string(i), now_);
  EXPECT_THAT(lines_, SizeIs(DropLog::kLinesPerPeriod));
}

}  // namespace
}  // namespace drun::store
