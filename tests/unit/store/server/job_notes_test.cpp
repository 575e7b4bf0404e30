#include "store/server/job_notes.hpp"

#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

#include "store/server/deaths.hpp"
#include "store/server/founders.hpp"
#include "store/server/stamps.hpp"
#include "store/table/budget.hpp"

namespace drun::store {
namespace {

constexpr Time kStart{std::chrono::hours(1)};

Place place(std::uint64_t era, std::uint64_t round, std::uint32_t rank) {
  return {{era, round}, rank, 3, 0};
}

class Watcher final : public TableClient {
 public:
  void on_wait_done(std::uint64_t) override {}
  void on_changes(std::uint64_t, Publication&) override { ++told; }
  int told = 0;
};

class JobNotesTest : public testing::Test {
 protected:
  Budget budget{1'000'000};
  KeyTable table{budget};
};

TEST_F(JobNotesTest, WhoHasGoneHasAKeyForEachRoundInWhichItHadARank) {
  Vote vote;
  vote.settled = place(7, 2, 1);
  vote.later = {place(7, 3, 0), place(7, 4, kNoRank)};
  write_gone(table, "drun/a/", vote);
  EXPECT_NE(table.find("drun/a/gone/7.2.1"), nullptr);
  EXPECT_NE(table.find("drun/a/gone/7.3.0"), nullptr);
  EXPECT_EQ(table.size(), 2U);
}

TEST_F(JobNotesTest, TheSilenceIsWrittenInMilliseconds) {
  write_silence(table, "drun/a/", Milliseconds(1'500));
  ASSERT_NE(table.find("drun/a/silence"), nullptr);
  EXPECT_EQ(*table.find("drun/a/silence"), "1500");
}

// Whoever waits for it hears of it at once, not with what is written next.
TEST_F(JobNotesTest, WhoWatchesHearsOfIt) {
  Watcher watcher;
  ASSERT_TRUE(table.watch(watcher, 1, "drun/a/", true));
  const int before = watcher.told;
  Vote vote;
  vote.settled = place(7, 2, 1);
  write_gone(table, "drun/a/", vote);
  EXPECT_EQ(watcher.told, before + 1);
  write_silence(table, "drun/a/", Milliseconds(1'500));
  EXPECT_EQ(watcher.told, before + 2);
  table.unwatch(watcher, 1);
}

TEST(DeathsTest, EachVoteCountsOnceAndTheOldestGiveWay) {
  Deaths deaths;
  for (std::uint64_t round = 1; round <= Deaths::kMost + 1; ++round) {
    const Vote vote{place(1, round, 0), {}};
    deaths.note({1, vote, kStart});
    deaths.note({2, vote, kStart + Milliseconds(1)});
  }
  ASSERT_EQ(deaths.all.size(), Deaths::kMost);
  EXPECT_EQ(deaths.all.front().vote.settled.electorate.round, 2U);
  EXPECT_EQ(deaths.all.back().generation, 1U);
}

TEST(AdmittedTest, FoundersOfAnotherListSpeakOfOtherNodes) {
  const Place founders{{0, 77}, kNoRank, 3, 0};
  const Place own{{0, 77}, 1, 3, 0};
  struct Case {
    const char* name;
    Vote vote;
    Vote admitted;
  };
  for (const Case& each :
       {Case{"its own", {own, {}}, {own, {}}}, Case{"another list", {{{0, 78}, 1, 3, 0}, {}}, {}},
        Case{"of fewer", {{{0, 77}, 1, 2, 0}, {}}, {}},
        Case{"a round", {place(5, 1, 0), {}}, {place(5, 1, 0), {}}},
        Case{"no founding after a round",
             {place(5, 1, 0), {own, place(5, 2, 0)}},
             {place(5, 1, 0), {place(5, 2, 0)}}}}) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(admitted(each.vote, founders), each.admitted);
  }
}

TEST(StampsTest, AMomentComesBackAsItWasButNeverFromTheFuture) {
  const Time sent = kStart + std::chrono::microseconds(7);
  EXPECT_EQ(time_of(stamp_of(sent), kStart + Milliseconds(5)), sent);
  EXPECT_EQ(time_of(stamp_of(sent), kStart), kStart) << "a peer's clock, or its lie";
}

TEST(StampsTest, AnAgeIsRoundedUpAndNeverNever) {
  EXPECT_EQ(age_in_ms(kStart, kStart + std::chrono::microseconds(1'001)), 2U);
  EXPECT_EQ(age_in_ms(kStart, kStart - Milliseconds(1)), 0U);
  EXPECT_EQ(age_in_ms(kStart, kStart + std::chrono::hours(24 * 365)), control::Pulsed::kNever - 1);
}

}  // namespace
}  // namespace drun::store
