#include "launcher/report/gathered_ranks.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

StoppedRanks some_ranks() {
  StoppedRanks ranks;
  ranks.running = {0, 1, 2, 5};
  ranks.killed = {2};
  ranks.succeeded = {3, 4};
  ranks.all_silent = std::chrono::milliseconds(6'000);
  ranks.others_killed = 7;
  ranks.at_once = true;
  ranks.host = "node1";
  return ranks;
}

TEST(GatheredRanksTest, WhatIsHandedOverComesWhole) {
  const auto ranks = unpacked_ranks(packed_ranks(some_ranks()));
  ASSERT_TRUE(ranks);
  EXPECT_THAT(ranks->running, ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(ranks->killed, ElementsAre(2));
  EXPECT_THAT(ranks->succeeded, ElementsAre(3, 4));
  EXPECT_EQ(ranks->all_silent, std::chrono::milliseconds(6'000));
  EXPECT_EQ(ranks->others_killed, 7U);
  EXPECT_TRUE(ranks->at_once);
  EXPECT_EQ(ranks->host, "");
}

TEST(GatheredRanksTest, WhatIsExpectedIsNotHandedOver) {
  StoppedRanks ranks = some_ranks();
  ranks.expected = true;
  const auto handed = unpacked_ranks(packed_ranks(ranks));
  ASSERT_TRUE(handed);
  EXPECT_THAT(handed->running, IsEmpty());
  EXPECT_THAT(handed->succeeded, IsEmpty());
  EXPECT_THAT(handed->killed, ElementsAre(2));
}

TEST(GatheredRanksTest, OtherTextsAreNone) {
  const std::string good = packed_ranks(some_ranks());
  EXPECT_FALSE(unpacked_ranks("drun: job failed\n"));
  EXPECT_FALSE(unpacked_ranks(""));
  for (std::size_t size = 0; size + 2 < good.size(); ++size)
    EXPECT_FALSE(unpacked_ranks(good.substr(0, size))) << size;
  const auto with_running = [&](const std::string& ranges) {
    std::string text = good;
    const std::string own = "[[0,2],[5,5]]";
    text.replace(text.find(own), own.size(), ranges);
    return unpacked_ranks(text);
  };
  EXPECT_TRUE(with_running("[[0,2],[5,6]]"));
  for (const char* bad : {"[[-1,2]]", "[[0,2000000000]]", "[[0]]", "[0]", "7", "[[\"0\",\"1\"]]",
                          "[[0,99999],[0,0]]"})
    EXPECT_FALSE(with_running(bad)) << bad;
}

TEST(GatheredRanksTest, TheRanksOfAllHostsAreOneLine) {
  GatheredRanks all;
  EXPECT_EQ(all.stopped(), "");
  EXPECT_EQ(all.succeeded(), "");
  StoppedRanks host;
  host.running = {4, 5};
  host.killed = {5};
  all.add(host);
  EXPECT_EQ(all.stopped(), "ranks 4-5 were still running; rank 5 needed SIGKILL");
  host.running = {0, 1, 2};
  host.killed = {};
  host.succeeded = {3};
  all.add(host);
  EXPECT_EQ(all.stopped(), "ranks 0-2,4-5 were still running; rank 5 needed SIGKILL");
  EXPECT_EQ(all.succeeded(), "rank 3 had ended with 0");
  host.running = {};
  host.at_once = true;
  host.killed = {0};
  all.add(host);
  EXPECT_EQ(all.stopped(), "ranks 0-2,4-5 were still running; ranks 0,5 were killed");
}

// Of a host where some rank has just written nothing is known.
TEST(GatheredRanksTest, TheShortestSilenceIsThatOfAll) {
  GatheredRanks all;
  StoppedRanks host;
  host.succeeded = {9};
  all.add(host);  // nobody ran there
  host.succeeded = {};
  host.running = {0};
  host.all_silent = std::chrono::milliseconds(6'000);
  all.add(host);
  host.running = {1};
  host.all_silent = std::chrono::milliseconds(5'000);
  all.add(host);
  EXPECT_EQ(all.stopped(), "ranks 0-1 were still running (silent for at least 5.0 s)");
  EXPECT_EQ(unpacked_ranks(packed_ranks(host))->all_silent, std::chrono::milliseconds(5'000));
  host.running = {2};
  host.all_silent = std::nullopt;
  all.add(host);
  EXPECT_EQ(unpacked_ranks(packed_ranks(host))->all_silent, std::nullopt);
  host.running = {3};
  host.all_silent = std::chrono::milliseconds(7'000);
  all.add(host);
  EXPECT_EQ(all.stopped(), "ranks 0-3 were still running");
}

// ---- for the node that leaves last ----

TEST(PackedEndTest, WhatAReportAndASuspicionNeedComesWhole) {
  StoppedRanks ranks = some_ranks();
  const std::chrono::milliseconds second(1'000);
  ranks.silences = {second, second + std::chrono::milliseconds(90), std::nullopt, 9 * second};
  ranks.few = true;
  ranks.silent = {5};
  ranks.silent_for = "9.0 s";
  ranks.quiet = {0, 1, 5};
  ranks.quiet_for = "1.0 s";
  ranks.job_ranks = 12;
  ranks.expected = true;
  const auto end = unpacked_end(packed_end(ranks, 1'000));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->running, ranks.running);
  EXPECT_THAT(end->silences, ElementsAre(second, second, std::nullopt, 9 * second));
  EXPECT_EQ(end->killed, ranks.killed);
  EXPECT_EQ(end->succeeded, ranks.succeeded);
  EXPECT_EQ(end->all_silent, ranks.all_silent);
  EXPECT_EQ(end->others_killed, 7U);
  EXPECT_EQ(end->host, "node1");
  EXPECT_EQ(end->job_ranks, 12);
  EXPECT_EQ(end->silent, ranks.silent);
  EXPECT_EQ(end->silent_for, "9.0 s");
  EXPECT_EQ(end->quiet, ranks.quiet);
  EXPECT_EQ(end->quiet_for, "1.0 s");
  EXPECT_TRUE(end->few && end->at_once && end->expected);
  EXPECT_EQ(packed_end({}, 1'000), "");
}

TEST(PackedEndTest, OfVeryManyRanksItStaysShort) {
  StoppedRanks ranks;
  for (int rank = 0; rank < 500; ++rank) {
    ranks.running.push_back(rank);
    ranks.silences.emplace_back(rank * 1'000);
  }
  const auto long_one = unpacked_end(packed_end(ranks, 4'000));
  ASSERT_TRUE(long_one);
  EXPECT_EQ(long_one->running.size(), 500U);
  EXPECT_TRUE(long_one->silences[63]);
  EXPECT_FALSE(long_one->silences[64]) << "so many times at most";
  const std::string shorter = packed_end(ranks, 400);
  EXPECT_LE(shorter.size(), 400U);
  ASSERT_TRUE(unpacked_end(shorter));
  EXPECT_EQ(unpacked_end(shorter)->running.size(), 500U);
  EXPECT_FALSE(unpacked_end(shorter)->silences[0]);
  EXPECT_EQ(packed_end(ranks, 10), "");
}

TEST(PackedEndTest, WhatMakesNoSenseIsNone) {
  const std::string good = packed_end(some_ranks(), 1'000);
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(unpacked_end(good.substr(0, size))) << size;
  EXPECT_FALSE(unpacked_end(packed_ranks(some_ranks())));
  EXPECT_FALSE(unpacked_end("[]"));
}

TEST(RanksOfAllTest, StandInTheirOrderWithTheirTimes) {
  const std::chrono::milliseconds second(1'000);
  StoppedRanks own;
  own.running = {4, 5};
  own.silences = {second, std::nullopt};
  own.killed = {5};
  StoppedRanks other;
  other.running = {0, 2};
  other.silences = {2 * second, 3 * second};
  other.killed = {2};
  other.succeeded = {1};
  const StoppedRanks all = ranks_of_all(own, {other});
  EXPECT_THAT(all.running, ElementsAre(0, 2, 4, 5));
  EXPECT_THAT(all.silences, ElementsAre(2 * second, 3 * second, second, std::nullopt));
  EXPECT_THAT(all.killed, ElementsAre(2, 5));
  EXPECT_THAT(all.succeeded, ElementsAre(1));
}

// ---- for a drun that has started the others ----

TEST(GatheredRanksTest, TheOrderOfTheHostsDoesNotMatter) {
  GatheredRanks up;
  GatheredRanks down;
  for (int host = 0; host < 1'000; ++host) {
    StoppedRanks ranks;
    ranks.running = {4 * host, 4 * host + 1};
    ranks.killed = {4 * host + 1};
    ranks.succeeded = {4 * host + 3};
    up.add(ranks);
    ranks.running = {4 * (999 - host), 4 * (999 - host) + 1};
    ranks.killed = {4 * (999 - host) + 1};
    ranks.succeeded = {4 * (999 - host) + 3};
    down.add(ranks);
    down.add(ranks);  // the same again
  }
  EXPECT_EQ(up.stopped(), down.stopped());
  EXPECT_EQ(up.succeeded(), down.succeeded());
  EXPECT_EQ(up.stopped().find("ranks 0-1,4-5,8-9,"), 0U) << up.stopped();
}

// Of a node that was lost and of the one that took its place.
TEST(GatheredRanksTest, ARankOfTwoHostsIsOneRank) {
  GatheredRanks all;
  for (const int rank : {3, 1, 3}) {
    StoppedRanks host;
    host.running = {rank};
    if (all.stopped().find('1') == std::string::npos) host.killed = {rank};
    all.add(host);
  }
  EXPECT_EQ(all.stopped(), "ranks 1,3 were still running and needed SIGKILL");
}

TEST(GatheredRanksTest, ProcessesThatAreNoRanksAreCounted) {
  GatheredRanks all;
  StoppedRanks host;
  host.others_killed = 2;
  all.add(host);
  all.add(host);
  EXPECT_EQ(all.stopped(), "4 processes that the workers had started needed SIGKILL");
}

}  // namespace
}  // namespace drun::launcher
