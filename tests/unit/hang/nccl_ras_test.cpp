#include "hang/nccl_ras.hpp"

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::hang {
namespace {

using testing::HasSubstr;

// As NCCL writes it, but for its line breaks.
constexpr const char* kAnswer = R"({
  "nccl_version": "2.28.3", "cuda_runtime_version": 13000, "cuda_driver_version": 13000,
  "timestamp": "2026-11-29 08:00:00", "communicators_count": 1,
  "communicators": [
    {"hash": "0x7a5f", "secondary_hash": "0x1:0x2", "size": 3, "ranks_count": 2,
     "missing_ranks_count": 1,
     "ranks": [
       {"rank": 0, "host": "10.0.0.1", "pid": 4711, "cuda_dev": 0, "nvml_dev": 0,
        "status": {"init_state": 0, "async_error": 0, "finalize_called": false,
                   "destroy_flag": false, "abort_flag": false},
        "collective_counts": {"Broadcast": 3, "AllReduce": 1204}},
       {"rank": 1, "host": "10.0.0.2", "pid": 815, "cuda_dev": 0, "nvml_dev": 0,
        "status": {"init_state": 0, "async_error": 0, "finalize_called": false,
                   "destroy_flag": false, "abort_flag": true},
        "collective_counts": {"Broadcast": 3, "AllReduce": 1203}}
     ],
     "missing_ranks": [
       {"rank": 2, "host": "10.0.0.3", "pid": 99, "cuda_dev": 0, "nvml_dev": 0,
        "status": {"unresponsive": true, "considered_dead": false}}
     ]}
  ],
  "ras": {"collection_time_sec": 0.012, "timeouts_count": 1}
})";

RasRank rank(int number, std::uint64_t all_reduce, std::uint64_t sends = 0) {
  return {number, 1'000 + number, "10.0.0.1", {{"AllReduce", all_reduce}, {"Send", sends}}, false};
}

RasStatus world(std::vector<RasRank> ranks) {
  RasCommunicator communicator;
  communicator.size = static_cast<int>(ranks.size());
  communicator.ranks = std::move(ranks);
  return {communicator};
}

std::string gap_text(const RasStatus& status, int world_size) {
  const auto gap = collective_gap(status, world_size);
  return gap ? gap->text : "";
}

TEST(RasStatusTest, WhatNcclWritesIsRead) {
  const auto status = decode_ras_status(kAnswer);
  ASSERT_TRUE(status);
  ASSERT_EQ(status->size(), 1U);
  const RasCommunicator& communicator = status->front();
  EXPECT_EQ(communicator.size, 3);
  ASSERT_EQ(communicator.ranks.size(), 2U);
  EXPECT_EQ(communicator.ranks[0],
            (RasRank{0, 4711, "10.0.0.1", {{"Broadcast", 3}, {"AllReduce", 1204}}, false}));
  EXPECT_TRUE(communicator.ranks[1].leaving);
  ASSERT_EQ(communicator.missing.size(), 1U);
  EXPECT_EQ(communicator.missing[0], (RasRank{2, 99, "10.0.0.3", {}, false}));
}

TEST(RasStatusTest, WhatMakesNoSenseIsRefusedOrLeftOut) {
  for (const char* text : {"", "[]", "{}", "OK", R"({"communicators": 3})", R"({"communicators")"})
    EXPECT_FALSE(decode_ras_status(text)) << text;
  for (const char* text :
       {R"({"communicators": [1, null, "x"]})",
        R"({"communicators": [{"ranks": [1, {}, {"rank": -1}, {"rank": "1"}]}]})",
        R"({"communicators": [{"size": 1e99, "ranks": {}}]})"}) {
    const auto status = decode_ras_status(text);
    ASSERT_TRUE(status) << text;
    EXPECT_FALSE(collective_gap(*status, 2)) << text;
  }
}

// It is read at once, and a tree of it would take a GiB.
TEST(RasStatusTest, HostileAnswersAreRefusedOrCutDown) {
  EXPECT_FALSE(decode_ras_status(R"({"communicators": )" + std::string(1'000'000, '[')));
  std::string many = R"({"communicators": [)";
  for (int i = 0; i < 2'000'001; ++i)
    many += "{},";
  EXPECT_FALSE(decode_ras_status(many + "{}]}"));
  std::string counts = "\"" + std::string(65, 'x') + "\": 1";
  for (int i = 0; i < 100; ++i)
    counts += ", \"Op" + std::to_string(i) + "\": 1";
  const auto status = decode_ras_status(R"({"communicators": [{"ranks": [{"rank": 0, "host": ")" +
                                        std::string(3'000'000, 'h') +
                                        R"(", "collective_counts": {)" + counts + R"(}}]}]})");
  ASSERT_TRUE(status);
  const RasRank& found = status->at(0).ranks.at(0);
  EXPECT_EQ(found.host.size(), 64U);
  EXPECT_EQ(found.begun.size(), 32U);
  EXPECT_FALSE(found.begun.contains(std::string(65, 'x')));
}

TEST(RasStatusTest, WhatIsInsideOfUnknownMembersIsNotTaken) {
  const auto status = decode_ras_status(R"({"ranks": [{"rank": 1}], "communicators": [
    {"size": 2, "more": {"size": 3, "ranks": [{"rank": 5}]},
     "missing_ranks": [{"x": [{"rank": 6, "y": []}], "rank": 1, "pid": -3}],
     "ranks": [{"rank": 0, "status": {"rank": 7, "x": {"abort_flag": true}}}]}]})");
  ASSERT_TRUE(status);
  ASSERT_EQ(status->size(), 1U);
  EXPECT_EQ(status->front(),
            (RasCommunicator{2, {{0, -1, "", {}, false}}, {{1, -1, "", {}, false}}}));
}

TEST(CollectiveGapTest, WhoHasNotComeIsNamed) {
  EXPECT_EQ(gap_text(world({rank(0, 5), rank(1, 4), rank(2, 5), rank(3, 5)}), 4),
            "rank 1 has begun 4 AllReduce, the 3 others 5");
  EXPECT_EQ(gap_text(world({rank(0, 5), rank(1, 4), rank(2, 3), rank(3, 5)}), 4),
            "ranks 1-2 have begun 3 AllReduce, the 2 others 5");
  EXPECT_EQ(gap_text(world({rank(0, 5), rank(1, 4)}), 2),
            "rank 1 has begun 4 AllReduce, the other 5");
  EXPECT_EQ(gap_text(world({rank(0, 5), rank(1, 5)}), 2), "");
  EXPECT_EQ(gap_text(world({}), 2), "");
}

// Then all others are behind.
TEST(CollectiveGapTest, OneThatIsAheadIsNamedInsteadOfAllTheOthers) {
  const auto gap = collective_gap(world({rank(0, 5), rank(1, 4), rank(2, 4)}), 3);
  ASSERT_TRUE(gap);
  EXPECT_EQ(gap->text, "rank 0 has begun 5 AllReduce, the 2 others 4");
  EXPECT_EQ(gap->behind, (std::vector<RasRank>{rank(1, 4), rank(2, 4)}));
}

TEST(CollectiveGapTest, SendsAndReceivesAreNotEverybodys) {
  EXPECT_EQ(gap_text(world({rank(0, 5, 1), rank(1, 5, 0)}), 2), "");
}

TEST(CollectiveGapTest, AnEndIsNoHang) {
  auto leaving = rank(1, 4);
  leaving.leaving = true;
  EXPECT_EQ(gap_text(world({rank(0, 5), leaving}), 2), "");
}

TEST(CollectiveGapTest, WhoGivesNoAnswerIsBehind) {
  auto status = world({rank(0, 5), rank(1, 5)});
  status[0].size = 3;
  status[0].missing = {rank(2, 0)};
  const auto gap = collective_gap(status, 3);
  ASSERT_TRUE(gap);
  EXPECT_EQ(gap->text, "rank 2 gives no answer to NCCL");
  EXPECT_EQ(gap->behind, status[0].missing);
}

// The ranks of a part of the job have other numbers in it.
TEST(CollectiveGapTest, ThatOfTheLargestCommunicatorComesFirst) {
  auto status = world({rank(0, 5), rank(1, 4)});
  EXPECT_EQ(gap_text(status, 8),
            "rank 1 of a communicator of 2 (process 1001 on 10.0.0.1) has begun 4 AllReduce, the "
            "other 5");
  const auto larger = world({rank(0, 7), rank(1, 7), rank(2, 6)});
  status.push_back(larger.front());
  EXPECT_THAT(gap_text(status, 3), HasSubstr("rank 2 has begun 6"));
}

TEST(CollectiveGapTest, ItsTextIsShort) {
  std::vector<RasRank> ranks;
  for (int i = 0; i < 10'000; ++i)
    ranks.push_back(rank(i, i % 3 == 0 ? 4 : 5));
  EXPECT_EQ(gap_text(world(ranks), 10'000),
            "ranks 0,3,6,9,12,15,18,21,24,27,30,33,36,39,42,45,48,51,54,57,60,63,66,69,72,75,78,81,"
            "84,87,90,93,96,... have begun 4 AllReduce, the 6666 others 5");
  auto odd = rank(1, 0);
  odd.host = std::string(3'000, '\x1b');
  auto other = rank(0, 0);
  other.begun = {{std::string(3'000'000, 'x'), 1}};
  EXPECT_LE(gap_text(world({other, odd}), 8).size(), 300U);
}

// All have begun the same of very many. Who looks for each in all ranks anew takes minutes.
TEST(CollectiveGapTest, LongAnswersAreReadInOneGo) {
  std::vector<RasRank> ranks;
  for (int i = 0; i < 10; ++i) {
    ranks.push_back(rank(i, 5));
    for (int k = 0; k < 6'000; ++k)
      ranks.back().begun["Operation" + std::to_string(k)] = 1;
  }
  const RasStatus even = world(ranks);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(gap_text(even, 10), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
  ranks[7].begun.erase("Operation2999");
  EXPECT_EQ(gap_text(world(ranks), 10), "rank 7 has begun 0 Operation2999, the 9 others 1");
}

TEST(CollectiveGapTest, NoneAndZeroAreTheSame) {
  auto none = rank(1, 5);
  none.begun.erase("Send");
  auto zero = rank(0, 5);
  zero.begun["Broadcast"] = 0;
  EXPECT_EQ(gap_text(world({zero, none}), 2), "");
}

TEST(CollectiveGapTest, TextOfTheNetworkIsMadeHarmless) {
  auto odd = rank(0, 5);
  odd.begun = {{"All\x1b[31m", 5}};
  odd.host = "\x1b]0;";
  EXPECT_EQ(gap_text(world({odd, rank(1, 0)}), 8).find('\x1b'), std::string::npos);
}

TEST(StuckCollectivesTest, TwoAnswersInARowMustSayTheSame) {
  StuckCollectives collectives;
  EXPECT_EQ(collectives.text(), "");
  const auto behind = world({rank(0, 5), rank(1, 4)});
  collectives.on_answer(conclude(behind, 2));
  EXPECT_FALSE(collectives.stuck());
  EXPECT_EQ(collectives.text(), "NCCL: rank 1 has begun 4 AllReduce, the other 5");
  collectives.on_answer(conclude(behind, 2));
  ASSERT_TRUE(collectives.stuck());
  EXPECT_EQ(collectives.stuck()->behind, std::vector{rank(1, 4)});
  collectives.on_answer(conclude(world({rank(0, 6), rank(1, 5)}), 2));
  EXPECT_FALSE(collectives.stuck());
  collectives.on_answer(std::nullopt);
  collectives.on_answer(std::nullopt);
  EXPECT_FALSE(collectives.stuck());
  EXPECT_EQ(collectives.text(), "");
}

TEST(StuckCollectivesTest, IfNobodyIsBehindNothingIsStuck) {
  StuckCollectives collectives;
  const auto even = world({rank(0, 5), rank(1, 5)});
  collectives.on_answer(conclude(even, 2));
  collectives.on_answer(conclude(even, 2));
  EXPECT_FALSE(collectives.stuck());
  EXPECT_EQ(collectives.text(), "NCCL: all ranks have begun the same collectives");
}

TEST(RasProcessTest, AProcessOfAnotherMachineIsAnother) {
  const std::set<pid_t> ours = {1'001};
  auto here = rank(1, 5);
  here.host = "127.0.0.1";
  auto elsewhere = rank(1, 5);
  elsewhere.host = "192.0.2.1";
  EXPECT_TRUE(is_one_of(here, ours));
  EXPECT_FALSE(is_one_of(elsewhere, ours));
  EXPECT_TRUE(speaks_of(world({rank(0, 5), here}), ours));
  EXPECT_FALSE(speaks_of(world({rank(0, 5), elsewhere}), ours));
  EXPECT_FALSE(speaks_of(world({here}), {4'711}));
}

TEST(RasEndpointTest, IsNcclsOwnUnlessGiven) {
  EXPECT_EQ(ras_endpoint(""), (Endpoint{"localhost", 28'028}));
  EXPECT_EQ(ras_endpoint("127.0.0.1:5"), (Endpoint{"127.0.0.1", 5}));
  EXPECT_EQ(ras_endpoint("[::1]:5"), (Endpoint{"::1", 5}));
  EXPECT_EQ(ras_endpoint("not:a:port"), (Endpoint{"localhost", 28'028}));
}

}  // namespace
}  // namespace drun::hang
