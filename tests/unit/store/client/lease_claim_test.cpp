#include "store/client/lease_claim.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::store {
namespace {

using namespace std::chrono_literals;

TEST(LeaseRecordTest, IsReadAsItWasWritten) {
  for (const LeaseRecord& record :
       {LeaseRecord{1, 6s, "ab12", ""}, LeaseRecord{12, 1ms, "x", "rank 0 of node a"}})
    EXPECT_EQ(parse_lease_record(to_bytes(record)), record);
}

TEST(LeaseRecordTest, NothingElseIsTakenForOne) {
  for (const char* bytes : {"", "1", "1 6000", "1 6000 ", "1 6000 id", "0 6000 id x", "1 0 id x",
                            "-1 6000 id x", "one 6000 id x", "1 6s id x", "1 6000  x"})
    EXPECT_EQ(parse_lease_record(bytes), std::nullopt) << bytes;
}

TEST(LeaseWatchTest, SilenceIsAWholeTimeToLiveWithoutACount) {
  const LeaseWatch::Time start{};
  const LeaseRecord holder{1, 100ms, "a", ""};
  LeaseWatch watch;
  EXPECT_FALSE(watch.is_silent(holder, "", start)) << "the first look proves nothing";
  EXPECT_FALSE(watch.is_silent(holder, "", start + 99ms));
  EXPECT_FALSE(watch.is_silent(holder, "1", start + 100ms)) << "it has counted";
  EXPECT_FALSE(watch.is_silent(holder, "1", start + 199ms));
  EXPECT_TRUE(watch.is_silent(holder, "1", start + 200ms));
  LeaseRecord next = holder;
  next.id = "b";
  EXPECT_FALSE(watch.is_silent(next, "1", start + 300ms)) << "another has taken it";
  EXPECT_TRUE(watch.is_silent(next, "1", start + 400ms));
}

}  // namespace
}  // namespace drun::store
